"""The paper's tables as data: what was published, and the run that measures it again. Facts only."""

from __future__ import annotations

from functools import cache

from gcdformer.errors import UserError
from gcdformer.experiments.paper import base, benford, grokking, predictions, rational, scaling, uniform
from gcdformer.experiments.paper.table import Cell, Experiment, Measure, Note, Table

__all__ = ["CLAIMS", "CLAIM_EPOCHS", "TABLES", "Cell", "Experiment", "Measure", "Note", "Table", "experiments", "find_table"]

CLAIMS = "claims"
"""Stands in the place of a table's name for the claims of the paper."""
CLAIM_EPOCHS = 10
"""Budget of a run that decides claims: epochs and not minutes, so that both runs of a pair see the same examples."""
MODULES = (base, predictions, grokking, benford, uniform, rational, scaling)
TABLES: dict[str, Table] = {table.name: table for module in MODULES for table in module.TABLES}


def find_table(name: str) -> Table:
    """A table by its name; the paper's label does too."""
    plain = name.removeprefix("tab:").removeprefix("fig:")
    labelled = [table.name for table in TABLES.values() if table.label.partition(":")[2] == plain]
    if len(labelled) > 1:
        raise UserError(f"'{name}' is the label of {' and of '.join(labelled)}: name one of them")
    if plain not in TABLES:
        raise UserError(f"unknown table '{name}': the tables are {', '.join(TABLES)}; or {CLAIMS}")
    return TABLES[plain]


@cache
def experiments() -> dict[str, Experiment]:
    """Every experiment of every table, by name."""
    return {one.name: one for table in TABLES.values() for one in table.experiments()}
