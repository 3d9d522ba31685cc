// Flip divisibility of a by a learned prime inside the network: run (a, b), but where the mechanism says that p is carried, put
// in the values of (a', b). a' has as many digits as a and differs in divisibility by p and in nothing else that the rules look
// at. The reference is gcdformer/mechanism/flip.py, which draws a' at random; here a pair always gets the same one.

import { refuse } from "./errors.js";

const CANDIDATES = 20_000;
const GOLDEN = (Math.sqrt(5) - 1) / 2;
const gcd = (a, b) => (b ? gcd(b, a % b) : a);

// `rules` has label(k) and rule(k); `mechanism` is what `gcdformer mechanism` writes. Gives the fields of the server's /flip.
export function flipped(model, rules, mechanism, p, a, b) {
  const { problem } = model;
  problem.operand("a", a);
  problem.operand("b", b);
  const { site, positions } = mechanism.primes.find((prime) => prime.p === p).whole;
  const layout = layoutOf(problem, mechanism.positions.length, a, b);
  // The final state of a recurrent encoder is one place, of one or two points, and has all digits.
  const isFinal = site.startsWith("encoder.final");
  const digits = isFinal ? null : positions.map(layout.digitOfA).filter((digit) => digit !== null);
  const swapped = counterfactual(problem, rules, p, a, b, digits);
  const names = isFinal ? model.points().map(({ name }) => name).filter((name) => name.startsWith("encoder.final")) : [site];
  const source = model.ask(swapped, b, { trace: true }).cache(names);
  const tokens = positions.map(layout.token).filter((token) => token !== null);
  const patch = (value, { name, shape }) => (isFinal ? source[name].values : exchanged(value, source[name].values, shape, tokens));
  return {
    p,
    a,
    b,
    swapped,
    places: isFinal ? ["final state"] : positions.toSorted((one, other) => one - other).map((slot) => mechanism.positions[slot]),
    before: rules.rule(gcd(a, b)),
    expected: rules.rule(gcd(swapped, b)),
    answer: model.ask(a, b, { patches: Object.fromEntries(names.map((name) => [name, patch])) }).answer,
  };
}

// The mechanism counts positions in the longest question: sign and digits of a, then of b. `token` is where one is in this
// question, null if it has fewer digits; `digitOfA` is the digit of a there, from its end, null if it is none.
function layoutOf(problem, slots, a, b) {
  const start = problem.framed ? 1 : 0;
  const most = (slots - 2 * start) / 2 - 1;
  const counts = [a, b].map((operand) => problem.encodeInteger(operand).length - 1);
  const read = (slot) => [Math.floor((slot - start) / (most + 1)), most - ((slot - start) % (most + 1))];
  const token = (slot) => {
    if (problem.framed && (slot === 0 || slot === slots - 1)) return slot === 0 ? 0 : 3 + counts[0] + counts[1];
    const [side, digit] = read(slot);
    const sign = start + side * (1 + counts[0]);
    if (digit === most) return sign;
    return digit < counts[side] ? sign + counts[side] - digit : null;
  };
  const digitOfA = (slot) => {
    const [side, digit] = read(slot);
    return side === 0 && digit >= 0 && digit < counts[0] && digit < most ? digit : null;
  };
  return { token, digitOfA };
}

// a': the first of many multiples, spread evenly, that the rules tell from a by p alone, as a whole and with only the digits
// that are exchanged (`digits`, from the end; null for all).
function counterfactual({ base, largestInput }, rules, p, a, b, digits) {
  const label = rules.label(gcd(a, b)) ?? 1;
  const wanted = label % p === 0 ? label / p : label * p;
  if (b % wanted || (wanted !== 1 && rules.label(wanted) !== wanted))
    refuse(`${p}: the rules do not look at it for (${a}, ${b}): it does not divide ${b} often enough`);
  let low = 1;
  while (low * base <= a) low *= base;
  const first = Math.ceil(low / wanted);
  const count = Math.floor(Math.min(low * base - 1, largestInput) / wanted) - first + 1;
  const fits = (operand) => (rules.label(gcd(operand, b)) ?? 1) === wanted;
  const digitAt = (value, place) => Math.floor(value / place) % base;
  for (let i = 1; i <= CANDIDATES && count > 0; i += 1) {
    const other = wanted * (first + Math.floor(((i * GOLDEN) % 1) * count));
    const mixed = digits === null ? other : digits.reduce((sum, digit) => sum + (digitAt(other, base ** digit) - digitAt(a, base ** digit)) * base ** digit, a);
    if (other !== a && fits(other) && fits(mixed)) return other;
  }
  return refuse(`${p}: no operand of as many digits as ${a} differs from it in divisibility by ${p} alone`);
}

// The value with the rows of these tokens from another question, in every head if it has heads.
function exchanged(value, source, shape, tokens) {
  const [rows, width] = shape.slice(-2);
  for (let head = 0; head < value.length; head += rows * width)
    for (const token of tokens) {
      const from = head + token * width;
      value.set(source.subarray(from, from + width), from);
    }
  return value;
}
