"""What is on its way into D: which prime powers are being learned, and which k are excused because of them.

A k is excused only if a prime power that divides it and is not yet in D for certain is itself on its way: right for a share
of its pairs above chance, in both orders of the operands where these are known, and rising where earlier evaluations are.
Knows shares of predictions, no run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from gcdformer.explanation.sieve import largest_divisor, learned_prime_powers, prime_power, products
from gcdformer.explanation.statistics import wilson

Shares = dict[int, dict[int, float]]
"""For each k, the share of each predicted value, most frequent first."""
Earlier = Callable[[], Sequence[Shares]]
"""The shares of earlier evaluations; called only if something may be on its way."""
ORDER_DECIDES = 0.5
"""Difference between the shares of right answers for a < b and for a > b from which on the order decides, not learning."""
Membership = Mapping[int, bool | None]
"""For each k tested: in D (True), not in D (False), or undecided (None)."""


@dataclass(frozen=True)
class Transition:
    """The k excused because of a prime power on its way into D, and the products that would then belong to D."""

    learning: frozenset[int] = frozenset()
    reachable: frozenset[int] = frozenset()


def no_earlier() -> Sequence[Shares]:
    return ()


def find_transition(shares: Shares, pairs: Mapping[int, int], membership: Membership, known: frozenset[int],
                    threshold: float, earlier: Earlier, orders: Sequence[Shares]) -> Transition:
    """The k being learned: almost all their answers lie between the settled answer and larger divisors of k that are
    themselves being learned. Any other answer is a breach."""
    limit = max(shares, default=1)
    fallback = mode(shares[1]) if 1 in shares else None
    breaking = {k for k, s in shares.items()
                if mode(s) != (largest_divisor(known, k) or fallback) or s[mode(s)] < threshold}
    candidates = {q for q, s in shares.items() if prime_power(q) and any(k % q == 0 for k in breaking)
                  and s.get(q, 0.0) >= 1 - threshold
                  and wilson(round(s.get(q, 0.0) * pairs[q]), pairs[q])[0] > chance_of(q, shares)
                  and not depends_on_order(q, orders)}
    powers = on_their_way(candidates, shares, pairs, membership, threshold, earlier)
    settled = known & products(learned_prime_powers(known - powers), limit)
    moving = {k for k in shares if any(k % q == 0 for q in powers)}
    allowed = known | {k for k in moving if shares[k].get(k, 0.0) >= 1 - threshold}
    learning: set[int] = set()
    for k in moving & breaking:
        old = largest_divisor(settled, k) or 1
        between = sum(share for v, share in shares[k].items() if v > 0 and k % v == 0 and v % old == 0 and v in allowed)
        if largest_divisor(allowed, k) != old and wilson(round(between * pairs[k]), pairs[k])[1] >= threshold:
            learning.add(k)
    nearly = {q for q in powers if mode(shares[q]) == q}
    reachable = products(learned_prime_powers(known | nearly), limit) if nearly else set()
    return Transition(frozenset(learning), frozenset(reachable))


def on_their_way(candidates: set[int], shares: Shares, pairs: Mapping[int, int], membership: Membership, threshold: float,
                 earlier: Earlier) -> set[int]:
    """Those of the prime powers that are not in D for certain and, in a run, rising; or that have entered D just now."""
    history = earlier() if candidates else ()
    if not history:
        return {q for q in candidates if not membership[q]}
    return {q for q in candidates if is_rising(q, shares, pairs, history)
            and (not membership[q] or any(before.get(q, {}).get(q, 0.0) < threshold for before in history))}


def mode(shares: Mapping[int, float]) -> int:
    """The most frequent prediction, f(k). `shares` is sorted by falling share, as `PredictionTable.counts_of` returns it."""
    return next(iter(shares))


def is_rising(q: int, shares: Shares, pairs: Mapping[int, int], history: Sequence[Shares]) -> bool:
    """Whether q is right more often, beyond chance, than at the least of the earlier evaluations."""
    least = min(before.get(q, {}).get(q, 0.0) for before in history)
    return wilson(round(shares[q].get(q, 0.0) * pairs[q]), pairs[q])[0] > least


def depends_on_order(q: int, orders: Sequence[Shares]) -> bool:
    right = [shares[q].get(q, 0.0) for shares in orders if q in shares]
    return bool(right) and max(right) - min(right) > ORDER_DECIDES


def chance_of(q: int, shares: Shares) -> float:
    """How often q is predicted where it does not divide the GCD."""
    others = [s.get(q, 0.0) for k, s in shares.items() if k % q]
    return sum(others) / len(others) if others else 0.0
