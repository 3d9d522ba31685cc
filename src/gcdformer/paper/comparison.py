"""Published beside ours: every table with its cells, learning curves, and how much of it was measured.

A cell is measured if the ledger (or a run folder) has a run of its experiment that shows it, computed if no run is needed,
and open otherwise. Where ours differs, a note says why. Knows how nothing is shown; `to_json` is for scripts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from gcdformer.explanation.sieve import largest_divisor
from gcdformer.paper import TABLES
from gcdformer.paper.entry import Entry
from gcdformer.paper.ledger import Choice, Choices, choose, deviations, ledger_entries, measured_as
from gcdformer.paper.measure import Status, agree, choice_for, our_value, reason
from gcdformer.paper.table import Cell, Experiment, Json, Note, Table, Value


@dataclass(frozen=True)
class ComparedCell:
    """A published value beside ours; `choice` is the run behind ours, where it was measured."""

    source: Cell
    status: Status
    ours: Value | None = None
    agrees: bool | None = None
    """Whether they differ by no more than noise; None if one of them is missing."""
    why: Note | None = None
    """Why they differ, if they do."""
    choice: Choice | None = None
    others: tuple[Entry, ...] = ()
    """For a number of correct GCD: runs recorded for the experiment, though of another distribution or model."""

    @property
    def row(self) -> str:
        return self.source.row

    @property
    def column(self) -> str:
        return self.source.column

    @property
    def published(self) -> Value | None:
        return self.source.published

    @property
    def run(self) -> str | None:
        return self.choice.entry.name if self.choice else None

    @property
    def seeds(self) -> list[int]:
        return self.choice.seeds if self.choice else []

    @property
    def minutes(self) -> float | None:
        return round(self.choice.entry.minutes, 1) if self.choice else None

    @property
    def measured_as(self) -> str | None:
        return measured_as(self.choice.entry) if self.choice else None

    @property
    def difference(self) -> float | int | None:
        """Ours minus published, where that means something."""
        if not isinstance(self.published, int | float) or not isinstance(self.ours, int | float):
            return None
        return None if self.source.measure.kind == "prediction" else round(self.ours - self.published, 2)

    def to_json(self) -> Json:
        note, experiment = self.source.note, self.source.experiment
        entry = self.choice.entry if self.choice else None
        return {"row": self.row, "column": self.column, "measure": self.source.measure.kind,
                "published": listed(self.published), "ours": listed(self.ours), "status": self.status,
                "difference": self.difference, "agrees": self.agrees,
                "why": self.why.to_json() if self.why else None, "note": note.to_json() if note else None,
                "experiment": experiment.name, "base": experiment.base, "run": self.run,
                "recipe": entry.recipe if entry else None, "current": entry.is_current if entry else None,
                "measured_as": self.measured_as, "seeds": self.seeds, "minutes": self.minutes,
                "command": entry.command if entry else None,
                "otherwise": [{"ours": len(other.correct), "run": other.name, "measured_as": measured_as(other)}
                              for other in self.others]}


@dataclass(frozen=True)
class Tally:
    """Of some published values: how many have ours beside them, and how many of those agree."""

    published: int
    measured: int
    agreeing: int

    @property
    def differing(self) -> int:
        return self.measured - self.agreeing

    @property
    def missing(self) -> int:
        return self.published - self.measured

    @property
    def share(self) -> float | None:
        """The share of the measured values that agree."""
        return self.agreeing / self.measured if self.measured else None


def count_cells(cells: Iterable[ComparedCell]) -> Tally:
    """What every count of cells, in a table or in all, is made by."""
    published = [cell for cell in cells if cell.published is not None]
    return Tally(len(published), sum(cell.ours is not None for cell in published),
                 sum(cell.agrees is True for cell in published))


@dataclass(frozen=True)
class CurveRun:
    """A learning curve of a figure."""

    experiment: Experiment
    entry: Entry

    def to_json(self) -> Json:
        return {"run": self.entry.name, "experiment": self.experiment.name, "seed": self.entry.seed,
                "measured_as": measured_as(self.entry), "curve": self.entry.curve, "events": self.entry.facts["events"]}


@dataclass(frozen=True)
class SimilarRun:
    """The predictions of a run that grokked a prime, in the form of a table; `unruled` are the k whose prediction is not the
    largest element of D that divides k."""

    entry: Entry
    grokked: list[int]
    predictions: list[int | None]
    unruled: list[int]

    def to_json(self) -> Json:
        return {"run": self.entry.name, "base": self.entry.config.task.base, "grokked": self.grokked,
                "D": self.entry.correct, "predictions": self.predictions, "unruled": self.unruled}


@dataclass(frozen=True)
class ComparedTable:
    """A table, or those of its cells that were chosen, published beside ours."""

    table: Table
    cells: tuple[ComparedCell, ...]
    curves: tuple[CurveRun, ...]
    candidates: tuple[Entry, ...] = ()
    """The runs whose predictions are reported in the form of the table if they grokked."""

    @cached_property
    def counts(self) -> Tally:
        return count_cells(self.cells)

    @cached_property
    def similar(self) -> tuple[SimilarRun, ...]:
        """Found when it is asked for: each run has to be explained."""
        runs = [similar_run(self.table, entry) for entry in self.candidates]
        return tuple(run for run in runs if run.grokked)

    @property
    def rows(self) -> list[str]:
        return list(dict.fromkeys(cell.row for cell in self.cells))

    @property
    def columns(self) -> list[str]:
        return list(dict.fromkeys(cell.column for cell in self.cells))

    @property
    def by_place(self) -> dict[tuple[str, str], ComparedCell]:
        return {(cell.row, cell.column): cell for cell in self.cells}

    @property
    def has_measurements(self) -> bool:
        """Whether runs have measured anything of it; what is computed needs none."""
        return bool(self.curves) or any(cell.status == "measured" for cell in self.cells)

    @property
    def runs(self) -> list[str]:
        """The names of all runs behind it."""
        entries = [other for cell in self.cells for other in (*cell.others, *([cell.choice.entry] if cell.choice else []))]
        entries += [curve.entry for curve in self.curves] + [run.entry for run in self.similar]
        return sorted({entry.name for entry in entries})

    def counts_json(self) -> Json:
        """Which table it is, and how much of it is measured and agrees; computed values count as measured."""
        table, counts = self.table, self.counts
        return {"name": table.name, "label": table.label, "number": table.in_paper, "title": table.title,
                "cells": counts.published, "measured": counts.measured, "agree": counts.agreeing,
                "computed": sum(cell.computed for cell in table.published), "curves": len(self.curves)}

    def to_json(self) -> Json:
        table = self.table
        return {"name": table.name, "label": table.label, "number": table.in_paper, "title": table.title,
                "best_of": table.best_of, "epochs": table.epochs, "note": table.note.to_json() if table.note else None,
                "rows": self.rows, "columns": self.columns, "cells": [cell.to_json() for cell in self.cells],
                "published": self.counts.published, "measured": self.counts.measured, "agree": self.counts.agreeing,
                "curves": [run.to_json() for run in self.curves],
                "similar": [run.to_json() for run in self.similar], "runs": self.runs}


def compare_tables(entries: Iterable[Entry] | None = None, *, names: Iterable[str] | None = None,
                   bases: Iterable[int] | None = None, preset: str | None = None,
                   only: Iterable[Experiment] | None = None) -> list[ComparedTable]:
    """Every table beside the measured runs (those of the ledger if none are given), or some tables, with the cells of some
    bases and experiments."""
    choices = choose(ledger_entries() if entries is None else entries, preset)
    some, few = (None if wanted is None else set(wanted) for wanted in (bases, only))
    tables = TABLES.values() if names is None else [TABLES[name] for name in names]
    return [compare_table(table, choices, [cell for cell in table.cells if (some is None or cell.experiment.base in some)
                                           and (few is None or cell.experiment in few)]) for table in tables]


def reproduction_tables(entries: Iterable[Entry] | None = None, *, names: Iterable[str] | None = None,
                        bases: Iterable[int] | None = None, preset: str | None = None,
                        only: Iterable[Experiment] | None = None) -> list[Json]:
    """Every table with its cells, published beside ours, as plain data; or some tables, with the cells of some bases and
    experiments. Without `entries` it compares with the ledger of the package."""
    return [table.to_json() for table in compare_tables(entries, names=names, bases=bases, preset=preset, only=only)]


def compare_table(table: Table, choices: Choices, cells: Iterable[Cell]) -> ComparedTable:
    return ComparedTable(table, tuple(compare_cell(table, cell, choices) for cell in cells), curve_runs(table, choices),
                         tuple(choices[run.name].entry for run in table.similar if run.name in choices))


def curve_runs(table: Table, choices: Choices) -> tuple[CurveRun, ...]:
    """The learning curves of a figure: one for each seed that was measured."""
    return tuple(CurveRun(experiment, entry) for experiment in table.curves if experiment.name in choices
                 for entry in sorted(choices[experiment.name].group, key=lambda entry: entry.seed))


def similar_run(table: Table, entry: Entry) -> SimilarRun:
    assert entry.scores is not None and entry.explanation is not None, "experiments of the gcd"
    predictions = {int(row): entry.scores.by_gcd[int(row)].prediction for row in table.rows}
    return SimilarRun(entry, entry.explanation.grokked, list(predictions.values()),
                      [k for k, prediction in predictions.items() if prediction != largest_divisor(entry.correct, k)])


def compare_cell(table: Table, cell: Cell, choices: Choices) -> ComparedCell:
    choice = choice_for(cell, choices)
    ours, status = our_value(cell, choice, choices)
    if ours is None:
        return ComparedCell(cell, status)
    entry = choice.entry if choice else None
    agrees = agree(table, cell, ours, entry)
    why = None if agrees else reason(table, cell, ours, entry)
    if choice is None or status != "measured":
        return ComparedCell(cell, status, ours, agrees, why)
    others = [other for other in choice.known if cell.measure.kind == "correct" and other is not entry and deviations(other)]
    return ComparedCell(cell, status, ours, agrees, why, choice, tuple(others))


@dataclass(frozen=True)
class Counts:
    """How much of the tables is measured and agrees, in each and in all, and by how many runs."""

    tables: tuple[ComparedTable, ...]
    runs: int

    @cached_property
    def cells(self) -> Tally:
        return count_cells(cell for table in self.tables for cell in table.cells)

    @property
    def with_measurements(self) -> int:
        return sum(table.has_measurements for table in self.tables)

    def to_json(self) -> Json:
        return {"tables": [table.counts_json() for table in self.tables], "cells": self.cells.published,
                "measured": self.cells.measured, "agree": self.cells.agreeing, "distinct_runs": self.runs,
                "tables_with_measurements": self.with_measurements}


def count_tables(entries: list[Entry], preset: str | None = None) -> Counts:
    return Counts(tuple(compare_tables(entries, preset=preset)), len({entry.name for entry in entries}))


def open_cells(table: Table, choices: Choices) -> list[Cell]:
    """The published values without ours."""
    return [cell for cell in table.published if not cell.computed
            and our_value(cell, choice_for(cell, choices), choices)[1] == "not measured"]


def open_experiments(table: Table, entries: Iterable[Entry], preset: str | None = None) -> set[str]:
    """The experiments that a cell without our value needs."""
    return {experiment.name for cell in open_cells(table, choose(entries, preset)) for experiment in cell.needs}


def listed(value: Value | None) -> Any:
    return list(value) if isinstance(value, tuple) else value
