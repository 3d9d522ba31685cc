// LSTM and GRU: the encoder's final state starts the decoder; there is no attention. The decoder's state is stored for every
// position, so that decoding can step back to a prefix. The reference is gcdformer/models/recurrent.py. Knows tokens only.

import { linear, normalise } from "./kernels.js";

const SIDES = { encoder: "inputs", decoder: "outputs" };
const GATES = { lstm: 4, gru: 3 };

// name -> shape of every weight.
export function recurrentShapes({ sizes, vocabulary }) {
  const shapes = new Map();
  const gates = GATES[sizes.family] * sizes.hidden;
  for (const [side, end] of Object.entries(SIDES)) {
    const { dim, layers } = sizes[side];
    shapes.set(`embed_${end}.weight`, [vocabulary, dim]);
    shapes.set(`norm_${end}.weight`, [dim]).set(`norm_${end}.bias`, [dim]);
    for (let i = 0; i < layers; i += 1) {
      shapes.set(`${side}.weight_ih_l${i}`, [gates, i ? sizes.hidden : dim]).set(`${side}.bias_ih_l${i}`, [gates]);
      shapes.set(`${side}.weight_hh_l${i}`, [gates, sizes.hidden]).set(`${side}.bias_hh_l${i}`, [gates]);
    }
  }
  shapes.set("read.weight", [sizes.decoder.dim, sizes.hidden]).set("read.bias", [sizes.decoder.dim]);
  return shapes.set("output_bias", [vocabulary]);
}

const sigmoid = (x) => 1 / (1 + Math.exp(-x));

// One layer at one time: from the gates' sums over the input (gi) and over the old state (gh) to the new state, in place.
// LSTM: i, f, g, o = the sums' quarters;  c = sigmoid(f) c + sigmoid(i) tanh(g);  h = sigmoid(o) tanh(c)
function lstmCell(gi, gh, h, c, at, hidden) {
  for (let j = 0; j < hidden; j += 1) {
    const sum = (gate) => gi[gate * hidden + j] + gh[gate * hidden + j];
    c[at + j] = sigmoid(sum(1)) * c[at + j] + sigmoid(sum(0)) * Math.tanh(sum(2));
    h[at + j] = sigmoid(sum(3)) * Math.tanh(c[at + j]);
  }
}

// GRU: r, z, n = the sums' thirds;  n = tanh(n_input + sigmoid(r) n_state);  h = (1 - sigmoid(z)) n + sigmoid(z) h
function gruCell(gi, gh, h, c, at, hidden) {
  for (let j = 0; j < hidden; j += 1) {
    const reset = sigmoid(gi[j] + gh[j]);
    const update = sigmoid(gi[hidden + j] + gh[hidden + j]);
    const fresh = Math.tanh(gi[2 * hidden + j] + reset * gh[2 * hidden + j]);
    h[at + j] = (1 - update) * fresh + update * h[at + j];
  }
}

