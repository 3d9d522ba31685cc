"""Published beside ours, as plain data: for the terminal, the page, and whatever else shows it.

A cell is measured if the ledger (or a run folder) has a run of its experiment that tells it, computed if no run is needed,
and open otherwise. Where ours differs, one line says why.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from math import sqrt
from typing import Any

from gcdformer.config import ModelSection
from gcdformer.explanation.sieve import largest_divisor
from gcdformer.paper import TABLES
from gcdformer.paper.computed import compute
from gcdformer.paper.entry import Entry
from gcdformer.paper.ledger import Choice, choose, deviations, is_current, ledger_entries
from gcdformer.paper.measure import measured
from gcdformer.paper.pairing import MOST_UNLIKE, same_recipe, unlike
from gcdformer.paper.table import PAPER_EPOCH, Cell, Experiment, Note, Table, Value
from gcdformer.paper.tables.uniform import UNI10_CLASSES

TOLERANCE = {"accuracy": 0.5, "frequency": 2.0, "theory": 0.11, "parameters": 0.11}
"""Differences up to which two values agree: the noise of a test set of 100,000, or the rounding of the paper."""
TESTED = 100_000
SLOWER = ("epoch-learned", "epochs", "reached")


def reproduction_tables(entries: Iterable[Entry] | None = None, *, names: Iterable[str] | None = None,
                        bases: Iterable[int] | None = None, preset: str | None = None,
                        only: Iterable[Experiment] | None = None) -> list[dict[str, Any]]:
    """Every table with its cells, published beside ours, or with those of some bases and experiments. Without `entries` it
    tells what the ledger tells."""
    chosen = choose(ledger_entries() if entries is None else entries, preset)
    some, few = (None if wanted is None else set(wanted) for wanted in (bases, only))
    return [compare_table(TABLES[name], chosen, [cell for cell in TABLES[name].cells
                                                 if (some is None or cell.experiment.base in some)
                                                 and (few is None or cell.experiment in few)])
            for name in (TABLES if names is None else names)]


def compare_table(table: Table, chosen: dict[str, Choice], wanted: Iterable[Cell]) -> dict[str, Any]:
    cells = [compare_cell(table, cell, chosen) for cell in wanted]
    beside = [one for cell in cells for one in cell["otherwise"]]
    alike = alike_runs(table, chosen)
    used = sorted({one["run"] for one in (*cells, *beside, *curve_runs(table, chosen), *alike) if one["run"]})
    return {"name": table.name, "label": table.label, "number": table.in_paper, "title": table.title,
            "best_of": table.best_of, "epochs": table.epochs, "note": note_json(table.note), "rows": distinct(cells, "row"),
            "columns": distinct(cells, "column"), "cells": cells,
            "published": sum(one["published"] is not None for one in cells),
            "measured": sum(one["status"] in ("measured", "computed") for one in cells),
            "curves": curve_runs(table, chosen), "alike": alike, "runs": used}


def compare_cell(table: Table, cell: Cell, chosen: dict[str, Choice]) -> dict[str, Any]:
    choice = choice_of(cell, chosen)
    ours, status = our_value(cell, choice, chosen)
    differs = ours is not None and cell.published is not None and (
        not agree(cell, ours) or choice is not None and falls_short(table, cell, choice.entry))
    why = reason(table, cell, ours, choice) if differs else None
    run = choice if status == "measured" else None
    return {"row": cell.row, "column": cell.column, "measure": cell.measure.kind, "published": plain(cell.published),
            "ours": plain(ours), "status": status, "difference": difference(cell, ours), "agrees": None if ours is None
            or cell.published is None else not differs, "why": note_json(why), "note": note_json(cell.note),
            "experiment": cell.experiment.name, "base": cell.experiment.base, "run": run.entry.name if run else None,
            "recipe": run.entry.recipe if run else None, "current": run.current if run else None,
            "measured_as": measured_as(run.entry) if run else None, "seeds": run.seeds if run else [],
            "minutes": round(run.entry.minutes, 1) if run else None, "command": run.entry.command if run else None,
            "otherwise": otherwise(cell, run) if run else []}


def choice_of(cell: Cell, chosen: dict[str, Choice]) -> Choice | None:
    """The run that stands for the experiment. For predictions at successive epochs it has to be long enough to tell them;
    else the best one stands for them that is, if there is one of that recipe's version."""
    choice = chosen.get(cell.experiment.name)
    if choice is None or not cell.measure.epoch or measured(choice.entry, cell) is not None:
        return choice
    telling = [one for one in choice.known if is_current(one) == choice.current and measured(one, cell) is not None]
    if not telling:
        return choice
    best = max(telling, key=lambda one: (not deviations(one), one.rank))
    return replace(choice, entry=best, group=(best,))


