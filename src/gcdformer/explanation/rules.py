"""The rules of the paper's forms, checked k by k: three for R and G, four for U.

R and G (they differ only in whether a learned prime does not divide the base): predictions are deterministic; D is all
products of the learned prime powers; f(k) is the largest element of D that divides k. U (uniform outcomes): the k fall
into classes of multiples, each predicted the same, by one of its elements.

A k that breaks a rule only because of a prime power that is being learned (`transition.py`) is listed as excused, one that
may or may not break it for want of pairs as undecided; neither is an exception. An answer that is no integer obeys no rule.
Each kind of breach is a class that knows its own sentence.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from gcdformer.evaluation.table import UNREADABLE, readable
from gcdformer.explanation.classes import Class, hesitation
from gcdformer.explanation.sieve import largest_divisor, learned_prime_powers, products
from gcdformer.explanation.statistics import wilson
from gcdformer.explanation.transition import Shares, Transition, mode
from gcdformer.numbers.encoding import Integers, Mask


@dataclass(frozen=True)
class RuleModel:
    """What the rules predict, as a function of the GCD k alone.

    `labels`: the sorted elements of D (of E for form U). `answers`: label -> predicted value. `fallback`: the prediction
    where no label divides k.
    """

    labels: tuple[int, ...]
    answers: dict[int, int]
    fallback: int

    @property
    def prime_powers(self) -> dict[int, int]:
        """The learned primes, each with its highest power. A label that gets the answer of coprime pairs is not learned."""
        return learned_prime_powers(label for label in self.labels if self.answers[label] != self.fallback)

    def labels_to(self, gcds: Integers) -> Integers:
        """The largest label that divides each GCD; 1 where none does."""
        labels = np.ones(len(gcds), dtype=np.int64)
        for label in self.labels:
            labels[gcds % label == 0] = label
        return labels

    def answers_to(self, gcds: Integers) -> Integers:
        """The prediction for each GCD."""
        labels = self.labels_to(gcds)
        answers = np.full(len(gcds), self.fallback, dtype=np.int64)
        for label, answer in self.answers.items():
            answers[labels == label] = answer
        return answers

    def label(self, k: int) -> int:
        """The largest label that divides k; 1 if none does. It is asked for one k at a time, for which arrays are slow."""
        return next((label for label in reversed(self.labels) if k % label == 0), 1)

    def answer(self, k: int) -> int:
        return self.answers.get(self.label(k), self.fallback)

    def agrees(self, gcds: Integers, predictions: Integers) -> Mask:
        """Where a prediction is the rules' answer. One that is no integer never is, whatever f(1) is."""
        return np.asarray((self.answers_to(gcds) == predictions) & (predictions != UNREADABLE))


