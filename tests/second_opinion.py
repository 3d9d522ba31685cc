"""A second opinion on certificates: models whose true behaviour is known, and a judge of them by brute force.

Knows nothing of the package: divisors, products, classes and shares are computed here once more, slowly. A model is a share
of noise and a function of a pair; the judge looks at its answers to pairs of his own, without the noise, which he knows. He
says yes or no, or nothing where the truth is so near a threshold that a sample may fall on either side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import gcd
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[np.int64]]
Answer = Callable[[Array, Array, Array], Array]
"""From a, b and their GCD to answers."""
Shares = dict[int, dict[int, float]]
"""For each k the share of each answer."""
K = range(1, 101)
MAXIMUM = 1_000_000
NO_INTEGER = int(np.iinfo(np.int64).min)
PRIMES = [p for p in K if p > 1 and all(p % d for d in range(2, p))]
POWERS = [q for p in PRIMES for q in (p**e for e in range(1, 7)) if q <= 100]


@dataclass(frozen=True)
class Model:
    kind: str
    base: int
    noise: float
    """Share of answers that are a random integer of 1..100."""
    answer: Answer


def pairs_for_each_k(rng: np.random.Generator, count: int) -> Array:
    """Uniform pairs of 1..M, as many for every GCD."""
    rows = []
    for k in K:
        found = 0
        while found < count:
            drawn = rng.integers(1, MAXIMUM // k, (2 * count, 2), endpoint=True)
            drawn = drawn[np.gcd(drawn[:, 0], drawn[:, 1]) == 1][:count - found]
            rows.append(k * drawn)
            found += len(drawn)
    return np.concatenate(rows)


# The generator

def closed_set(rng: np.random.Generator, base: int) -> dict[int, int]:
    """A highest power for each prime of the base, and sometimes for a few others."""
    primes = [p for p in PRIMES if base % p == 0]
    others = [p for p in (2, 3, 5, 7, 11, 13) if base % p]
    primes += list(rng.choice(others, int(rng.integers(0, 3)), replace=False))
    return {int(p): int(rng.choice([p**e for e in range(1, 7) if p**e <= 64])) for p in primes}


def members(highest: dict[int, int]) -> list[int]:
    return [d for d in K if all(any(top % q == 0 for p, top in highest.items() if q % p == 0) for q in factors(d))]


def factors(n: int) -> list[int]:
    """The prime powers that n is the product of."""
    return [max(q for q in POWERS if q % p == 0 and n % q == 0) for p in PRIMES if n % p == 0]


def by_table(values: list[int]) -> Answer:
    """Answers that depend on the GCD alone; a sieve's for larger GCD than 100 does not matter."""
    table = np.array([0, *values])
    return lambda a, b, k: table[np.minimum(k, 100)]


def sieve(known: list[int]) -> list[int]:
    return [max((d for d in known if k % d == 0), default=1) for k in K]


def chosen(a: Array, b: Array, share: float) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """A share of all pairs that looks random and is a function of the pair."""
    mixed = (a * 2_654_435_761 + b * 40_503 + (a % 1013) * (b % 997) * 7919) % 1_000_003
    return np.asarray(mixed < share * 1_000_003)


def either(condition: Callable[[Array, Array], Any], first: Answer, second: Answer) -> Answer:
    return lambda a, b, k: np.where(condition(a, b), first(a, b, k), second(a, b, k))


def truth(a: Array, b: Array, k: Array) -> Array:
    return k


def models(count: int, seed: int) -> Iterator[Model]:
    """Models of every kind in turn."""
    makers = [noisy, ordered, sized, memorising, classes, mixture, not_closed, near_miss, grown, other]
    for number in range(count):
        rng = np.random.default_rng([seed, number])
        base = int(rng.choice([2, 6, 10, 12, 15, 30, 210, 1000]))
        yield makers[number % len(makers)](rng, base)


def noisy(rng: np.random.Generator, base: int) -> Model:
    noise = float(rng.choice([0, 0, 0.002, 0.005, 0.008, 0.04, 0.06, 0.2, 0.5]))
    return Model("sieve with noise", base, noise, by_table(sieve(members(closed_set(rng, base)))))


def ordered(rng: np.random.Generator, base: int) -> Model:
    first, second = (by_table(sieve(members(closed_set(rng, base)))) for _ in range(2))
    return Model("order-dependent", base, 0.0, either(lambda a, b: a < b, first, second))