def otherwise(cell: Cell, choice: Choice) -> list[dict[str, Any]]:
    """How many correct GCD the runs have that were recorded for the experiment, though of another distribution or model,
    beside the run that stands for it."""
    if cell.measure.kind != "correct":
        return []
    others = [one for one in choice.known if one is not choice.entry and deviations(one)]
    return [{"ours": plain(measured(one, cell, None)), "run": one.name, "measured_as": measured_as(one)} for one in others]


def our_value(cell: Cell, choice: Choice | None, chosen: dict[str, Choice]) -> tuple[Value | None, str]:
    """Our value, and whether it was computed, measured, is not published, or is still open."""
    if cell.published is None:
        return None, "not published"
    if cell.computed:
        return compute(cell), "computed"
    if choice is None:
        return None, "not measured"
    ours = measured(choice.entry, cell, natural_beside(choice.entry, chosen.get(cell.experiment.natural.name)))
    if ours is None and cell.measure.kind in SLOWER:
        return "not reached", "measured"
    return (ours, "measured") if ours is not None else (None, "not measured")


def natural_beside(entry: Entry, natural: Choice | None) -> Entry | None:
    """The best natural run of the same recipe and seed, and of about as many examples."""
    fair = [one for one in natural.known if same_recipe(one, entry) and unlike(one, entry) <= MOST_UNLIKE] if natural else []
    return max(fair, key=lambda one: one.rank, default=None)


def falls_short(table: Table, cell: Cell, entry: Entry) -> bool:
    """Whether the epochs of a cell were needed for more GCD than ours has."""
    if cell.measure.kind != "epochs":
        return False
    return any(len(entry.correct) < one.published for one in table.cells if one.measure.kind == "correct"
               and one.row == cell.row and one.experiment == cell.experiment and isinstance(one.published, int))


def agree(cell: Cell, ours: Value) -> bool:
    """Whether ours is the published value, but for noise. Learning sooner than the paper is agreeing with it."""
    published, kind = cell.published, cell.measure.kind
    if kind == "prediction" and isinstance(published, tuple):
        return ours in published
    if kind == "prediction" and cell.measure.epoch and isinstance(published, int) and isinstance(ours, int):
        return largest_divisor(UNI10_CLASSES, published) == largest_divisor(UNI10_CLASSES, ours)
    if isinstance(published, tuple) and isinstance(ours, tuple):
        return set(published) == set(ours)
    if isinstance(published, int | float) and isinstance(ours, int | float):
        return abs(ours - published) <= tolerance(cell, published) or (kind in SLOWER and ours <= published)
    return published == ours


def tolerance(cell: Cell, published: float) -> float:
    """Of fractions, shares near 0 and 100 are less noisy: four standard errors of a test set there, or the rounding."""
    usual = TOLERANCE.get(cell.measure.kind, 0)
    if cell.measure.kind != "accuracy" or cell.experiment.task == "gcd":
        return usual
    error = sqrt(published * (100 - published) / TESTED)
    return min(usual, max(4 * error, 0.05 if published >= 1 else 0.02))


