"""Classes of k that the model does not tell apart: grouped by the distribution of their predictions, not by its mode."""

from __future__ import annotations

from dataclasses import dataclass
from math import log2

from typing_extensions import TypedDict

from gcdformer.evaluation.table import readable

SAME_CLASS = 0.25
"""Total variation below which two distributions are taken for one. Sampling alone gives 0.05 to 0.15 at 300 pairs per k."""


class ClassOfK(TypedDict):
    label: int
    members: list[int]
    prediction: int | None
    share: float
    values: int
    entropy: float


@dataclass(frozen=True)
class Class:
    """Some k with one distribution of predictions; labelled by the smallest."""

    members: tuple[int, ...]
    shares: dict[int, float]

    @property
    def label(self) -> int:
        return self.members[0]

    @property
    def prediction(self) -> int:
        return next(iter(self.shares))

    @property
    def values(self) -> int:
        return hesitation(self.shares)

    @property
    def entropy(self) -> float:
        """Of the predictions, in bits."""
        return sum(-share * log2(share) for share in self.shares.values() if share > 0)

    def to_json(self) -> ClassOfK:
        return {"label": self.label, "members": list(self.members),
                "prediction": readable(self.prediction),
                "share": self.shares[self.prediction], "values": self.values, "entropy": self.entropy}


def hesitation(shares: dict[int, float]) -> int:
    """Between how many values the model hesitates: those with a share of at least 5 %."""
    return sum(share >= 0.05 for share in shares.values())


def distance(first: dict[int, float], second: dict[int, float]) -> float:
    """Total variation: 0 for equal distributions, 1 for disjoint ones."""
    if len(first) > len(second):
        first, second = second, first
    return 1 - sum(min(share, second[value]) for value, share in first.items() if value in second)


def find_classes(shares: dict[int, dict[int, float]]) -> list[Class]:
    """Each k joins the nearest class so far, or starts one of its own; in increasing order, so that labels are least."""
    groups: list[tuple[list[int], dict[int, float]]] = []
    for k in sorted(shares):
        distances = [distance(mean, shares[k]) for _, mean in groups]
        least = min(distances, default=1.0)
        if least > SAME_CLASS:
            groups.append(([k], dict(shares[k])))
            continue
        members, mean = groups[distances.index(least)]
        members.append(k)
        for value in set(mean) | set(shares[k]):
            mean[value] = mean.get(value, 0.0) + (shares[k].get(value, 0.0) - mean.get(value, 0.0)) / len(members)
    return [Class(tuple(members), dict(sorted(mean.items(), key=lambda item: (-item[1], item[0]))))
            for members, mean in groups]