def sized(rng: np.random.Generator, base: int) -> Model:
    limit = int(rng.choice([100, 1000, 5000, 100_000, 300_000, 500_000]))
    rule = by_table(sieve(members(closed_set(rng, base))))
    return Model("size-dependent", base, 0.0, either(lambda a, b: np.maximum(a, b) < limit, truth, rule))


def memorising(rng: np.random.Generator, base: int) -> Model:
    share = float(rng.choice([0.001, 0.004, 0.008, 0.05, 0.15, 0.5, 0.9]))
    rule = by_table(sieve(members(closed_set(rng, base))))
    return Model("memorising", base, 0.0, either(lambda a, b: chosen(a, b, share), truth, rule))


def classes(rng: np.random.Generator, base: int) -> Model:
    labels = sieve(members(closed_set(rng, base)))
    groups = {e: [k for k in K if labels[k - 1] == e] for e in labels}
    picked = {e: int(rng.choice(group)) for e, group in groups.items()}
    if rng.random() < 0.3:  # one class is predicted by an element of another
        first, second = rng.choice(sorted(groups), 2) if len(groups) > 1 else (1, 1)
        picked[int(first)] = picked[int(second)]
    return Model("classes", base, float(rng.choice([0, 0.005, 0.05])), by_table([picked[e] for e in labels]))


def mixture(rng: np.random.Generator, base: int) -> Model:
    """A prime power is on its way: a share of pairs gets the new answer already."""
    highest = closed_set(rng, base)
    p = int(rng.choice([p for p in PRIMES[:12] if highest.get(p, 1) * p <= 100]))
    old, new = sieve(members(highest)), sieve(members(highest | {p: highest.get(p, 1) * p}))
    share = float(rng.integers(0, 51)) / 50
    return Model("mixture", base, 0.0, either(lambda a, b: chosen(a, b, share), by_table(new), by_table(old)))


def not_closed(rng: np.random.Generator, base: int) -> Model:
    known = members(closed_set(rng, base))
    products = [d for d in known if len(factors(d)) > 1]
    if products and rng.random() < 0.5:
        known.remove(int(rng.choice(products)))
    else:
        known.append(int(rng.choice([d for d in K if d not in known and len(factors(d)) > 1])))
    return Model("D not closed", base, 0.0, by_table(sieve(known)))


def near_miss(rng: np.random.Generator, base: int) -> Model:
    """A sieve but for one k: a wrong answer, one that is no integer, or a second answer for a share of its pairs."""
    values = sieve(members(closed_set(rng, base)))
    k = int(rng.integers(1, 101))
    wrong = list(values)
    wrong[k - 1] = int(rng.choice([v for v in (1, 2, 3, 5, 7, 11, 77, 101, NO_INTEGER) if v != values[k - 1]]))
    share = float(rng.choice([0.01, 0.3, 0.5, 0.7, 1, 1]))
    return Model("near miss", base, 0.0, either(lambda a, b: chosen(a, b, share), by_table(wrong), by_table(values)))


def grown(rng: np.random.Generator, base: int) -> Model:
    """A product moves although its prime power does not: a coin flip that nothing excuses."""
    highest = closed_set(rng, base)
    values = sieve(members(highest))
    far = [k for k in K if values[k - 1] < k and len(factors(k)) > 1]
    k = int(rng.choice(far))
    better = list(values)
    better[k - 1] = k
    share = float(rng.choice([0.3, 0.5, 0.7]))
    return Model("a product alone", base, 0.0, either(lambda a, b: chosen(a, b, share), by_table(better), by_table(values)))


def other(rng: np.random.Generator, base: int) -> Model:
    """Constants, random functions of the GCD, the truth, answers of one operand, unreadable ones."""
    value = int(rng.choice([1, 7, 200, NO_INTEGER]))
    found: list[Answer] = [by_table([value] * 100), by_table(rng.integers(1, 101, 100).tolist()), truth,
                           lambda a, b, k: np.minimum(a, 100), by_table([k if k % 3 else 3 for k in K])]
    return Model("other", base, 0.0, found[int(rng.integers(len(found)))])


# The judge

