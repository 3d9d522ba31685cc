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

// The best answers to the question that the network has read: {scored, rest}. `scored` has [k, ln p(k | x) + offset], and
// the best `count` listed k are among them for certain; `rest` has upper bounds of the scores of those that were left out.
//
// The tokens of the k form a tree, and the network's cache of positions is the path from its root. A prefix is left out if
// its ln p plus the largest offset below it cannot be among the best. With `all`, only a k whose last token is known is left
// out, so that its bound lacks nothing but ln p(END).
export function bestAnswers(network, problem, offsets, { count, all }, hooks) {
  const scored = [];
  const rest = [];
  const best = new Float64Array(count).fill(-Infinity); // in descending order
  const add = (k, score) => {
    scored.push([k, score]);
    let at = count;
    while (at > 0 && score > best[at - 1]) at -= 1;
    if (at < count) best.copyWithin(at + 1, at).fill(score, at, at + 1);
  };
  const walk = (node, token, position, logP) => {
    network.advance([token], position, hooks);
    const { logits } = network;
    const base = logP - logSumExp(logits, 0, problem.vocabulary);
    if (node.k) add(node.k, base + logits[END] + offsets[node.k - 1]);
    const steps = [...node.children].map(([next, child]) => ({ child, next, sum: base + logits[next] }));
    steps.sort((one, other) => other.sum + other.child.offset - one.sum - one.child.offset);
    for (const { child, next, sum } of steps) {
      const bound = sum + child.offset;
      if (bound < best[count - 1] && !(all && child.children.size)) rest.push(bound);
      else walk(child, next, position + 1, sum);
    }
  };
  walk(prefixTree(problem, offsets), BEGIN, 0, 0);
  return { scored, rest };
}

// Every prefix of the tokens of the listed k: its children by their token, the k that ends there if any, and the largest
// offset of the k below it.
function prefixTree(problem, offsets) {
  const fresh = () => ({ children: new Map(), k: 0, offset: -Infinity });
  const root = fresh();
  offsets.forEach((offset, i) => {
    if (offset === -Infinity) return;
    let node = root;
    for (const token of problem.encodeInteger(i + 1)) {
      if (!node.children.has(token)) node.children.set(token, fresh());
      node = node.children.get(token);
      node.offset = Math.max(node.offset, offset);
    }
    node.k = i + 1;
  });
  return root;
}

// Whether this answer is one of those that the offsets list.
export const isListed = (answer, offsets) => answer >= 1 && answer <= offsets.length && offsets[answer - 1] > -Infinity;

// The offset of all sequences that are not listed.
export const leastOffset = (offsets) => offsets.reduce((least, o) => (o > -Infinity && o < least ? o : least), Infinity);