def difference(cell: Cell, ours: Value | None) -> float | int | None:
    """Ours minus published, where that means something."""
    if cell.measure.kind == "prediction" or not isinstance(cell.published, int | float) or not isinstance(ours, int | float):
        return None
    return round(ours - cell.published, 2)


def reason(table: Table, cell: Cell, ours: Value | None, choice: Choice | None) -> Note:
    """Why ours differs: what the ledger says, else a note that explains it alone, else what the two budgets and recipes tell
    with what is noted of the cell."""
    if choice is not None and choice.entry.note is not None:
        return choice.entry.note
    if cell.note is not None and (cell.computed or cell.note.alone):
        return cell.note
    if table.note is not None and table.note.reason == "not comparable":
        return table.note
    assert choice is not None, "a computed cell that differs has a note; a test says so"
    found = recipe_reason(table, cell, ours, choice.entry)
    return found if cell.note is None else Note(found.reason, f"{found.text}; {cell.note.text}")


def recipe_reason(table: Table, cell: Cell, ours: Value | None, entry: Entry) -> Note:
    """What the two budgets, models and recipes tell."""
    epochs = table.epochs_of(cell)
    theirs = "a number of examples that is not stated" if epochs is None else millions(epochs * PAPER_EPOCH)
    told = (f"{millions(entry.examples)} by {entry.recipe}, {model_words(entry.config.model)}; "
            f"in the paper {theirs}, {published_model(cell.experiment)}")
    if entry.facts["preset"] != "paper" and cell.experiment.small:
        return Note("smaller model", told)
    more = isinstance(ours, int | float) and isinstance(cell.published, int | float) and ours > cell.published
    if more and cell.measure.kind in ("correct", "accuracy", "prediction"):
        return Note("other recipe", f"more was learned: {told}")
    fewer = epochs is not None and entry.examples < epochs * PAPER_EPOCH
    return Note("fewer examples" if fewer else "other recipe", told)


@cache
def published_model(experiment: Experiment) -> str:
    return model_words(experiment.config("paper").model)


def model_words(model: ModelSection) -> str:
    """Family, layers and widths of a model."""
    layers, widths = {model.encoder_layers, model.decoder_layers}, {model.encoder_dim, model.decoder_dim}
    if model.family != "transformer":
        return f"{model.family} of {count_of(layers.pop(), 'layer')} of {model.hidden_dim or model.encoder_dim} dimensions"
    if len(layers) == len(widths) == 1:
        return f"{count_of(layers.pop(), 'layer')} of {widths.pop()} dimensions"
    return (f"{model.encoder_layers} and {model.decoder_layers} layers of {model.encoder_dim} and {model.decoder_dim} "
            "dimensions")


def measured_as(entry: Entry) -> str | None:
    """In words what a run has in place of the task, distribution or model of the experiment that it was recorded as."""
    return ", ".join(f"{name} {value}" for name, value in deviations(entry).items()) or None


def curve_runs(table: Table, chosen: dict[str, Choice]) -> list[dict[str, Any]]:
    """The learning curves of a figure: one for each seed that was measured."""
    found = []
    for experiment in table.curves:
        choice = chosen.get(experiment.name)
        for entry in sorted(choice.group, key=lambda one: one.config.training.seed) if choice else ():
            found.append({"run": entry.name, "experiment": experiment.name, "seed": entry.config.training.seed,
                          "measured_as": measured_as(entry), "curve": entry.curve, "events": entry.facts["events"]})
    return found


