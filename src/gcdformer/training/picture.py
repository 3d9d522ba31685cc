"""The grid of f(k) as a picture, for trackers: ten in a row, coloured as in the live view and the report.

The report, which has more figures, comes after training in the order of the layers. Draws on a figure of its own, without
matplotlib's global state, since trackers draw in threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from gcdformer.evaluation import Scores

ACROSS = 10
CORRECT, LEARNING, OTHER = "#d5efdf", "#fbe9b5", "#f1efe8"
INK = {CORRECT: "#16794c", LEARNING: "#8a6100", OTHER: "#5b6470"}


def grid_picture(scores: Scores) -> npt.NDArray[np.uint8]:
    """(height, width, 3): for each k tested its f(k), green if k is correct, yellow if f(k) = k, but not often enough."""
    last = max(scores.by_gcd)
    down = -(-last // ACROSS)
    figure = Figure(figsize=(6.0, 0.55 * down + 0.4), dpi=80, facecolor="white")
    canvas: Any = FigureCanvasAgg(figure)
    axis = figure.add_axes((0.01, 0.01, 0.98, 0.98))
    axis.set_xlim(0, ACROSS)
    axis.set_ylim(down, -0.6)
    axis.axis("off")
    axis.text(0, -0.25, f"f(k): {len(scores.correct)} correct, accuracy {scores.accuracy:.1f} %", fontsize=10, va="center")
    correct, learning = set(scores.correct), set(scores.modal_only)
    for k, one in scores.by_gcd.items():
        row, column = divmod(k - 1, ACROSS)
        colour = CORRECT if k in correct else LEARNING if k in learning else OTHER
        axis.add_patch(Rectangle((column + 0.03, row + 0.04), 0.94, 0.92, color=colour))
        axis.text(column + 0.08, row + 0.26, str(k), fontsize=5.5, color=INK[colour], va="center")
        shown = "?" if one.prediction is None else str(one.prediction)
        axis.text(column + 0.52, row + 0.6, shown, fontsize=10 if len(shown) < 5 else 6.5, color=INK[colour], ha="center",
                  va="center", fontweight="bold" if colour == CORRECT else "normal")
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()
