// Deciding under another prior: answer = argmax over the listed k of ln p(k | x) + offset[k], where offset[k] = ln P(k) -
// ln P_train(k) and ln p(k | x) is the model's, summed over the tokens of k and END. The sequence that greedy decoding gives
// competes too if it is no listed k, with the smallest offset of all. Knows the tokens of k, not where offsets come from.

import { refuse, shown } from "./errors.js";
import { logSumExp } from "./kernels.js";
import { BEGIN, END } from "./problem.js";

// The offsets as numbers; item k - 1 belongs to k, and minus infinity says that k is not listed.
export function readOffsets(offsets, problem) {
  if (problem.task !== "gcd") refuse(`prior: only for task 'gcd', not '${problem.task}'`);
  if (!(Array.isArray(offsets) || ArrayBuffer.isView(offsets)) || !offsets.length || offsets.length > problem.maximum)
    refuse("prior: a Float64Array with an offset for every k from 1 up to at most the run's maximum is needed");
  const bad = Array.from(offsets).findIndex((offset) => !(typeof offset === "number" && offset < Infinity));
  if (bad >= 0) refuse(`prior: the offset of ${bad + 1} must be a number below infinity, got ${shown(`${offsets[bad]}`)}`);
  const numbers = Float64Array.from(offsets);
  if (!numbers.some(Number.isFinite)) refuse("prior: no offset is finite");
  return numbers;
}

// ln p(k | x) of every k up to `largest` for the question that the network has read. Their tokens form a tree; each prefix
// is computed once, and the network's cache of positions is the path from the root.
export function scoreAnswers(network, problem, largest, hooks) {
  const found = new Float64Array(largest);
  const walk = (node, token, position, logP) => {
    network.advance([token], position, hooks);
    const total = logSumExp(network.logits, 0, problem.vocabulary);
    if (node.k) found[node.k - 1] = logP + network.logits[END] - total;
    const steps = [...node.children].map(([next, child]) => [child, next, logP + network.logits[next] - total]);
    for (const [child, next, sum] of steps) walk(child, next, position + 1, sum);
  };
  walk(prefixTree(problem, largest), BEGIN, 0, 0);
  return found;
}

// Every prefix of the tokens of 1..K: its children by their token, and the k that ends there, if any.
function prefixTree(problem, largest) {
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

// [answer, ln p + offset] of every listed k, and of the model's own answer if it is none of them.
export function scoresUnder({ logP, own }, offsets) {
  const scored = [];
  let least = Infinity;
  offsets.forEach((offset, i) => {
    if (offset === -Infinity) return;
    scored.push([i + 1, logP[i] + offset]);
    least = Math.min(least, offset);
  });
  const isListed = own.answer >= 1 && own.answer <= offsets.length && offsets[own.answer - 1] > -Infinity;
  if (!isListed) scored.push([own.answer, own.logP + least]);
  return scored;
}
