"""Curves of throughput and memory over width, depth, base and batch size, for `gcdformer bench --full`.

One thing changes at a time; the rest is bench's default model. Each point is a `gcdformer bench --json` in a process of its
own, so that its memory is its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from gcdformer.display.figures import SERIES, STYLE, save
from gcdformer.errors import UserError
from gcdformer.training.throughput import Throughput

Curves = dict[str, dict[int, Throughput]]
"""What is varied -> its value -> the measurement."""

VARIED: dict[str, tuple[str, list[int]]] = {
    "width d": ("--dim", [16, 32, 64, 128, 256, 512]),
    "layers of each side": ("--layers", [1, 2, 4, 8]),
    "base": ("--base", [2, 10, 30, 100, 1000, 10_000]),
    "batch size": ("--batch-size", [16, 64, 256, 1024, 4096]),
}


def measure_curves(seconds: float, flags: list[str], advance: Callable[[float, float], None]) -> Curves:
    """The points of every curve; `flags` are passed on, `advance` is called with the points done and their number."""
    points = [(curve, flag, value) for curve, (flag, values) in VARIED.items() for value in values]
    curves: Curves = {curve: {} for curve in VARIED}
    for index, (curve, flag, value) in enumerate(points):
        advance(index, len(points))
        command = [sys.executable, "-m", "gcdformer", "bench", "--json", "--seconds", str(seconds), *flags, flag, str(value)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise UserError(f"{flag} {value}: {' '.join(command[2:])} ended with {done.returncode}: {done.stderr[-500:]}")
        curves[curve][value] = Throughput.from_json(json.loads(done.stdout))
    return curves


def draw_curves(curves: Curves, path: Path) -> None:
    """Examples per second, share of the peak and memory over each of the four."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(11, 6.6), layout="constrained")
        axes = figure.subplots(3, len(curves), sharey="row", sharex="col")
        for column, (curve, points) in enumerate(curves.items()):
            x, measured = list(points), points.values()
            rows = (
                [("train", [p.train.examples_per_s for p in measured]),
                 ("evaluate", [p.evaluate.examples_per_s for p in measured])],
                [("share of the peak, %", [100 * p.train.utilisation for p in measured])],
                [("memory, MB", [p.memory_mb for p in measured])])
            for row, lines in enumerate(rows):
                axis = axes[row, column]
                for (label, y), colour in zip(lines, SERIES, strict=False):
                    axis.plot(x, y, color=colour, marker="o", markersize=3, label=label)
                axis.set_xscale("log")
                if row == 0:
                    axis.set_yscale("log")
            axes[2, column].set_xlabel(curve)
            axes[2, column].set_xticks(x, [f"{value:,}" for value in x], rotation=40)
            axes[2, column].minorticks_off()
        for row, label in enumerate(("examples per second", "share of the GEMM peak, %", "memory, MB")):
            axes[row, 0].set_ylabel(label)
        axes[0, 0].legend(fontsize=8)
        save(figure, path)
