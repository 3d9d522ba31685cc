"""What a model gets right and how it errs, k by k: for tables that no rule describes, a language model's say.

Knows prediction tables; sizes and orders of operands are judged by `bands.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gcdformer.evaluation.table import UNREADABLE, PredictionTable
from gcdformer.explanation.transition import Shares
from gcdformer.numbers.encoding import Integers, digit_counts

MOST_SHOWN = 5


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
