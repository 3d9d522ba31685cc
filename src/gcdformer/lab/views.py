"""What the page shows of a run and of one of its epochs. Read from the run's files; no model is needed."""

from __future__ import annotations

from collections.abc import Mapping

from gcdformer.config import TESTED_GCDS, Config
from gcdformer.display.cells import explanation_cells, heat_cells
from gcdformer.display.words import known_sets, rule_mark, rule_words
from gcdformer.errors import UserError
from gcdformer.evaluation.table import PredictionTable, readable
from gcdformer.explanation import Explanation
from gcdformer.explanation.sieve import components, prime_power
from gcdformer.explanation.timeline import Timeline, timeline
from gcdformer.lab.catalogue import Catalogue, ListedRun, reading
from gcdformer.lab.priors import offered_priors
from gcdformer.lab.schema import Columns, EpochDetails, OneK, PrimePower, PrimeRow, RunView, TimelineOfD
from gcdformer.lab.summaries import Lines, describe, has_gcd, sample_lines
from gcdformer.numbers.theory import prime_factors
from gcdformer.presets import repeat_command
from gcdformer.runs.explain import earlier_shares, explain_evaluation
from gcdformer.runs.folder import RunFolder, best_line, epochs_with_weights
from gcdformer.tasks.registry import TASKS

SHOWN_VALUES = 6
"""Predicted values listed for a k, most frequent first."""
SHOWN_PAIRS = 30
"""Pairs listed on which the model and its rules differ."""


def run_view(catalogue: Catalogue, entry: ListedRun) -> RunView:
    """A run folder, with its best epoch and those that have weights."""
    with reading(entry.path):
        config = catalogue.config(entry)
        lines = RunFolder(entry.path).metrics()
        best = best_line(lines)
        view = run_details(entry.id, entry.name, config, lines, has_gcd=has_gcd(config, lines),
                           repeat=repeat_command(config, entry.path.name))
        return {**view, "example": entry.is_example, "best_epoch": best["epoch"] if best else None,
                "checkpoints": askable_epochs(entry, config.training.steps_per_epoch, len(lines))}


def run_details(key: str, name: str, config: Config, lines: Lines, *, has_gcd: bool, repeat: str) -> RunView:
    """A run: what it is, every evaluation in short, when each prime power was learned."""
    view: RunView = {
        "id": key, "name": name, "example": False,
        **describe(config, has_gcd),  # type: ignore[typeddict-item]  # it has none of the keys that may be missing
        "has_gcd": has_gcd, "threshold": config.evaluation.threshold,
        "test_size": config.evaluation.test_size, "best_epoch": None, "columns": columns_of(lines), "checkpoints": [],
        "priors": offered_priors(config), "base_primes": sorted(prime_factors(config.task.base)), "repeat": repeat,
        "config": config.to_toml(),
    }
    if has_gcd:
        view["D"] = [line["D"] for line in lines]
        view["nearly"] = [line.get("being_learned", []) for line in lines]
        view["timeline"] = timeline_view(timeline(lines))
    return view


def columns_of(lines: Lines) -> Columns:
    return {"epoch": [line["epoch"] for line in lines], "examples": [line["examples"] for line in lines],
            "seconds": [line["seconds"] for line in lines], "loss": [line["loss"] for line in lines],
            "test_loss": [line.get("test_loss") for line in lines], "accuracy": [line["accuracy"] for line in lines],
            "stratified_accuracy": [line.get("stratified_accuracy") for line in lines],
            "n_correct": [line.get("n_correct") for line in lines], "throughput": [line.get("throughput") for line in lines]}


def askable_epochs(entry: ListedRun, per_epoch: int, evaluated: int) -> list[int]:
    """The evaluated epochs whose model can be asked."""
    return [epoch for epoch in epochs_with_weights(entry.path, per_epoch) if epoch <= evaluated]


def timeline_view(history: Timeline) -> TimelineOfD:
    return {"steps": [step.to_json() for step in history.steps],
            "prime_powers": {str(q): epoch for q, epoch in history.prime_powers.items()},
            "stagnation": list(history.stagnation)}


def require_gcd(catalogue: Catalogue, entry: ListedRun, refusal: str) -> None:
    """Refuse a run whose task has no GCD; `refusal` names the task where it says {task}."""
    with reading(entry.path):
        config = catalogue.config(entry)
        lines = [] if config.task.task in TASKS else sample_lines(RunFolder(entry.path).metrics_path)
        if not has_gcd(config, lines):
            raise UserError(refusal.format(task=config.task.task))


