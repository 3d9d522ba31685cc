"""Shares with their uncertainty: intervals, whether a share is above a threshold for certain, and what a test can miss.

Pure functions of counts; knows no tables.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import log, sqrt
from typing import Any

import numpy as np
from typing_extensions import TypedDict

CONFIDENCE_Z = 1.959963984540054
TAIL = 0.025
LARGEST_EXACT = 10_000
"""Pairs up to which the binomial distribution is summed; above, the Wilson interval is as good."""
CERTIFIED_FIDELITY = 0.98
"""Share of the answers that the rules must predict, for a certificate and in a band."""
SURE = 0.99
"""Probability with which a test that could have missed something is said to have seen it."""


def wilson(successes: float, n: float) -> tuple[float, float]:
    """The 95 % Wilson score interval of a share."""
    if n == 0:
        return 0.0, 1.0
    p, z = successes / n, CONFIDENCE_Z
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return min(p, max(0.0, centre - half)), max(p, min(1.0, centre + half))


class FidelityView(TypedDict):
    value: float
    low: float
    high: float
    n: int


@dataclass(frozen=True)
class Fidelity:
    """Share of pairs on which model and rule model agree, with its 95 % Wilson interval.

    `exact` says that all pairs were tried, so that there is no sampling error.
    """

    agree: int
    n: int
    exact: bool = False

    @property
    def value(self) -> float:
        return self.agree / self.n if self.n else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        return (self.value, self.value) if self.exact else wilson(self.agree, self.n)

    def at_least(self, wanted: float) -> bool | None:
        """Whether the share is as large for certain; None where its interval contains the wanted one."""
        low, high = self.interval
        return True if low >= wanted else False if high < wanted else None

    def to_json(self) -> FidelityView:
        low, high = self.interval
        return {"value": self.value, "low": low, "high": high, "n": self.n}


def is_above(successes: int, n: int, threshold: float) -> bool | None:
    """Whether a share lies above the threshold; None where its 95 % interval contains the threshold.

    The interval is the mid-P one, which is right for few pairs too: 30 of 30 are above 90 % for certain, 29 of 30 are not.
    """
    if n > LARGEST_EXACT:
        low, high = wilson(successes, n)
        return True if low > threshold else False if high < threshold else None
    most_below, least_above = decisive_counts(n, threshold)
    return True if successes >= least_above else False if successes <= most_below else None


@lru_cache(maxsize=4096)
def decisive_counts(n: int, threshold: float) -> tuple[int, int]:
    """The most successes of n that are below the threshold for certain, and the fewest that are above it."""
    probabilities = binomial(n, threshold)
    below = np.cumsum(probabilities) - probabilities / 2
    above = np.cumsum(probabilities[::-1])[::-1] - probabilities / 2
    return int(np.searchsorted(below, TAIL, side="right")) - 1, n + 1 - int(np.searchsorted(above[::-1], TAIL, side="right"))


def binomial(n: int, p: float) -> np.ndarray[Any, np.dtype[np.float64]]:
    """P(0), ..., P(n) successes."""
    if p <= 0 or p >= 1:
        return np.asarray(np.eye(1, n + 1, 0 if p <= 0 else n)[0])
    i = np.arange(1, n + 1)
    choices = np.concatenate(([0.0], np.cumsum(np.log(n - i + 1) - np.log(i))))
    return np.asarray(np.exp(choices + np.arange(n + 1) * log(p / (1 - p)) + n * log(1 - p)))


@dataclass(frozen=True)
class Power:
    """What a test with that many pairs per k would have seen, with a probability of 99 %."""

    pairs: int
    seen: float
    """A k against the rules in this share of its pairs shows in one of them at least."""
    refused: float
    """A k against the rules in this share of its pairs is an exception, so that there is no certificate."""

    @property
    def text(self) -> str:
        return (f"at {self.pairs:,} pairs per k, a k against the rules in {100 * self.seen:.2g} % of its pairs shows with "
                f"probability {SURE:g}, and in {100 * self.refused:.0f} % it is an exception")

    def to_json(self) -> dict[str, Any]:
        return {"probability": SURE, "pairs": self.pairs, "seen": self.seen, "refused": self.refused}


@lru_cache(maxsize=64)
def power_of(pairs: int, threshold: float) -> Power:
    """The power of a test with that many pairs per k, against a share of predictions below the threshold."""
    broken = np.array([wilson(pairs - wrong, pairs)[1] < threshold for wrong in range(pairs + 1)])
    low, high = 0.0, 1.0
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (low, middle) if binomial(pairs, middle)[broken].sum() >= SURE else (middle, high)
    return Power(pairs, 1 - (1 - SURE) ** (1 / pairs), high)
