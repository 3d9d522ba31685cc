"""The distributions that operands and GCD are drawn from, each with its exact probabilities.

An operand distribution draws integers from 1..N. A pair distribution draws (a, b) from 1..M, either independently
(`natural`) or GCD first: k from 1..K with P(k) ~ k^-alpha, and a focus that grows and fades in the course of a training, or
with the weights of a file; then coprime a, b from the operand distribution on 1..(M div k) by rejection, times k. Randomness
is passed in as a numpy generator.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from pathlib import Path

import numpy as np
import numpy.typing as npt

from gcdformer.config import DataSection
from gcdformer.errors import UserError
from gcdformer.numbers.encoding import Integers

Probabilities = npt.NDArray[np.float64]

EXPONENTS = {"uniform": 0.0, "inverse-sqrt": 0.5, "log-uniform": 1.0, "inverse-1.5": 1.5}
DEFAULT_MIXTURE_SHARE = 0.05
DEFAULT_FOCUS_SHARE = 0.5
FIRST_IN_FOCUS = 6
"""How many of the list are in focus at the start; few, so that each has many examples."""
FOCUS_GROWN, FOCUS_FADES = 0.5, 0.75
"""Shares of the training after which all of the list is in focus, and after which its share of the examples falls to 0."""
LARGEST_LISTED = 1_000_000
"""The largest k of a file: its weights are an array."""


class OperandDistribution(ABC):
    """Draws integers from 1..N."""

    @abstractmethod
    def draw(self, rng: np.random.Generator, limits: Integers | int, count: int) -> Integers:
        """`count` integers; integer i lies in 1..limits[i], or in 1..limits for all."""

    @abstractmethod
    def probabilities(self, limit: int) -> Probabilities:
        """P(1), ..., P(limit)."""


class UniformOperands(OperandDistribution):
    """Every integer of 1..N is equally likely."""

    def draw(self, rng: np.random.Generator, limits: Integers | int, count: int) -> Integers:
        return rng.integers(1, limits, size=count, endpoint=True, dtype=np.int64)

    def probabilities(self, limit: int) -> Probabilities:
        return np.full(limit, 1.0 / limit)


class LogUniformOperands(OperandDistribution):
    """exp(x) rounded to the nearest integer, x uniform in [0, ln N]."""

    def draw(self, rng: np.random.Generator, limits: Integers | int, count: int) -> Integers:
        powers = rng.random(count)
        powers *= np.log(limits)
        np.exp(powers, out=powers)
        np.rint(powers, out=powers)
        return np.minimum(powers.astype(np.int64), limits)

    def probabilities(self, limit: int) -> Probabilities:
        if limit == 1:
            return np.ones(1)
        edges = np.log(np.concatenate(([1.0], np.arange(1, limit) + 0.5, [float(limit)])))
        return np.asarray(np.diff(edges) / np.log(limit))


OPERAND_DISTRIBUTIONS: dict[str, OperandDistribution] = {"uniform": UniformOperands(), "log-uniform": LogUniformOperands()}


class PairDistribution(ABC):
    """Draws pairs (a, b) of 1..M."""

    @abstractmethod
    def draw(self, rng: np.random.Generator, count: int) -> tuple[Integers, Integers]:
        """`count` pairs."""

    def draw_with_gcd(self, rng: np.random.Generator, count: int) -> tuple[Integers, Integers, Integers]:
        """`count` pairs and their GCD; distributions that choose the GCD first save computing it."""
        a, b = self.draw(rng, count)
        return a, b, fast_gcd(a, b).astype(np.int64)


@dataclass(frozen=True)
class NaturalPairs(PairDistribution):
    """a and b drawn independently; their GCD is what it is."""

    operands: OperandDistribution
    maximum: int

    def draw(self, rng: np.random.Generator, count: int) -> tuple[Integers, Integers]:
        return (self.operands.draw(rng, self.maximum, count), self.operands.draw(rng, self.maximum, count))


def coprime_pairs(rng: np.random.Generator, operands: OperandDistribution, limits: Integers) -> tuple[Integers, Integers]:
    """One coprime pair for each limit N, from the operand distribution on 1..N, by rejection."""
    a = operands.draw(rng, limits, len(limits))
    b = operands.draw(rng, limits, len(limits))
    left = np.flatnonzero(fast_gcd(a, b) != 1)
    while len(left):
        some = limits[left]
        new_a = operands.draw(rng, some, len(left))
        new_b = operands.draw(rng, some, len(left))
        a[left], b[left] = new_a, new_b
        left = left[fast_gcd(new_a, new_b) != 1]
    return a, b


def fast_gcd(a: Integers, b: Integers) -> npt.NDArray[np.signedinteger]:
    """gcd(a, b); the narrow type is twice as fast where it fits, and most of the time goes here."""
    if len(a) and max(int(a.max()), int(b.max())) < 2**31:
        return np.gcd(a.astype(np.int32), b.astype(np.int32))
    return np.gcd(a, b)


@dataclass(frozen=True)
class GcdFirst(PairDistribution):
    """The GCD k is drawn first, then a pair that has it."""

    operands: OperandDistribution
    maximum: int

    @property
    @abstractmethod
    def outcome_probabilities(self) -> Probabilities:
        """P(1), ..., P(K)."""

    @cached_property
    def cumulative(self) -> Probabilities:
        return np.cumsum(self.outcome_probabilities)

    def draw(self, rng: np.random.Generator, count: int) -> tuple[Integers, Integers]:
        a, b, _ = self.draw_with_gcd(rng, count)
        return a, b

    def draw_with_gcd(self, rng: np.random.Generator, count: int) -> tuple[Integers, Integers, Integers]:
        k = 1 + np.searchsorted(self.cumulative, rng.random(count), side="right").astype(np.int64)
        np.minimum(k, len(self.cumulative), out=k)
        a, b = coprime_pairs(rng, self.operands, self.maximum // k)
        return a * k, b * k, k


@dataclass(frozen=True)
class WeightedGcd(GcdFirst):
    """P(k) ~ the weight of k in a file, which is read when the first pair is drawn: a trained model needs no weights."""

    weights_file: str

    @cached_property
    def outcome_probabilities(self) -> Probabilities:
        """P(1), ..., P(K), where K is the largest k of the file."""
        return read_weights(self.weights_file, self.maximum)[0]


@dataclass(frozen=True)
class ChosenGcd(GcdFirst):
    """P(k) ~ k^-alpha on 1..max_gcd; a share of the GCD are multiples of integers in focus."""

    max_gcd: int
    alpha: float
    focus: tuple[int, ...] = ()
    focus_share: float = 0.0

    @cached_property
    def outcome_probabilities(self) -> Probabilities:
        """P(1), ..., P(K)."""
        k = np.arange(1, self.max_gcd + 1)
        weights = k.astype(np.float64) ** -self.alpha
        weights /= weights.sum()
        if self.focus_share:
            multiples = np.array([k % focused == 0 for focused in self.focus])
            equal_shares = np.mean(multiples / multiples.sum(axis=1, keepdims=True), axis=0)
            weights = (1 - self.focus_share) * weights + self.focus_share * equal_shares
        return np.asarray(weights)


@dataclass(frozen=True)
class Mixture(PairDistribution):
    """A share of pairs with uniform GCD, or with a focus in these, the rest natural."""

    natural: NaturalPairs
    uniform: ChosenGcd
    share: float

    def draw(self, rng: np.random.Generator, count: int) -> tuple[Integers, Integers]:
        chosen = rng.random(count) < self.share
        a, b = self.natural.draw(rng, count)
        a[chosen], b[chosen] = self.uniform.draw(rng, int(chosen.sum()))
        return a, b


def pair_distribution(data: DataSection, maximum: int, progress: float = 0.0) -> PairDistribution:
    """The pair distribution of a configuration, at some point between the start (0) and the horizon (1) of its training."""
    operands = OPERAND_DISTRIBUTIONS[data.operands]
    natural = NaturalPairs(operands, maximum)
    if data.outcomes == "natural":
        return natural
    if data.weights_file is not None:
        return WeightedGcd(operands, maximum, data.weights_file)
    max_gcd = data.largest_gcd(maximum)
    if data.outcomes == "mixture":
        share = DEFAULT_MIXTURE_SHARE if data.mixture_share is None else data.mixture_share
        if data.final_mixture_share is not None:
            share += (data.final_mixture_share - share) * min(1.0, progress)
        return Mixture(natural, ChosenGcd(operands, maximum, max_gcd, 0.0, *focus_at(data, max_gcd, progress)), share)
    alpha = data.alpha if data.alpha is not None else EXPONENTS[data.outcomes]
    if data.final_alpha is not None:
        alpha += (data.final_alpha - alpha) * min(1.0, progress)
    return ChosenGcd(operands, maximum, max_gcd, alpha, *focus_at(data, max_gcd, progress))


def focus_at(data: DataSection, max_gcd: int, progress: float) -> tuple[tuple[int, ...], float]:
    """What is in focus at some point of the training, more and more of the list, and the share of the examples it has."""
    listed = tuple(k for k in data.focused if k <= max_gcd)
    if not listed:
        return (), 0.0
    more = max(0, len(listed) - FIRST_IN_FOCUS)
    share = DEFAULT_FOCUS_SHARE if data.focus_share is None else data.focus_share
    fading = min(1.0, max(0.0, (1 - progress) / (1 - FOCUS_FADES)))
    return listed[:FIRST_IN_FOCUS + int(more * min(1.0, progress / FOCUS_GROWN))], share * fading


def read_weights(name: str, maximum: int) -> tuple[Probabilities, str]:
    """P(1), ..., P(K) for the largest k listed in a file of weights, and the SHA-256 of the file.

    Its lines are `k,weight`, for k up to `maximum` in any order; a header `k,weight` may come first. A k that is not listed
    is never drawn. A bad line is an error that names it.
    """
    where = f"weights_file: {name}"
    try:
        data = Path(name).read_bytes()
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UserError(f"{where} is not UTF-8 text") from None
    except (OSError, ValueError) as error:
        raise UserError(f"{where} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    weights: dict[int, float] = {}
    for number, line in enumerate(text.splitlines(), 1):
        cells = [cell.strip() for cell in line.split(",")]
        if cells == [""] or (number == 1 and cells == ["k", "weight"]):
            continue
        k, weight = read_weight(cells, f"{where} line {number}", min(maximum, LARGEST_LISTED))
        if k in weights:
            raise UserError(f"{where} line {number}: {k} has a weight already")
        weights[k] = weight
    if not weights:
        raise UserError(f"{where}: no weights; each line is k,weight")
    probabilities = np.zeros(max(weights))
    probabilities[np.array(list(weights)) - 1] = np.array(list(weights.values())) / max(weights.values())
    return probabilities / probabilities.sum(), hashlib.sha256(data).hexdigest()


def read_weight(cells: list[str], where: str, largest: int) -> tuple[int, float]:
    if len(cells) != 2:
        raise UserError(f"{where}: an integer k and its weight with a comma between, got {len(cells)} cells")
    digits, text = cells
    if not (digits.isascii() and digits.isdigit() and len(digits) < 20 and 1 <= int(digits) <= largest):
        raise UserError(f"{where}: k is an integer in 1..{largest}, got '{digits[:50]}'")
    try:
        weight = float(text)
    except ValueError:
        weight = float("nan")
    if not (isfinite(weight) and weight > 0):
        raise UserError(f"{where}: the weight is a positive number, got '{text[:50]}'")
    return int(digits), weight
