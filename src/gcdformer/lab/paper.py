"""What the page shows of the paper: its claims with their verdicts, its figures, its tables, published values beside ours.

Read from the ledger, made once and then cached. Knows no run folder of the user's.
"""

from __future__ import annotations

from gcdformer.explanation.sieve import prime_power
from gcdformer.lab.cache import Once
from gcdformer.paper.claims import Verdict, claim_verdicts
from gcdformer.paper.comparison import ComparedCell, ComparedTable, CurveRun, compare_tables, count_tables
from gcdformer.paper.ledger import ledger_entries, measured_as
from gcdformer.paper.page import evidence_lines, value_text
from gcdformer.paper.table import Json
from gcdformer.paper.text import plain


def make_page() -> Json:
    """Claims and tables: a second or two of work."""
    entries = ledger_entries()
    names = [counts.table.name for counts in count_tables(entries).tables if counts.has_measurements]
    return {"claims": [claim_view(verdict) for verdict in claim_verdicts(entries)],
            "tables": [table_view(table) for table in compare_tables(entries, names=names)]}


def claim_view(verdict: Verdict) -> Json:
    """A claim, its verdict, and a line for each piece of evidence."""
    claim = verdict.claim
    return {"name": claim.name, "statement": claim.statement, "verdict": verdict.status, "unit": claim.unit,
            "rule": claim.rule, "count": verdict.summary, "evidence": [plain(line) for line in evidence_lines(verdict)]}


def table_view(table: ComparedTable) -> Json:
    """A table or figure with the cells that have our value, and the curves that were measured for it."""
    return table.to_json() | {"cells": [cell_row(cell) for cell in table.cells if cell.ours is not None],
                              "curves": [curve_view(curve) for curve in table.curves]}


def cell_row(cell: ComparedCell) -> Json:
    """A cell as a row of the page."""
    why = [f"measured as {cell.measured_as}"] if cell.measured_as else []
    why += [f"{cell.why.reason}: {cell.why.text}"] if cell.why else []
    return {"row": cell.row, "column": cell.column, "published": value_text(cell.published), "ours": value_text(cell.ours),
            "difference": cell.difference, "minutes": cell.minutes, "seeds": len(cell.seeds) or None,
            "why": "; ".join(why) or None}


def curve_view(run: CurveRun) -> Json:
    """A learning curve, and after how many examples each prime power was first correct."""
    entry, learned = run.entry, dict[str, int]()
    for event in entry.events:
        for k in filter(prime_power, event.entered):
            learned.setdefault(str(k), entry.examples_at(event.epoch))
    columns = {name: entry.curve.get(name, []) for name in ("epoch", "examples", "loss", "accuracy", "n_correct")}
    return {"run": entry.name, "seed": entry.seed, "measured_as": measured_as(entry), "columns": columns,
            "prime_powers": learned}


PAGE = Once(make_page)
