"""`explain`: a prediction table, a run, or any function predict(a, b), in one call; and which epoch is certified."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from gcdformer.config import LEAST_PAIRS, Config, checked_prior
from gcdformer.data.predictions import read_predictions
from gcdformer.data.testsets import natural_pairs, stratified_pairs, test_sets
from gcdformer.errors import UserError
from gcdformer.evaluation import UNREADABLE, PredictionTable
from gcdformer.explanation import Explanation, explain_tables
from gcdformer.numbers.encoding import Integers
from gcdformer.numbers.random import Purpose, block_generator
from gcdformer.runs.run import Run

LARGEST_EXHAUSTIVE = 5000
CHUNK = 250_000
DEFAULT_MAXIMUM = 1_000_000

Done = Callable[[int], None]
"""Called with how much is done so far."""


def explain(target: PredictionTable | Run | str | Path | Callable[..., Any], base: int | None = None, *,
            maximum: int | None = None, checkpoint: str | int = "last", threshold: float = 0.9, pairs: int = 100_000,
            seed: int = 0, exhaustive: bool = False, prior: str | float | None = None) -> Explanation:
    """Which rules a model follows, how well, and every exception.

    `target` is a run (or its folder), a prediction table or a CSV file of a, b, prediction with its base, or any function
    predict(a, b) with its base: it is called with two arrays if it takes them, else pair by pair; None and NaN count as
    unreadable. A function is tried on `pairs` natural and as many stratified pairs of 1..maximum (a million by default),
    or on all pairs if `exhaustive`. A run has its own base and threshold, and its own maximum unless it is tried on all
    pairs of fewer integers. Under a `prior` other than its own, a run's model answers its test sets afresh.
    """
    if isinstance(target, str | Path):
        is_table = Path(target).suffix.lower() == ".csv"
        target = PredictionTable.of(*read_predictions(Path(target), UNREADABLE)) if is_table else Run(target)
    if isinstance(target, Run):
        if base not in (None, target.config.task.base):
            raise UserError(f"base: the run's is {target.config.task.base}, not {base}")
        if maximum not in (None, target.config.task.maximum) and not exhaustive:
            raise UserError("maximum: a run was tested up to its own; another needs exhaustive")
        if exhaustive:
            return explain_all_of_run(target, checkpoint, maximum, prior=prior)
        own = prior is None or checked_prior(prior) == target.config.evaluation.prior
        return explain_run(target, checkpoint) if own else explain_under_prior(target, checkpoint, prior)
    if prior is not None:
        raise UserError("prior: only a run's model can be asked under another prior: predictions have no probabilities")
    if base is None:
        raise UserError("base: a prediction table or a function does not tell in which base integers are written; give it")
    if isinstance(target, PredictionTable):
        return explain_tables({"pairs": target}, base=base, maximum=None, threshold=threshold, least_pairs=LEAST_PAIRS)
    predict, largest = on_arrays(target), maximum or DEFAULT_MAXIMUM
    if exhaustive:
        return explain_all_pairs(predict, base, largest, threshold)
    tables = {}
    for name, purpose, draw in (("natural", Purpose.NATURAL_TEST, natural_pairs),
                                ("stratified", Purpose.STRATIFIED_TEST, stratified_pairs)):
        drawn = draw(largest, pairs, block_generator(seed, purpose, 0))
        tables[name] = PredictionTable.of(drawn[:, 0], drawn[:, 1], predict(drawn[:, 0], drawn[:, 1]))
    return explain_tables(tables, base=base, maximum=largest, threshold=threshold)


def explain_run(run: Run, checkpoint: str | int = "last") -> Explanation:
    """A run's epoch, from its saved tables."""
    return explain_evaluation(run.config, run.prediction_tables(checkpoint))


def explain_under_prior(run: Run, checkpoint: str | int, prior: str | float | None,
                        on_batch: Callable[[int, int], None] = lambda done, total: None) -> Explanation:
    """A checkpoint's model on the run's own test sets, its answers decided under a prior."""
    from gcdformer.evaluation.evaluate import evaluate
    run.require_gcd()
    run.require_same_file("test_file", run.config.evaluation.test_file)
    epoch = run.epoch(str(checkpoint)) if run.config.evaluation.fresh_tests else 1
    sets = test_sets(run.config, run.problem, epoch)
    total = sum(map(len, sets.values()))
    found = evaluate(run.predictor(checkpoint, prior=prior), sets, run.config.evaluation.threshold,
                     lambda done: on_batch(done, total))
    return explain_evaluation(run.config, found.tables)


