"""What the page shows of a run and of one of its epochs, as JSON. Read from the run's files; no model is needed."""

from __future__ import annotations

from typing import Any

from gcdformer.config import TESTED_GCDS
from gcdformer.display.cells import cell_kind
from gcdformer.display.words import known_sets, rule_mark, rule_words
from gcdformer.errors import UserError
from gcdformer.evaluation.table import PredictionTable
from gcdformer.explanation import Explanation, explain_tables
from gcdformer.explanation.rules import mode, readable
from gcdformer.explanation.sieve import components, prime_power
from gcdformer.explanation.timeline import Timeline, timeline
from gcdformer.lab.catalogue import Catalogue, Entry, describe
from gcdformer.lab.damage import reading
from gcdformer.numbers.theory import prime_factors
from gcdformer.presets import repeat_command
from gcdformer.runs.explain import tested_maximum
from gcdformer.runs.folder import RunFolder, best_line, checkpoint_steps

COLUMNS = ("epoch", "examples", "seconds", "loss", "test_loss", "accuracy", "stratified_accuracy", "n_correct", "throughput")
SHOWN_VALUES = 6
"""Predicted values listed for a k, most frequent first."""


def run_view(catalogue: Catalogue, entry: Entry) -> dict[str, Any]:
    """A run: what it is, every evaluation in short, when each prime power was learned, which epochs have weights."""
    folder = RunFolder(entry.path)
    with reading(entry.path):
        config = catalogue.config(entry)
        lines = folder.metrics()
        has_gcd = config.task.task == "gcd"
        best = best_line(lines)
        made: dict[str, Any] = {
            "id": entry.id, "name": entry.name, "example": entry.is_example, **describe(config),
            "has_gcd": has_gcd, "threshold": config.evaluation.threshold,
            "test_size": config.evaluation.test_size, "best_epoch": best["epoch"] if best else None,
            "columns": {name: [line.get(name) for line in lines] for name in COLUMNS},
            "checkpoints": epochs_with_weights(entry, config.training.steps_per_epoch, len(lines)),
            "base_primes": sorted(prime_factors(config.task.base)),
            "repeat": repeat_command(config, entry.path.name), "config": config.to_toml(),
        }
        if has_gcd:
            history = timeline(lines)
            made |= {"D": [line["D"] for line in lines], "nearly": [line.get("being_learned", []) for line in lines],
                     "timeline": timeline_view(history)}
    return made


def epochs_with_weights(entry: Entry, per_epoch: int, evaluated: int) -> list[int]:
    """The evaluated epochs whose model can be asked."""
    steps = checkpoint_steps(entry.path)
    return [step // per_epoch for step in steps if step and step % per_epoch == 0 and step // per_epoch <= evaluated]


def timeline_view(history: Timeline) -> dict[str, Any]:
    return {"steps": [step.to_json() for step in history.steps],
            "prime_powers": {str(q): epoch for q, epoch in history.prime_powers.items()},
            "stagnation": [list(period) for period in history.stagnation]}


def explain_epoch(catalogue: Catalogue, entry: Entry, epoch: int) -> tuple[dict[str, PredictionTable], Explanation]:
    """The tables of an epoch and what they tell."""
    with reading(entry.path):
        config = catalogue.config(entry)
        if config.task.task != "gcd":
            raise UserError(f"epoch: a run of task '{config.task.task}' has no prediction tables")
        tables = RunFolder(entry.path).read_predictions(epoch)
        return tables, explain_tables(tables, base=config.task.base, maximum=tested_maximum(config),
                                      threshold=config.evaluation.threshold)


def epoch_view(catalogue: Catalogue, entry: Entry, epoch: int) -> dict[str, Any]:
    """One epoch: f(k) for every k with the values it hesitates between, the heat map's cells, the rules, the certificate."""
    tables, found = explain_epoch(catalogue, entry, epoch)
    with reading(entry.path):
        sets = known_sets(found)
        return {
            "epoch": epoch, "form": found.form.letter, "form_says": found.form.title, "why": found.why,
            "certified": found.certified, "verdict": found.verdict, "D": found.correct,
            "being_learned": found.being_learned, "grokked": found.grokked,
            **found.classes_to_json(),
            "sets": None if sets is None else [{"prime": p, "powers": powers} for p, powers in sets],
            "prime_powers": prime_power_view(found),
            "f": k_views(found),
            "cells": heat_cells(tables["stratified"]),
            "rules": [{"says": says, "holds": rule.holds, "mark": rule_mark(rule), "share": rule.share,
                       "exceptions": [{"k": breach.k, "text": breach.text} for breach in rule.exceptions]}
                      for says, rule in rule_words(found)],
            "fidelity": {name: one.to_json() for name, one in found.fidelity.items()},
            "accuracy": {"measured": found.measured_accuracy, "predicted": found.predicted_accuracy},
            "counterexamples": [example.to_json() for example in found.counterexamples[:30]],
            "examples": example_pairs(tables["stratified"]),
        }


def k_views(found: Explanation) -> list[dict[str, Any]]:
    """For every k tested what the model does with its pairs, and what that is called."""
    broken, learning, correct = found.broken, set(found.being_learned), set(found.correct)
    made = []
    for k, shares in found.shares.items():
        kind = cell_kind(k, correct=correct, learning=learning, broken=broken)
        made.append({"k": k, "kind": kind, "prediction": readable(mode(shares)), "share": shares[mode(shares)],
                     "rule": readable(found.model.answer(k)), "label": found.model.label(k), "factors": components(k),
                     "values": [[readable(value), share] for value, share in list(shares.items())[:SHOWN_VALUES]]})
    return made


def prime_power_view(found: Explanation) -> list[dict[str, Any]]:
    """Every prime power tested, a row for each prime, with the share of its pairs predicted right."""
    rows: dict[int, list[dict[str, Any]]] = {}
    for q in found.shares:
        power = prime_power(q)
        if power:
            rows.setdefault(power[0], []).append({
                "value": q, "right": found.shares[q].get(q, 0.0),
                "state": "correct" if q in found.correct else "learning" if q in found.being_learned else "unknown"})
    return [{"prime": p, "divides_base": found.base % p == 0, "powers": powers} for p, powers in sorted(rows.items())]


def heat_cells(table: PredictionTable) -> list[list[float]]:
    """[true k, predicted, share] for k up to 100; predictions above 100 and unreadable ones are counted as 101."""
    counts: dict[tuple[int, int], int] = {}
    totals: dict[int, int] = {}
    for k, value, count in zip(table.gcd.tolist(), table.prediction.tolist(), table.count.tolist(), strict=True):
        if k <= TESTED_GCDS:
            place = value if 1 <= value <= TESTED_GCDS else TESTED_GCDS + 1
            counts[k, place] = counts.get((k, place), 0) + count
            totals[k] = totals.get(k, 0) + count
    return [[k, value, round(count / totals[k], 4)] for (k, value), count in sorted(counts.items())]


def example_pairs(table: PredictionTable) -> dict[str, list[int]]:
    """A pair for each k, one that got the usual answer."""
    made: dict[str, list[int]] = {}
    for k in table.tested():
        pairs = table.examples_of(k, next(iter(table.counts_of(k))))
        if k <= TESTED_GCDS and pairs:
            made[str(k)] = list(pairs[0])
    return made
