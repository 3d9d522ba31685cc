// The transformer: encoder-decoder, post-norm, ReLU, learned positions, output tied to the decoder's embedding. Buffers are
// allocated once; the decoder's keys and values stay in a cache by position, so that decoding can step back to a prefix.
// The reference is gcdformer/models/transformer.py. Knows tokens, not integers.

import { addAndNormalise, attentionPattern, linear, mixValues, normalise, relu } from "./kernels.js";

const SIDES = { encoder: ["attention", "feed_forward"], decoder: ["attention", "cross_attention", "feed_forward"] };

// name -> shape of every weight.
export function transformerShapes({ sizes, vocabulary, longestInput, longestTarget }) {
  const shapes = new Map();
  const add = (name, nout, nin) => shapes.set(`${name}.weight`, [nout, nin]).set(`${name}.bias`, [nout]);
  const norm = (name, dim) => shapes.set(`${name}.weight`, [dim]).set(`${name}.bias`, [dim]);
  const embedding = (name, positions, dim) => {
    shapes.set(`${name}.tokens.weight`, [vocabulary, dim]).set(`${name}.positions.weight`, [positions, dim]);
    norm(`${name}.norm`, dim);
  };
  embedding("embed_inputs", sizes.positions ?? longestInput, sizes.encoder.dim);
  embedding("embed_outputs", sizes.positions ?? longestTarget, sizes.decoder.dim);
  for (const [side, parts] of Object.entries(SIDES)) {
    const { layers, dim } = sizes[side];
    for (let i = 0; i < layers; i += 1) {
      const layer = `${side}.${i}`;
      add(`${layer}.attention.qkv`, 3 * dim, dim);
      add(`${layer}.attention.out`, dim, dim);
      if (side === "decoder") {
        add(`${layer}.cross_attention.q`, dim, dim);
        add(`${layer}.cross_attention.kv`, 2 * dim, sizes.encoder.dim);
        add(`${layer}.cross_attention.out`, dim, dim);
      }
      add(`${layer}.feed_forward.up`, 4 * dim, dim);
      add(`${layer}.feed_forward.down`, dim, 4 * dim);
      for (const part of parts) norm(`${layer}.norm_${part}`, dim);
    }
  }
  return shapes.set("output_bias", [vocabulary]);
}

function transformerPoints(sizes) {
  const points = [];
  const add = (name, shape) => points.push({ name, shape, readOnly: false });
  for (const [side, parts] of Object.entries(SIDES)) {
    const rows = side === "encoder" ? "S" : "T";
    add(`${side}.embedding`, `${rows} D`);
    for (let i = 0; i < sizes[side].layers; i += 1) {
      for (const part of parts) {
        if (part === "feed_forward") add(`${side}.${i}.feed_forward.hidden`, `${rows} 4D`);
        else {
          add(`${side}.${i}.${part}.pattern`, `H ${rows} ${part === "attention" ? rows : "S"}`);
          add(`${side}.${i}.${part}.heads`, `${rows} D`);
        }
        add(`${side}.${i}.${part}.out`, `${rows} D`);
        add(`${side}.${i}.residual.${part}`, `${rows} D`);
      }
    }
  }
  add("logits", "T V");
  return points;
}

// What one side computes with: its width, and buffers for `rows` rows that see up to `keys` keys.
class Side {
  constructor({ dim, heads }, rows, keys) {
    Object.assign(this, { dim, heads });
    for (const name of ["x", "state", "queries", "mixed", "added"]) this[name] = new Float32Array(rows * dim);
    this.hidden = new Float32Array(rows * 4 * dim);
    this.pattern = new Float32Array(heads * rows * keys);
  }
}

export class Transformer {
  constructor(problem, tensors) {
    const { sizes, vocabulary, longestInput, longestTarget } = problem;
    const map = (name) => {
      const [weight, bias] = [tensors.get(`${name}.weight`), tensors.get(`${name}.bias`)];
      return { weight, bias, nout: bias.length, nin: weight.length / bias.length };
    };
    const norm = (name) => ({
      weight: tensors.get(`${name}.weight`),
      bias: tensors.get(`${name}.bias`),
      epsilon: sizes.epsilon,
    });
    const embedding = (name) => ({
      tokens: tensors.get(`${name}.tokens.weight`),
      positions: tensors.get(`${name}.positions.weight`),
      norm: norm(`${name}.norm`),
    });
    const layers = (side, rows) =>
      Array.from({ length: sizes[side].layers }, (_, i) => {
        const name = `${side}.${i}`;
        const layer = {
          name,
          qkv: map(`${name}.attention.qkv`),
          attention: map(`${name}.attention.out`),
          up: map(`${name}.feed_forward.up`),
          down: map(`${name}.feed_forward.down`),
          norms: Object.fromEntries(SIDES[side].map((part) => [part, norm(`${name}.norm_${part}`)])),
          cache: new Float32Array(rows * 3 * sizes[side].dim),
        };
        if (side === "encoder") return layer;
        return {
          ...layer,
          q: map(`${name}.cross_attention.q`),
          kv: map(`${name}.cross_attention.kv`),
          cross_attention: map(`${name}.cross_attention.out`),
          memory: new Float32Array(longestInput * 2 * sizes.decoder.dim),
        };
      });
    this.queryFromInput = sizes.queryFromInput;
    this.points = transformerPoints(sizes);
    this.inputs = embedding("embed_inputs");
    this.outputs = embedding("embed_outputs");
    this.encoderLayers = layers("encoder", longestInput);
    this.decoderLayers = layers("decoder", longestTarget);
    this.encoder = new Side(sizes.encoder, longestInput, longestInput);
    this.decoder = new Side(sizes.decoder, longestTarget, Math.max(longestInput, longestTarget));
    this.projection = {
      weight: this.outputs.tokens,
      bias: tensors.get("output_bias"),
      nin: sizes.decoder.dim,
      nout: vocabulary,
    };
    this.logits = new Float32Array(longestTarget * vocabulary);
    this.memoryLength = 0;
  }

