"""What an analysis of a network's mechanism says, as values that are JSON as they stand. No torch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pydantic import ConfigDict, TypeAdapter

Answers = dict[str, list[dict[int, int | None]]]
"""For each site and position what came out of the first swaps that take p away, by the number of the swap; None if it is no
integer. A swap whose operands are too short for the position is left out."""
Matrix = dict[str, list[float | None]]
"""For each site the share of answers that became the rules' answer for the swapped pair, by position; None where too few
pairs have the position."""


@dataclass(frozen=True)
class Best:
    """The place that does most, with its share and 95 % interval when p is taken away, and its share when p is added."""

    site: str
    position: int
    name: str
    share: float
    low: float
    high: float
    n: int
    adding: float


@dataclass(frozen=True)
class Whole:
    """Several positions exchanged at once, at one site."""

    site: str
    positions: list[int]
    share: float
    low: float
    high: float
    n: int
    adding: float


@dataclass(frozen=True)
class Side:
    """Swaps of one operand. `interchange` takes p away, `adding` adds it; `digits` exchanges all digits of it at once, for
    each site, and `whole` the smallest set of positions found, at the site of the best place, that does both."""

    pairs: int
    drawn: int
    following: float
    """Share of the pairs drawn on which the model follows the rules before the swap; only those are used."""
    interchange: Matrix
    adding: Matrix
    counts: list[int]
    """How many pairs have each position."""
    digits: list[Whole]
    best: Best
    whole: Whole
    answers: Answers


@dataclass(frozen=True)
class Example:
    """One swap at the best place: the question, the operand whose value was put in, what the rules say, what came out."""

    a: int
    b: int
    swapped: int
    before: int
    expected: int
    answer: int | None


@dataclass(frozen=True)
class Subspace:
    """The smallest linear subspace at the best place whose swap does nine tenths of what the whole swap does.

    Its directions and rank come from one half of the pairs; the shares are of the other half.
    """

    rank: int
    dimension: int
    whole: float
    share: float
    permuted: float
    permuted_n: int
    """The same with the wanted answers permuted among the swaps, in finding and in judging: a control."""
    by_rank: dict[int, float]


@dataclass(frozen=True)
class Clock:
    """The subspace over the digits 0..B-1: how much of its variance their residues mod p explain, and a picture of it."""

    share: float
    flag: float
    """What divisibility alone explains, multiple of p or not: for a flag as much as the residues do, for a clock less."""
    chance: float
    """What as many random classes as there are residues would explain."""
    frequency: int
    """The j of the frequency j/p that explains most, 1 to p/2."""
    frequency_share: float
    digits: list[int]
    points: list[tuple[float, float]]
    residues: list[int]


@dataclass(frozen=True)
class Power:
    """A higher learned power q = p^e, at the end of the encoder only."""

    q: int
    pairs: int
    interchange: Matrix
    adding: Matrix
    best: Best
    whole: Whole
    verdict: str


@dataclass(frozen=True)
class Prime(Side):
    """Where one learned prime is carried. The fields of a side are those of operand a; `side_b` has the same for b."""

    p: int
    divides_base: bool
    heads: dict[str, list[list[float | None]]]
    """For each site with heads, for each head the shares by position, and at the end that of all digits of a together (in
    the decoder: by output position, and all of them)."""
    outputs: Matrix
    """Decoder sites by output position, and at the end all of them. The whole answer passes there: a share of one says
    little."""
    side_b: Side
    unchanged: float
    neutral: int
    """How many neutral swaps that is of, on both operands together."""
    control: float
    rank: int
    subspace: Subspace
    clock: Clock
    powers: list[Power]
    examples: list[Example]
    answers: Answers
    """The same swaps at every other place."""
    verdict: str
    why: str


@dataclass(frozen=True)
class Unlearned:
    """A prime that is not learned: the share of answers that followed it at the places of the learned ones. A control."""

    p: int
    pairs: int
    share: float
    changed: float
    """Answers that changed at all."""


@dataclass(frozen=True)
class Moment:
    """A prime at a checkpoint: whether it is in D, how often all digits of a add it at its final site, and how much of the
    variance at its final place the residues of the digits explain."""

    epoch: int
    learned: bool
    adding: float
    residues: float
    chance: float


@dataclass(frozen=True)
class Mechanism:
    """Everything, with the controls."""

    __pydantic_config__ = ConfigDict(ser_json_inf_nan="constants")
    base: int
    D: list[int]
    family: str
    positions: list[str]
    sites: list[str]
    primes: list[Prime]
    skipped: dict[int, str]
    """Learned primes of which too few pairs could be had, and why."""
    overlap: list[list[float | None]]
    """How much the subspaces of two primes overlap, 0 to 1, in the order of `primes`; None at different places."""
    unlearned: list[Unlearned]
    alarms: list[str]
    """Controls that passed. Nothing else is to be believed where there is one."""
    verdict: str
    seed: int
    seconds: float
    through_training: dict[int, list[Moment]] = field(default_factory=dict)
    epoch: int | None = None
    weights_sha256: str | None = None
    """The weights it belongs to."""
    prior: str | float = "training"
    """The decision prior, a name or the exponent of k^-ALPHA."""

    def to_json(self) -> dict[str, Any]:
        return ADAPTER.dump_python(self, mode="json")  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        shown = ", ".join(f"{prime.p} {prime.verdict}" for prime in self.primes)
        return f"Mechanism(base {self.base}: {shown}; {self.verdict})"

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from gcdformer.display.mechanism import notebook_html
        return notebook_html(self)


ADAPTER = TypeAdapter(Mechanism)
