"""What a prior does to the answers of the same weights, as a picture: accuracy, fidelity and GCD over its exponent.

Drawn by matplotlib. Knows the figures under each prior, no run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gcdformer.display.figures import INK, SERIES, SOFT, STYLE
from gcdformer.explanation.priors import NATURAL_EXPONENT, UnderPrior

PANELS = ("natural accuracy, %", "natural fidelity, %", "correct GCD")


def over_priors(runs: Mapping[str, Sequence[UnderPrior]], trained: Mapping[str, float] | None = None) -> Figure:
    """One colour per run; a filled point where the rules are certified. The dotted line is the natural prior; a cross stands
    where the exponent is that of the training (`trained`, by run)."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(8.6, 7.2), layout="constrained")
        axes: Sequence[Axes] = figure.subplots(len(PANELS), 1, sharex=True)
        for (name, under), shade in zip(runs.items(), SERIES * len(runs), strict=False):
            points = sorted((figures.exponent, figures) for figures in under if figures.exponent is not None)
            places = [place for place, _ in points]
            for axis, values in zip(axes, zip(*(values_of(figures) for _, figures in points), strict=True), strict=True):
                axis.plot(places, values, color=shade, linewidth=1.5, label=name)
                for place, value, (_, figures) in zip(places, values, points, strict=True):
                    axis.plot(place, value, marker="o", markersize=5, color=shade,
                              markerfacecolor=shade if figures.certified else "none")
                if trained and trained.get(name) in places:
                    axis.plot(trained[name], values[places.index(trained[name])], marker="x", markersize=9, color=INK)
        for axis, label in zip(axes, PANELS, strict=True):
            axis.axvline(NATURAL_EXPONENT, color=SOFT, linewidth=1, linestyle=":")
            axis.set_ylabel(label)
        axes[-1].set_xlabel("exponent α of the prior k^-α under which the same weights answer (dotted: natural pairs; "
                            "filled: certified)")
        if len(runs) > 1:
            figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=2, fontsize=8)
        return figure


def values_of(figures: UnderPrior) -> tuple[float, float, float]:
    """What the panels show."""
    return figures.accuracy, 100 * figures.natural, len(figures.D)
