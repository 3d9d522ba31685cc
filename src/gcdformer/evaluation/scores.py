"""Prediction tables to scores: accuracy, f(k) with its frequency, and the correct GCD. Pure functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gcdformer.evaluation.table import UNREADABLE, PredictionTable


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
    return GcdScore(k, None if value == UNREADABLE else value, count / total, 100.0 * counts.get(k, 0) / total, total)


def score(natural: PredictionTable, stratified: PredictionTable, threshold: float) -> Scores:
    """The scores of one evaluation."""
    by_gcd = {k: score_gcd(stratified, k) for k in stratified.tested()}
    return Scores(100.0 * natural.accuracy, 100.0 * stratified.accuracy, by_gcd, threshold)