def explain_evaluation(config: Config, tables: dict[str, PredictionTable]) -> Explanation:
    """The tables of one evaluation of a run."""
    return explain_tables(tables, base=config.task.base, maximum=tested_maximum(config),
                          threshold=config.evaluation.threshold)


def explain_all_of_run(run: Run, checkpoint: str | int = "last", maximum: int | None = None,
                       on_chunk: Done = lambda done: None, prior: str | float | None = None) -> Explanation:
    """A checkpoint's model on all pairs of 1..maximum, the run's own M if it is not given."""
    run.require_gcd()
    task, largest = run.config.task, run.config.task.maximum if maximum is None else maximum
    if not 1 <= largest <= task.maximum:
        raise UserError(f"max: this run's integers are 1..{task.maximum}, so max is one of them, got {largest}")
    require_few(largest)
    threshold = run.config.evaluation.threshold
    return explain_all_pairs(run.predictor(checkpoint, prior=prior).predict, task.base, largest, threshold, on_chunk)


def certified_epoch(run: Run, before: int | None = None, on_epoch: Done = lambda done: None) -> int | None:
    """The last epoch (before this one) whose tables give a certificate; None if there is none.

    Lines that were written with `certified: false` are believed; the tables decide about all others.
    """
    run.require_gcd()
    for count, line in enumerate(reversed(run.metrics), 1):
        epoch = int(line["epoch"])
        if (before is None or epoch < before) and line.get("certified", True) and explain_run(run, epoch).certified:
            return epoch
        on_epoch(count)
    return None


def tested_maximum(config: Config) -> int | None:
    """M, if the natural test set is drawn uniformly from 1..M; a file's pairs have a distribution of their own."""
    return config.task.maximum if config.evaluation.test_file is None else None


def require_few(maximum: int) -> None:
    if maximum > LARGEST_EXHAUSTIVE:
        raise UserError(f"exhaustive: all pairs of 1..{maximum} are too many; give max up to {LARGEST_EXHAUSTIVE}")


def explain_all_pairs(predict: Callable[[Integers, Integers], Integers], base: int, maximum: int, threshold: float,
                      on_chunk: Done = lambda done: None) -> Explanation:
    """A certificate by enumeration: every pair of 1..M is tried."""
    require_few(maximum)
    predictions = np.empty(maximum * maximum, dtype=np.int64)
    every = np.arange(maximum * maximum, dtype=np.int64)
    a, b = every // maximum + 1, every % maximum + 1
    for start in range(0, len(every), CHUNK):
        part = slice(start, start + CHUNK)
        predictions[part] = predict(a[part], b[part])
        on_chunk(min(start + CHUNK, len(every)))
    gcds = np.gcd(a, b)
    tested = gcds <= 100
    tables = {"natural": PredictionTable.of(a, b, predictions, gcds),
              "stratified": PredictionTable.of(a[tested], b[tested], predictions[tested], gcds[tested])}
    return explain_tables(tables, base=base, maximum=maximum, threshold=threshold, exhaustive=True)


def on_arrays(function: Callable[..., Any]) -> Callable[[Integers, Integers], Integers]:
    """The function on arrays, whatever it takes."""
    def one_by_one(a: Integers, b: Integers) -> Integers:
        return np.array([to_integer(function(int(x), int(y))) for x, y in zip(a, b, strict=True)], dtype=np.int64)

    def whole(a: Integers, b: Integers) -> Integers:
        try:
            answers = np.asarray(function(a, b))
        except (TypeError, ValueError):
            return one_by_one(a, b)
        if answers.shape != a.shape:
            return one_by_one(a, b)
        if answers.dtype.kind in "iu":
            return answers.astype(np.int64)
        return np.array([to_integer(value) for value in answers.tolist()], dtype=np.int64)

    return whole


def to_integer(value: Any) -> int:
    """An answer as an integer; UNREADABLE for None, NaN, fractions and what int64 cannot hold."""
    if value is None or value != value:
        return UNREADABLE
    if isinstance(value, str):
        value = int(value) if value.strip().isdecimal() else None
    try:
        whole = int(value)
    except (TypeError, ValueError, OverflowError):
        return UNREADABLE
    return whole if whole == value and abs(whole) < 2**63 else UNREADABLE
