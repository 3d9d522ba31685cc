"""Published beside ours, as plain data: for the terminal, the page, and whatever else shows it.

A cell is measured if the ledger (or a run folder) has a run of its experiment that tells it, computed if no run is needed,
and open otherwise. Where ours differs, one line says why.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gcdformer.experiments.paper import TABLES
from gcdformer.experiments.paper.computed import compute
from gcdformer.experiments.paper.entry import Entry
from gcdformer.experiments.paper.ledger import Choice, choose, ledger_entries
from gcdformer.experiments.paper.measure import measured
from gcdformer.experiments.paper.table import PAPER_EPOCH, Cell, Note, Table, Value

TOLERANCE = {"accuracy": 0.5, "frequency": 2.0, "theory": 0.11, "parameters": 0.11}
"""Differences up to which two values agree: the noise of a test set of 100,000, or the rounding of the paper."""
SLOWER = ("epoch-learned", "epochs", "reached")


def reproduction_tables(entries: Iterable[Entry] | None = None, *, names: Iterable[str] | None = None,
                        bases: Iterable[int] | None = None, preset: str | None = None) -> list[dict[str, Any]]:
    """Every table with its cells, published beside ours. Without `entries` it tells what the ledger tells."""
    chosen = choose(ledger_entries() if entries is None else entries, preset)
    wanted = None if bases is None else set(bases)
    return [compare_table(TABLES[name], chosen, wanted) for name in (TABLES if names is None else names)]


def compare_table(table: Table, chosen: dict[str, Choice], bases: set[int] | None = None) -> dict[str, Any]:
    cells = [compare_cell(table, cell, chosen) for cell in table.cells if bases is None or cell.experiment.base in bases]
    used = sorted({one["run"] for one in cells if one["run"]} | {one["run"] for one in curve_runs(table, chosen)})
    return {"name": table.name, "label": table.label, "title": table.title, "best_of": table.best_of,
            "epochs": table.epochs, "note": note_json(table.note), "rows": distinct(cells, "row"),
            "columns": distinct(cells, "column"), "cells": cells,
            "published": sum(one["published"] is not None for one in cells),
            "measured": sum(one["status"] in ("measured", "computed") for one in cells),
            "curves": curve_runs(table, chosen), "runs": used}


def compare_cell(table: Table, cell: Cell, chosen: dict[str, Choice]) -> dict[str, Any]:
    choice = chosen.get(cell.experiment.name)
    ours, status = our_value(cell, choice, chosen)
    differs = ours is not None and cell.published is not None and not agree(cell, ours)
    why = reason(table, cell, ours, choice) if differs else None
    run = choice if status == "measured" else None
    return {"row": cell.row, "column": cell.column, "measure": cell.measure.kind, "published": plain(cell.published),
            "ours": plain(ours), "status": status, "difference": difference(cell, ours), "agrees": None if ours is None
            or cell.published is None else not differs, "why": note_json(why), "note": note_json(cell.note),
            "experiment": cell.experiment.name, "run": run.entry.name if run else None,
            "recipe": run.entry.recipe if run else None, "current": run.current if run else None,
            "seeds": run.seeds if run else [], "minutes": round(run.entry.minutes, 1) if run else None,
            "command": run.entry.command if run else None}


def our_value(cell: Cell, choice: Choice | None, chosen: dict[str, Choice]) -> tuple[Value | None, str]:
    """Our value, and whether it was computed, measured, is not published, or is still open."""
    if cell.published is None:
        return None, "not published"
    if cell.computed:
        return compute(cell), "computed"
    if choice is None:
        return None, "not measured"
    natural = chosen.get(cell.experiment.natural.name)
    ours = measured(choice.entry, cell, natural.entry if natural else None)
    if ours is None and cell.measure.kind in SLOWER:
        return "not reached", "measured"
    return (ours, "measured") if ours is not None else (None, "not measured")


def agree(cell: Cell, ours: Value) -> bool:
    """Whether ours is the published value, but for noise. Learning sooner than the paper is agreeing with it."""
    published, kind = cell.published, cell.measure.kind
    if kind == "prediction" and isinstance(published, tuple):
        return ours in published
    if isinstance(published, tuple) and isinstance(ours, tuple):
        return set(published) == set(ours)
    if isinstance(published, int | float) and isinstance(ours, int | float):
        return abs(ours - published) <= TOLERANCE.get(kind, 0) or (kind in SLOWER and ours <= published)
    return published == ours


def difference(cell: Cell, ours: Value | None) -> float | int | None:
    """Ours minus published, where that means something."""
    if cell.measure.kind == "prediction" or not isinstance(cell.published, int | float) or not isinstance(ours, int | float):
        return None
    return round(ours - cell.published, 2)


def reason(table: Table, cell: Cell, ours: Value | None, choice: Choice | None) -> Note:
    """Why ours differs: what the ledger says, else a known pitfall, else what the two budgets and recipes tell."""
    if choice is not None and choice.entry.note is not None:
        return choice.entry.note
    if cell.note is not None:
        return cell.note
    if table.note is not None and table.note.reason == "not comparable":
        return table.note
    assert choice is not None, "a computed cell that differs has a note; a test says so"
    entry = choice.entry
    if entry.facts["preset"] != "paper" and cell.experiment.small:
        return Note("smaller model", f"{entry.recipe}: {entry.config.model.decoder_dim} dimensions, "
                    f"{millions(entry.examples)}")
    more = isinstance(ours, int | float) and isinstance(cell.published, int | float) and ours > cell.published
    if more and cell.measure.kind in ("correct", "accuracy", "prediction"):
        return Note("other recipe", f"more was learned: {entry.recipe}, {millions(entry.examples)}")
    theirs = table.epochs * PAPER_EPOCH if table.epochs else None
    if theirs is None or entry.examples < theirs:
        told = f"{theirs / 1e6:.0f} M" if theirs else "a number that is not stated"
        return Note("fewer examples", f"{millions(entry.examples)} here, in the paper {told}")
    return Note("other recipe", f"{entry.recipe}, {millions(entry.examples)}")


def curve_runs(table: Table, chosen: dict[str, Choice]) -> list[dict[str, Any]]:
    """The learning curves of a figure: one for each seed that was measured."""
    found = []
    for experiment in table.curves:
        choice = chosen.get(experiment.name)
        for entry in sorted(choice.group, key=lambda one: one.config.training.seed) if choice else ():
            found.append({"run": entry.name, "experiment": experiment.name, "seed": entry.config.training.seed,
                          "curve": entry.curve})
    return found


def run_facts(entry: Entry) -> dict[str, Any]:
    """A run in a few lines: what was trained, how long, what it learned, whether the rules hold."""
    found = entry.explanation
    broken = {name: rule.to_json()["exceptions"] for name, rule in found.rules.items() if not rule.holds} if found else {}
    return {"run": entry.name, "recipe": entry.recipe, "seed": entry.config.training.seed, "command": entry.command,
            "minutes": round(entry.minutes, 1), "examples": entry.examples, "epochs": entry.last("epoch"),
            "examples_per_s": entry.facts["examples_per_s"], "accuracy": entry.last("accuracy"),
            "n_correct": len(entry.correct) if found else None, "D": entry.correct if found else None,
            "form": found.form if found else None, "verdict": found.verdict if found else None,
            "fidelity": round(100 * found.fidelity["stratified"].value, 2) if found else None,
            "being_learned": found.being_learned if found else [], "broken": broken,
            "classes": list(found.model.labels) if found and found.form == "U" else None}


def count_tables(entries: list[Entry], preset: str | None = None) -> dict[str, Any]:
    """Counts for a script: cells and measured cells of each table, distinct runs, tables with measurements.

    Computed cells count as measured, and are not computed for it.
    """
    chosen = choose(entries, preset)
    tables, with_runs = [], 0
    for table in TABLES.values():
        measured_cells = [cell for cell in table.published if not cell.computed
                          and our_value(cell, chosen.get(cell.experiment.name), chosen)[1] == "measured"]
        curves = sum(len(chosen[one.name].group) for one in table.curves if one.name in chosen)
        computed = sum(cell.computed for cell in table.published)
        with_runs += bool(measured_cells or curves)
        tables.append({"name": table.name, "label": table.label, "title": table.title, "cells": len(table.published),
                       "measured": len(measured_cells) + computed, "computed": computed, "curves": curves})
    return {"tables": tables, "cells": sum(one["cells"] for one in tables),
            "measured": sum(one["measured"] for one in tables),
            "distinct_runs": len({entry.name for entry in entries}), "tables_with_measurements": with_runs}


def distinct(cells: list[dict[str, Any]], key: str) -> list[str]:
    return list(dict.fromkeys(cell[key] for cell in cells))


def millions(examples: int) -> str:
    """A number of examples, in words."""
    return f"{examples / 1e6:.1f} M examples" if examples >= 100_000 else f"{examples:,} examples"


def plain(value: Value | None) -> Any:
    return list(value) if isinstance(value, tuple) else value


def note_json(note: Note | None) -> dict[str, str] | None:
    return {"reason": note.reason, "text": note.text} if note else None
