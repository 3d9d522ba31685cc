// Why the model answered what it answered, in the words of the server's `reason` (display/reasons.py): from an epoch's rules,
// the GCD and the prediction. A test compares the two, sentence by sentence.

import { factors } from "../dom.js";

const TESTED = 100;
const shown = (value) => (value === null ? "an unreadable answer" : `${value}`);
const gcd = (a, b) => (b ? gcd(b, a % b) : a);

// As Python writes `{100 * part:.0f}`: a half goes to the even neighbour.
function percent(part) {
  const value = 100 * part;
  const below = Math.floor(value);
  return value - below === 0.5 ? below + (below % 2) : Math.round(value);
}

// Why an answer differs from the run's own.
export function otherPrior(k, prediction, own) {
  const end = prediction === k ? ", and that is the GCD." : `; the true GCD is ${k}.`;
  return `Under this prior the model gives ${shown(prediction)} instead of ${shown(own)}${end}`;
}

export class Reasons {
  // `epoch` is what /api/runs/RUN/epochs/E sends; `threshold` is the run's.
  constructor(epoch, threshold) {
    this.threshold = threshold;
    this.correct = epoch.D;
    this.classes = epoch.E !== null;
    this.labels = epoch.E ?? epoch.D;
    this.learning = new Set(epoch.being_learned);
    this.byK = new Map(epoch.f.map((cell) => [cell.k, cell]));
  }

  label(k) {
    return this.labels.reduce((best, label) => (k % label === 0 && label > best ? label : best), 0) || null;
  }

  // What the rules say about pairs of GCD k; null if that is no integer.
  rule(k) {
    return this.byK.get(this.label(k) ?? 1)?.rule ?? null;
  }

  reason(k, prediction) {
    const rule = this.rule(k);
    if (prediction === null && rule === null)
      return `The model gives an unreadable answer, which no rule explains; the true GCD is ${k}.`;
    if (prediction === rule) return this.asTheRulesSay(k, rule);
    const says = `${this.whatTheRulesSay(k, rule)}${this.onTheWay(k)}`;
    if (prediction === k) return `The model is right: the GCD is ${k}. ${says}.`;
    return `The model gives ${shown(prediction)}, against its own rules. ${says}; the true GCD is ${k}.`;
  }

  asTheRulesSay(k, rule) {
    const end = rule === k ? "." : `; the true GCD is ${k}.`;
    if (this.classes)
      return `The GCD ${k} lies in the class of ${this.label(k) ?? 1}, the largest label in E that divides a and b, and pairs of that class get ${shown(rule)}${end}`;
    if (rule === null || this.label(k) === null)
      return `No element of D divides a and b, so the model gives the answer it has for coprime pairs, ${shown(rule)}${end}`;
    const start =
      rule === 1
        ? "Of the elements of D only 1 divides both a and b"
        : `a and b are both divisible by ${rule}, the largest element of D that divides them`;
    return rule === k ? `${start}, and it is their GCD.` : `${start}; the true GCD is ${k}, but ${this.missing(k, rule)}.`;
  }

  whatTheRulesSay(k, rule) {
    const [name, label] = [this.classes ? "E" : "D", this.label(k)];
    return label === null
      ? `No element of ${name} divides a and b, so the rules say ${shown(rule)}`
      : `The largest element of ${name} that divides a and b is ${label}, so the rules say ${shown(rule)}`;
  }

  // What D lacks of k, so that its largest divisor in D is only `answer`.
  missing(k, answer) {
    const divisors = this.correct.filter((d) => k % d === 0);
    const parts = [];
    let together = 1;
    for (const [p, exponent] of factors(k)) {
      const need = p ** exponent;
      const have = Math.max(...divisors.map((d) => gcd(d, need)));
      together *= have;
      if (have === 1) parts.push(`${p} is not learned yet`);
      else if (have < need) parts.push(`of ${need} only ${have} is learned${this.onlyWithin(divisors, have)}`);
    }
    if (together !== answer) parts.push(this.lacking(together));
    return parts.join(" and ");
  }

  // For a prime power that D has in a product but not by itself: where, and how far it is.
  onlyWithin(divisors, power) {
    if (this.correct.includes(power)) return "";
    const within = divisors.find((d) => d % power === 0);
    const own = this.byK.get(power);
    const far = own ? `: ${percent(own.right)} % of the pairs with GCD ${power} are answered ${power}` : "";
    return ` (within ${within}; ${power} itself is not in D yet${far})`;
  }

  lacking(k) {
    if (k > TESTED) return `D is only measured up to ${TESTED}`;
    const powers = factors(k).map(([p, exponent]) => p ** exponent);
    const known = powers.every((q) => this.correct.includes(q));
    return `${k} itself is not in D${known ? ", although its prime powers are" : ""}`;
  }

  // How often such pairs got what they got, where that explains a disagreement.
  onTheWay(k) {
    const cell = this.byK.get(k);
    if (!cell) return "";
    const answered = `${percent(cell.right)} % of the pairs with GCD ${k} are`;
    if (this.learning.has(k)) return `, but ${k} is being learned: ${answered} answered ${k}`;
    if (factors(k).length === 1 && cell.right >= 0.05 && cell.right < this.threshold)
      return `, but ${answered} already answered ${k}`;
    return `; ${percent(cell.share)} % of the pairs with GCD ${k} get ${shown(cell.prediction)}`;
  }
}
