// A run's model in the browser: reads its weights (safetensors) and configuration, and answers questions with what it did on
// the way: logits, attention, hook points; with patches, and under another decision prior. No dependency, no network.
//
//   const model = loadModel({ weights: await (await fetch("model.safetensors")).arrayBuffer(), config });
//   model.ask(160, 120).answer
//
// docs/browser.md describes it. Arithmetic is in float32 with sums in double precision. Everything it cannot do is refused
// with a ModelError. Greedy decoding only, one question at a time.

import { ModelError, refuse, shown } from "./errors.js";
import { Hooks } from "./hooks.js";
import { logSumExp } from "./kernels.js";
import { bestAnswers, isListed, leastOffset, readOffsets } from "./prior.js";
import { BEGIN, END, Problem } from "./problem.js";
import { Recurrent, recurrentShapes } from "./recurrent.js";
import { readTensors } from "./safetensors.js";
import { Transformer, transformerShapes } from "./transformer.js";

export { ModelError };

const LIKELY = 8;

export function loadModel({ weights, config } = {}) {
  const problem = new Problem(config);
  const [Network, shapes] =
    problem.sizes.family === "transformer" ? [Transformer, transformerShapes] : [Recurrent, recurrentShapes];
  return new Model(problem, new Network(problem, readTensors(weights, shapes(problem))));
}

class Model {
  #network;

  constructor(problem, network) {
    this.problem = problem;
    this.#network = network;
  }

  // The hook points in the order of the forward pass: {name, shape (letters of docs/HOOKS.md), readOnly}.
  points() {
    return this.#network.points.map((point) => ({ ...point }));
  }

  encodePair(a, b) {
    return this.problem.encodePair(a, b);
  }

  // {answer, readable}: the integer that these tokens are, null if they are none.
  decodeAnswer(tokens) {
    const answer = this.problem.decodeAnswer(Array.from(tokens));
    return { answer, readable: answer !== null };
  }

  // Everything about one question. `trace` records the hook points, which `attention` and `cache(names)` then give.
  ask(a, b, options = {}) {
    const { prior, patches, trace } = readOptions(options, ["prior", "patches", "trace"]);
    const { problem } = this;
    const offsets = prior === null ? null : readOffsets(prior, problem);
    const hooks = trace || patches ? new Hooks(this.#network.points, patches, Boolean(trace)) : null;
    const steps = [];
    const input = problem.encodePair(a, b);
    const { tokens, candidates } = this.#decide(input, offsets, hooks, (token, logits) =>
      steps.push({ token, word: problem.word(token), logits: logits.slice(), likely: likeliestTokens(logits, problem) }),
    );
    return {
      input,
      tokens,
      ...this.decodeAnswer(tokens),
      steps,
      candidates,
      attention: trace && problem.sizes.family === "transformer" ? attentionOf(hooks) : null,
      cache: (names = "*") =>
        trace ? hooks.cache(names) : refuse("cache: ask with {trace: true} to have the values of hook points"),
    };
  }

  // The answers to many pairs [a, b], null where one is unreadable.
  answers(pairs, options = {}) {
    const { prior } = readOptions(options, ["prior"]);
    const offsets = prior === null ? null : readOffsets(prior, this.problem);
    return Array.from(pairs, ([a, b]) => {
      const { tokens } = this.#decide(this.problem.encodePair(a, b), offsets, null, null);
      return this.problem.decodeAnswer(tokens);
    });
  }

