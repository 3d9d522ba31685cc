"""Predictor and test sets to an evaluation: loss, prediction tables, scores. Training, commands and imports all use it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gcdformer.evaluation.predictor import Predictor
from gcdformer.evaluation.scores import Calibration, Scores, score
from gcdformer.evaluation.table import PredictionTable
from gcdformer.numbers.encoding import Integers


@dataclass(frozen=True)
class Evaluation:
    """What one evaluation finds. Tasks without a GCD have no tables and no scores."""

    loss: float
    """Mean cross-entropy of a target token on the first test set; no prior changes it."""
    accuracy: float
    """Percent of the first test set, the natural one."""
    tables: dict[str, PredictionTable]
    scores: Scores | None
    calibration: Calibration | None = None
    """Of the first test set, if it was asked for."""


def evaluate(predictor: Predictor, sets: dict[str, Integers], threshold: float,
             on_batch: Callable[[int], None] = lambda done: None, *, calibrate: bool = False) -> Evaluation:
    """Decode the test sets; `on_batch` is called with the number of questions answered so far, and may raise `Stopped`."""
    done = 0
    before, predictor.on_batch = predictor.on_batch, lambda answered: on_batch(done + answered)
    try:
        loss = predictor.loss(next(iter(sets.values())))
        calibration = predictor.calibration(next(iter(sets.values()))) if calibrate else None
        if not predictor.problem.task.has_gcd:
            return Evaluation(loss, predictor.accuracy(sets["test"]), {}, None, calibration)
        tables = {}
        for name, pairs in sets.items():
            tables[name] = predictor.table(pairs)
            done += len(pairs)
    finally:
        predictor.on_batch = before
    scores = score(tables["natural"], tables["stratified"], threshold)
    return Evaluation(loss, scores.accuracy, tables, scores, calibration)
