// One question to a model as the lab's server answers it (/api/runs/RUN/ask), by the model in the browser. What needs the
// run's explanation (`rule`, `reason`) and names (`run`, `epoch`) is not in it: the page has those.

import { DIGIT_0, END } from "./problem.js";

export function askedOf(model, a, b, options = {}) {
  const { problem } = model;
  const { input, tokens, answer, steps, candidates, attention } = model.ask(a, b, { ...options, trace: true });
  const truth = gcd(a, b);
  return {
    a,
    b,
    base: problem.base,
    prediction: answer,
    truth,
    right: answer === truth,
    input: input.map((token) => problem.word(token)),
    output: tokens.map((token) => problem.word(token)),
    value_of: valueOf(tokens, problem.base),
    steps: steps.map(({ word, likely }) => ({ chosen: word, likely: likely.map(({ word: w, p }) => ({ word: w, p })) })),
    candidates,
    attention,
  };
}

const gcd = (a, b) => (b ? gcd(b, a % b) : a);

// The answer's digits as a sum of powers of the base: `1 × 30 + 10`. null if there is only one digit or no integer.
function valueOf(tokens, base) {
  const digits = tokens.length > 3 && tokens.at(-1) === END ? tokens.slice(1, -1).map((token) => token - DIGIT_0) : [];
  if (digits.length < 2 || digits.some((digit) => digit < 0)) return null;
  const term = (digit, i) => (i < digits.length - 1 ? `${digit} × ${base ** (digits.length - 1 - i)}` : `${digit}`);
  return digits.map(term).join(" + ");
}
