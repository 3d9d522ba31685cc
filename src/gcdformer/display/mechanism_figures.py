"""The figures of a mechanism, by matplotlib: places by primes, the clocks, and the overlap of the subspaces."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from gcdformer.display.figures import INK, SERIES, SOFT, STYLE
from gcdformer.display.mechanism import label
from gcdformer.display.style import colour
from gcdformer.mechanism.result import Mechanism, Prime

SHADES = LinearSegmentedColormap.from_list("shares", [f"{colour('heat-right')}00", colour("heat-right")])
ACROSS = 4
MOVES = 0.05
"""Positions where less than this share of the answers moves are not drawn."""


def all_figures(mechanism: Mechanism) -> Iterator[tuple[str, Figure, str]]:
    """Title, figure and caption of each."""
    yield ("places by primes", places(mechanism),
           "Rows: encoder sites, and the input positions where something moves. Left: p taken away from a; right: p added. "
           "Strength: the share of answers that become what the rules say for the swapped pair.")
    if mechanism.primes:
        yield ("digits in the subspace of each prime", clocks(mechanism),
               "Every dot is a digit 0..B-1 at the best position, within the subspace of p, coloured by its residue mod p.")
    if len(mechanism.primes) > 1:
        yield ("overlap of the subspaces", overlaps(mechanism),
               "1: the smaller subspace lies within the other; 0: orthogonal; blank: at different sites.")
    if any(len(moments) > 1 for moments in mechanism.through_training.values()):
        yield ("each prime through training", history(mechanism),
               "Green: how often all digits of a, exchanged at the site of the prime, add it. Blue: how much of the "
               "variance at its final place the residues of the digits explain. Dotted: the prime enters D.")


def places(mechanism: Mechanism) -> Figure:
    """A row for each encoder site and each position where something moves (and the last digit of a), a column for each
    prime; two panels for the two directions."""
    sites = [site for site in mechanism.sites if site in mechanism.primes[0].interchange]
    rows = [(site, position) for site in sites for position, name in enumerate(mechanism.positions)
            if moves(mechanism, site, position) or (name == "last digit of a" and "final" not in site)]
    with mpl.rc_context(STYLE | {"axes.grid": False}):
        figure = Figure(figsize=(8.6, 0.9 + 0.2 * len(rows)), layout="constrained")
        left, right = figure.subplots(1, 2, sharey=True)
        for axis, title, matrices in ((left, "p taken away", [prime.interchange for prime in mechanism.primes]),
                                      (right, "p added", [prime.adding for prime in mechanism.primes])):
            values = np.array([[matrix.get(site, [None] * len(mechanism.positions))[position] for matrix in matrices]
                               for site, position in rows], dtype=float)
            axis.imshow(np.nan_to_num(values), aspect="auto", cmap=SHADES, vmin=0, vmax=1, interpolation="nearest")
            axis.set_title(title, fontsize=9)
            axis.set_xticks(range(len(mechanism.primes)), [label(prime) for prime in mechanism.primes], fontsize=7)
            for index in range(1, len(rows)):
                if rows[index][0] != rows[index - 1][0]:
                    axis.axhline(index - 0.5, color=SOFT, linewidth=0.5, alpha=0.5)
        for site in sites:
            own = [index for index, (name, _) in enumerate(rows) if name == site]
            right.text(1.02, (own[0] + own[-1]) / 2, site, transform=right.get_yaxis_transform(), fontsize=6, va="center")
        left.set_yticks(range(len(rows)), ["final state" if "final" in site else mechanism.positions[position]
                                           for site, position in rows], fontsize=5.5)
        return figure


def moves(mechanism: Mechanism, site: str, position: int) -> bool:
    return any((prime.interchange[site][position] or 0.0) >= MOVES for prime in mechanism.primes)


def clocks(mechanism: Mechanism) -> Figure:
    """The digits in the plane of each prime, coloured by residue."""
    down = ceil(len(mechanism.primes) / ACROSS)
    with mpl.rc_context(STYLE | {"axes.grid": False}):
        figure = Figure(figsize=(8.6, 2.4 * down), layout="constrained")
        axes = figure.subplots(down, ACROSS, squeeze=False).ravel()
        for axis in axes[len(mechanism.primes):]:
            axis.axis("off")
        for axis, prime in zip(axes, mechanism.primes, strict=False):
            draw_clock(axis, prime)
        return figure


def draw_clock(axis: Axes, prime: Prime) -> None:
    clock = prime.clock
    x, y = np.array(clock.points).T
    axis.scatter(x, y, c=np.array(clock.residues) / prime.p, cmap="hsv", vmin=0, vmax=1, s=4, alpha=0.7, linewidths=0)
    axis.set_title(f"{label(prime)}: residues {100 * clock.share:.0f} %, frequency {clock.frequency}/{prime.p} "
                   f"{100 * clock.frequency_share:.0f} %", fontsize=6.5, color=INK)
    axis.set_xticks([])
    axis.set_yticks([])
    axis.set_aspect("equal")
    axis.set_xlim(-1.1, 1.1)
    axis.set_ylim(-1.1, 1.1)


def history(mechanism: Mechanism) -> Figure:
    """For each prime, over the epochs whose weights were kept: answers moved, and variance explained at its place."""
    down = ceil(len(mechanism.through_training) / ACROSS)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(8.6, 1.9 * down), layout="constrained")
        axes = figure.subplots(down, ACROSS, squeeze=False, sharey=True).ravel()
        for axis in axes[len(mechanism.through_training):]:
            axis.axis("off")
        for axis, (p, moments) in zip(axes, mechanism.through_training.items(), strict=False):
            epochs = [moment.epoch for moment in moments]
            axis.plot(epochs, [moment.adding for moment in moments], color=SERIES[2])
            axis.plot(epochs, [moment.residues for moment in moments], color=SERIES[0])
            entered = next((moment.epoch for moment in moments if moment.learned), None)
            if entered is not None:
                axis.axvline(entered, color=SOFT, linestyle=":", linewidth=1)
            axis.set_title(str(p), fontsize=8)
            axis.set_ylim(-0.03, 1.03)
            axis.set_xlabel("epoch", fontsize=7)
        return figure


def overlaps(mechanism: Mechanism) -> Figure:
    """Every two primes: how much their subspaces overlap."""
    with mpl.rc_context(STYLE | {"axes.grid": False}):
        size = len(mechanism.primes)
        figure = Figure(figsize=(1.2 + 0.4 * size, 1.0 + 0.4 * size), layout="constrained")
        axis = figure.subplots()
        values = np.array(mechanism.overlap, dtype=float)
        axis.imshow(np.nan_to_num(values), cmap=SHADES, vmin=0, vmax=1)
        for i in range(size):
            for j in range(size):
                if not np.isnan(values[i, j]):
                    axis.text(j, i, f"{values[i, j]:.2f}", ha="center", va="center", fontsize=6,
                              color=colour("on-deep") if values[i, j] > 0.6 else INK)
        names = [label(prime) for prime in mechanism.primes]
        axis.set_xticks(range(size), names)
        axis.set_yticks(range(size), names)
        return figure
