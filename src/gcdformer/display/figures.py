"""The figures, by matplotlib: learning curves with events, D over time, true against predicted, f(k) as a picture, and
reliability.

Each is a function of lines of metrics or tables. Figures are drawn in the light colours of colours.css; on a page they take
the page's own, so that one drawing serves light and dark.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

from gcdformer.display.cells import heat_cells, score_cells
from gcdformer.display.style import colour, with_names
from gcdformer.evaluation import PredictionTable, Scores
from gcdformer.evaluation.scores import Calibration
from gcdformer.explanation.sieve import prime_power
from gcdformer.explanation.timeline import Timeline

Lines = Sequence[Mapping[str, Any]]

INK, SOFT, PAPER = colour("ink"), colour("soft"), colour("card")
ACROSS = 10
CELL_COLOURS = {"correct": (colour("correct"), colour("good")), "learning": (colour("learning"), colour("wait")),
                "hesitating": (colour("cell"), SOFT), "rule": (colour("cell"), SOFT)}
"""Ground and ink of a cell, by its kind."""
SERIES = tuple(colour(f"series-{number}") for number in range(1, 9))
STYLE: Any = {
    "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 9, "text.color": INK, "axes.labelcolor": INK,
    "axes.edgecolor": SOFT, "xtick.color": INK, "ytick.color": INK, "axes.grid": True, "grid.color": SOFT,
    "grid.alpha": 0.18, "axes.spines.top": False, "axes.spines.right": False, "figure.facecolor": "none",
    "axes.facecolor": "none", "legend.frameon": False, "svg.hashsalt": "gcdformer",
}


def curves(runs: Mapping[str, Lines], events: Timeline | None = None) -> Figure:
    """Correct GCD, accuracy and loss over the epochs; one colour per run. Events mark the prime powers that were learned.

    The loss is that of the natural test set, and dotted that of what is trained on: under two-set training they part. Its
    scale is logarithmic, so that late steps show beside the first drop.
    """
    with mpl.rc_context(STYLE):
        has_gcd = any("n_correct" in line for lines in runs.values() for line in lines)
        panels = [("n_correct", "correct GCD"), ("accuracy", "accuracy, %"), ("test_loss", "test loss (dotted: training)")]
        panels = panels if has_gcd else panels[1:]
        figure = Figure(figsize=(8.6, 2.3 * len(panels)), layout="constrained")
        axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
        for axis, (key, label) in zip(axes, panels, strict=True):
            for (name, lines), shade in zip(runs.items(), SERIES * len(runs), strict=False):
                marker = "o" if len(lines) < 40 else None
                axis.plot(*points(lines, key), color=shade, linewidth=1.5, label=name, marker=marker, markersize=2.5,
                          drawstyle="steps-post" if key == "n_correct" else "default")
                if key == "test_loss":
                    axis.plot(*points(lines, "loss"), color=shade, linewidth=1, linestyle=":")
            axis.set_ylabel(label)
        axes[-1].set_yscale("log")
        axes[-1].yaxis.set_major_locator(LogLocator(subs=(1, 2, 3, 5)))
        axes[-1].yaxis.set_major_formatter("{x:g}")
        axes[-1].yaxis.set_minor_formatter(NullFormatter())
        if has_gcd:
            axes[0].yaxis.set_major_locator(MaxNLocator(integer=True))
        axes[-1].set_xlabel("epoch")
        if len(runs) > 1:
            axes[0].legend(fontsize=8, loc="lower right")
        if events is not None and has_gcd:
            mark_events(axes[0], events)
        return figure


def points(lines: Lines, key: str) -> tuple[list[int], list[float]]:
    """The evaluations that have a value, and the values."""
    evaluated = [line for line in lines if line.get(key) is not None]
    return [line["epoch"] for line in evaluated], [line[key] for line in evaluated]


def mark_events(axis: Axes, events: Timeline) -> None:
    """A thin line and a label where a prime power entered D for the first time."""
    by_epoch: dict[int, list[int]] = {}
    for q, epoch in events.prime_powers.items():
        by_epoch.setdefault(epoch, []).append(q)
    for epoch, powers in by_epoch.items():
        axis.axvline(epoch, color=SOFT, linewidth=0.7, alpha=0.4, linestyle=":")
        axis.annotate(", ".join(map(str, sorted(powers))), (epoch, 1.0), xycoords=("data", "axes fraction"), rotation=90,
                      fontsize=7, ha="right", va="top", color=INK)


def raster(lines: Lines) -> Figure:
    """D over time: a row for each k, a column for each epoch; dark where k is correct, light where it is being learned."""
    with mpl.rc_context(STYLE | {"axes.grid": False}):
        kinds = ("power", "correct, a prime power"), ("known", "correct"), ("learning", "being learned")
        picture = np.zeros((100, len(lines)), dtype=int)
        for column, line in enumerate(lines):
            for k in line.get("being_learned", []):
                picture[k - 1, column] = 3
            for k in line["D"]:
                picture[k - 1, column] = 1 if prime_power(k) else 2
        figure = Figure(figsize=(8.6, 5.2), layout="constrained")
        axis = figure.subplots()
        first = lines[0]["epoch"] - 0.5
        for value, (name, label) in enumerate(kinds, 1):
            bars = [bar(first + start, first + end, k) for k, row in enumerate(picture, 1)
                    for start, end in spans(row == value)]
            axis.add_collection(PolyCollection(bars, facecolors=colour(f"history-{name}"), linewidths=0, label=label))
        axis.set_xlim(first, first + len(lines))
        axis.set_ylim(0.5, 100.5)
        axis.set_xlabel("epoch")
        axis.set_ylabel("k")
        figure.legend(loc="outside upper right", ncols=3, fontsize=8)
        return figure


def spans(flags: npt.NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Where a row of flags is true: the first place of each stretch, and the place behind its last."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]).astype(int)))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def bar(left: float, right: float, k: int) -> list[tuple[float, float]]:
    return [(left, k - 0.5), (right, k - 0.5), (right, k + 0.5), (left, k + 0.5)]


def heat_map(table: PredictionTable) -> Figure:
    """True k against predicted value, both up to 100; the share of each prediction by its strength. The last row holds
    all that lies outside: larger values and unreadable ones."""
    with mpl.rc_context(STYLE | {"axes.grid": False}):
        picture = np.zeros((101, 100))
        for k, predicted, share in heat_cells(table):
            picture[predicted - 1, k - 1] = share
        figure = Figure(figsize=(6.2, 6.0), layout="constrained")
        axis = figure.subplots()
        shades = np.zeros((*picture.shape, 4))
        diagonal = np.eye(101, 100, dtype=bool)
        shades[..., :3] = np.where(diagonal[..., None], mpl.colors.to_rgb(colour("heat-right")),
                                   mpl.colors.to_rgb(colour("heat-wrong")))
        shades[..., 3] = np.sqrt(picture)
        axis.imshow(shades, origin="lower", interpolation="nearest", extent=(0.5, 100.5, 0.5, 101.5))
        axis.set_xlabel("true GCD k")
        axis.set_ylabel("prediction (top row: above 100 or unreadable)")
        return figure


def reliability(calibration: Calibration) -> Figure:
    """Accuracy over confidence, on the diagonal if calibrated; below it, how many answers each bin has."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(4.2, 4.6), layout="constrained")
        curve, counts = figure.subplots(2, 1, sharex=True, height_ratios=[4, 1])
        filled = [part for part in calibration.bins if part.n]
        curve.plot([0, 1], [0, 1], color=SOFT, linewidth=1, linestyle=":")
        curve.plot([part.confidence for part in filled], [part.accuracy for part in filled], color=SERIES[0], marker="o",
                   markersize=4, linewidth=1.5)
        curve.set_ylabel("share of right answers")
        curve.set_title(f"expected calibration error {calibration.ece:.4f}, {calibration.n:,} pairs", fontsize=9)
        curve.set_ylim(0, 1.02)
        counts.bar([(part.low + part.high) / 2 for part in calibration.bins], [part.n for part in calibration.bins],
                   width=0.9 / len(calibration.bins), color=SERIES[0])
        counts.set_ylabel("pairs")
        counts.set_xlabel("confidence of the answer")
        counts.set_xlim(0, 1)
        return figure


