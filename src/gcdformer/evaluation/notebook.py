"""HTML for notebooks: prediction tables, and the frame with its style that every piece of ours is shown in.

Light and dark by the notebook's theme where it tells (JupyterLab, VS Code), else by the reader's setting. No script, nothing
is fetched; without the style (a page that strips it) the words and numbers remain. Knows tables, not models.
"""

from __future__ import annotations

from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gcdformer.evaluation.table import PredictionTable

MOST_ROWS = 100
MOST_OTHERS = 4


def framed(body: str) -> str:
    """The piece with its style, which touches nothing else on the page."""
    style = (files("gcdformer.evaluation") / "notebook.css").read_text(encoding="utf-8")
    return f'<div class="gcdformer"><style>{style}</style>{body}</div>'


def shown(prediction: int) -> str:
    from gcdformer.evaluation.table import UNREADABLE
    return "unreadable" if prediction == UNREADABLE else f"{prediction:,}"


def table_html(table: PredictionTable) -> str:
    """A row for each GCD k: the pairs, f(k) with its share, and what else was predicted."""
    tested = table.tested()
    rows = "".join(table_row(k, table.counts_of(k)) for k in tested[:MOST_ROWS])
    more = f"<p class=\"soft\">and {len(tested) - MOST_ROWS:,} larger GCD</p>" if len(tested) > MOST_ROWS else ""
    return framed(
        f"<h4>Predictions for {table.total:,} pairs</h4><p class=\"soft\">{100 * table.accuracy:.2f} % right; "
        f"{len(tested):,} different GCD k, f(k) the usual prediction</p>"
        f'<div class="scroll tall"><table class="rows"><thead><tr><th>k</th><th>pairs</th><th>f(k)</th><th>share</th>'
        f"<th>other predictions</th></tr></thead><tbody>{rows}</tbody></table></div>{more}")


def table_row(k: int, counts: dict[int, int]) -> str:
    total = sum(counts.values())
    (value, count), *others = counts.items()
    share = count / total
    rest = ", ".join(f"{shown(v)} ({c:,})" for v, c in others[:MOST_OTHERS])
    if len(others) > MOST_OTHERS:
        rest += f" and {len(others) - MOST_OTHERS} more"
    kind = "right" if value == k else "wrong"
    return (f'<tr class="{kind}"><th>{k}</th><td>{total:,}</td><td class="f">{escape(shown(value))}</td>'
            f'<td><span class="bar" style="--share: {100 * share:.0f}%">{100 * share:.1f} %</span></td><td>{rest}</td></tr>')
