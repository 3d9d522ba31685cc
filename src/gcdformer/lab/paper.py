"""What the page shows of the paper: an index of its claims, tables and figures; then one of them, or a run of the ledger.

The ledger is read and compared once; every view is made of that. Knows no run folder of the user's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

from typing_extensions import TypedDict

from gcdformer.explanation.sieve import prime_power
from gcdformer.lab.cache import Once
from gcdformer.lab.catalogue import UnknownRun
from gcdformer.lab.schema import EpochDetails, Numbers, RunDetails, doc
from gcdformer.lab.views import epoch_details, run_details
from gcdformer.paper import SECTIONS, find_table, page
from gcdformer.paper.claims import Status, Verdict, claim_verdicts, find_claims
from gcdformer.paper.comparison import ComparedCell, ComparedTable, Counts, CurveRun, Tally, count_tables
from gcdformer.paper.entry import Entry
from gcdformer.paper.ledger import ledger_entries, measured_as
from gcdformer.paper.table import Table
from gcdformer.paper.text import Line, millions


class Mark(TypedDict):
    """A part of a line that is marked."""

    kind: Literal["run", "code", "strong"]
    text: str


Text = list[str | Mark]


class Values(TypedDict):
    """How many published values ours agree with, differ from, or are missing for."""

    agree: int
    differ: int
    missing: int


class Place(TypedDict):
    """A table or figure by its number in the paper."""

    id: Annotated[str, doc("table-2, figure-1")]
    number: Annotated[str, doc("Table 2, Figure 1")]


class TableSummary(Place):
    title: str
    values: Values
    curves: Annotated[int, doc("learning curves measured for it")]


class PaperSection(TypedDict):
    """A section of the paper, appendices by letter, with its tables and figures in order."""

    number: str
    title: str
    tables: list[TableSummary]


class ClaimSummary(TypedDict):
    name: str
    statement: str
    verdict: Status
    count: Annotated[str, doc("how often it was as claimed")]


class Paper(TypedDict):
    """The index."""

    values: Values
    runs: Annotated[int, doc("runs in the ledger")]
    claims: list[ClaimSummary]
    sections: list[PaperSection]


class PaperClaim(ClaimSummary):
    """A claim of the paper, and what the measured runs say of it."""

    unit: Annotated[str, doc("what is counted")]
    rule: Annotated[str, doc("when it counts as claimed")]
    evidence: list[Text]


class PaperCell(TypedDict):
    row: str
    column: str
    published: str
    ours: Annotated[str | None, doc("null if it is missing")]
    agrees: bool | None
    run: Annotated[str | None, doc("the run that measured it")]


class CurveColumns(TypedDict):
    """One value per evaluation, in order; empty where the task has no such measure."""

    epoch: list[int]
    examples: list[int]
    loss: Numbers
    accuracy: Numbers
    n_correct: list[int]


class PaperCurve(TypedDict):
    """A run of a figure."""

    run: str
    seed: int
    measured_as: Annotated[str | None, doc("what it has in place of the experiment's distribution or model")]
    columns: CurveColumns
    prime_powers: Annotated[dict[str, int], doc("prime power -> examples after which it first was correct")]


class RunInShort(TypedDict):
    name: str
    text: str


class PaperTable(TableSummary):
    """A table or figure of the paper, published values beside ours."""

    name: Annotated[str, doc("what `gcdformer reproduce` calls it")]
    section: str
    before: Place | None
    after: Place | None
    budget: Annotated[str, doc("seeds and examples in the paper, where it states them")]
    note: str | None
    rows: list[str]
    columns: list[str]
    by_row: Annotated[bool, doc("whether each row is a distribution, over values that are other ones in each row")]
    cells: list[PaperCell]
    drawn: list[PaperCurve]
    remarks: Annotated[list[Text], doc("why values differ, each reason once with the rows it is about")]
    runs: list[RunInShort]
    command: Annotated[str | None, doc("measures what is missing")]


class LedgerRun(RunDetails):
    """A run of the ledger: a run of which the last prediction tables were kept, and no weights."""

    recipe: str
    behind: Annotated[list[Place], doc("the tables and figures that it measures")]
    last: Annotated[EpochDetails | None, doc("its last epoch; null if the task has no GCD")]


@dataclass(frozen=True)
class Reproduction:
    """The ledger beside the paper."""

    entries: dict[str, Entry]
    counts: Counts
    verdicts: tuple[Verdict, ...]

    def index(self) -> Paper:
        tables = {compared.table.name: compared for compared in self.counts.tables}
        sections: list[PaperSection] = [
            {"number": section.number, "title": section.title, "tables": [summary(tables[name]) for name in section.tables]}
            for section in SECTIONS]
        return {"values": values(self.counts.cells), "runs": self.counts.runs,
                "claims": [claim_summary(verdict) for verdict in self.verdicts], "sections": sections}

    def table(self, name: str) -> PaperTable:
        table = find_table(name)
        compared = next(compared for compared in self.counts.tables if compared.table is table)
        order = [(section, name) for section in SECTIONS for name in section.tables]
        at = next(number for number, (_, name) in enumerate(order) if name == table.name)
        near = [find_table(order[number][1]) if 0 <= number < len(order) else None for number in (at - 1, at + 1)]
        remarks = [*page.difference_lines(compared), *map(page.similar_line, compared.similar)]
        return {**summary(compared), "name": table.name, "section": f"{order[at][0].number} {order[at][0].title}",
                "before": place_of(near[0]) if near[0] else None, "after": place_of(near[1]) if near[1] else None,
                "budget": page.budget(compared).strip(), "note": table.note.text if table.note else None,
                "rows": compared.rows, "columns": compared.columns, "by_row": page.is_split(compared),
                "cells": [cell_view(cell) for cell in compared.cells if cell.published is not None],
                "drawn": [curve_view(curve) for curve in compared.curves], "remarks": [text_of(line) for line in remarks],
                "runs": [run_in_short(self.entries[name]) for name in compared.runs],
                "command": page.to_measure(compared)}

    def claim(self, name: str) -> PaperClaim:
        (claim,) = find_claims([name])
        verdict = next(verdict for verdict in self.verdicts if verdict.claim is claim)
        return {**claim_summary(verdict), "unit": claim.unit, "rule": claim.rule,
                "evidence": [text_of(line) for line in page.evidence_lines(verdict)]}

    def run(self, name: str) -> LedgerRun:
        if name not in self.entries:
            raise UnknownRun(f"run: the ledger has none called '{name[:100]}'")
        entry = self.entries[name]
        view = run_details(name, name, entry.config, entry.metrics, has_gcd=bool(entry.tables), repeat=entry.command)
        behind = [place_of(compared.table) for compared in self.counts.tables if name in compared.runs]
        last = None if entry.explanation is None else epoch_details(
            entry.curve["epoch"][-1], entry.config.evaluation.prior, entry.tables, entry.explanation)
        return {**view, "live": False, "recipe": entry.recipe, "behind": behind, "last": last}

    def files(self) -> Iterator[tuple[str, object]]:
        """All there is of the paper, by the paths that an exported page asks for."""
        yield "paper.json", self.index()
        for compared in self.counts.tables:
            yield f"paper/tables/{place_of(compared.table)['id']}.json", self.table(compared.table.name)
        for verdict in self.verdicts:
            yield f"paper/claims/{verdict.claim.name}.json", self.claim(verdict.claim.name)
        for name in self.entries:
            yield f"paper/runs/{name}.json", self.run(name)


def read_ledger() -> Reproduction:
    entries = ledger_entries()
    return Reproduction({entry.name: entry for entry in entries}, count_tables(entries), tuple(claim_verdicts(entries)))


def values(counts: Tally) -> Values:
    return {"agree": counts.agreeing, "differ": counts.differing, "missing": counts.missing}


def place_of(table: Table) -> Place:
    return {"id": table.in_paper.lower().replace(" ", "-"), "number": table.in_paper}


def summary(compared: ComparedTable) -> TableSummary:
    return {**place_of(compared.table), "title": compared.table.title, "values": values(compared.counts),
            "curves": len(compared.curves)}


def claim_summary(verdict: Verdict) -> ClaimSummary:
    return {"name": verdict.claim.name, "statement": verdict.claim.statement, "verdict": verdict.status,
            "count": verdict.summary}


def text_of(line: Line) -> Text:
    return [part if isinstance(part, str) else {"kind": part.kind, "text": part.text} for part in line]


def cell_view(cell: ComparedCell) -> PaperCell:
    ours = None if cell.ours is None else page.value_text(cell.ours)
    return {"row": cell.row, "column": cell.column, "published": page.value_text(cell.published), "ours": ours,
            "agrees": cell.agrees, "run": cell.run}


def run_in_short(entry: Entry) -> RunInShort:
    known = f"{len(entry.correct)} correct GCD, " if entry.tables else ""
    return {"name": entry.name, "text": f"{known}accuracy {entry.accuracy:.1f} % after {millions(entry.examples)}"}


def curve_view(run: CurveRun) -> PaperCurve:
    """A learning curve, and after how many examples each prime power was first correct."""
    entry, learned = run.entry, dict[str, int]()
    for event in entry.events:
        for k in filter(prime_power, event.entered):
            learned.setdefault(str(k), entry.examples_at(event.epoch))
    curve = entry.curve
    columns: CurveColumns = {"epoch": curve["epoch"], "examples": curve["examples"], "loss": [*curve["loss"]],
                             "accuracy": [*curve["accuracy"]], "n_correct": curve.get("n_correct", [])}
    return {"run": entry.name, "seed": entry.seed, "measured_as": measured_as(entry), "columns": columns,
            "prime_powers": learned}


PAGE = Once(read_ledger)