def explain_epoch(catalogue: Catalogue, entry: ListedRun, epoch: int) -> tuple[dict[str, PredictionTable], Explanation]:
    """The tables of an epoch and their explanation."""
    require_gcd(catalogue, entry, "epoch: a run of task '{task}' has no prediction tables")
    with reading(entry.path):
        folder = RunFolder(entry.path)
        tables = folder.read_predictions(epoch)
        return tables, explain_evaluation(catalogue.config(entry), tables, earlier_shares(folder, epoch))


def epoch_view(catalogue: Catalogue, entry: ListedRun, epoch: int) -> EpochDetails:
    tables, explanation = explain_epoch(catalogue, entry, epoch)
    with reading(entry.path):
        return epoch_details(epoch, catalogue.config(entry).evaluation.prior, tables, explanation)


def epoch_details(epoch: int, prior: str, tables: Mapping[str, PredictionTable], explanation: Explanation) -> EpochDetails:
    """One epoch, its answers decided under a prior: f(k) for every k with the values it hesitates between, the heat map's
    cells, the rules, the certificate."""
    sets = known_sets(explanation)
    return {
        "epoch": epoch, "prior": prior,
        "form": explanation.form.letter, "form_says": explanation.form.title, "why": explanation.why,
        "certified": explanation.certified, "verdict": explanation.verdict, "D": explanation.correct,
        "being_learned": explanation.being_learned, "grokked": explanation.grokked,
        "E": explanation.other_labels,
        "classes": [group.to_json() for group in explanation.classes] if explanation.form.has_classes else None,
        "sets": None if sets is None else [{"prime": p, "powers": powers} for p, powers in sets],
        "prime_powers": prime_power_view(explanation),
        "f": k_views(explanation),
        "cells": heat_cells(tables["stratified"]),
        "rules": [{"says": says, "holds": rule.holds, "mark": rule_mark(rule), "share": rule.share,
                   "exceptions": [{"k": breach.k, "text": breach.text} for breach in rule.exceptions]}
                  for says, rule in rule_words(explanation)],
        "fidelity": {name: fidelity.to_json() for name, fidelity in explanation.fidelity.items()},
        "accuracy": {"measured": explanation.measured_accuracy, "predicted": explanation.predicted_accuracy},
        "counterexamples": [pair.to_json() for pair in explanation.counterexamples[:SHOWN_PAIRS]],
        "examples": example_pairs(tables["stratified"]),
    }


def k_views(explanation: Explanation) -> list[OneK]:
    """For every k tested what the model does with its pairs, and what that is called."""
    made: list[OneK] = []
    for cell in explanation_cells(explanation):
        if cell.kind != "untested":
            k, model, shares = cell.k, explanation.model, list(explanation.shares[cell.k].items())
            made.append({"k": k, "kind": cell.kind, "prediction": cell.prediction, "share": shares[0][1],
                         "right": explanation.shares[k].get(k, 0.0),
                         "rule": readable(model.answer(k)), "label": model.label(k), "factors": components(k),
                         "values": [(readable(value), share) for value, share in shares[:SHOWN_VALUES]]})
    return made


def prime_power_view(explanation: Explanation) -> list[PrimeRow]:
    """Every prime power tested, a row for each prime, with the share of its pairs predicted right."""
    rows: dict[int, list[PrimePower]] = {}
    for cell in explanation_cells(explanation):
        power = prime_power(cell.k)
        if power and cell.kind != "untested":
            rows.setdefault(power[0], []).append({
                "value": cell.k, "right": explanation.shares[cell.k].get(cell.k, 0.0),
                "state": cell.kind if cell.kind in ("correct", "learning") else "unknown"})
    return [{"prime": p, "divides_base": explanation.base % p == 0, "powers": powers} for p, powers in sorted(rows.items())]


def example_pairs(table: PredictionTable) -> dict[str, tuple[int, int]]:
    """A pair for each k that got the usual prediction."""
    pairs = {k: table.examples_of(k, next(iter(table.counts_of(k)))) for k in table.tested() if k <= TESTED_GCDS}
    return {str(k): examples[0] for k, examples in pairs.items() if examples}
