"""Predictions to scores: accuracy, f(k) with its frequency, the correct GCD, and how well confidences are calibrated.

Calibrated means that of the answers given with confidence p a share p is right. Correcting a prior relies on it: it takes
p(k | x) at its word. Pure functions of tables and of confidences; knows no model.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gcdformer.evaluation.table import PredictionTable, readable
from gcdformer.numbers.encoding import Mask

Confidences = npt.NDArray[np.float64]
BINS = 15


@dataclass(frozen=True)
class GcdScore:
    """What the model does with pairs of GCD k: the modal prediction f(k), its frequency, and how often it is k."""

    k: int
    prediction: int | None
    frequency: float
    accuracy: float
    pairs: int


@dataclass(frozen=True)
class Scores:
    """Accuracy in percent on both test sets, and f(k) for every k tested."""

    accuracy: float
    stratified_accuracy: float
    by_gcd: dict[int, GcdScore]
    threshold: float

    def __repr__(self) -> str:
        """One line: the accuracies and how many GCD are correct."""
        return (f"Scores(accuracy {self.accuracy:.2f} % natural, {self.stratified_accuracy:.2f} % stratified, "
                f"{len(self.correct)} correct GCD of {len(self.by_gcd)})")

    @property
    def correct(self) -> list[int]:
        """D: the k of which at least the threshold's share is predicted k."""
        return [k for k, s in self.by_gcd.items() if s.accuracy >= 100 * self.threshold]

    @property
    def modal(self) -> list[int]:
        """The k with f(k) = k."""
        return [k for k, s in self.by_gcd.items() if s.prediction == k]

    @property
    def modal_only(self) -> list[int]:
        """f(k) = k, but not often enough to be correct."""
        return sorted(set(self.modal) - set(self.correct))

    def to_json(self) -> dict[str, Any]:
        return {
            "accuracy": self.accuracy,
            "stratified_accuracy": self.stratified_accuracy,
            "correct": self.correct,
            "n_correct": len(self.correct),
            "modal": self.modal,
            "modal_only": self.modal_only,
            "threshold": self.threshold,
            "by_gcd": {str(k): {"prediction": s.prediction, "frequency": s.frequency, "accuracy": s.accuracy,
                                "pairs": s.pairs} for k, s in self.by_gcd.items()},
        }


def score_gcd(table: PredictionTable, k: int) -> GcdScore:
    counts = table.counts_of(k)
    total = sum(counts.values())
    value, count = next(iter(counts.items()))
    return GcdScore(k, readable(value), count / total, 100.0 * counts.get(k, 0) / total, total)


def score(natural: PredictionTable, stratified: PredictionTable, threshold: float) -> Scores:
    """The scores of one evaluation."""
    by_gcd = {k: score_gcd(stratified, k) for k in stratified.tested()}
    return Scores(100.0 * natural.accuracy, 100.0 * stratified.accuracy, by_gcd, threshold)


@dataclass(frozen=True)
class Bin:
    """The answers whose confidence is above `low` and at most `high` (0 is in the first bin): their number, their mean
    confidence and the share of them that is right, both 0 if there are none."""

    low: float
    high: float
    n: int
    confidence: float
    accuracy: float


@dataclass(frozen=True)
class Calibration:
    """Bins of equal width, and the expected calibration error: the mean distance of confidence and accuracy over answers."""

    ece: float
    bins: tuple[Bin, ...]

    @classmethod
    def of(cls, confidences: Confidences, right: Mask, bins: int = BINS) -> Calibration:
        """Of some answers, each with its confidence in 0..1 and whether it is right."""
        edges = np.linspace(0, 1, bins + 1)
        index = np.clip(np.searchsorted(edges, confidences, side="left") - 1, 0, bins - 1)
        counts = np.bincount(index, minlength=bins)
        divisor = np.maximum(counts, 1)
        mean = np.bincount(index, confidences, minlength=bins) / divisor
        share = np.bincount(index, right, minlength=bins) / divisor
        error = float(np.dot(counts, np.abs(mean - share)) / max(len(confidences), 1))
        rows = zip(edges[:-1].tolist(), edges[1:].tolist(), counts.tolist(), mean.tolist(), share.tolist(), strict=True)
        return cls(error, tuple(Bin(*row) for row in rows))

    @property
    def n(self) -> int:
        return sum(part.n for part in self.bins)

    def to_json(self) -> dict[str, Any]:
        return {"ece": self.ece, "n": self.n, "bins": [asdict(part) for part in self.bins]}
