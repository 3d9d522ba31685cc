"""Pairs that differ in divisibility by one prime power and in nothing else that the rules look at.

For q = p^e: (a, b) with the label d of the rules, q its part of p, and a' with the label d / p for (a', b). All digits of a'
are drawn anew, by steps that keep divisibility by d / p; where b shares something else with a' it is rejected. This holds
digit by digit: an integer with one digit of a' and the others of a has the label d or d / p too. So no swap of a single
digit can change another divisor by accident. Pure arithmetic on arrays; randomness is passed in; knows no model.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from gcdformer.explanation.rules import RuleModel
from gcdformer.explanation.sieve import prime_power
from gcdformer.mechanism.layout import Layout
from gcdformer.numbers.distributions import OPERAND_DISTRIBUTIONS
from gcdformer.numbers.encoding import Integers, Mask, digit_counts, powers_of

ROUNDS = 60
"""Attempts at filling a set of counterfactuals; what is lacking then is rare, and the set stays smaller."""
MOST_DEMANDED = 3
"""Up to this many digits, each of those that bear on p is made to change p's divisibility by itself. With more it is left to
chance, since almost every draw would be rejected."""


@dataclass(frozen=True)
class Swaps:
    """Questions, the questions whose values are put into them, and the rules' answers to both. One operand differs."""

    pairs: Integers
    sources: Integers
    before: Integers
    after: Integers

    def __len__(self) -> int:
        return len(self.pairs)

    def take(self, rows: Mask | Integers | slice) -> Swaps:
        return Swaps(self.pairs[rows], self.sources[rows], self.before[rows], self.after[rows])

    def reversed(self) -> Swaps:
        """The other direction: p is added where it was removed."""
        return Swaps(self.sources, self.pairs, self.after, self.before)

    def join(self, other: Swaps) -> Swaps:
        return Swaps(np.concatenate([self.pairs, other.pairs]), np.concatenate([self.sources, other.sources]),
                     np.concatenate([self.before, other.before]), np.concatenate([self.after, other.after]))


@dataclass(frozen=True)
class Rules:
    """A rule model, and which of its labels a swap can start from."""

    model: RuleModel

    def tops(self, q: int, largest: int) -> Integers:
        """The labels d whose part of p is q and that have d / p among the labels."""
        power = prime_power(q)
        assert power is not None
        known = {*self.model.labels, 1}
        return np.array([d for d in sorted(known) if d % q == 0 and d // q % power[0] and d // power[0] in known
                         and 2 * d <= largest], dtype=np.int64)

    def with_divisor(self, q: int) -> Rules:
        """The rules of a model that had also learned q: what a swap for a prime that is not learned should not do."""
        known = {d: self.model.answers[d] for d in self.model.labels}
        answers = known | {d * q: answer * q for d, answer in known.items()}
        return Rules(RuleModel(tuple(sorted(answers)), answers, self.model.fallback))


