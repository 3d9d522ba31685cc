"""Draws the picture of docs/prior.md from the ledger: `python scripts/prior_picture.py` writes docs/assets/priors-*.svg.

What the claim of the decision prior rests on: the same weights under the priors k^-α, a column per distribution of the
outcomes, with light and with dark ink.
"""

from __future__ import annotations

from pathlib import Path

from gcdformer.display import figures
from gcdformer.display.priors import over_priors
from gcdformer.display.style import with_values
from gcdformer.paper.entry import Entry
from gcdformer.paper.ledger import ledger_entries

ASSETS = Path(__file__).parent.parent / "docs" / "assets"
TITLES = {"uniform": "uniform outcomes", "log-uniform": "log-uniform outcomes", "natural": "natural outcomes"}


def label(entry: Entry) -> str:
    return f"base {entry.config.task.base}, {entry.config.data.operands} operands"


def main() -> None:
    asked = [entry for entry in ledger_entries() if entry.under_priors]
    groups = {title: {label(entry): list(entry.under_priors.values()) for entry in asked
                      if entry.config.data.outcomes == outcomes} for outcomes, title in TITLES.items()}
    drawing = figures.to_svg(over_priors(groups), "Accuracy, fidelity and correct GCD over the exponent of the prior")
    for name in ("light", "dark"):
        lines = [line.rstrip() for line in with_values(drawing, dark=name == "dark").splitlines()]
        (ASSETS / f"priors-{name}.svg").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
