"""Relations that hold for the GCD, checked on a live model without knowing the right answer.

Swap the operands; add one to the other; multiply both by a common factor; take the same GCD at other sizes. Each gives a
rate with its 95 % interval and counterexamples. Knows a function predict(a, b) on arrays.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gcdformer.config import TESTED_GCDS
from gcdformer.evaluation.table import UNREADABLE, readable
from gcdformer.explanation.bands import Predict
from gcdformer.explanation.rules import RuleModel
from gcdformer.explanation.statistics import wilson
from gcdformer.numbers.distributions import OPERAND_DISTRIBUTIONS, coprime_pairs
from gcdformer.numbers.encoding import Integers, Mask

MOST_EXAMPLES = 10


@dataclass(frozen=True)
class Disagreement:
    """Two pairs whose predictions are not related as they should be; None stands for no integer."""

    pair: tuple[int, int]
    prediction: int | None
    other_pair: tuple[int, int]
    other_prediction: int | None

    def to_json(self) -> dict[str, Any]:
        return {"pair": list(self.pair), "prediction": self.prediction, "other_pair": list(self.other_pair),
                "other_prediction": self.other_prediction}


@dataclass(frozen=True)
class Check:
    """How often a relation holds between two predictions, and some pairs for which it does not."""

    name: str
    says: str
    holds: int
    n: int
    examples: list[Disagreement] = field(default_factory=list)

    @property
    def rate(self) -> float:
        return self.holds / self.n if self.n else 0.0

    def to_json(self) -> dict[str, Any]:
        low, high = wilson(self.holds, self.n)
        return {"says": self.says, "rate": self.rate, "low": low, "high": high, "n": self.n,
                "examples": [example.to_json() for example in self.examples]}


def compare_predictions(name: str, says: str, first: tuple[Integers, Integers, Integers],
                        second: tuple[Integers, Integers, Integers], holds: Mask) -> Check:
    """A check from two sets of pairs with their predictions."""
    examples = [Disagreement((int(first[0][i]), int(first[1][i])), readable(int(first[2][i])),
                             (int(second[0][i]), int(second[1][i])), readable(int(second[2][i])))
                for i in np.flatnonzero(~holds)[:MOST_EXAMPLES]]
    return Check(name, says, int(holds.sum()), len(holds), examples)


def same(first: Integers, second: Integers) -> Mask:
    """Equal and readable: two sequences that are no integers do not agree."""
    return np.asarray((first == second) & (first != UNREADABLE))


def metamorphic_checks(predict: Predict, model: RuleModel, maximum: int, rng: np.random.Generator,
                       count: int = 5000) -> list[Check]:
    """All checks, each on `count` pairs; every GCD up to 100 that fits is equally likely, known to the rule model or not."""
    operands = OPERAND_DISTRIBUTIONS["uniform"]

    def draw(limit: int, largest: Integers | int = TESTED_GCDS) -> tuple[Integers, Integers, Integers]:
        k = rng.integers(1, np.minimum(largest, max(1, limit // 2)), size=count, endpoint=True)
        a, b = coprime_pairs(rng, operands, limit // k)
        return a * k, b * k, k

    a, b, _ = draw(maximum)
    checks = [compare_predictions("swap", "predict(b, a) = predict(a, b)", (a, b, p := predict(a, b)),
                                  (b, a, q := predict(b, a)), same(p, q))]
    a, b, _ = draw(maximum // 2)
    p, q = predict(a, b), predict(a, a + b)
    checks.append(compare_predictions("sum", "predict(a, a + b) = predict(a, b)", (a, b, p), (a, a + b, q), same(p, q)))
    labels = np.array(model.labels, dtype=np.int64)
    factors = labels[(labels > 1) & (labels <= max(2, maximum // 200))]
    if len(factors):
        chosen = rng.choice(factors, count)
        a, b, k = draw(maximum // int(factors.max()), np.maximum(1, TESTED_GCDS // chosen))
        p, q = predict(a, b), predict(a * chosen, b * chosen)
        checks.append(compare_predictions("common factor", "predict(ca, cb) = c predict(a, b)", (a, b, p),
                                          (a * chosen, b * chosen, q), same(q, np.where(p == UNREADABLE, p, chosen * p))))
        wanted = model.answers_to(k * chosen)
        checks.append(compare_predictions("common factor, as the rules say",
                                          "predict(ca, cb) is the rules' answer for c gcd(a, b)",
                                          (a, b, p), (a * chosen, b * chosen, q), same(q, wanted)))
    size = maximum
    while size >= 10:
        a, b, k = draw(size)
        p = predict(a, b)
        wanted = model.answers_to(k)
        checks.append(compare_predictions(f"operands up to {size:,}", "predict(a, b) is the rules' answer for gcd(a, b)",
                                          (a, b, p), (a, b, wanted), same(p, wanted)))
        size //= 10
    return checks
