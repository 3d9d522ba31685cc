"""Exact theory of GCD counts, and the accuracy of the rule model that knows a set D.

Of the M^2 pairs of 1..M, 2*Phi(M div k) - 1 have GCD k, where Phi is the sum of Euler's totient. The rule model
is right exactly on the pairs whose GCD is in D, so its accuracy is a sum of these counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from math import pi, prod

import numpy as np

from gcdformer.numbers.encoding import Integers

SIEVE_LIMIT = 1_000_000


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


def products_of_primes(primes: Iterable[int], maximum: int) -> list[int]:
    """All products of powers of these primes up to the maximum, sorted."""
    known = [1]
    for p in primes:
        power = 1
        fresh = []
        while power * p <= maximum:
            power *= p
            fresh += [k * power for k in known if k * power <= maximum]
        known += fresh
    return sorted(known)


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
