"""What the page shows of the paper: its claims with their verdicts, its figures, its tables, published values beside ours.

Read from the ledger, made once and then cached. Knows no run folder of the user's.
"""

from __future__ import annotations

from typing import Any

from gcdformer.explanation.sieve import prime_power
from gcdformer.lab.cache import Once
from gcdformer.paper.claims import claim_verdicts
from gcdformer.paper.compare import count_tables, reproduction_tables
from gcdformer.paper.ledger import ledger_entries
from gcdformer.paper.page import evidence_lines, text

COLUMNS = ("epoch", "examples", "loss", "accuracy", "n_correct")
"""What is drawn of a learning curve."""


def make_page() -> dict[str, Any]:
    """Claims and tables: a second or two of work."""
    entries = ledger_entries()
    counted = count_tables(entries)["tables"]
    names = [table["name"] for table in counted if table["measured"] > table["computed"] or table["curves"]]
    return {"claims": [claim_view(claim) for claim in claim_verdicts(entries)],
            "tables": [table_view(table) for table in reproduction_tables(entries, names=names)]}


def claim_view(claim: dict[str, Any]) -> dict[str, Any]:
    """A claim, its verdict, and a line for each piece of evidence."""
    lines = [line.removeprefix("- ").replace("`", "") for line in evidence_lines(claim)]
    return {key: claim[key] for key in ("name", "statement", "verdict", "unit", "rule")} | {
        "count": claim["told"], "evidence": lines}


def table_view(table: dict[str, Any]) -> dict[str, Any]:
    """A table or figure with the cells that have our value, and the curves that were measured for it."""
    return {**table,
            "cells": [cell_row(cell) for cell in table["cells"] if cell["ours"] is not None],
            "curves": [curve_view(curve) for curve in table["curves"]]}


def cell_row(cell: dict[str, Any]) -> dict[str, Any]:
    """A cell as a row of the page."""
    why = [f"measured as {cell['measured_as']}"] if cell["measured_as"] else []
    why += [f"{cell['why']['reason']}: {cell['why']['text']}"] if cell["why"] else []
    return {"row": cell["row"], "column": cell["column"], "published": text(cell["published"]), "ours": text(cell["ours"]),
            "difference": cell["difference"], "minutes": cell["minutes"], "seeds": len(cell["seeds"]) or None,
            "why": "; ".join(why) or None}


def curve_view(curve: dict[str, Any]) -> dict[str, Any]:
    """A learning curve, and after how many examples each prime power was first correct."""
    columns = {name: curve["curve"].get(name, []) for name in COLUMNS}
    examples = dict(zip(columns["epoch"], columns["examples"], strict=True))
    learned: dict[str, int] = {}
    for epoch, entered, _ in curve["events"]:
        for k in entered:
            if prime_power(k):
                learned.setdefault(str(k), examples[epoch])
    return {"run": curve["run"], "seed": curve["seed"], "measured_as": curve["measured_as"], "columns": columns,
            "prime_powers": learned}


PAGE = Once(make_page)