def draw_swaps(rules: Rules, layout: Layout, q: int, count: int, side: int, rng: np.random.Generator) -> Swaps:
    """Up to `count` swaps that take p away from one operand: 0 is a, 1 is b.

    d is drawn with P(d) ~ 1/d, both operands log-uniformly, so that all sizes occur; only the operand that changes has two
    digits at least, since the last digit of a shorter one is all of it.
    """
    tops = rules.tops(q, layout.largest)
    p = (prime_power(q) or (q, 1))[0]
    parts: list[Integers] = []
    have = 0
    for _ in range(ROUNDS):
        if have >= count or not len(tops):
            break
        d = rng.choice(tops, 4 * count, p=(1 / tops) / (1 / tops).sum())
        a, b = (log_uniform(layout.largest // d, rng) * d for _ in range(2))
        good = (rules.model.labels_to(np.gcd(a, b)) == d) & (a != b) & ((a >= layout.base) | (layout.digits == 1))
        a, b, d = a[good], b[good], d[good]
        other = redrawn(a, d // p, layout, rng)
        good = differs_by(rules, layout, a, other, b, d, p, q)
        parts.append(np.stack([a[good], other[good], b[good]], axis=1))
        have += int(good.sum())
    rows = np.concatenate(parts)[:count] if parts else np.zeros((0, 3), dtype=np.int64)
    pairs, sources = ordered(rows[:, 0], rows[:, 2], side), ordered(rows[:, 1], rows[:, 2], side)
    before, after = (rules.model.answers_to(np.gcd(x[:, 0], x[:, 1])) for x in (pairs, sources))
    swaps = Swaps(pairs, sources, before, after)
    return swaps.take(before != after)


def draw_neutral(rules: Rules, layout: Layout, pairs: Integers, side: int, rng: np.random.Generator) -> Swaps:
    """For each of these pairs a source that agrees in all that the rules look at, digit by digit, and is otherwise random;
    pairs for which none was found are left out."""
    a, b = pairs[:, side], pairs[:, 1 - side]
    labels = rules.model.labels_to(np.gcd(a, b))
    chosen = a.copy()
    for _ in range(ROUNDS):
        open_rows = np.flatnonzero(chosen == a)
        if not len(open_rows):
            break
        old, partner, wanted = a[open_rows], b[open_rows], labels[open_rows]
        new = redrawn(old, wanted, layout, rng)
        good = (new <= layout.largest) & (rules.model.labels_to(np.gcd(new, partner)) == wanted)
        for mixed in mixtures(old, new, layout):
            good &= rules.model.labels_to(np.gcd(mixed, partner)) == wanted
        chosen[open_rows[good]] = new[good]
    done = chosen != a
    answers = rules.model.answers_to(np.gcd(a, b))[done]
    return Swaps(pairs[done], ordered(chosen[done], b[done], side), answers, answers)


def draw_other(rules: Rules, layout: Layout, pairs: Integers, side: int, rng: np.random.Generator) -> Swaps:
    """Neutral sources that agree as a whole only, not digit by digit: for divisors as large as the base, of which no digit
    can change alone. Swaps of all digits at once are judged by them."""
    a, b = pairs[:, side], pairs[:, 1 - side]
    labels = rules.model.labels_to(np.gcd(a, b))
    other = same_length(a, labels, layout, rng)
    good = (other != a) & (rules.model.labels_to(np.gcd(other, b)) == labels)
    answers = rules.model.answers_to(np.gcd(a, b))[good]
    return Swaps(pairs[good], ordered(other[good], b[good], side), answers, answers)


def same_length(a: Integers, divisors: Integers, layout: Layout, rng: np.random.Generator) -> Integers:
    """Multiples of the divisors with as many digits as a; a itself where there is none."""
    counts = digit_counts(a, layout.base)
    low = layout.base ** (counts - 1)
    high = np.minimum(low * (layout.base - 1) + (low - 1), layout.largest)
    first, last = -(-low // divisors), high // divisors
    return np.where(first <= last, divisors * rng.integers(first, np.maximum(first, last), endpoint=True), a)


def differs_by(rules: Rules, layout: Layout, a: Integers, other: Integers, b: Integers, d: Integers, p: int, q: int) -> Mask:
    """Where (a', b) has the label d / p, and so, or d, has every integer with one digit of a' and the others of a."""
    good = np.asarray((other <= layout.largest) & (rules.model.labels_to(np.gcd(other, b)) == d // p))
    bearing = [bears_on(d // p, q, layout.base, j) for j in range(layout.digits)]
    demanded = np.sum(bearing, axis=0) <= MOST_DEMANDED
    for j, mixed in enumerate(mixtures(a, other, layout)):
        labels = rules.model.labels_to(np.gcd(mixed, b))
        good &= (labels == d) | (labels == d // p)
        if p > 2:  # two odd digits of a' in place of even ones make an even sum: for 2 not every digit can change it alone
            good &= ~demanded | ~bearing[j] | (labels == d // p) | (mixed == a)
    return good


def bears_on(modulus: Integers, q: int, base: int, j: int) -> Mask:
    """Whether a change of digit j that keeps divisibility by `modulus` can change divisibility by q, and has room."""
    step = modulus // np.gcd(modulus, base**j)
    return np.asarray((step * (base**j % q) % q != 0) & (step < base))


def redrawn(a: Integers, modulus: Integers, layout: Layout, rng: np.random.Generator) -> Integers:
    """Integers of as many digits, every digit drawn anew by steps that keep a modulo `modulus`."""
    base, counts = layout.base, digit_counts(a, layout.base)
    result = np.zeros_like(a)
    for j in range(layout.digits):
        place = base**j
        digit = a // place % base
        step = modulus // np.gcd(modulus, place)
        lowest = np.where(j == counts - 1, 1, 0)
        first = lowest + (digit - lowest) % step
        choices = (base - 1 - first) // step + 1
        drawn = first + step * rng.integers(0, np.maximum(choices, 1))
        result += np.where(j < counts, np.where(choices > 0, drawn, digit), 0) * place
    return result


def mixtures(a: Integers, other: Integers, layout: Layout) -> Iterable[Integers]:
    """For each digit, from the last: the integers with that digit of the other and all others of a."""
    for place in powers_of(layout.base)[:layout.digits]:
        yield a + (other // place % layout.base - a // place % layout.base) * place


def ordered(changed: Integers, partner: Integers, side: int) -> Integers:
    """Pairs with the changed operand on its side."""
    return np.stack([changed, partner] if side == 0 else [partner, changed], axis=1)


def log_uniform(limits: Integers, rng: np.random.Generator) -> Integers:
    return OPERAND_DISTRIBUTIONS["log-uniform"].draw(rng, limits, len(limits))
