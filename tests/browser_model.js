// The page's side of tests/test_browser_model.py: loads models by name from the test, and reports what they did as JSON.

import { askedOf } from "/model/asked.js";
import { loadModel, ModelError } from "/model/model.js";
import { readTensors } from "/model/safetensors.js";

const CLOSE = 1e-4;

const bytes = async (name) => (await fetch(`/data/${name}`)).arrayBuffer();
const json = async (name) => (await fetch(`/data/${name}`)).json();

const models = new Map();
const model = async (name) => {
  if (!models.has(name)) {
    const [weights, config] = [await bytes(`${name}.safetensors`), await json(`${name}.json`)];
    models.set(name, loadModel({ weights, config }));
  }
  return models.get(name);
};

const plain = (cache) =>
  Object.fromEntries(Object.entries(cache).map(([name, { shape, values }]) => [name, { shape, values: [...values] }]));

// A patch of a test: {from: values}, or {scale, shift} for a function.
const patchesOf = (given) =>
  Object.fromEntries(
    Object.entries(given).map(([name, { values, scale, shift }]) => [
      name,
      values ? Float32Array.from(values) : (value) => value.map((x) => scale * x + shift),
    ]),
  );

// Ask every pair, and compare with the tokens, answers and logits (pairs, steps, vocabulary) of torch. A row is compared up
// to the first token that differs, which it may only where torch's two best logits are close.
export async function compare(name) {
  const asked = await model(name);
  const { pairs, tokens, answers } = await json(`${name}.questions.json`);
  const logits = new Float32Array(await bytes(`${name}.logits`));
  const size = logits.length / tokens.flat().length;
  const found = { worst: 0, near: 0, differ: [] };
  let at = 0;
  pairs.forEach(([a, b], row) => {
    const { tokens: mine, answer, steps } = asked.ask(a, b);
    const same = tokens[row].length === mine.length && tokens[row].every((token, t) => token === mine[t]);
    const first = tokens[row].findIndex((token, t) => token !== mine[t]);
    tokens[row].forEach((token, t) => {
      const expected = logits.subarray(at, at + size);
      at += size;
      if (!same && t > first) return;
      expected.forEach((value, i) => (found.worst = Math.max(found.worst, Math.abs(value - steps[t].logits[i]))));
      if (token === mine[t]) return;
      const [best, second] = [...expected].sort((x, y) => y - x);
      if (best - second < CLOSE) found.near += 1;
      else found.differ.push([a, b, tokens[row], mine]);
    });
    if (same && answer !== answers[row]) found.differ.push([a, b, answers[row], answer]);
  });
  const batch = asked.answers(pairs.slice(0, 20));
  if (batch.some((answer, row) => answer !== asked.ask(...pairs[row]).answer)) found.differ.push("answers() and ask()");
  return found;
}

export async function points(name) {
  return (await model(name)).points();
}

// Teacher forcing: the values of the points that `names` choose.
export async function forward(name, inputs, targets, names, patches) {
  return plain((await model(name)).forward(inputs, targets, { patches: patchesOf(patches) }).cache(names));
}

const lists = (layers) => layers.map((heads) => heads.map((rows) => rows.map((row) => [...row])));
const nested = (attention) => Object.fromEntries(Object.entries(attention).map(([side, all]) => [side, lists(all)]));

// As the lab's server answers.
export async function asked(name, pairs) {
  const loaded = await model(name);
  return pairs.map(([a, b]) => {
    const found = askedOf(loaded, a, b);
    return { ...found, attention: nested(found.attention) };
  });
}

// null stands for minus infinity.
const offsetsOf = (prior) => prior && Float64Array.from(prior, (offset) => offset ?? -Infinity);

export async function answers(name, pairs, prior) {
  return (await model(name)).answers(pairs, { prior: offsetsOf(prior) });
}

export async function ask(name, a, b, { trace = false, patches = {}, prior = null } = {}) {
  const found = (await model(name)).ask(a, b, { trace, patches: patchesOf(patches), prior: offsetsOf(prior) });
  return {
    ...found,
    steps: found.steps.map((step) => ({ ...step, logits: [...step.logits] })),
    attention: found.attention && nested(found.attention),
    cache: trace ? plain(found.cache()) : null,
  };
}

// Integers to tokens and back; integers that are no exact numbers are given and reported as text.
export async function encoded(name, pairs) {
  const asked = await model(name);
  return pairs.map(([a, b]) => asked.encodePair(BigInt(a), BigInt(b)));
}

export async function decoded(name, rows) {
  const asked = await model(name);
  const text = (answer) => (answer === null ? null : [answer].flat().map(String));
  return rows.map((row) => text(asked.decodeAnswer(row).answer));
}

// The values of a file with one tensor, "w".
export async function tensor(name, shape) {
  return [...readTensors(await bytes(name), new Map([["w", shape]])).get("w")];
}

// What loading (and asking, if that works) raises: [is it a ModelError, its message] or null, for each file.
export async function refusals(cases) {
  const found = [];
  for (const { weights, config } of cases) {
    try {
      loadModel({ weights: await bytes(weights), config }).ask(6, 4);
      found.push(null);
    } catch (error) {
      found.push([error instanceof ModelError, error.message]);
    }
  }
  return found;
}

// The message of the ModelError that a call of a loaded model's method raises.
export async function mistake(name, method, ...given) {
  const asked = await model(name);
  try {
    asked[method](...given);
  } catch (error) {
    if (error instanceof ModelError) return error.message;
    throw error;
  }
  return null;
}
