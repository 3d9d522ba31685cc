// Deciding under another prior: answer = argmax over k = 1..K of ln p(k | x) + offset[k], where offset[k] = ln P(k) -
// ln P_train(k) and ln p(k | x) is the model's, summed over the tokens of k. A sequence that is no k <= K has the offset of
// the smallest k whose offset is finite. Knows the tokens of k and a network, not how the offsets come about.

import { refuse } from "./errors.js";
import { logSumExp } from "./kernels.js";
import { BEGIN, DIGIT_0, END, PLUS } from "./problem.js";

export class Prior {
  // `offsets` is a Float64Array (or array) whose item k - 1 belongs to k.
  constructor(offsets, problem) {
    if (problem.task !== "gcd") refuse(`prior: only for task 'gcd', not '${problem.task}'`);
    if (!(Array.isArray(offsets) || ArrayBuffer.isView(offsets)) || !offsets.length || offsets.length > problem.maximum)
      refuse("prior: a Float64Array with an offset for every k from 1 up to at most the run's maximum is needed");
    this.offsets = Float64Array.from(offsets);
    const bad = this.offsets.findIndex((offset) => !(offset < Infinity));
    if (bad >= 0) refuse(`prior: the offset of ${bad + 1} must be a number below infinity, got ${this.offsets[bad]}`);
    this.other = this.offsets.find(Number.isFinite) ?? refuse("prior: no offset is finite");
    this.problem = problem;
    // In a base above K an answer is one digit: a vector is added to that digit's logits.
    this.oneDigit = this.offsets.length < problem.base;
    if (this.oneDigit) {
      this.vector = new Float64Array(problem.vocabulary).fill(this.other);
      this.vector.set(this.offsets, DIGIT_0 + 1);
    } else this.tree = prefixTree(this.offsets.length, problem);
  }

  // ln p(k | x) of every k <= K, by walking the tree of their tokens, each prefix computed once.
  scores(network, hooks) {
    const found = new Float64Array(this.offsets.length);
    const { vocabulary } = this.problem;
    const walk = (node, token, position, logP) => {
      network.advance([token], position, hooks);
      const total = logSumExp(network.logits, 0, vocabulary);
      if (node.k) found[node.k - 1] = logP + network.logits[END] - total;
      const steps = [...node.children].map(([next, child]) => [child, next, logP + network.logits[next] - total]);
      for (const [child, next, sum] of steps) walk(child, next, position + 1, sum);
    };
    walk(this.tree, BEGIN, 0, 0);
    return found;
  }
}

// Every prefix of the tokens of 1..K: its children by their token, and the k that ends there, if any.
function prefixTree(largest, problem) {
  const root = { children: new Map(), k: 0 };
  for (let k = 1; k <= largest; k += 1) {
    let node = root;
    for (const token of problem.encodeInteger(k)) {
      if (!node.children.has(token)) node.children.set(token, { children: new Map(), k: 0 });
      node = node.children.get(token);
    }
    node.k = k;
  }
  return root;
}

// Whether the digit that the offsets belong to comes next.
export const atDigit = (tokens) => tokens.length === 1 && tokens[0] === PLUS;
