"""`gcdformer bench --full`: how throughput and memory grow with width, depth, base and batch.

Each point is a `gcdformer bench --json` in a process of its own, so that its memory is its own. One thing changes at a
time; the rest is bench's default model.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from gcdformer.commands.progress import Advance
from gcdformer.errors import UserError
from gcdformer.report.figures import SERIES, STYLE, save

CURVES: dict[str, tuple[str, list[int]]] = {
    "width d": ("--dim", [16, 32, 64, 128, 256, 512]),
    "layers of each side": ("--layers", [1, 2, 4, 8]),
    "base": ("--base", [2, 10, 30, 100, 1000, 10_000]),
    "batch size": ("--batch-size", [16, 64, 256, 1024, 4096]),
}


def measure_curves(seconds: float, flags: list[str], advance: Advance) -> dict[str, list[dict[str, Any]]]:
    """The points of every curve."""
    wanted = [(curve, flag, value) for curve, (flag, values) in CURVES.items() for value in values]
    found: dict[str, list[dict[str, Any]]] = {curve: [] for curve in CURVES}
    for index, (curve, flag, value) in enumerate(wanted):
        advance(index, len(wanted))
        command = [sys.executable, "-m", "gcdformer", "bench", "--json", "--seconds", str(seconds), *flags, flag, str(value)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise UserError(f"{flag} {value}: {' '.join(command[2:])} ended with {done.returncode}: {done.stderr[-500:]}")
        found[curve].append({"value": value} | json.loads(done.stdout))
    return found


def print_curves(curves: dict[str, list[dict[str, Any]]]) -> None:
    for curve, points in curves.items():
        print(f"\n{curve:20}{'train/s':>12}{'evaluate/s':>12}{'of the peak':>13}{'memory':>10}")
        for point in points:
            print(f"{point['value']:<20,}{point['train']['examples_per_s']:>12,.0f}"
                  f"{point['evaluate']['examples_per_s']:>12,.0f}{100 * point['train']['utilisation']:>11.1f} %"
                  f"{point['memory_mb']:>7,.0f} MB")


def draw_curves(curves: dict[str, list[dict[str, Any]]], path: Path) -> None:
    """Examples a second, share of the peak and memory over each of the four."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(11, 6.6), layout="constrained")
        axes = figure.subplots(3, len(curves), sharey="row", sharex="col")
        for column, (curve, points) in enumerate(curves.items()):
            x = [point["value"] for point in points]
            rows = (
                [("train", [p["train"]["examples_per_s"] for p in points]),
                 ("evaluate", [p["evaluate"]["examples_per_s"] for p in points])],
                [("share of the peak, %", [100 * p["train"]["utilisation"] for p in points])],
                [("memory, MB", [p["memory_mb"] for p in points])])
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
