"""How a model errs: which kinds of wrong answers it gives, for which k, and on which pairs it contradicts the rules.

Counts serve tables that no rule describes, a language model's say; counterexamples those that rules describe. Knows
prediction tables and a rule model; sizes and orders of operands are judged by `bands.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from typing_extensions import TypedDict

from gcdformer.evaluation.table import UNREADABLE, PredictionTable, readable
from gcdformer.explanation.rules import RuleModel
from gcdformer.explanation.transition import Shares
from gcdformer.numbers.encoding import Integers, digit_counts

MOST_SHOWN = 5
MOST_COUNTEREXAMPLES = 100
MOST_EXAMINED = 20_000


@dataclass(frozen=True)
class Mistakes:
    """Counts of answers by kind, over the pairs with GCD up to the largest tested, and the k that are right least often."""

    n: int
    right: int
    divisors: int
    """Wrong answers that divide the GCD."""
    multiples: int
    """Wrong answers that the GCD divides."""
    unreadable: int
    weakest: tuple[tuple[int, float], ...]
    """The k that are right least often, each with its share."""
    by_digits: tuple[tuple[int, int, int], ...] = ()
    """Digits of the larger operand in the base, pairs, and how many of them are right; where the pairs are known."""

    @property
    def others(self) -> int:
        return self.n - self.right - self.divisors - self.multiples - self.unreadable

    @property
    def mostly_right(self) -> bool:
        return 2 * self.right > self.n

    @property
    def text(self) -> str:
        """One sentence."""
        wrong = self.n - self.right
        if not wrong:
            return f"all {self.n:,} answers are right"
        kinds = (("divide the GCD", self.divisors), ("are multiples of it", self.multiples),
                 ("are unrelated to it", self.others), ("are no integer", self.unreadable))
        shares = ", ".join(f"{100 * count / wrong:.0f} % {words}" for words, count in kinds if count)
        weak = ", ".join(f"{k} ({100 * share:.0f} %)" for k, share in self.weakest[:MOST_SHOWN])
        sizes = ", ".join(f"{100 * right / n:.0f} % at {digits}" for digits, n, right in self.by_digits)
        by_size = f", by digits of the larger operand {sizes}" if sizes else ""
        return (f"{100 * self.right / self.n:.1f} % of the answers are right, least often for k = {weak}{by_size}; of the "
                f"wrong ones {shares}")

    def to_json(self) -> dict[str, Any]:
        return {"n": self.n, "right": self.right, "divisors": self.divisors, "multiples": self.multiples,
                "others": self.others, "unreadable": self.unreadable,
                "weakest": [{"k": k, "share": share} for k, share in self.weakest],
                "by_digits": {str(digits): {"n": n, "right": right} for digits, n, right in self.by_digits}}


def right_by_digits(a: Integers, b: Integers, predictions: Integers, base: int) -> tuple[tuple[int, int, int], ...]:
    """For each number of digits of the larger operand: the pairs, and how many of them are right."""
    digits = digit_counts(np.maximum(a, b), base)
    right = predictions == np.gcd(a, b)
    return tuple((int(d), int((digits == d).sum()), int(right[digits == d].sum())) for d in np.unique(digits))


def find_mistakes(table: PredictionTable, shares: Shares, largest: int) -> Mistakes:
    """The kinds of answers in a table; the weakest k are chosen from those tested often enough."""
    judged = table.gcd <= largest
    k, value, count = table.gcd[judged], table.prediction[judged], table.count[judged]
    positive = np.where(value > 0, value, 1)

    def total(mask: Any) -> int:
        return int(count[mask].sum())

    wrong, integer = value != k, value > 0
    divides = wrong & integer & (k % positive == 0)
    weakest = sorted(((j, s.get(j, 0.0)) for j, s in shares.items()), key=lambda item: (item[1], item[0]))
    multiple = wrong & integer & (positive % k == 0)
    return Mistakes(int(count.sum()), total(~wrong), total(divides), total(multiple), total(value == UNREADABLE),
                    tuple(weakest[:2 * MOST_SHOWN]))


class CounterexampleView(TypedDict):
    a: int
    b: int
    gcd: int
    prediction: int | None
    rule: int | None
    set: str


@dataclass(frozen=True)
class Counterexample:
    """A pair of a test set on which the model does not answer what the rules say; None stands for no integer."""

    a: int
    b: int
    gcd: int
    prediction: int | None
    rule: int | None
    set: str

    @property
    def text(self) -> str:
        """In a few words."""
        instead = "no rule says so" if self.rule is None else f"not {self.rule}"
        return f"({self.a}, {self.b}) -> {'unreadable' if self.prediction is None else self.prediction}, {instead}"

    def to_json(self) -> CounterexampleView:
        return {"a": self.a, "b": self.b, "gcd": self.gcd, "prediction": self.prediction, "rule": self.rule, "set": self.set}


def find_counterexamples(tables: dict[str, PredictionTable], model: RuleModel, largest: int) -> list[Counterexample]:
    """Example pairs, of GCD up to `largest`, against the rules: at most 100, spread over the k."""
    ranked: list[tuple[int, int, Counterexample]] = []
    seen: set[tuple[int, int]] = set()
    for name, table in tables.items():
        place: dict[int, int] = {}
        against = ~model.agrees(table.gcd, table.prediction) & (table.gcd <= largest)
        for index in np.flatnonzero(against[table.example_row])[:MOST_EXAMINED]:
            row, a, b = table.example_row[index], int(table.example_a[index]), int(table.example_b[index])
            k, prediction = int(table.gcd[row]), int(table.prediction[row])
            if (a, b) not in seen:
                seen.add((a, b))
                place[k] = place.get(k, 0) + 1
                ranked.append((place[k], k, Counterexample(a, b, k, readable(prediction), readable(model.answer(k)), name)))
    ranked.sort(key=lambda item: item[:2])
    return [example for _, _, example in ranked[:MOST_COUNTEREXAMPLES]]
