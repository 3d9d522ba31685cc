"""What a prior does to the answers of the same weights, as a picture: accuracy, fidelity and GCD over its exponent.

Drawn by matplotlib. Knows the figures under each prior, no run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gcdformer.display.figures import SERIES, SOFT, STYLE
from gcdformer.explanation.priors import NATURAL_EXPONENT, UnderPrior

PANELS = ("natural accuracy, %", "natural fidelity, %", "correct GCD")
UnderPriors = Mapping[str, Sequence[UnderPrior]]


def over_priors(groups: Mapping[str, UnderPriors]) -> Figure:
    """A column per group of runs, by its title; one colour per run. A point is filled where the answers are certified; the
    dotted line is the exponent of natural pairs."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(max(5.0, 3.1 * len(groups)), 6.6), layout="constrained")
        rows = figure.subplots(len(PANELS), len(groups), sharex=True, sharey="row", squeeze=False)
        for column, (title, runs) in zip(rows.T, groups.items(), strict=True):
            column[0].set_title(title, fontsize=9)
            for (name, under), shade in zip(runs.items(), SERIES * len(runs), strict=False):
                draw_run(column, under, name, shade)
            for axis in column:
                axis.axvline(NATURAL_EXPONENT, color=SOFT, linewidth=1, linestyle=":")
            if any(runs):
                column[0].legend(fontsize=7, loc="lower right")
        for row, label in zip(rows, PANELS, strict=True):
            row[0].set_ylabel(label)
        figure.supxlabel("exponent α of the prior k^-α (dotted: natural pairs; filled: certified)", fontsize=9)
        return figure


def draw_run(axes: Sequence[Axes], under: Sequence[UnderPrior], name: str, shade: str) -> None:
    """The panels of one run, from the priors that have an exponent."""
    powers = sorted((figures for figures in under if figures.exponent is not None), key=lambda figures: float(figures.prior))
    places = [float(figures.prior) for figures in powers]
    shown = zip(*((figures.accuracy, 100 * figures.natural, len(figures.D)) for figures in powers), strict=True)
    for axis, values in zip(axes, shown, strict=True):
        axis.plot(places, values, color=shade, linewidth=1.4, label=name)
        for certified, fill in ((True, shade), (False, "none")):
            marked = [place for place, figures in enumerate(powers) if figures.certified is certified]
            axis.plot([places[place] for place in marked], [values[place] for place in marked], "o", markersize=4,
                      color=shade, markerfacecolor=fill)
