"""`explain`: a prediction table, a run, or any function predict(a, b), in one call; and which epoch is certified."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from gcdformer.config import LEAST_PAIRS, TESTED_GCDS, Config, checked_prior
from gcdformer.data.predictions import read_predictions
from gcdformer.data.testsets import natural_pairs, stratified_pairs, test_sets
from gcdformer.errors import DamagedFile, UserError
from gcdformer.evaluation import UNREADABLE, PredictionTable
from gcdformer.explanation import Explanation, explain_tables
from gcdformer.explanation.bands import Predict, bands_of_pairs, distinct, judge_bands
from gcdformer.explanation.certificate import shares_of
from gcdformer.explanation.mistakes import right_by_digits
from gcdformer.explanation.transition import Earlier, Shares, no_earlier
from gcdformer.numbers.encoding import Integers
from gcdformer.numbers.random import Purpose, block_generator
from gcdformer.runs.folder import RunFolder, epochs_with_weights
from gcdformer.runs.run import Run

LARGEST_IN_BOTH_ORDERS, LARGEST_EXHAUSTIVE = 5000, 10_000
CHUNK = 250_000
DEFAULT_MAXIMUM = 1_000_000
RECENT = 5
"""Earlier evaluations within which a prime power must have risen to count as being learned."""

Done = Callable[[int], None]
"""Called with how much is done so far."""
OnBatch = Callable[[int, int], None]
"""Called with how many pairs are answered, and of how many; what it raises ends the evaluation."""


def explain(target: PredictionTable | Run | str | Path | Callable[..., Any], base: int | None = None, *,
            maximum: int | None = None, checkpoint: str | int = "last", threshold: float = 0.9, pairs: int = 100_000,
            seed: int = 0, exhaustive: bool = False, bands: bool = True, prior: str | float | None = None) -> Explanation:
    """Which rules a model follows, how well, and every exception.

    `target` is a run (or its folder), a prediction table or a CSV file of a, b, prediction with its base, or any function
    predict(a, b) with its base: it is called with two arrays if it takes them, else pair by pair; None and NaN count as
    unreadable. A function is tried on `pairs` natural and as many stratified pairs of 1..maximum (a million by default),
    or on all pairs if `exhaustive`. A run has its own base and threshold, and its own maximum unless it is tried on all
    pairs of fewer integers. With `bands` the model is also asked for pairs of other sizes and orders, if it can be: a table
    cannot, nor a run whose weights of that epoch are not kept. Under a `prior` other than its own, a run's model answers its
    test sets afresh.
    """
    if isinstance(target, str | Path):
        if Path(target).suffix.lower() == ".csv":
            return explain_csv(Path(target), require_base(base), threshold, bands=bands)
        target = Run(target)
    if isinstance(target, Run):
        if base not in (None, target.config.task.base):
            raise UserError(f"base: the run's is {target.config.task.base}, not {base}")
        if maximum not in (None, target.config.task.maximum) and not exhaustive:
            raise UserError("maximum: a run was tested up to its own; another needs exhaustive")
        if exhaustive:
            return explain_all_of_run(target, checkpoint, maximum, prior=prior)
        own, epoch = prior is None or checked_prior(prior) == target.config.evaluation.prior, target.epoch(str(checkpoint))
        explanation = explain_run(target, checkpoint) if own else explain_under_prior(target, checkpoint, prior)
        return add_run_bands(explanation, target, epoch, prior) if bands and has_weights(target, epoch) else explanation
    if prior is not None:
        raise UserError("prior: only a run's model can be asked under another prior: predictions have no probabilities")
    base = require_base(base)
    if isinstance(target, PredictionTable):
        return explain_tables({"pairs": target}, base=base, maximum=None, threshold=threshold, least_pairs=LEAST_PAIRS)
    predict, largest = on_arrays(target), maximum or DEFAULT_MAXIMUM
    if exhaustive:
        return explain_all_pairs(predict, base, largest, threshold)
    tables = {}
    for name, purpose, draw in (("natural", Purpose.NATURAL_TEST, natural_pairs),
                                ("stratified", Purpose.STRATIFIED_TEST, stratified_pairs)):
        a, b = distinct(*draw(largest, pairs, block_generator(seed, purpose, 0)).T)
        predictions = predict(a, b)
        tables[name] = PredictionTable.of(a, b, predictions)
    explanation = explain_tables(tables, base=base, maximum=largest, threshold=threshold, orders=by_order(a, b, predictions))
    return add_bands(explanation, predict, largest, seed) if bands else explanation


def require_base(base: int | None) -> int:
    if base is None:
        raise UserError("base: a prediction table or a function does not say in which base integers are written; give it")
    return base


def explain_csv(path: Path, base: int, threshold: float = 0.9, *, bands: bool = True) -> Explanation:
    """Anyone's predictions. A pair that is repeated counts once, with its first answer."""
    a, b, predictions = read_predictions(path, UNREADABLE)
    first = np.sort(np.unique(np.stack([a, b], axis=1), axis=0, return_index=True)[1])
    repeated = len(a) - len(first)
    a, b, predictions = a[first], b[first], predictions[first]
    domain = (f"the {len(a):,} pairs of {path.name}{f' ({repeated:,} repeated ones left out)' if repeated else ''}, "
              f"operands up to {int(max(a.max(), b.max())):,}")
    explanation = explain_tables({"pairs": PredictionTable.of(a, b, predictions)}, base=base, maximum=None,
                                 threshold=threshold, least_pairs=LEAST_PAIRS, domain=domain,
                                 orders=by_order(a, b, predictions))
    mistakes = replace(explanation.mistakes, by_digits=right_by_digits(a, b, predictions, base))
    judged = bands_of_pairs(a, b, predictions, explanation.model) if bands else explanation.bands
    return replace(explanation, mistakes=mistakes, bands=judged)


