"""The grid of f(k) and the heat map before they are drawn: what each cell shows and what kind it is.

Terminal, HTML, figures and lab all take their cells from here; nothing here knows how a cell is drawn.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from typing import Literal

from gcdformer.config import TESTED_GCDS
from gcdformer.evaluation import PredictionTable, Scores
from gcdformer.evaluation.table import readable
from gcdformer.explanation import Explanation
from gcdformer.explanation.transition import mode

Kind = Literal["correct", "learning", "broken", "hesitating", "rule", "untested"]
"""What a cell is, and so its colour."""


@dataclass(frozen=True)
class Cell:
    """One k: its f(k), None if that is no integer or k was not tested, and its kind."""

    k: int
    prediction: int | None
    kind: Kind

    @property
    def text(self) -> str:
        if self.kind == "untested":
            return "·"
        return "?" if self.prediction is None else str(self.prediction)


def cell_kind(k: int, *, correct: Container[int], learning: Container[int], broken: Container[int] = (),
              hesitating: Container[int] = ()) -> Kind:
    """`correct`, `learning`, `broken` (against the rules), `hesitating` (no usual answer), else `rule` (as the rules say).

    The first that applies. Without an explanation nothing is known to be broken.
    """
    kinds: dict[Kind, Container[int]] = {"correct": correct, "learning": learning, "broken": broken,
                                         "hesitating": hesitating}
    return next((kind for kind, members in kinds.items() if k in members), "rule")


def explanation_cells(explanation: Explanation) -> list[Cell]:
    """Every k from 1 to the largest tested."""
    correct, learning, broken = set(explanation.correct), set(explanation.being_learned), explanation.broken
    last = max(explanation.shares, default=0)
    return [Cell(k, readable(mode(explanation.shares[k])), cell_kind(k, correct=correct, learning=learning, broken=broken))
            if k in explanation.shares else Cell(k, None, "untested") for k in range(1, last + 1)]


def score_cells(scores: Scores) -> list[Cell]:
    """The same from scores alone, while a run trains."""
    correct, learning = set(scores.correct), set(scores.modal_only)
    hesitating = {k for k, score in scores.by_gcd.items() if score.frequency < scores.threshold}
    return [Cell(k, scores.by_gcd[k].prediction, cell_kind(k, correct=correct, learning=learning, hesitating=hesitating))
            if k in scores.by_gcd else Cell(k, None, "untested") for k in range(1, max(scores.by_gcd, default=0) + 1)]


def heat_cells(table: PredictionTable) -> list[tuple[int, int, float]]:
    """(true k, predicted, share) for k up to 100; predictions above 100 and unreadable ones are counted as 101."""
    counts: dict[tuple[int, int], int] = {}
    totals: dict[int, int] = {}
    for k, value, count in zip(table.gcd.tolist(), table.prediction.tolist(), table.count.tolist(), strict=True):
        if k <= TESTED_GCDS:
            place = value if 1 <= value <= TESTED_GCDS else TESTED_GCDS + 1
            counts[k, place] = counts.get((k, place), 0) + count
            totals[k] = totals.get(k, 0) + count
    return [(k, value, round(count / totals[k], 4)) for (k, value), count in sorted(counts.items())]