  // Teacher forcing, as `run_with_cache` in Python: `targets` begin with BEGIN, row t of the logits is what follows target t.
  forward(inputs, targets, options = {}) {
    const { patches } = readOptions(options, ["patches"]);
    const { longestInput, longestTarget, vocabulary } = this.problem;
    const hooks = new Hooks(this.#network.points, patches, true);
    const read = (name, tokens, longest) => {
      const row = Array.from(tokens);
      const sound = row.every((token) => Number.isInteger(token) && token > 0 && token < vocabulary);
      if (sound && row.length >= 1 && row.length <= longest) return row;
      return refuse(`${name}: 1 to ${longest} tokens in 1..${vocabulary - 1}, got ${shown(row)}`);
    };
    const [question, fed] = [read("inputs", inputs, longestInput), read("targets", targets, longestTarget)];
    this.#network.encode(question, hooks);
    this.#network.advance(fed, 0, hooks);
    return { logits: hooks.cache("logits").logits, cache: (names = "*") => hooks.cache(names) };
  }

  // Encode, decode, and give the tokens of the answer and, under a prior, the likeliest answers. `report` gets each token
  // with the logits it was chosen from.
  #decide(inputs, offsets, hooks, report) {
    if (offsets === null) {
      this.#network.encode(inputs, hooks);
      return { tokens: this.#decode(argmaxOf, hooks, report), candidates: null };
    }
    // Patches apply to what is scored, but only the answer that wins is recorded: it is decoded once more.
    const patches = hooks?.patches.size ? hooks.withoutRecords() : null;
    this.#network.encode(inputs, patches);
    let logP = 0;
    const own = this.#decode(argmaxOf, patches, (token, logits) => {
      logP += logits[token] - logSumExp(logits, 0, logits.length);
    });
    const answer = this.problem.decodeAnswer(own);
    const search = report ? { count: LIKELY, all: true } : { count: 1, all: false };
    const { scored, rest } = bestAnswers(this.#network, this.problem, offsets, search, patches);
    if (!isListed(answer, offsets)) scored.push([answer, logP + leastOffset(offsets)]);
    const [best] = scored.reduce((one, other) => (other[1] > one[1] ? other : one));
    const tokens = best === answer ? own : [...this.problem.encodeInteger(best), END];
    if (!report) return { tokens, candidates: null };
    this.#network.encode(inputs, hooks);
    this.#decode(({ length }) => tokens[length], hooks, report);
    return { tokens, candidates: likeliestAnswers(scored, rest) };
  }

  // Token by token: `choose` takes the next one from the tokens so far and the logits. Ends behind END, or at the longest.
  // `report`, if any, gets the token and the logits, which are overwritten by the next step.
  #decode(choose, hooks, report) {
    const network = this.#network;
    const { longestTarget, vocabulary } = this.problem;
    const logits = network.logits.subarray(0, vocabulary);
    const tokens = [];
    while (tokens.length < longestTarget && tokens.at(-1) !== END) {
      network.advance([tokens.at(-1) ?? BEGIN], tokens.length, hooks);
      const token = choose(tokens, logits);
      if (!Number.isFinite(logits[token])) refuse("weights: the logits that they lead to are not finite");
      tokens.push(token);
      report?.(token, logits);
    }
    return tokens;
  }
}

function readOptions(options, known) {
  for (const name of Object.keys(options))
    if (!known.includes(name)) refuse(`option ${shown(name)}: not known here; ${known.join(", ")} are`);
  return { prior: options.prior ?? null, patches: options.patches ?? null, trace: options.trace ?? false };
}

const argmaxOf = (_, logits) => argmax(logits);

// The first of the largest values.
function argmax(values) {
  let best = 0;
  for (let i = 1; i < values.length; i += 1) if (values[i] > values[best]) best = i;
  return best;
}

// The places of the few largest values, largest first.
function largest(values) {
  const places = [];
  for (let i = 0; i < values.length; i += 1) {
    if (places.length === LIKELY && !(values[i] > values[places[LIKELY - 1]])) continue;
    let at = places.length;
    while (at > 0 && values[i] > values[places[at - 1]]) at -= 1;
    places.splice(at, 0, i);
    places.length = Math.min(places.length, LIKELY);
  }
  return places;
}

function likeliestTokens(logits, problem) {
  const total = logSumExp(logits, 0, logits.length);
  return largest(logits).map((token) => ({ token, word: problem.word(token), p: Math.exp(logits[token] - total) }));
}

// The best answers with their scores, and these as shares of all, where answers that were left out count by their bounds.
function likeliestAnswers(scored, rest) {
  const scores = scored.map(([, score]) => score);
  const total = logSumExp([...scores, ...rest], 0, scores.length + rest.length);
  return largest(scores).map((place) => {
    const [answer, score] = scored[place];
    return { answer, score, p: Math.exp(score - total) };
  });
}

// {encoder, decoder, cross}: [layer][head][query] is a Float32Array over the keys.
function attentionOf(hooks) {
  const patterns = (glob) =>
    Object.values(hooks.cache(glob)).map(({ shape: [heads, rows, keys], values }) =>
      Array.from({ length: heads }, (_, h) =>
        Array.from({ length: rows }, (__, t) => values.slice((h * rows + t) * keys, (h * rows + t + 1) * keys)),
      ),
    );
  return {
    encoder: patterns("encoder.*.attention.pattern"),
    decoder: patterns("decoder.*.attention.pattern"),
    cross: patterns("decoder.*.cross_attention.pattern"),
  };
}
