"""How likely each GCD is under a distribution of pairs: exact sums, nothing is drawn.

For independent operands P(gcd = k) = sum over d of mu(d) P(kd divides a)^2, by Möbius inversion. Distributions that draw the
GCD first have their probabilities at hand; a mixture mixes both. Knows distributions, no run and no model.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from gcdformer.errors import UserError
from gcdformer.numbers.distributions import (
    GcdFirst,
    Mixture,
    NaturalPairs,
    OperandDistribution,
    PairDistribution,
    Probabilities,
    UniformOperands,
)
from gcdformer.numbers.encoding import Integers

LARGEST_EXACT, LEAST_TERMS = 1_000_000, 20_000
"""M up to which the sum over d is exact, and its terms above: what is left out is less than 1/LEAST_TERMS of it."""
LARGEST_TABLE = 2**23
"""The largest M for which P(d divides a) is summed from P(1), ..., P(M)."""


def outcome_probabilities(pairs: PairDistribution, largest: int) -> Probabilities:
    """P(gcd = 1), ..., P(gcd = largest); what is missing to 1 belongs to larger GCD."""
    if isinstance(pairs, NaturalPairs):
        return natural_outcomes(pairs.operands, pairs.maximum, largest)
    if isinstance(pairs, GcdFirst):
        found = np.zeros(largest)
        drawn = pairs.outcome_probabilities[:largest]
        found[:len(drawn)] = drawn
        return found
    if isinstance(pairs, Mixture):
        natural, uniform = (outcome_probabilities(part, largest) for part in (pairs.natural, pairs.uniform))
        return np.asarray((1 - pairs.share) * natural + pairs.share * uniform)
    raise UserError(f"prior: the probabilities of the GCD under {type(pairs).__name__} are not known")


@lru_cache(maxsize=8)
def natural_outcomes(operands: OperandDistribution, maximum: int, largest: int) -> Probabilities:
    """The same for a and b drawn independently from an operand distribution on 1..M."""
    signs = mobius(min(maximum, LARGEST_EXACT))
    squarefree = np.flatnonzero(signs)
    signed = signs[squarefree].astype(np.float64)
    table = None if isinstance(operands, UniformOperands) else divisible(operands, maximum)
    found = np.zeros(largest)
    for k in range(1, min(largest, maximum) + 1):
        last = min(maximum // k, max(LARGEST_EXACT // k, LEAST_TERMS))
        count = int(np.searchsorted(squarefree, last, side="right"))
        multiples = k * squarefree[:count]
        shares = (maximum // multiples) / maximum if table is None else table[multiples]
        found[k - 1] = np.dot(signed[:count], shares * shares)
    found.flags.writeable = False
    return found


def divisible(operands: OperandDistribution, maximum: int) -> Probabilities:
    """P(d divides a) for d = 0..M (0 for d = 0): M ln M additions, by d up to sqrt(M), by multiplier above."""
    if maximum > LARGEST_TABLE:
        raise UserError(f"max: the probabilities of the GCD of such operands are known up to {LARGEST_TABLE}, not {maximum}")
    single = np.concatenate(([0.0], operands.probabilities(maximum)))
    shares = np.zeros(maximum + 1)
    root = int(maximum**0.5)
    for d in range(1, root + 1):
        shares[d] = single[d::d].sum()
    for multiplier in range(1, maximum // (root + 1) + 1):
        last = maximum // multiplier
        shares[root + 1:last + 1] += single[multiplier * (root + 1):multiplier * last + 1:multiplier]
    return shares


def mobius(limit: int) -> Integers:
    """mu(0), ..., mu(limit), with mu(0) = 0: 0 if a square divides n, else -1 to the number of its primes."""
    signs = np.ones(limit + 1, dtype=np.int64)
    products = np.ones(limit + 1, dtype=np.int64)
    for p in range(2, int(limit**0.5) + 1):
        if products[p] == 1:  # no smaller prime divides it
            signs[p::p] *= -1
            products[p::p] *= p
            signs[p * p::p * p] = 0
    signs[products < np.arange(limit + 1)] *= -1  # the one prime above sqrt(limit) that is left
    signs[0] = 0
    return signs
