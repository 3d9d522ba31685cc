// A run's configuration (the fields of config.toml) as the browser needs it: the sizes of the model, and integers to tokens
// and back. The reference is gcdformer/numbers/encoding.py and gcdformer/config/sections.py. Knows tokens, not weights.

import { refuse, shown } from "./errors.js";

export const PAD = 0;
export const BEGIN = 1;
export const END = 2;
export const PLUS = 3;
export const MINUS = 4;
export const DIGIT_0 = 5;
const SPECIAL_TOKENS = ["<pad>", "<begin>", "<end>", "+", "-"];
const LARGEST_ANSWER = 2n ** 63n - 1n;

// Tasks with two operands: how many integers an answer has, and the largest ones for operands up to m.
const TASKS = {
  gcd: { outputs: 1, largestInput: (m) => m, largestOutput: (m) => m },
  division: { outputs: 1, largestInput: (m) => m * m + m, largestOutput: (m) => m },
  simplification: { outputs: 2, largestInput: (m) => m * m, largestOutput: (m) => m },
};

// One section of the configuration. A field that is absent or null has the default, or is refused if there is none; a
// field that nobody read is one that this module does not know, and is refused too.
class Section {
  constructor(config, name) {
    const fields = isObject(config) && Object.hasOwn(config, name) ? config[name] : null;
    if (!isObject(fields)) refuse(`configuration: no section '${name}'`);
    this.name = name;
    this.fields = fields;
    this.unread = new Set(Object.keys(fields));
  }

  value(name, fallback) {
    this.unread.delete(name);
    const value = Object.hasOwn(this.fields, name) ? this.fields[name] : null;
    if (value !== null && value !== undefined) return value;
    return fallback === undefined ? refuse(`${this.name}.${name} is missing in the configuration`) : fallback;
  }

  integer(name, low, high, fallback) {
    const value = this.value(name, fallback);
    if (value === null || (Number.isSafeInteger(value) && value >= low && value <= high)) return value;
    return refuse(`${this.name}.${name}: an integer in ${low}..${high}, got ${shown(value)}`);
  }

  choice(name, choices, fallback) {
    const value = this.value(name, fallback);
    if (choices.includes(value)) return value;
    return refuse(`${this.name}.${name}: ${shown(value)} is not known here; ${choices.join(", ")} are`);
  }

  nothingElse() {
    for (const name of this.unread) refuse(`configuration: the field ${shown(name)} of '${this.name}' is not known here`);
  }
}

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

function readSizes(config) {
  const section = new Section(config, "model");
  const family = section.choice("family", ["transformer", "lstm", "gru"]);
  const sizes = { family };
  for (const side of ["encoder", "decoder"]) {
    sizes[side] = {
      layers: section.integer(`${side}_layers`, 1, 256),
      dim: section.integer(`${side}_dim`, 1, 65536),
      heads: section.integer(`${side}_heads`, 0, 65536),
    };
    const { dim, heads } = sizes[side];
    if (family === "transformer" && (heads < 1 || dim % heads))
      refuse(`model.${side}_heads must divide ${side}_dim: ${heads} does not divide ${dim}`);
  }
  sizes.hidden = section.integer("hidden_dim", 1, 65536, null) ?? sizes.encoder.dim;
  sizes.positions = section.integer("positions", 1, 1_000_000, null);
  sizes.queryFromInput = section.choice("cross_query", ["state", "input"], "state") === "input";
  sizes.epsilon = section.value("norm_epsilon", 1e-5);
  if (!(typeof sizes.epsilon === "number" && sizes.epsilon >= 1e-12 && sizes.epsilon <= 0.1))
    refuse(`model.norm_epsilon: a number in 1e-12..0.1, got ${shown(sizes.epsilon)}`);
  section.nothingElse();
  if (family !== "transformer" && sizes.encoder.layers !== sizes.decoder.layers)
    refuse(`model.encoder_layers and decoder_layers must be equal for family '${family}'`);
  return sizes;
}

function digitCount(value, base) {
  let count = 1;
  for (let rest = value; rest >= base; rest = (rest - (rest % base)) / base) count += 1;
  return count;
}

// What is asked, how it is written, and the sizes of the model that answers.
export class Problem {
  constructor(config) {
    const section = new Section(config, "task");
    this.task = section.choice("task", Object.keys(TASKS));
    this.base = section.integer("base", 2, 20_000);
    this.maximum = section.integer("maximum", 2, Number.MAX_SAFE_INTEGER);
    this.framed = section.choice("framing", ["none", "published"], "none") === "published";
    section.nothingElse();
    const { outputs, largestInput, largestOutput } = TASKS[this.task];
    this.outputs = outputs;
    this.largestInput = largestInput(this.maximum);
    if (this.largestInput > Number.MAX_SAFE_INTEGER)
      refuse(`task.maximum: questions of '${this.task}' must stay below 2^53 here, got ${this.maximum}`);
    this.vocabulary = DIGIT_0 + this.base;
    this.longestInput = 2 * (1 + digitCount(this.largestInput, this.base)) + (this.framed ? 2 : 0);
    this.longestTarget = 1 + outputs * (1 + digitCount(largestOutput(this.maximum), this.base));
    this.sizes = readSizes(config);
    const { positions } = this.sizes;
    const longest = Math.max(this.longestInput, this.longestTarget);
    if (positions !== null && positions < longest)
      refuse(`model.positions: at least ${longest} for this task, base and maximum, got ${positions}`);
  }

  // The tokens of a question; each operand is a sign and its digits, most significant first.
  encodePair(a, b) {
    const tokens = [...this.encodeInteger(this.operand("a", a)), ...this.encodeInteger(this.operand("b", b))];
    return this.framed ? [BEGIN, ...tokens, END] : tokens;
  }

  encodeInteger(value) {
    const digits = [];
    let rest = value;
    do {
      digits.push(DIGIT_0 + (rest % this.base));
      rest = (rest - (rest % this.base)) / this.base;
    } while (rest > 0);
    return [PLUS, ...digits.reverse()];
  }

  operand(name, value) {
    const number = typeof value === "bigint" && value <= Number.MAX_SAFE_INTEGER ? Number(value) : value;
    if (Number.isSafeInteger(number) && number >= 1 && number <= this.largestInput) return number;
    return refuse(`${name}: an integer in 1..${this.largestInput}, got ${shown(value)}`);
  }

  // The integer of an answer (several in an array where the task has several), or null if the tokens are not exactly what
  // encoding some integers gives, with END behind. A BigInt where a number would not be exact.
  decodeAnswer(tokens) {
    const end = tokens.indexOf(END);
    const values = [];
    let at = 0;
    while (at < end) {
      const sign = tokens[at];
      const first = at + 1;
      let value = 0n;
      for (at = first; at < end && tokens[at] >= DIGIT_0 && tokens[at] < this.vocabulary; at += 1)
        value = value * BigInt(this.base) + BigInt(tokens[at] - DIGIT_0);
      const leadingZero = at > first + 1 && tokens[first] === DIGIT_0;
      const isInteger = (sign === PLUS || (sign === MINUS && value > 0n)) && at > first && !leadingZero;
      if (!isInteger || value > LARGEST_ANSWER) return null;
      const signed = sign === MINUS ? -value : value;
      values.push(value <= Number.MAX_SAFE_INTEGER ? Number(signed) : signed);
    }
    if (values.length !== this.outputs) return null;
    return this.outputs === 1 ? values[0] : values;
  }

  // A token as a person reads it.
  word(token) {
    return token < DIGIT_0 ? SPECIAL_TOKENS[token] : `${token - DIGIT_0}`;
  }
}