def by_order(a: Integers, b: Integers, predictions: Integers) -> list[Shares]:
    """The shares of predictions for a < b and for a > b, of the k with a few pairs in that order."""
    parts = [PredictionTable.of(a[part], b[part], predictions[part]) for part in (a < b, a > b) if part.any()]
    return [shares_of(part, LEAST_PAIRS // 3)[0] for part in parts]


def add_bands(explanation: Explanation, predict: Predict, maximum: int, seed: int) -> Explanation:
    """The same with its bands of size and order; the pairs are a function of the seed."""
    rng = block_generator(seed, Purpose.CHECKS, 1)
    return replace(explanation, bands=judge_bands(predict, explanation.model, maximum, rng))


def add_run_bands(explanation: Explanation, run: Run, epoch: int, prior: str | float | None = None) -> Explanation:
    """The bands of a run's epoch, whose weights must be kept."""
    predict = run.predictor(epoch, prior=prior).predict
    return add_bands(explanation, predict, run.config.task.maximum, run.config.training.seed)


def has_weights(run: Run, epoch: int) -> bool:
    return epoch in epochs_with_weights(run.path, run.config.training.steps_per_epoch)


def explain_run(run: Run, checkpoint: str | int = "last") -> Explanation:
    """A run's epoch, from its saved tables."""
    epoch = run.epoch(str(checkpoint))
    return explain_evaluation(run.config, run.prediction_tables(epoch), earlier_shares(run.folder, epoch))


def explain_under_prior(run: Run, checkpoint: str | int, prior: str | float | None,
                        on_batch: OnBatch = lambda done, total: None, most: int | None = None) -> Explanation:
    """A checkpoint's model on the run's own test sets, its answers decided under a prior; with `most`, on sets of that many
    pairs if its own are larger."""
    return explain_evaluation(run.config, tables_under_prior(run, checkpoint, prior, on_batch, most))


def tables_under_prior(run: Run, checkpoint: str | int, prior: str | float | None,
                       on_batch: OnBatch = lambda done, total: None, most: int | None = None) -> dict[str, PredictionTable]:
    """The prediction tables behind that."""
    from gcdformer.evaluation.evaluate import prediction_tables
    run.require_gcd()
    run.require_same_file("test_file", run.config.evaluation.test_file)
    size = run.config.evaluation.test_size
    config = run.config if most is None else run.config.replace(test_size=min(most, size))
    sets = test_sets(config, run.problem, run.epoch(str(checkpoint)))
    total = sum(map(len, sets.values()))
    return prediction_tables(run.predictor(checkpoint, prior=prior), sets, lambda done: on_batch(done, total))


def explain_evaluation(config: Config, tables: dict[str, PredictionTable], earlier: Earlier = no_earlier) -> Explanation:
    """The tables of one evaluation of a run."""
    file = config.evaluation.test_file
    return explain_tables(tables, base=config.task.base, maximum=tested_maximum(config),
                          threshold=config.evaluation.threshold, earlier=earlier,
                          domain=None if file is None else f"the pairs of {Path(file).name}")


def earlier_shares(folder: RunFolder, epoch: int) -> Earlier:
    """The predictions of the evaluations before an epoch, read when they are needed; damaged ones are passed over."""
    def read() -> list[Shares]:
        shares = []
        for before in range(max(1, epoch - RECENT), epoch):
            try:
                shares.append(shares_of(folder.read_predictions(before)["stratified"])[0])
            except DamagedFile:
                continue
        return shares

    return read


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


def all_pairs_count(maximum: int) -> int:
    """How many pairs `explain_all_pairs` tries."""
    return maximum * maximum if maximum <= LARGEST_IN_BOTH_ORDERS else maximum * (maximum + 1) // 2


def all_pairs(maximum: int) -> Iterator[tuple[Integers, Integers]]:
    """All pairs of 1..M in chunks; above 5,000 only those with a <= b, since there are 50 million of them up to 10,000."""
    if maximum <= LARGEST_IN_BOTH_ORDERS:
        for start in range(0, maximum * maximum, CHUNK):
            every = np.arange(start, min(start + CHUNK, maximum * maximum), dtype=np.int64)
            yield every // maximum + 1, every % maximum + 1
        return
    rows = CHUNK // maximum
    for first in range(1, maximum + 1, rows):
        larger = np.arange(first, min(first + rows, maximum + 1), dtype=np.int64)
        b = np.repeat(larger, larger)
        yield np.arange(len(b), dtype=np.int64) - np.repeat(np.cumsum(larger) - larger, larger) + 1, b


def explain_all_pairs(predict: Predict, base: int, maximum: int, threshold: float,
                      on_chunk: Done = lambda done: None) -> Explanation:
    """A certificate by enumeration: every pair of 1..M is tried, and only counted, so that it takes little memory."""
    require_few(maximum)
    table: PredictionTable | None = None
    done = 0
    for a, b in all_pairs(maximum):
        part = PredictionTable.of(a, b, predict(a, b))
        table = part if table is None else table.joined(part)
        done += len(a)
        on_chunk(done)
    assert table is not None
    which = "pairs" if maximum <= LARGEST_IN_BOTH_ORDERS else "pairs a <= b"
    return explain_tables({"natural": table, "stratified": table}, base=base, maximum=maximum, threshold=threshold,
                          exhaustive=True, domain=f"all {which} of 1..{maximum:,} with a GCD up to {TESTED_GCDS}")


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