class Breach(ABC):
    """A k that does not obey a rule. A prediction of None is no integer."""

    k: int

    @property
    @abstractmethod
    def text(self) -> str:
        """What is wrong with it, in a few words."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]: ...


@final
@dataclass(frozen=True)
class Hesitation(Breach):
    """No single prediction for the pairs with GCD k (or of the class of k): f(k) is too rare."""

    k: int
    prediction: int | None
    frequency: float
    values: int

    @property
    def text(self) -> str:
        if self.prediction is None:
            return f"f({self.k}) is unreadable"
        return f"{self.k}: {100 * self.frequency:.0f} % {self.prediction}, {self.values} values"

    def to_json(self) -> dict[str, Any]:
        return {"k": self.k, "prediction": self.prediction, "frequency": self.frequency, "values": self.values}


@final
@dataclass(frozen=True)
class NotAllProducts(Breach):
    """A product of learned prime powers that is missing from the set, or an element that is no such product."""

    k: int
    missing: bool

    @property
    def text(self) -> str:
        return f"{self.k} {'missing' if self.missing else 'unexpected'}"

    def to_json(self) -> dict[str, Any]:
        return {"k": self.k, "why": "missing" if self.missing else "unexpected"}


@final
@dataclass(frozen=True)
class OtherAnswer(Breach):
    """f(k) is not what the largest divisor in the set says."""

    k: int
    prediction: int | None
    expected: int | None
    frequency: float

    @property
    def text(self) -> str:
        if self.prediction is None:
            return f"f({self.k}) is unreadable"
        return f"f({self.k}) = {self.prediction}, not {self.expected}"

    def to_json(self) -> dict[str, Any]:
        return {"k": self.k, "prediction": self.prediction, "expected": self.expected, "frequency": self.frequency}


@final
@dataclass(frozen=True)
class WrongClass(Breach):
    """k is predicted as another class than that of its largest label."""

    k: int
    label: int
    expected: int

    @property
    def text(self) -> str:
        return f"{self.k} in the class of {self.label}, not {self.expected}"

    def to_json(self) -> dict[str, Any]:
        return {"k": self.k, "why": "in the wrong class", "class": self.label, "expected": self.expected}


@final
@dataclass(frozen=True)
class ForeignAnswer(Breach):
    """The class of k is predicted by a value that is none of its elements."""

    k: int
    prediction: int | None

    @property
    def text(self) -> str:
        return f"f({self.k}) is unreadable" if self.prediction is None else f"{self.k} predicted by no element of its class"

    def to_json(self) -> dict[str, Any]:
        return {"k": self.k, "why": "predicted by no element of its class", "prediction": self.prediction}


@dataclass(frozen=True)
class Rule:
    """One rule: the share of k that do not break it, every k that does, those that only do because of a prime power that is
    being learned (`excused`), and those of which too few pairs were tried to say so (`undecided`). `judged` counts the k
    that were tested and are neither."""

    share: float
    judged: int
    exceptions: list[Breach] = field(default_factory=list)
    excused: list[Breach] = field(default_factory=list)
    undecided: list[Breach] = field(default_factory=list)

    @classmethod
    def of(cls, breaches: Sequence[Breach], tested: int, excused: Container[int] = (), undecided: Container[int] = (),
           broken: int | None = None) -> Rule:
        """`breaches` by some of the `tested` k. `broken` is how many k the exceptions stand for, if not one each."""
        excused_breaches = [breach for breach in breaches if breach.k in excused]
        undecided_breaches = [breach for breach in breaches if breach.k in undecided and breach.k not in excused]
        exceptions = [breach for breach in breaches if breach.k not in excused and breach.k not in undecided]
        count = len(exceptions) if broken is None else broken
        judged = tested - len(excused_breaches) - len(undecided_breaches)
        return cls(1 - count / tested if tested else 0.0, judged, exceptions, excused_breaches, undecided_breaches)

    @property
    def holds(self) -> bool:
        """Some k was judged, and none is an exception."""
        return self.judged > 0 and not self.exceptions

    def to_json(self) -> dict[str, Any]:
        return {"holds": self.holds, "share": self.share, "judged": self.judged,
                "exceptions": [breach.to_json() for breach in self.exceptions],
                "excused": [breach.to_json() for breach in self.excused + self.undecided]}

def sieve_model(correct: Iterable[int], shares: Shares) -> RuleModel:
    """The rule model of D; it has no answer where nothing in D divides k and f(1) was not measured."""
    known = tuple(sorted(correct))
    return RuleModel(known, {d: d for d in known}, mode(shares[1]) if 1 in shares else UNREADABLE)


def check_deterministic(shares: Shares, pairs: dict[int, int], threshold: float, excused: frozenset[int],
                        complete: Container[int] = ()) -> Rule:
    """One value for almost all pairs with GCD k: broken where the share of f(k) is below the threshold by more than
    chance (its 95 % interval lies below; if all its pairs were tried, the share itself), or f(k) is no integer."""
    def most(k: int, share: float) -> float:
        return share if k in complete else wilson(round(share * pairs[k]), pairs[k])[1]

    breaches = [Hesitation(k, readable(mode(s)), s[mode(s)], hesitation(s)) for k, s in shares.items()
                if mode(s) == UNREADABLE or most(k, s[mode(s)]) < threshold]
    return Rule.of(breaches, len(shares), excused)


def check_products(known: Iterable[int], tested: Iterable[int], transition: Transition,
                   undecided: frozenset[int] = frozenset()) -> Rule:
    """The set is all products of its prime powers, as far as they are tested. With some k undecided, a breach counts only
    if it is one whatever they are."""
    have, could = set(known), set(tested)
    limit = max(could, default=1)

    def expected(members: set[int]) -> set[int]:
        return products(learned_prime_powers(members), limit) & could

    missing, unexpected = expected(have) - have, have - expected(have)
    excused = (transition.learning - have) | (transition.reachable & have)
    may_obey = undecided | (missing - expected(have - undecided)) | (unexpected & expected(have | undecided))
    breaches = [NotAllProducts(k, missing=True) for k in sorted(missing)]
    breaches += [NotAllProducts(k, missing=False) for k in sorted(unexpected)]
    return Rule.of(breaches, len(could), excused, may_obey if undecided else ())


def check_largest_divisor(shares: Shares, model: RuleModel, excused: frozenset[int],
                          undecided: frozenset[int] = frozenset()) -> Rule:
    """f(k) is what the rule model answers, and an integer."""
    answers = model.answers_to(np.array([*shares], dtype=np.int64)).tolist()
    breaches = [OtherAnswer(k, readable(mode(s)), readable(answer), s[mode(s)])
                for (k, s), answer in zip(shares.items(), answers, strict=True)
                if mode(s) == UNREADABLE or mode(s) != answer]
    without, with_all = set(model.labels) - undecided, set(model.labels) | undecided
    may_obey = {breach.k for breach in breaches
                 if breach.prediction in (largest_divisor(without, breach.k), largest_divisor(with_all, breach.k))}
    return Rule.of(breaches, len(shares), excused, may_obey if undecided else ())


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
