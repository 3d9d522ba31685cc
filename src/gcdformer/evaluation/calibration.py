"""How well the probabilities of answers are calibrated: of the answers given with confidence p, is a share p right?

Correcting a prior relies on it: it takes p(k | x) at its word. Knows confidences and which answers are right, no model.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gcdformer.numbers.encoding import Mask

Confidences = npt.NDArray[np.float64]
BINS = 15


@dataclass(frozen=True)
class Bin:
    """The answers whose confidence is above `low` and at most `high` (0 is in the first bin): their number, their mean
    confidence and the share of them that is right, both 0 if there are none."""

    low: float
    high: float
    n: int
    confidence: float
    accuracy: float


@dataclass(frozen=True)
class Calibration:
    """Bins of equal width, and the expected calibration error: the mean distance of confidence and accuracy over answers."""

    ece: float
    bins: tuple[Bin, ...]

    @classmethod
    def of(cls, confidences: Confidences, right: Mask, bins: int = BINS) -> Calibration:
        """Of some answers, each with its confidence in 0..1 and whether it is right."""
        edges = np.linspace(0, 1, bins + 1)
        index = np.clip(np.searchsorted(edges, confidences, side="left") - 1, 0, bins - 1)
        counts = np.bincount(index, minlength=bins)
        divisor = np.maximum(counts, 1)
        mean = np.bincount(index, confidences, minlength=bins) / divisor
        share = np.bincount(index, right, minlength=bins) / divisor
        error = float(np.dot(counts, np.abs(mean - share)) / max(len(confidences), 1))
        rows = zip(edges[:-1].tolist(), edges[1:].tolist(), counts.tolist(), mean.tolist(), share.tolist(), strict=True)
        return cls(error, tuple(Bin(*row) for row in rows))

    @property
    def n(self) -> int:
        return sum(one.n for one in self.bins)

    def to_json(self) -> dict[str, Any]:
        return {"ece": self.ece, "n": self.n, "bins": [asdict(one) for one in self.bins]}
