"""The paper's tables as data: what was published, and the run that measures it again. Facts only.

The modules of this folder, in the order in which they import each other: `table` (the types), `tables/` (the published
values) and this one; `text`; `entry` (a measured run), `ledger` (all of them); `measure`, `comparison` (published beside
ours); `evidence`, `observations`, `priors`, `claims` (the claims and their verdicts); `page` (Markdown), `terminal`;
`record` (from a run folder to an entry), `reproduce` (from tables to trained runs).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from gcdformer.errors import UserError
from gcdformer.paper.table import Cell, Experiment, Measure, Note, Table
from gcdformer.paper.tables import base, benford, grokking, predictions, rational, scaling, uniform

__all__ = ["CLAIMS", "CLAIM_EPOCHS", "SECTIONS", "TABLES", "Cell", "Experiment", "Measure", "Note", "Section", "Table",
           "experiments", "find_table"]


@dataclass(frozen=True)
class Section:
    """A section of the paper, appendices by letter, and the names of what it shows, in order."""

    number: str
    title: str
    tables: tuple[str, ...]


CLAIMS = "claims"
"""What the claims of the paper are called where a table is named."""
CLAIM_EPOCHS = 10
"""Budget of a run that decides claims: epochs and not minutes, so that both runs of a pair see the same examples."""
MODULES = (base, predictions, grokking, benford, uniform, rational, scaling)
TABLES: dict[str, Table] = {table.name: table for table in sorted(
    (table for module in MODULES for table in module.TABLES), key=lambda table: (table.is_figure, table.number))}
"""The tables of the paper by name, in its order; then its figures."""
SECTIONS: tuple[Section, ...] = (
    Section("2", "Settings", ("encodings",)),
    Section("3", "Base experiments", ("base_gcd", "base_pred", "learning_curves", "mix")),
    Section("4", "Grokking in large composite bases", ("grokking_det", "grokking_inverse")),
    Section("5", "Log-uniform operands", ("benford", "benford_inverse")),
    Section("6", "Uniform outcomes", ("uniacc", "pred_uni10")),
    Section("A", "Tasks on fractions", ("fractions",)),
    Section("B", "Sizes of the model", ("small_dims", "deep_models")),
    Section("C", "Accuracy in theory", ("theory",)),
    Section("D", "More distributions, batches and models", ("ablation_outcome_dist", "ablation_batch64", "uniacc1000",
                                                            "pred_uni1000_400", "uniforms", "lstm1", "lstm2", "lstm3")),
    Section("E", "More results", ("grok_loss", "grokked_3", "grokking_uni5", "logu_loss_natural", "logu_loss_inverse",
                                  "base_pred_det", "base_pred_det2")),
)
"""Tables and figures as they follow each other in the paper. Its sections have our titles."""
NUMBERED = re.compile(r"(?:(tab|fig)[a-z]*[ .:_-]*)?([0-9]{1,6})", re.IGNORECASE)


def find_table(name: str) -> Table:
    """A table by its name, by the paper's label, or by its number there: 2 or `Table 2`, `Figure 1`."""
    numbered = NUMBERED.fullmatch(name.strip())
    if numbered:
        wanted = f"{'Figure' if (numbered[1] or '').lower() == 'fig' else 'Table'} {int(numbered[2])}"
        if (table := next((table for table in TABLES.values() if table.in_paper == wanted), None)) is None:
            raise UserError(f"the paper has no {wanted}: it has {ranges()}")
        return table
    plain = name.removeprefix("tab:").removeprefix("fig:")
    labelled = [table.name for table in TABLES.values() if table.label.partition(":")[2] == plain]
    if len(labelled) > 1:
        numbers = " or ".join(TABLES[name].in_paper for name in labelled)
        raise UserError(f"'{name}' is the label of {' and of '.join(labelled)}: name one of them, or say {numbers}")
    if plain not in TABLES:
        raise UserError(f"unknown table '{name}': the tables are {', '.join(TABLES)}; or a number ({ranges()}); or {CLAIMS}")
    return TABLES[plain]


def ranges() -> str:
    """Which numbers there are."""
    last = [max(table.number for table in TABLES.values() if table.is_figure == figure) for figure in (False, True)]
    return f"Table 1 to {last[0]} and Figure 1 to {last[1]}"


@cache
def experiments() -> dict[str, Experiment]:
    """Every experiment of every table, by name."""
    return {experiment.name: experiment for table in TABLES.values() for experiment in table.experiments()}