def shares_of(model: Model, pairs: Array) -> Shares:
    """For each k the share of each answer."""
    a, b = pairs.T
    gcds = np.gcd(a, b)
    answers = model.answer(a, b, gcds)
    coded = np.where(answers == NO_INTEGER, 0, answers)
    cells, counts = np.unique(gcds * (MAXIMUM + 1) + coded, return_counts=True)
    found: dict[int, dict[int, float]] = {k: dict.fromkeys(K, model.noise / 100) if model.noise else {} for k in K}
    each = np.bincount(gcds, minlength=101).tolist()
    for cell, count in zip(cells.tolist(), counts.tolist(), strict=True):
        k, value = divmod(cell, MAXIMUM + 1)
        value = value or NO_INTEGER
        found[k][value] = found[k].get(value, 0.0) + (1 - model.noise) * count / each[k]
    return found


def all_products(known: set[int]) -> set[int]:
    """All products of powers of primes of which a power as high is known."""
    return {d for d in K if all(any(r in known and r % q == 0 for r in POWERS) for q in factors(d))}


def fidelity(shares: Shares, rule: dict[int, int]) -> tuple[float, float]:
    """Mean over the k, and over natural pairs."""
    agree = {k: 0.0 if rule[k] == NO_INTEGER else shares[k].get(rule[k], 0.0) for k in K}
    weights = {k: 1 / k**2 for k in K}
    return sum(agree.values()) / 100, sum(weights[k] * agree[k] for k in K) / sum(weights.values())


def follows_a_sieve(shares: Shares, orders: list[Shares]) -> bool | None:
    right = {k: shares[k].get(k, 0.0) for k in K}
    if any(0.82 < right[k] < 0.96 for k in K):
        return None
    known = {k for k in K if right[k] >= 0.9}
    if 1 not in known or known != all_products(known):
        return False
    rule = {k: max(d for d in known if k % d == 0) for k in K}
    least = min(fidelity(shares, rule))
    if least < 0.972:
        return False
    apart = {q: abs(orders[0][q].get(q, 0.0) - orders[1][q].get(q, 0.0)) for q in POWERS}
    coming = {q for q in POWERS if q not in known and right[q] > 0.15 and apart[q] < 0.4}
    if any(0.4 < apart[q] < 0.6 for q in POWERS):
        return None
    for k in K:
        agree = shares[k].get(rule[k], 0.0)
        if agree >= 0.96:
            continue
        moving = any(k % q == 0 for q in coming)
        between = sum(s for v, s in shares[k].items() if 0 < v <= k and k % v == 0 and v % rule[k] == 0)
        if not (moving and between > 0.99):
            return None if agree > 0.8 else False
    if any(0.04 < right[q] <= 0.15 for q in POWERS if q not in known):
        return None
    return True if least > 0.988 else None


def follows_classes(shares: Shares) -> bool | None:
    usual = {k: max(shares[k], key=lambda v: shares[k][v]) for k in K}
    labels = {min(j for j in K if usual[j] == usual[k]) for k in K}
    label = {k: max(e for e in labels if k % e == 0) for k in K}
    if not 1 < len(labels) < 90 or any(usual[k] != usual[label[k]] for k in K) or labels != all_products(labels):
        return False
    if any(usual[k] < 1 or max(e for e in labels if usual[k] % e == 0) != label[k] for k in K):
        return False
    moved = sum(usual[k] != label[k] for k in K)
    least = min(fidelity(shares, usual))
    if moved <= 3 or least < 0.972:
        return False
    return True if least > 0.988 and all(shares[k][usual[k]] > 0.96 for k in K) else None


def judge(model: Model, pairs: Array) -> bool | None:
    """Whether a certificate would be true; None where a sample may tell either."""
    shares = shares_of(model, pairs)
    best = {k: max(shares[k], key=lambda v: shares[k][v]) for k in K}
    if min(fidelity(shares, best)) < 0.972:
        return False  # no rule whatever agrees often enough
    ascending = pairs[:, 0] < pairs[:, 1]
    orders = [shares_of(model, pairs[part]) for part in (ascending, ~ascending)]
    as_sieve, as_classes = follows_a_sieve(shares, orders), follows_classes(shares)
    if as_sieve or as_classes:
        return True
    return None if as_sieve is None or as_classes is None else False


assert gcd(12, 18) == 6 and members({2: 4, 5: 5}) == [1, 2, 4, 5, 10, 20]
