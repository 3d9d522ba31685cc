"""Entries of the ledger made without training: what a model that follows the rules would leave behind."""

from __future__ import annotations

import numpy as np

from gcdformer.data.testsets import natural_pairs, stratified_pairs
from gcdformer.evaluation import PredictionTable
from gcdformer.explanation.sieve import largest_divisor
from gcdformer.numbers.random import Purpose, block_generator
from gcdformer.paper import Experiment
from gcdformer.paper.entry import Entry, pack
from gcdformer.presets import VERSIONS


def ideal(experiment: Experiment, known: set[int], *, seed: int = 0, epoch_of: dict[int, int] | None = None) -> Entry:
    """An entry of a model that follows the rules with this D and was trained for 100 epochs of the paper's size."""
    tables = {}
    for name, purpose, draw in (("natural", Purpose.NATURAL_TEST, natural_pairs),
                                ("stratified", Purpose.STRATIFIED_TEST, stratified_pairs)):
        pairs = draw(1_000_000, 5_000, block_generator(0, purpose, 0))
        gcds = np.gcd(pairs[:, 0], pairs[:, 1])
        answers = np.array([largest_divisor(known, int(k)) for k in gcds], dtype=np.int64)
        tables[name] = PredictionTable.of(pairs[:, 0], pairs[:, 1], answers, gcds)
    first = dict.fromkeys(known, 1) | (epoch_of or {})
    epochs = range(1, 101)
    config = experiment.config("fast", seed).derive(max_minutes=None, max_epochs=100)
    curve = {"epoch": list(epochs), "examples": [300_000 * e for e in epochs], "seconds": [60 * e for e in epochs],
             "loss": [0.5] * 100, "test_loss": [0.5] * 100, "accuracy": [100 * tables["natural"].accuracy] * 100,
             "n_correct": [sum(first[k] <= e for k in known) for e in epochs]}
    return Entry(f"{experiment.name}_seed-{seed}", {
        "format": 1, "gcdformer": "0", "preset": "fast", "preset_version": VERSIONS["fast"], "changed": {},
        "experiments": [experiment.name], "config": config.model_dump(exclude_none=True), "examples_per_s": 5000,
        "why": None, "curve": curve,
        "events": [[e, [k for k in known if first[k] == e], []] for e in sorted(set(first.values()))],
        "late": {}, "tables": pack(tables)})
