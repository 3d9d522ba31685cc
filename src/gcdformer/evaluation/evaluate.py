"""Predictor and test sets to an evaluation: loss, prediction tables, scores. Training, commands and imports all use it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from gcdformer.evaluation.predictor import Predictor
from gcdformer.evaluation.scores import Calibration, Scores, score
from gcdformer.evaluation.table import PredictionTable
from gcdformer.numbers.encoding import Integers

OnBatch = Callable[[int], None]
"""Called with the number of questions answered so far."""


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
             on_batch: OnBatch = lambda done: None, *, calibrate: bool = False) -> Evaluation:
    """Decode the test sets; `on_batch` is called with the number of questions answered so far, and may raise `Stopped`."""
    with reporting(predictor, on_batch):
        loss = predictor.loss(next(iter(sets.values())))
        calibration = predictor.calibration(next(iter(sets.values()))) if calibrate else None
        if not predictor.problem.task.has_gcd:
            return Evaluation(loss, predictor.accuracy(sets["test"]), {}, None, calibration)
    tables = prediction_tables(predictor, sets, on_batch)
    scores = score(tables["natural"], tables["stratified"], threshold)
    return Evaluation(loss, scores.accuracy, tables, scores, calibration)


def prediction_tables(predictor: Predictor, sets: dict[str, Integers],
                      on_batch: OnBatch = lambda done: None) -> dict[str, PredictionTable]:
    """The answers to the test sets alone, for a task with a GCD."""
    done, tables = 0, {}
    with reporting(predictor, lambda answered: on_batch(done + answered)):
        for name, pairs in sets.items():
            tables[name] = predictor.table(pairs)
            done += len(pairs)
    return tables


@contextmanager
def reporting(predictor: Predictor, on_batch: OnBatch) -> Iterator[None]:
    """The predictor reports here meanwhile."""
    before, predictor.on_batch = predictor.on_batch, on_batch
    try:
        yield
    finally:
        predictor.on_batch = before