  // Read a question; decoding then starts at position 0.
  encode(tokens, hooks) {
    const side = this.encoder;
    const rows = tokens.length;
    embed(side, this.inputs, tokens, 0);
    hooks?.visit("encoder.embedding", side.x, [rows, side.dim], 0);
    for (const layer of this.encoderLayers) {
      selfAttention(side, layer, rows, 0, hooks, side.x);
      feedForward(side, layer, rows, 0, hooks, side.x);
    }
    for (const layer of this.decoderLayers) linear(layer.memory, 0, side.x, layer.kv, rows);
    this.memoryLength = rows;
  }

  // Feed tokens from position `start` on; the first rows of `this.logits` are then what follows each of them.
  advance(tokens, start, hooks) {
    const side = this.decoder;
    const rows = tokens.length;
    embed(side, this.outputs, tokens, start);
    hooks?.visit("decoder.embedding", side.x, [rows, side.dim], start);
    for (const layer of this.decoderLayers) {
      selfAttention(side, layer, rows, start, hooks, side.state);
      linear(side.queries, 0, this.queryFromInput ? side.x : side.state, layer.q, rows);
      const stride = 2 * side.dim;
      const queries = { values: side.queries, at: 0, stride: side.dim, row: 0 };
      const part = (at) => ({ values: layer.memory, at, stride });
      const memory = { keys: part(0), values: part(side.dim) };
      const lengths = { rows, count: this.memoryLength, causal: false };
      attend(side, layer, "cross_attention", queries, memory, lengths, start, hooks);
      addTo(side.state, side.state, side, layer, "cross_attention", rows, start, hooks);
      feedForward(side, layer, rows, start, hooks, side.state);
    }
    linear(this.logits, 0, side.x, this.projection, rows);
    hooks?.visit("logits", this.logits, [rows, this.projection.nout], start);
  }
}

// x = norm(tokens + positions)
function embed(side, { tokens: table, positions, norm }, tokens, start) {
  const { dim, x } = side;
  tokens.forEach((token, t) => {
    for (let i = 0; i < dim; i += 1) x[t * dim + i] = table[token * dim + i] + positions[(start + t) * dim + i];
  });
  normalise(x, tokens.length, norm);
}

// out = norm(x + attention of x to itself and to the positions before `start`)
function selfAttention(side, layer, rows, start, hooks, out) {
  const stride = 3 * side.dim;
  linear(layer.cache, start, side.x, layer.qkv, rows);
  const part = (at) => ({ values: layer.cache, at, stride, row: start });
  const memory = { keys: part(side.dim), values: part(2 * side.dim) };
  const causal = layer.q !== undefined;
  attend(side, layer, "attention", part(0), memory, { rows, count: start + rows, causal }, start, hooks);
  addTo(out, side.x, side, layer, "attention", rows, start, hooks);
}

// added = out(heads), where head h mixes the values by its pattern.
function attend(side, layer, part, queries, { keys, values }, lengths, start, hooks) {
  const { heads, dim, pattern, mixed } = side;
  const { rows, count } = lengths;
  const sizes = { ...lengths, heads, width: dim / heads };
  attentionPattern(pattern, queries, keys, sizes);
  hooks?.visit(`${layer.name}.${part}.pattern`, pattern, [heads, rows, count], start);
  mixValues(mixed, pattern, values, sizes);
  hooks?.visit(`${layer.name}.${part}.heads`, mixed, [rows, dim], start);
  linear(side.added, 0, mixed, layer[part], rows);
}

// x = norm(state + down(relu(up(state))))
function feedForward(side, layer, rows, start, hooks, state) {
  const { hidden, dim } = side;
  linear(hidden, 0, state, layer.up, rows);
  relu(hidden, rows * 4 * dim);
  hooks?.visit(`${layer.name}.feed_forward.hidden`, hidden, [rows, 4 * dim], start);
  linear(side.added, 0, hidden, layer.down, rows);
  addTo(side.x, state, side, layer, "feed_forward", rows, start, hooks);
}

// out = norm(x + added)
function addTo(out, x, side, layer, part, rows, start, hooks) {
  const shape = [rows, side.dim];
  hooks?.visit(`${layer.name}.${part}.out`, side.added, shape, start);
  addAndNormalise(out, x, side.added, rows, layer.norms[part]);
  hooks?.visit(`${layer.name}.residual.${part}`, out, shape, start);
}