def alike_runs(table: Table, chosen: dict[str, Choice]) -> list[dict[str, Any]]:
    """Predictions of other experiments in the form of the table, where a prime was grokked; `unruled` are the k whose
    prediction is not the largest element of D that divides k."""
    found = []
    for choice in (chosen[one.name] for one in table.alike if one.name in chosen):
        entry = choice.entry
        assert entry.scores is not None and entry.explanation is not None, "experiments of the gcd"
        predictions = [entry.scores.by_gcd[int(row)].prediction for row in table.rows]
        if entry.explanation.grokked:
            found.append({"run": entry.name, "base": entry.config.task.base, "grokked": entry.explanation.grokked,
                          "D": entry.correct, "predictions": predictions,
                          "unruled": [k for k, value in zip(map(int, table.rows), predictions, strict=True)
                                      if value != largest_divisor(entry.correct, k)]})
    return found


def run_facts(entry: Entry) -> dict[str, Any]:
    """A run in a few lines: what was trained, how long, what it learned, whether the rules hold."""
    found = entry.explanation
    broken = {name: rule.to_json()["exceptions"] for name, rule in found.rules.items() if not rule.holds} if found else {}
    return {"run": entry.name, "recipe": entry.recipe, "seed": entry.config.training.seed, "command": entry.command,
            "minutes": round(entry.minutes, 1), "stalled_minutes": round(entry.stalled_minutes, 1),
            "examples": entry.examples, "epochs": entry.last("epoch"), "examples_per_s": entry.facts["examples_per_s"],
            "accuracy": entry.last("accuracy"), "n_correct": len(entry.correct) if found else None,
            "D": entry.correct if found else None, "form": found.form.letter if found else None,
            "verdict": found.verdict if found else None,
            "fidelity": round(100 * found.fidelity["stratified"].value, 2) if found else None,
            "being_learned": found.being_learned if found else [], "broken": broken,
            "classes": list(found.model.labels) if found and found.form.has_classes else None}


def count_tables(entries: list[Entry], preset: str | None = None) -> dict[str, Any]:
    """Counts for a script: cells and measured cells of each table, distinct runs, tables with measurements.

    Computed cells count as measured, and are not computed for it.
    """
    chosen = choose(entries, preset)
    tables, with_runs = [], 0
    for table in TABLES.values():
        measured_cells = [cell for cell in table.published if not cell.computed
                          and our_value(cell, choice_of(cell, chosen), chosen)[1] == "measured"]
        curves = sum(len(chosen[one.name].group) for one in table.curves if one.name in chosen)
        computed = sum(cell.computed for cell in table.published)
        with_runs += bool(measured_cells or curves)
        tables.append({"name": table.name, "label": table.label, "number": table.in_paper, "title": table.title,
                       "cells": len(table.published), "measured": len(measured_cells) + computed, "computed": computed,
                       "curves": curves})
    return {"tables": tables, "cells": sum(one["cells"] for one in tables),
            "measured": sum(one["measured"] for one in tables),
            "distinct_runs": len({entry.name for entry in entries}), "tables_with_measurements": with_runs}


def open_experiments(table: Table, entries: Iterable[Entry], preset: str | None = None) -> set[str]:
    """The experiments that a cell without our value needs."""
    chosen = choose(entries, preset)
    still = [cell for cell in table.published if our_value(cell, choice_of(cell, chosen), chosen)[1] == "not measured"]
    return {cell.experiment.name for cell in still} | {cell.experiment.natural.name for cell in still
                                                       if cell.measure.kind == "new-prime-powers"}


def distinct(cells: list[dict[str, Any]], key: str) -> list[str]:
    return list(dict.fromkeys(cell[key] for cell in cells))


def count_of(number: int, what: str, many: str | None = None) -> str:
    """1 run, 2 runs."""
    return f"{number} {what if number == 1 else many or what + 's'}"


def millions(examples: int) -> str:
    """A number of examples, in words."""
    if examples < 100_000:
        return f"{examples:,} examples"
    return f"{examples / 1e6:.{0 if examples >= 1e8 else 1}f} M examples"


def plain(value: Value | None) -> Any:
    return list(value) if isinstance(value, tuple) else value


def note_json(note: Note | None) -> dict[str, str] | None:
    return {"reason": note.reason, "text": note.text} if note else None
