"""The three rules in the paper's forms, checked k by k.

R and G (they differ only in whether a learned prime does not divide the base): predictions are deterministic; D is all
products of the learned prime powers; f(k) is the largest element of D that divides k. U (uniform outcomes): the k fall
into classes of multiples, each predicted the same, by one of its elements.

A k whose predictions move from the rule's answer towards a larger known divisor is *being learned*. Where it breaks a rule
it is listed as excused, not as an exception. An answer that is no integer obeys no rule.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field
from math import sqrt
from typing import Any

import numpy as np

from gcdformer.evaluation.table import UNREADABLE
from gcdformer.explanation.breaches import Breach, ForeignAnswer, Hesitation, NotAllProducts, OtherAnswer, WrongClass
from gcdformer.explanation.classes import Class
from gcdformer.explanation.sieve import largest_divisor, learned_prime_powers, products
from gcdformer.numbers.encoding import Integers, Mask


def wilson(successes: int, n: int, z: float = 1.959963984540054) -> tuple[float, float]:
    """The Wilson score interval of a share, at 95 % by default."""
    if n == 0:
        return 0.0, 1.0
    p = successes / n
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return min(p, max(0.0, centre - half)), max(p, min(1.0, centre + half))


Shares = dict[int, dict[int, float]]
"""For each k, the share of each predicted value, most frequent first."""


@dataclass(frozen=True)
class RuleModel:
    """What the rules say the model answers, as a function of the GCD alone.

    `labels` is D, or E under uniform outcomes; `answers` gives f for each label. Without a label that divides k the
    answer is that of 1.
    """

    labels: tuple[int, ...]
    answers: dict[int, int]
    fallback: int

    def label(self, k: int) -> int:
        return largest_divisor(self.labels, k) or 1

    def answer(self, k: int) -> int:
        label = largest_divisor(self.labels, k)
        return self.fallback if label is None else self.answers[label]

    def agrees(self, gcds: Integers, predictions: Integers) -> Mask:
        """Where a prediction is the rules' answer. One that is no integer never is, whatever f(1) is."""
        return np.asarray((self.answers_to(gcds) == predictions) & (predictions != UNREADABLE))

    def answers_to(self, gcds: Integers) -> Integers:
        """The answers to many GCD at once."""
        answers = np.full(len(gcds), self.fallback, dtype=np.int64)
        for label in sorted(self.labels):
            answers[gcds % label == 0] = self.answers[label]
        return answers


@dataclass(frozen=True)
class Rule:
    """One rule: the share of k that do not break it, every k that does, and those that only do because of a prime power
    that is being learned. `judged` counts the k that were tested and are not excused."""

    share: float
    judged: int
    exceptions: list[Breach] = field(default_factory=list)
    excused: list[Breach] = field(default_factory=list)

    @classmethod
    def of(cls, breaches: Sequence[Breach], tested: int, excused: Container[int] = (), broken: int | None = None) -> Rule:
        """`breaches` by some of the `tested` k. `broken` is how many k the exceptions stand for, if not one each."""
        pardoned = [breach for breach in breaches if breach.k in excused]
        exceptions = [breach for breach in breaches if breach.k not in excused]
        count = len(exceptions) if broken is None else broken
        return cls(1 - count / tested if tested else 0.0, tested - len(pardoned), exceptions, pardoned)

    @property
    def holds(self) -> bool:
        """Some k was judged, and none is an exception."""
        return self.judged > 0 and not self.exceptions

    def to_json(self) -> dict[str, Any]:
        return {"holds": self.holds, "share": self.share, "judged": self.judged,
                "exceptions": [breach.to_json() for breach in self.exceptions],
                "excused": [breach.to_json() for breach in self.excused]}


def mode(shares: dict[int, float]) -> int:
    """f(k)."""
    return next(iter(shares))


def readable(value: int) -> int | None:
    """A prediction for people and JSON: None if it is no integer."""
    return None if value == UNREADABLE else value


def sieve_model(correct: Iterable[int], shares: Shares) -> RuleModel:
    """The rule model of D; it has no answer where nothing in D divides k and f(1) was not measured."""
    known = tuple(sorted(correct))
    return RuleModel(known, {d: d for d in known}, mode(shares[1]) if 1 in shares else UNREADABLE)


@dataclass(frozen=True)
class Transition:
    """What is on its way into D: the k being learned, and the products that would then belong to it."""

    learning: frozenset[int]
    reachable: frozenset[int]