def grid_picture(scores: Scores) -> npt.NDArray[np.uint8]:
    """(height, width, 3): for each k tested its f(k), green if k is correct, yellow if f(k) = k, but not often enough.

    For trackers, which draw in threads: without matplotlib's global state.
    """
    last = max(scores.by_gcd)
    down = -(-last // ACROSS)
    figure = Figure(figsize=(6.0, 0.55 * down + 0.4), dpi=80, facecolor=PAPER)
    canvas: Any = FigureCanvasAgg(figure)
    axis = figure.add_axes((0.01, 0.01, 0.98, 0.98))
    axis.set_xlim(0, ACROSS)
    axis.set_ylim(down, -0.6)
    axis.axis("off")
    axis.text(0, -0.25, f"f(k): {len(scores.correct)} correct, accuracy {scores.accuracy:.1f} %", fontsize=10, va="center")
    for cell in score_cells(scores):
        if cell.kind == "untested":
            continue
        row, column = divmod(cell.k - 1, ACROSS)
        ground, ink = CELL_COLOURS[cell.kind]
        axis.add_patch(Rectangle((column + 0.03, row + 0.04), 0.94, 0.92, color=ground))
        axis.text(column + 0.08, row + 0.26, str(cell.k), fontsize=5.5, color=ink, va="center")
        axis.text(column + 0.52, row + 0.6, cell.text, fontsize=10 if len(cell.text) < 5 else 6.5, color=ink,
                  ha="center", va="center", fontweight="bold" if cell.kind == "correct" else "normal")
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()


def to_svg(figure: Figure, title: str) -> str:
    """An inline SVG that takes its colours from the page and says to screen readers what it shows."""
    buffer = io.StringIO()
    with mpl.rc_context(STYLE):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    text = with_names(text[text.index("<svg"):])
    text = re.sub(r'(width|height)="[\d.]+pt" ', "", text, count=2)
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r"\s*<defs>\s*<style.*?</style>\s*</defs>", "", text, count=1, flags=re.DOTALL)  # it would style the page
    return text.replace("<svg ", f'<svg role="img" aria-label="{title}" stroke-linejoin="round" ', 1)


def save(figure: Figure, path: Path) -> None:
    """The figure as a file, SVG or PNG by its ending, with dark ink on white."""
    with mpl.rc_context(STYLE):
        figure.savefig(path, dpi=160, facecolor=PAPER, metadata={"Date": None} if path.suffix == ".svg" else None)


def save_all(folder: Path, drawn: Mapping[str, Figure]) -> list[Path]:
    """Each figure by its name as an SVG and a PNG file; their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = {folder / f"{name}.{ending}": figure for name, figure in drawn.items() for ending in ("svg", "png")}
    for path, figure in paths.items():
        save(figure, path)
    return list(paths)