export class Recurrent {
  constructor(problem, tensors) {
    const { sizes, vocabulary, longestInput, longestTarget } = problem;
    const { hidden, family, epsilon } = sizes;
    const side = (name, rows) => {
      const { dim, layers } = sizes[name];
      const map = (kind, i) => {
        const [weight, bias] = [tensors.get(`${name}.weight_${kind}_l${i}`), tensors.get(`${name}.bias_${kind}_l${i}`)];
        return { weight, bias, nout: bias.length, nin: weight.length / bias.length };
      };
      const end = SIDES[name];
      return {
        dim,
        table: tensors.get(`embed_${end}.weight`),
        norm: { weight: tensors.get(`norm_${end}.weight`), bias: tensors.get(`norm_${end}.bias`), epsilon },
        layers: Array.from({ length: layers }, (_, i) => ({ input: map("ih", i), state: map("hh", i) })),
        x: new Float32Array(rows * dim),
        states: new Float32Array(rows * hidden),
      };
    };
    this.cell = family === "lstm" ? lstmCell : gruCell;
    this.hidden = hidden;
    this.encoder = side("encoder", longestInput);
    this.decoder = side("decoder", longestTarget);
    const size = sizes.encoder.layers * hidden;
    const slots = Array.from({ length: longestTarget + 1 });
    // (layers, hidden) before each position: h, and c for the LSTM.
    this.slots = slots.map(() => ({ h: new Float32Array(size), c: family === "lstm" ? new Float32Array(size) : null }));
    this.gi = new Float32Array(GATES[family] * hidden);
    this.gh = new Float32Array(GATES[family] * hidden);
    const { dim } = sizes.decoder;
    this.reader = { weight: tensors.get("read.weight"), bias: tensors.get("read.bias"), nin: hidden, nout: dim };
    this.read = new Float32Array(longestTarget * dim);
    this.projection = { weight: this.decoder.table, bias: tensors.get("output_bias"), nin: dim, nout: vocabulary };
    this.logits = new Float32Array(longestTarget * vocabulary);
    this.points = [
      ["encoder.embedding", "S D"],
      ["encoder.states", "S D"],
      ["encoder.final.hidden", "L D"],
      ...(family === "lstm" ? [["encoder.final.cell", "L D"]] : []),
      ["decoder.embedding", "T D"],
      ["decoder.states", "T D"],
      ["decoder.read", "T D"],
      ["logits", "T V"],
    ].map(([name, shape]) => ({ name, shape, readOnly: name === "encoder.states" }));
  }

  // Read a question; decoding then starts at position 0.
  encode(tokens, hooks) {
    const side = this.encoder;
    const { h, c } = this.slots[0];
    embed(side, tokens);
    hooks?.visit("encoder.embedding", side.x, [tokens.length, side.dim], 0);
    h.fill(0);
    c?.fill(0);
    for (let t = 0; t < tokens.length; t += 1) this.tick(side, t, h, c);
    hooks?.visit("encoder.states", side.states, [tokens.length, this.hidden], 0);
    hooks?.visit("encoder.final.hidden", h, [side.layers.length, this.hidden], 0);
    if (c) hooks?.visit("encoder.final.cell", c, [side.layers.length, this.hidden], 0);
  }

  // Feed tokens from position `start` on; the first rows of `this.logits` are then what follows each of them.
  advance(tokens, start, hooks) {
    const side = this.decoder;
    const rows = tokens.length;
    embed(side, tokens);
    hooks?.visit("decoder.embedding", side.x, [rows, side.dim], start);
    for (let t = 0; t < rows; t += 1) {
      const [before, after] = [this.slots[start + t], this.slots[start + t + 1]];
      after.h.set(before.h);
      after.c?.set(before.c);
      this.tick(side, t, after.h, after.c);
    }
    hooks?.visit("decoder.states", side.states, [rows, this.hidden], start);
    linear(this.read, 0, side.states, this.reader, rows);
    hooks?.visit("decoder.read", this.read, [rows, side.dim], start);
    linear(this.logits, 0, this.read, this.projection, rows);
    hooks?.visit("logits", this.logits, [rows, this.projection.nout], start);
  }

  // All layers at row t: the state goes on by one token, and the last layer's h is row t of the side's states.
  tick(side, t, h, c) {
    const { hidden, gi, gh } = this;
    side.layers.forEach((layer, i) => {
      const x = i ? h.subarray((i - 1) * hidden, i * hidden) : side.x.subarray(t * side.dim, (t + 1) * side.dim);
      linear(gi, 0, x, layer.input, 1);
      linear(gh, 0, h.subarray(i * hidden, (i + 1) * hidden), layer.state, 1);
      this.cell(gi, gh, h, c, i * hidden, hidden);
    });
    side.states.set(h.subarray((side.layers.length - 1) * hidden), t * hidden);
  }
}

// x = norm(tokens)
function embed({ dim, x, table, norm }, tokens) {
  tokens.forEach((token, t) => x.set(table.subarray(token * dim, (token + 1) * dim), t * dim));
  normalise(x, tokens.length, norm);
}