def find_transition(shares: Shares, pairs: dict[int, int], model: RuleModel, threshold: float) -> Transition:
    """The k being learned: those whose predictions lie between the answer of what is wholly learned and larger divisors of
    k that are on their way into D themselves (predicted right for 10 % of their pairs at least). Any other answer, beyond
    chance, and it is a breach. Without anything on its way there is none.
    """
    known, limit = set(model.labels), max(shares, default=1)
    settled = known & products(learned_prime_powers(known), limit)
    coming = {k for k, s in shares.items() if k not in known and s.get(k, 0.0) >= 1 - threshold}
    allowed = known | coming
    learning: set[int] = set()
    for k in shares.keys() - known:
        old = largest_divisor(settled, k) or 1
        if largest_divisor(allowed, k) == old:
            continue
        s = shares[k]
        between = sum(share for v, share in s.items() if v > 0 and k % v == 0 and v % old == 0 and v in allowed)
        breaks = mode(s) != model.answer(k) or s[mode(s)] < threshold
        if breaks and wilson(round(between * pairs[k]), pairs[k])[1] >= threshold:
            learning.add(k)
    nearly = {k for k in coming & learning if mode(shares[k]) == k}
    return Transition(frozenset(learning), frozenset(products(learned_prime_powers(known | nearly), limit)))


def check_deterministic(shares: Shares, pairs: dict[int, int], threshold: float,
                        excused: frozenset[int]) -> Rule:
    """One value for almost all pairs with GCD k: broken where the share of f(k) is below the threshold by more than
    chance (its 95 % interval lies below), or f(k) is no integer."""
    breaches = [Hesitation(k, readable(mode(s)), s[mode(s)], hesitation(s)) for k, s in shares.items()
                if mode(s) == UNREADABLE or wilson(round(s[mode(s)] * pairs[k]), pairs[k])[1] < threshold]
    return Rule.of(breaches, len(shares), excused)


def hesitation(shares: dict[int, float], least: float = 0.05) -> int:
    """Between how many values the model hesitates: those with at least this share."""
    return sum(share >= least for share in shares.values())


def check_products(known: Iterable[int], tested: Iterable[int], transition: Transition) -> Rule:
    """The set is all products of its prime powers, as far as they are tested."""
    have, could = set(known), set(tested)
    expected = products(learned_prime_powers(have), max(could, default=1)) & could
    missing = [NotAllProducts(k, missing=True) for k in sorted(expected - have)]
    unexpected = [NotAllProducts(k, missing=False) for k in sorted(have - expected)]
    excused = (transition.learning - have) | (transition.reachable & have)
    return Rule.of(missing + unexpected, len(could), excused)


def check_largest_divisor(shares: Shares, model: RuleModel, excused: frozenset[int]) -> Rule:
    """f(k) is what the rule model answers, and an integer."""
    breaches = [OtherAnswer(k, readable(mode(s)), readable(model.answer(k)), s[mode(s)])
                for k, s in shares.items() if mode(s) == UNREADABLE or mode(s) != model.answer(k)]
    return Rule.of(breaches, len(shares), excused)


def class_model(classes: list[Class]) -> RuleModel:
    """The rule model of E: every k is predicted as its class is."""
    labels = tuple(c.label for c in classes)
    return RuleModel(labels, {c.label: c.prediction for c in classes}, classes[0].prediction if classes else UNREADABLE)


def check_classes(shares: Shares, classes: list[Class], model: RuleModel) -> Rule:
    """Every k lies in its class of multiples, and every class is predicted by one of its elements."""
    label_of = {k: c.label for c in classes for k in c.members}
    breaches: list[Breach] = [WrongClass(k, label_of[k], model.label(k)) for k in shares if label_of[k] != model.label(k)]
    broken = {breach.k for breach in breaches}
    for c in classes:
        value = c.prediction
        if value <= 0 or value % c.label or model.label(value) != c.label:
            breaches.append(ForeignAnswer(c.label, readable(value)))
            broken.update(c.members)
    return Rule.of(breaches, len(shares), broken=len(broken))


def check_mostly_deterministic(classes: list[Class], tested: int, threshold: float) -> Rule:
    """A class is predicted by one value, or in rare cases (at most half of the classes) by two or three."""
    split = [c for c in classes if c.shares[c.prediction] < threshold]
    rare = len(split) <= max(1, len(classes) // 2)
    broken = [c for c in classes if c.prediction == UNREADABLE
              or (c in split and (not rare or sum(list(c.shares.values())[:3]) < threshold))]
    breaches = [Hesitation(c.label, readable(c.prediction), c.shares[c.prediction], c.values) for c in broken]
    return Rule.of(breaches, tested, broken=sum(len(c.members) for c in broken))
