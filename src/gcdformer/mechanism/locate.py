"""What one asks of a model: where each learned prime is carried, with controls and a verdict (`analyse`), and what an answer
becomes when divisibility by a prime is flipped there (`flip`).

Knows a predictor and its explanation, no run folder.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from time import monotonic

import numpy as np

from gcdformer.errors import UserError
from gcdformer.evaluation.predictor import Predictor
from gcdformer.evaluation.table import UNREADABLE, readable
from gcdformer.explanation import Explanation
from gcdformer.explanation.sieve import prime_power
from gcdformer.mechanism.analysis import PARTS, TooFewPairs, prepare
from gcdformer.mechanism.counterfactuals import Rules, Swaps, same_length
from gcdformer.mechanism.interchange import Interchange, Place
from gcdformer.mechanism.result import Example, Mechanism, Prime
from gcdformer.mechanism.subspace import Basis, overlap
from gcdformer.mechanism.verdict import raised_alarms, run_verdict
from gcdformer.numbers.encoding import Integers
from gcdformer.numbers.theory import prime_factors

Step = Callable[[int, int], None]
"""Called with how many parts are done, of how many."""
UNLEARNED = 2
"""A control: how many primes that are not learned are tried, the smallest ones, which occur most often."""
CANDIDATES = 20_000
"""Operands that are tried as the source of the values."""


def analyse(predictor: Predictor, explanation: Explanation, *, pairs: int, seed: int = 0,
            on_step: Step = lambda done, total: None) -> Mechanism:
    """Where each learned prime is carried, with controls."""
    began = monotonic()
    learned = {p: [q for q in sorted(explanation.labels) if q > p and (prime_power(q) or (0, 0))[0] == p]
               for p in explanation.prime_powers}
    parts = count(1)
    total = sum(PARTS + len(powers) for powers in learned.values()) + UNLEARNED
    analysis = prepare(predictor, explanation, pairs, seed, lambda: on_step(next(parts), total))
    primes: list[Prime] = []
    bases: list[Basis] = []
    skipped: dict[int, str] = {}
    for p, powers in learned.items():
        try:
            prime, basis = analysis.prime(p, powers)
        except TooFewPairs as few:
            skipped[p] = str(few)
            continue
        primes.append(prime)
        bases.append(basis)
    unlearned = []
    for p in choose_unlearned(list(learned), analysis.layout.largest) if primes else []:
        tried = analysis.unlearned(p, primes)
        unlearned += [] if tried is None else [tried]
        analysis.tick()
    alarms = raised_alarms(primes, unlearned)
    return Mechanism(base=explanation.base, D=explanation.correct, family=family_of(analysis.exchange),
                     positions=analysis.layout.names,
                     sites=analysis.exchange.sites.encoder + analysis.exchange.sites.decoder, primes=primes, skipped=skipped,
                     overlap=overlaps(primes, bases), unlearned=unlearned, alarms=alarms,
                     verdict=run_verdict(primes, alarms), seed=seed, seconds=round(monotonic() - began, 1))


def overlaps(primes: Sequence[Prime], bases: Sequence[Basis]) -> list[list[float | None]]:
    """The overlap of every two subspaces at one site."""
    def cell(i: int, j: int) -> float | None:
        return overlap(bases[i], bases[j]) if bases[i].keys() == bases[j].keys() else None

    return [[cell(i, j) for j in range(len(primes))] for i in range(len(primes))]


def family_of(exchange: Interchange) -> str:
    return "recurrent" if exchange.sites.final else "transformer"


def choose_unlearned(learned: Sequence[int], largest: int) -> list[int]:
    """The smallest primes that are not learned."""
    primes = (p for p in range(2, max(largest // 4, 3)) if prime_factors(p) == {p: 1})
    return [p for p, _ in zip((p for p in primes if p not in learned), range(UNLEARNED), strict=False)]


def flip(exchange: Interchange, rules: Rules, prime: Prime, a: int, b: int, rng: np.random.Generator) -> Example:
    """Run (a, b), but at the places of p put in the values of an operand that differs from a in divisibility by p alone."""
    pairs = np.array([[a, b]], dtype=np.int64)
    exchange.problem.check_questions(pairs)
    label = int(rules.model.labels_to(np.gcd(pairs[:, 0], pairs[:, 1]))[0])
    wanted = label // prime.p if label % prime.p == 0 else label * prime.p
    if wanted not in (1, *rules.model.labels) or b % wanted:
        raise UserError(f"{prime.p}: the rules do not look at it for ({a}, {b}): it does not divide {b} often enough")
    others = same_length(np.full(CANDIDATES, a), np.full(CANDIDATES, wanted), exchange.layout, rng)
    final = prime.whole.site.startswith("encoder.final")
    mixed = others if final else np.full(CANDIDATES, a)
    for position in () if final else prime.whole.positions:
        side, j = exchange.layout.digit_of(position) or (1, 0)
        if side == 0:
            place = exchange.layout.base**j
            mixed = mixed + (others // place % exchange.layout.base - mixed // place % exchange.layout.base) * place
    good = others != a
    for operand in (others, mixed):
        good &= rules.model.labels_to(np.gcd(operand, b)) == wanted
    if not good.any():
        raise UserError(f"{prime.p}: no operand of as many digits as {a} differs from it in divisibility by {prime.p} alone")
    other = int(others[good][0])
    before, after = (answer_of(rules, operand, b) for operand in (a, other))
    swaps = Swaps(pairs, np.array([[other, b]], dtype=np.int64), before, after)
    answers = exchange.answers(swaps, [Place(prime.whole.site, tuple(prime.whole.positions))])[0].answers
    answer = int(answers[0]) if len(answers) else UNREADABLE
    return Example(a, b, other, int(before[0]), int(after[0]), readable(answer))


def answer_of(rules: Rules, a: int, b: int) -> Integers:
    return rules.model.answers_to(np.array([np.gcd(a, b)], dtype=np.int64))
