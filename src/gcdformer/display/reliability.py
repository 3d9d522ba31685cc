"""The reliability picture: the share of right answers against their confidence, bin by bin, by matplotlib."""

from __future__ import annotations

import matplotlib as mpl
from matplotlib.figure import Figure

from gcdformer.display.figures import SERIES, SOFT, STYLE
from gcdformer.evaluation.scores import Calibration


def reliability(found: Calibration) -> Figure:
    """Accuracy over confidence, on the diagonal if calibrated; below it, how many answers each bin has."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(4.2, 4.6), layout="constrained")
        curve, counts = figure.subplots(2, 1, sharex=True, height_ratios=[4, 1])
        filled = [one for one in found.bins if one.n]
        curve.plot([0, 1], [0, 1], color=SOFT, linewidth=1, linestyle=":")
        curve.plot([one.confidence for one in filled], [one.accuracy for one in filled], color=SERIES[0], marker="o",
                   markersize=4, linewidth=1.5)
        curve.set_ylabel("share of right answers")
        curve.set_title(f"expected calibration error {found.ece:.4f}, {found.n:,} pairs", fontsize=9)
        curve.set_ylim(0, 1.02)
        counts.bar([(one.low + one.high) / 2 for one in found.bins], [one.n for one in found.bins],
                   width=0.9 / len(found.bins), color=SERIES[0])
        counts.set_ylabel("pairs")
        counts.set_xlabel("confidence of the answer")
        counts.set_xlim(0, 1)
        return figure
