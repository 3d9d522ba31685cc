"""The reproduction tables for the page: published values beside ours, where any were measured."""

from __future__ import annotations

from functools import cache
from typing import Any

from gcdformer.experiments.paper.compare import count_tables, reproduction_tables
from gcdformer.experiments.paper.ledger import ledger_entries
from gcdformer.experiments.paper.page import text


@cache
def paper_tables() -> list[dict[str, Any]]:
    """The tables of which the ledger has measured something, each with the cells that have our value."""
    entries = ledger_entries()
    counted = count_tables(entries)["tables"]
    names = [one["name"] for one in counted if one["measured"] > one["computed"]]
    return [{**table, "cells": [cell_row(cell) for cell in table["cells"] if cell["ours"] is not None]}
            for table in reproduction_tables(entries, names=names)]


def cell_row(cell: dict[str, Any]) -> dict[str, Any]:
    """A cell as a row of the page."""
    why = [f"measured as {cell['measured_as']}"] if cell["measured_as"] else []
    why += [f"{cell['why']['reason']}: {cell['why']['text']}"] if cell["why"] else []
    return {"row": cell["row"], "column": cell["column"], "published": text(cell["published"]), "ours": text(cell["ours"]),
            "difference": cell["difference"], "minutes": cell["minutes"], "seeds": len(cell["seeds"]) or None,
            "why": "; ".join(why) or None}
