"""The arithmetic of a sieve: prime powers, products, and the largest known divisor. Pure number theory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gcdformer.numbers.theory import prime_factors


def prime_power(q: int) -> tuple[int, int] | None:
    """(p, e) if q = p^e with e >= 1, else None."""
    factors = prime_factors(q)
    return next(iter(factors.items())) if len(factors) == 1 else None


def learned_prime_powers(known: Iterable[int]) -> dict[int, int]:
    """The highest power of each prime that is in the set, as a value: {2: 16, 5: 25}."""
    highest: dict[int, int] = {}
    for q in sorted(known):
        if power := prime_power(q):
            highest[power[0]] = q
    return dict(sorted(highest.items()))


def products(highest: Mapping[int, int], limit: int) -> set[int]:
    """All products, up to the limit, of powers of these primes up to their highest."""
    known = {1}
    for p, top in highest.items():
        powers, q = [1], p
        while q <= min(top, limit):
            powers.append(q)
            q *= p
        known = {d * q for d in known for q in powers if d * q <= limit}
    return known


def components(k: int) -> list[int]:
    """The prime powers whose product is k: 360 -> 8, 9, 5."""
    return [p**e for p, e in prime_factors(k).items()]


def largest_divisor(known: Iterable[int], k: int) -> int | None:
    """The largest element of the set that divides k."""
    return max((d for d in known if k % d == 0), default=None)
