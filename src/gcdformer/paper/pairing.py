"""Fair comparisons of measured runs: pairs that differ in one thing, read after the same number of examples.

Two runs make a pair if they are of the same preset, version, changes to it and seed, and saw about as many examples. This
module knows entries of the ledger and experiments, not what is claimed of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gcdformer.paper.entry import Entry
from gcdformer.paper.ledger import is_current
from gcdformer.paper.table import Experiment

MOST_UNLIKE = 1.2
"""Budgets that differ by more are not compared: before its horizon a cosine schedule still has a part of its rate (half at
half of it, a twelfth at five sixths), so the longer run would be read before it has settled."""
AT_THE_END = 1.1
"""The same for what is kept of the last evaluation only: then both runs are read at their ends."""
ROUNDING = 1.01

Contrast = tuple[Experiment, Experiment]
"""Two experiments that differ in one thing."""


@dataclass(frozen=True)
class Finding:
    """What was looked at in a run or a pair: it was as claimed `held` times of `of`, among them `ties`, in which the two
    sides came out equal. None of none: it does not tell."""

    held: int
    of: int
    told: str
    ties: int = 0

    @property
    def decisive(self) -> int:
        """How many were no ties."""
        return self.of - self.ties


@dataclass(frozen=True)
class Chance:
    """The share that is reached by chance: on average, and the most in 95 shuffles of 100."""

    mean: float
    most: float

    @classmethod
    def of(cls, shares: npt.NDArray[np.float64]) -> Chance:
        return cls(float(shares.mean()), float(np.quantile(shares, 0.95, method="higher")))


@dataclass(frozen=True)
class Observation:
    """A finding, where it was made, and from which runs."""

    where: str
    finding: Finding
    runs: tuple[Entry, ...]

    @property
    def current(self) -> bool:
        """Whether its runs are of the preset's newest version."""
        return all(map(is_current, self.runs))


Observe = Callable[[list[Entry]], list[Observation]]


def over_pairs(contrasts: Iterable[Contrast], judge: Callable[[Entry, Entry], Finding], most: float = MOST_UNLIKE
               ) -> Observe:
    """One observation for each fair pair of runs of each contrast; `most` is the factor by which budgets may differ."""
    listed = list(contrasts)

    def observe(entries: list[Entry]) -> list[Observation]:
        found: list[Observation] = []
        for one, other in listed:
            pairs = pair_runs(entries, one, other)
            fair = [pair for pair in pairs if unlike(*pair) <= most]
            found += [Observation(place(other, pair[1]), judge(*pair), pair) for pair in fair]
            found += [Observation(place(other, pair[1]), not_compared(*pair), pair) for pair in pairs if not fair]
        return found

    return observe


def over_runs(wanted: Callable[[Entry], bool], judge: Callable[[Entry], Finding]) -> Observe:
    """One observation for each run that is wanted; those that do not tell are left out if others do."""
    def observe(entries: list[Entry]) -> list[Observation]:
        found = [Observation(run_place(entry), judge(entry), (entry,)) for entry in entries if wanted(entry)]
        return [one for one in found if one.finding.of] or found

    return observe


def pair_runs(entries: list[Entry], one: Experiment, other: Experiment) -> list[tuple[Entry, Entry]]:
    """The runs of two experiments two by two, those nearest in examples first; each run is in one pair at most."""
    of_one, of_other = ([entry for entry in entries if name in entry.experiments] for name in (one.name, other.name))
    candidates = [(first, second) for first in of_one for second in of_other if same_recipe(first, second)]
    used: set[str] = set()
    pairs = []
    for first, second in sorted(candidates, key=lambda pair: (unlike(*pair), pair[0].name, pair[1].name)):
        if first.name != second.name and not used & {first.name, second.name}:
            used |= {first.name, second.name}
            pairs.append((first, second))
    return sorted(pairs, key=lambda pair: pair[0].name)


def same_recipe(first: Entry, second: Entry) -> bool:
    return all(first.facts[key] == second.facts[key] for key in ("preset", "preset_version", "changed")) and (
        first.config.training.seed == second.config.training.seed)


def unlike(first: Entry, second: Entry) -> float:
    """By what factor the examples of two runs differ."""
    return max(first.examples, second.examples) / max(min(first.examples, second.examples), 1)


def not_compared(first: Entry, second: Entry) -> Finding:
    return Finding(0, 0, f"not compared, budgets of {first.examples / 1e6:.1f} and {second.examples / 1e6:.1f} M examples")


def common(first: Entry, second: Entry) -> int:
    """Up to how many examples both runs went."""
    return min(first.examples, second.examples)


def value_at(entry: Entry, key: str, examples: int) -> Any:
    """A curve's value at the last evaluation up to so many examples; an epoch may be longer by a part of a batch."""
    curve = entry.facts["curve"]
    places = [place for place, seen in enumerate(curve["examples"]) if seen <= examples * ROUNDING]
    return curve[key][places[-1] if places else 0]


def place(experiment: Experiment, entry: Entry) -> str:
    """What the two runs of a pair share, and what the second has."""
    return f"{experiment.name.replace('_', ', ')}, seed {entry.config.training.seed}"


def run_place(entry: Entry) -> str:
    return f"{entry.experiments[0].replace('_', ', ')}, seed {entry.config.training.seed}"
