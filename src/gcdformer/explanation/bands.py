"""Bands of size and order: where the rules hold beyond the pairs that a certificate was made from.

Each band is a set of pairs: both operands up to a limit, one small and one large, a < b, a > b, a = b, one a divisor of the
other. It is judged over all k up to 100 that fit, each equally often, so that what a model has memorised shows. Knows a
function predict(a, b) on arrays, or pairs with their predictions, and a rule model.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isqrt
from typing import final

import numpy as np
from typing_extensions import TypedDict

from gcdformer.config import LEAST_PAIRS, TESTED_GCDS
from gcdformer.explanation.rules import RuleModel
from gcdformer.explanation.statistics import CERTIFIED_FIDELITY, Fidelity, FidelityView
from gcdformer.numbers.distributions import OPERAND_DISTRIBUTIONS, coprime_pairs, fast_gcd
from gcdformer.numbers.encoding import Integers, Mask

Predict = Callable[[Integers, Integers], Integers]
SIZES = (50, 1000, 10_000, 100_000)
PAIRS_PER_BAND = 2000
UNIFORM = OPERAND_DISTRIBUTIONS["uniform"]


class Region(ABC):
    """A set of pairs."""

    name: str
    where: str
    """The same as a verdict says it after "not": "for operands up to 1,000"."""
    limit: int | None = None
    """The largest operand, for bands of size."""
    complete: bool = False
    """Whether `draw` gives every pair there is for its k."""

    @abstractmethod
    def contains(self, a: Integers, b: Integers) -> Mask:
        """Which of these pairs lie in it."""

    @abstractmethod
    def fits(self, k: Integers) -> Mask:
        """For which k it has a pair with this GCD."""

    @abstractmethod
    def draw(self, k: Integers, rng: np.random.Generator) -> tuple[Integers, Integers]:
        """A pair with each of these GCD."""


@final
class UpTo(Region):
    """Both operands are at most a limit."""

    def __init__(self, limit: int) -> None:
        self.largest = self.limit = limit
        self.name, self.where = f"both up to {limit:,}", f"for operands up to {limit:,}"

    def contains(self, a: Integers, b: Integers) -> Mask:
        return np.asarray(np.maximum(a, b) <= self.largest)

    def fits(self, k: Integers) -> Mask:
        return np.asarray(k <= self.largest)

    def draw(self, k: Integers, rng: np.random.Generator) -> tuple[Integers, Integers]:
        a, b = coprime_pairs(rng, UNIFORM, self.largest // k)
        return a * k, b * k


@final
class SmallAndLarge(Region):
    """One operand is at most the square root of M, the other above a tenth of M."""

    def __init__(self, maximum: int) -> None:
        self.small, self.large, self.maximum = isqrt(maximum), maximum // 10, maximum
        self.name = f"one up to {self.small:,}, one above {self.large:,}"
        self.where = "where one operand is small and one large"

    def contains(self, a: Integers, b: Integers) -> Mask:
        return np.asarray((np.minimum(a, b) <= self.small) & (np.maximum(a, b) > self.large))

    def fits(self, k: Integers) -> Mask:
        return np.asarray((k <= self.small) & (k * (self.large // k + 1) <= self.maximum) & (self.large > self.small))

    def draw(self, k: Integers, rng: np.random.Generator) -> tuple[Integers, Integers]:
        a, b = np.ones_like(k), np.ones_like(k)
        left = np.arange(len(k))
        while len(left):
            some = k[left]
            a[left] = rng.integers(1, self.small // some, endpoint=True)
            b[left] = rng.integers(self.large // some + 1, self.maximum // some, endpoint=True)
            left = left[fast_gcd(a[left], b[left]) != 1]
        return swap_some(a * k, b * k, rng)


@final
class Ordered(Region):
    """a < b, or a > b, of any size."""

    def __init__(self, maximum: int, ascending: bool) -> None:
        self.maximum, self.ascending = maximum, ascending
        self.name = "a < b" if ascending else "a > b"
        self.where = f"for {self.name}"

    def contains(self, a: Integers, b: Integers) -> Mask:
        return np.asarray(a < b if self.ascending else a > b)

    def fits(self, k: Integers) -> Mask:
        return np.asarray(2 * k <= self.maximum)

    def draw(self, k: Integers, rng: np.random.Generator) -> tuple[Integers, Integers]:
        a, b = coprime_pairs(rng, UNIFORM, self.maximum // k)
        b = np.where((a == 1) & (b == 1), 2, b)  # the only equal ones
        low, high = np.minimum(a, b) * k, np.maximum(a, b) * k
        return (low, high) if self.ascending else (high, low)


@final
class Equal(Region):
    """a = b, so that the GCD is a: one pair for each k."""

    name, where, complete = "a = b", "for a = b", True

    def __init__(self, maximum: int) -> None:
        self.maximum = maximum

    def contains(self, a: Integers, b: Integers) -> Mask:
        return np.asarray(a == b)

    def fits(self, k: Integers) -> Mask:
        return np.asarray(k <= self.maximum)

    def draw(self, k: Integers, rng: np.random.Generator) -> tuple[Integers, Integers]:
        return k, k


@final
class Dividing(Region):
    """One operand divides the other, which is larger; the GCD is the smaller one."""

    name, where = "one divides the other", "where one operand divides the other"

    def __init__(self, maximum: int) -> None:
        self.maximum = maximum

    def contains(self, a: Integers, b: Integers) -> Mask:
        return np.asarray((a != b) & (np.maximum(a, b) % np.minimum(a, b) == 0))

    def fits(self, k: Integers) -> Mask:
        return np.asarray(2 * k <= self.maximum)

    def draw(self, k: Integers, rng: np.random.Generator) -> tuple[Integers, Integers]:
        return swap_some(k, k * rng.integers(2, self.maximum // k, endpoint=True), rng)


def swap_some(a: Integers, b: Integers, rng: np.random.Generator) -> tuple[Integers, Integers]:
    """Half of the pairs with their operands swapped, by chance."""
    swapped = rng.random(len(a)) < 0.5
    return np.where(swapped, b, a), np.where(swapped, a, b)


def regions(maximum: int) -> list[Region]:
    """The bands of pairs up to a maximum."""
    sizes: list[Region] = [UpTo(size) for size in (*(size for size in SIZES if size < maximum), maximum)]
    return [*sizes, SmallAndLarge(maximum), Ordered(maximum, ascending=True), Ordered(maximum, ascending=False),
            Equal(maximum), Dividing(maximum)]


class BandJson(TypedDict):
    name: str
    n: int
    gcds: int
    fidelity: FidelityView
    accuracy: float
    holds: bool | None


@final
@dataclass(frozen=True)
class Band:
    """How the rules and the truth fare in one band."""

    name: str
    where: str
    limit: int | None
    """The largest operand, for bands of size."""
    gcds: int
    """How many k were tried."""
    fidelity: Fidelity
    accuracy: float
    """Percent right."""

    @property
    def holds(self) -> bool | None:
        """Whether the rules predict 98 % of the answers; None if that is undecided."""
        return self.fidelity.at_least(CERTIFIED_FIDELITY)

    def to_json(self) -> BandJson:
        return {"name": self.name, "n": self.fidelity.n, "gcds": self.gcds, "fidelity": self.fidelity.to_json(),
                "accuracy": self.accuracy, "holds": self.holds}


def judge_bands(predict: Predict, model: RuleModel, maximum: int, rng: np.random.Generator,
                pairs: int = PAIRS_PER_BAND) -> tuple[Band, ...]:
    """Every band that has pairs, each on about this many different ones; the model is asked once for all."""
    drawn = [(region, *distinct(*draw_stratified(region, rng, pairs))) for region in regions(maximum)]
    drawn = [item for item in drawn if len(item[1])]
    answers = predict(np.concatenate([a for _, a, _ in drawn]), np.concatenate([b for _, _, b in drawn]))
    bands, start = [], 0
    for region, a, b in drawn:
        bands.append(judge(region, a, b, answers[start:start + len(a)], model, region.complete))
        start += len(a)
    return tuple(bands)


def draw_stratified(region: Region, rng: np.random.Generator, pairs: int) -> tuple[Integers, Integers]:
    """Pairs of a region, as many for every k up to 100 that fits."""
    every = np.arange(1, TESTED_GCDS + 1, dtype=np.int64)
    every = every[region.fits(every)]
    return region.draw(np.repeat(every, 1 if region.complete else -(-pairs // max(len(every), 1))), rng)


def distinct(a: Integers, b: Integers) -> tuple[Integers, Integers]:
    """Each pair once."""
    pairs = np.unique(np.stack([a, b], axis=1), axis=0)
    return pairs[:, 0], pairs[:, 1]


def bands_of_pairs(a: Integers, b: Integers, predictions: Integers, model: RuleModel) -> tuple[Band, ...]:
    """The bands that have 30 of these pairs at least; pairs with a GCD above 100 are left out."""
    tested = np.gcd(a, b) <= TESTED_GCDS
    a, b, predictions = a[tested], b[tested], predictions[tested]
    if not len(a):
        return ()
    inside = [(region, region.contains(a, b)) for region in regions(int(max(a.max(), b.max())))]
    return tuple(judge(region, a[mask], b[mask], predictions[mask], model)
                 for region, mask in inside if mask.sum() >= LEAST_PAIRS)


def judge(region: Region, a: Integers, b: Integers, predictions: Integers, model: RuleModel, exact: bool = False) -> Band:
    gcds = np.gcd(a, b)
    agree = int(model.agrees(gcds, predictions).sum())
    return Band(region.name, region.where, region.limit, len(np.unique(gcds)),
                Fidelity(agree, len(a), exact), 100.0 * float((predictions == gcds).mean()))


def limits_text(bands: Sequence[Band]) -> str:
    """What a verdict adds for the bands in which the rules do not hold: "; not below 10,000"."""
    if not bands:
        return ""
    sizes = [band for band in bands if band.limit is not None]
    broken = [band for band in sizes if band.holds is False]
    is_start = broken == sizes[:len(broken)] and len(broken) < len(sizes)
    parts = [f"below {broken[-1].limit:,}"] if broken and is_start else [band.where for band in broken]
    parts += [band.where for band in bands if band.limit is None and band.holds is False]
    if parts:
        return "; not " + ", nor ".join(parts)
    return " and in every band" if all(band.holds for band in bands) else ""
