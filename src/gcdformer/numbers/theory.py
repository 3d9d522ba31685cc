"""Exact theory of the GCD: how many pairs have GCD k, how likely k is under a distribution, and how often the rule model is
right. Sums only; nothing is drawn.

Of the M^2 pairs of 1..M, 2*Phi(M div k) - 1 have GCD k, where Phi is the sum of Euler's totient. The rule model is right
exactly on the pairs whose GCD is in D, so its accuracy is a sum of these counts. For operands drawn independently from any
distribution P(gcd = k) = sum over d of mu(d) P(kd divides a)^2, by Möbius inversion. Knows distributions, no run, no model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from math import pi, prod

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

SIEVE_LIMIT = 1_000_000
LARGEST_EXACT, LEAST_TERMS = 1_000_000, 20_000
"""M up to which the sum over d is exact, and its terms above: what is left out is less than 1/LEAST_TERMS of it."""
LARGEST_TABLE = 2**23
"""The largest M for which P(d divides a) is summed from P(1), ..., P(M)."""


def totient_sieve(limit: int) -> Integers:
    """Phi(0), ..., Phi(limit)."""
    totients = np.arange(limit + 1, dtype=np.int64)
    for p in range(2, limit + 1):
        if totients[p] == p:
            totients[p::p] -= totients[p::p] // p
    return np.cumsum(totients)


@lru_cache(maxsize=8)
def totient_sums(maximum: int) -> Callable[[int], int]:
    """Phi as a function on 0..maximum: a sieve below, Phi(n) = n(n+1)/2 - sum over d > 1 of Phi(n div d) above."""
    sieve = totient_sieve(min(maximum, SIEVE_LIMIT))
    known: dict[int, int] = {}

    def phi(n: int) -> int:
        if n < len(sieve):
            return int(sieve[n])
        if n not in known:
            total, d = n * (n + 1) // 2, 2
            while d <= n:
                quotient = n // d
                following = n // quotient + 1
                total -= (following - d) * phi(quotient)
                d = following
            known[n] = total
        return known[n]

    return phi


def count_pairs(maximum: int, k: int) -> int:
    """How many of the M^2 pairs of 1..M have GCD k."""
    return 2 * totient_sums(maximum)(maximum // k) - 1 if k <= maximum else 0


def exact_accuracy(known: Iterable[int], maximum: int) -> float:
    """Percent of the pairs of 1..M whose GCD is in D."""
    return 100.0 * sum(count_pairs(maximum, k) for k in set(known)) / maximum**2


def limit_accuracy(known: Iterable[int]) -> float:
    """Percent as M grows: P(gcd = k) tends to 6 / (pi^2 k^2)."""
    return 100.0 * 6 / pi**2 * sum(1 / k**2 for k in set(known))


def prime_factors(n: int) -> dict[int, int]:
    """The primes that divide n, with their exponents."""
    factors: dict[int, int] = {}
    p = 2
    while p * p <= n:
        while n % p == 0:
            factors[p] = factors.get(p, 0) + 1
            n //= p
        p += 1
    if n > 1:
        factors[n] = factors.get(n, 0) + 1
    return factors


def base_limit_accuracy(base: int) -> float:
    """Percent, in the limit, of the rule model that knows all products of the primes of B: the right formula."""
    return 100.0 * 6 / pi**2 * prod(p**2 / (p**2 - 1) for p in prime_factors(base))


def paper_formula(base: int) -> float:
    """The accuracy that the paper's appendix gives for base B, in percent.

    It agrees with the right one for one prime. For several it does not (base 15: 80.9 instead of 71.2, base 30: 94.1
    instead of 95.0): it treats the misses of each prime as independent and rescales them.
    """
    return combine_as_paper([p**2 / (p**2 - 1) for p in prime_factors(base)])


def paper_formula_for_set(known: Iterable[int]) -> float:
    """The same combination for a set D: each prime counts with the powers of it that are in D."""
    members = set(known)
    primes = sorted({p for k in members for p in prime_factors(k)})
    sums = []
    for p in primes:
        powers = [p**i for i in range(63) if p**i <= max(members)]
        sums.append(sum(1 / q**2 for q in powers if q == 1 or q in members))
    return combine_as_paper(sums)


def combine_as_paper(sums: list[float]) -> float:
    """1 - (pi^2/6)^(n-1) * product of the misses, in percent; `sums` holds one sum over p^-2i for each prime."""
    if not sums:
        return 100.0 * 6 / pi**2
    misses = [1 - 6 / pi**2 * s for s in sums]
    return 100.0 * (1 - (pi**2 / 6) ** (len(misses) - 1) * prod(misses))


def outcome_probabilities(pairs: PairDistribution, largest: int) -> Probabilities:
    """P(gcd = 1), ..., P(gcd = largest); what is missing to 1 belongs to larger GCD."""
    if isinstance(pairs, NaturalPairs):
        return natural_outcomes(pairs.operands, pairs.maximum, largest)
    if isinstance(pairs, GcdFirst):
        probabilities = np.zeros(largest)
        drawn = pairs.outcome_probabilities[:largest]
        probabilities[:len(drawn)] = drawn
        return probabilities
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
    probabilities = np.zeros(largest)
    for k in range(1, min(largest, maximum) + 1):
        last = min(maximum // k, max(LARGEST_EXACT // k, LEAST_TERMS))
        count = int(np.searchsorted(squarefree, last, side="right"))
        multiples = k * squarefree[:count]
        shares = (maximum // multiples) / maximum if table is None else table[multiples]
        probabilities[k - 1] = np.dot(signed[:count], shares * shares)
    probabilities.flags.writeable = False
    return probabilities


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
