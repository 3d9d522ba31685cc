"""Evidence for a claim: what was observed in single runs, or in fair pairs of runs that differ in one thing.

Two runs make a pair if they are of the same preset, version, changes to it and seed, and saw about as many examples; both
are read after the same number of examples. Knows entries of the ledger and experiments, not what is claimed of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import product
from typing import Literal

import numpy as np
import numpy.typing as npt

from gcdformer.paper.entry import Entry
from gcdformer.paper.ledger import LARGEST_RATIO, budget_ratio, same_recipe
from gcdformer.paper.table import Experiment, Json

AT_THE_END = 1.1
"""The largest ratio of budgets where only the last evaluation is recorded: then both runs are read at their ends."""
ROUNDING = 1.01

Contrast = tuple[Experiment, Experiment]
"""Two experiments that differ in one thing."""


@dataclass(frozen=True)
class Finding:
    """What was looked at in a run or a pair: it was as claimed `held` times of `of`, among them `ties`, in which the two
    sides came out equal. None of none: it decides nothing."""

    held: int
    of: int
    text: str
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
        return all(run.is_current for run in self.runs)

    def to_json(self) -> Json:
        return {"where": self.where, "held": self.finding.held, "of": self.finding.of, "ties": self.finding.ties,
                "text": self.finding.text, "recipe": self.runs[0].recipe, "current": self.current,
                "runs": [run.name for run in self.runs]}


Observe = Callable[[list[Entry]], list[Observation]]


def over_pairs(contrasts: Iterable[Contrast], judge: Callable[[Entry, Entry], Finding], most: float = LARGEST_RATIO
               ) -> Observe:
    """One observation for each fair pair of runs of each contrast; `most` is the factor by which budgets may differ."""
    listed = list(contrasts)

    def observe(entries: list[Entry]) -> list[Observation]:
        observations: list[Observation] = []
        for contrast in listed:
            pairs = pair_runs(entries, *contrast)
            fair = [pair for pair in pairs if budget_ratio(*pair) <= most]
            for pair in fair or pairs:
                budgets = " and ".join(f"{entry.examples / 1e6:.1f}" for entry in pair)
                finding = judge(*pair) if fair else Finding(0, 0, f"not compared, budgets of {budgets} M examples")
                observations.append(Observation(place(contrast[1].name, pair[1]), finding, pair))
        return observations

    return observe


def over_runs(wanted: Callable[[Entry], bool], judge: Callable[[Entry], Finding]) -> Observe:
    """One observation for each run that is wanted; those that decide nothing are left out if others do."""
    def observe(entries: list[Entry]) -> list[Observation]:
        observations = [Observation(place(entry.experiments[0], entry), judge(entry), (entry,))
                        for entry in entries if wanted(entry)]
        return [observation for observation in observations if observation.finding.of] or observations

    return observe


def place(experiment: str, entry: Entry) -> str:
    """The experiment and seed of a run, or of the second of a pair, in words."""
    return f"{experiment.replace('_', ', ')}, seed {entry.seed}"


def pair_runs(entries: list[Entry], first: Experiment, second: Experiment) -> list[tuple[Entry, Entry]]:
    """The runs of two experiments two by two, those nearest in examples first; each run is in one pair at most."""
    firsts, seconds = ([entry for entry in entries if experiment.name in entry.experiments]
                       for experiment in (first, second))
    candidates = [pair for pair in product(firsts, seconds) if same_recipe(*pair)]
    used: set[str] = set()
    pairs = []
    for pair in sorted(candidates, key=lambda pair: (budget_ratio(*pair), pair[0].name, pair[1].name)):
        names = {entry.name for entry in pair}
        if len(names) == 2 and not used & names:
            used |= names
            pairs.append(pair)
    return sorted(pairs, key=lambda pair: pair[0].name)


def common(first: Entry, second: Entry) -> int:
    """Up to how many examples both runs went."""
    return min(first.examples, second.examples)


def value_at(entry: Entry, key: Literal["accuracy", "n_correct"], examples: int) -> float:
    """A curve's value at the last evaluation up to that many examples; an epoch may be longer by a part of a batch."""
    places = [place for place, seen in enumerate(entry.curve["examples"]) if seen <= examples * ROUNDING]
    return entry.curve[key][places[-1] if places else 0]
