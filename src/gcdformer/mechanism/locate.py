"""The whole analysis of a model: every learned prime and power, the controls, the verdict.

Knows a predictor and its explanation, no run folder.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from time import monotonic

from gcdformer.evaluation.predictor import Predictor
from gcdformer.explanation import Explanation
from gcdformer.explanation.sieve import prime_power
from gcdformer.mechanism.analysis import PARTS, TooFewPairs, prepare
from gcdformer.mechanism.controls import UNLEARNED, choose_unlearned
from gcdformer.mechanism.interchange import Interchange
from gcdformer.mechanism.result import Mechanism, Prime
from gcdformer.mechanism.subspace import Basis, overlap
from gcdformer.mechanism.verdict import raised_alarms, run_verdict

Step = Callable[[int, int], None]
"""Called with how many parts are done, of how many."""


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
            found, basis = analysis.prime(p, powers)
        except TooFewPairs as few:
            skipped[p] = str(few)
            continue
        primes.append(found)
        bases.append(basis)
    unlearned = []
    for p in choose_unlearned(list(learned), analysis.layout.largest) if primes else []:
        tried = analysis.unlearned(p, primes)
        unlearned += [] if tried is None else [tried]
        analysis.tick()
    alarms = raised_alarms(primes, unlearned)
    return Mechanism(explanation.base, explanation.correct, family_of(analysis.exchange), analysis.layout.names,
                     analysis.exchange.sites.encoder + analysis.exchange.sites.decoder, primes, skipped,
                     overlaps(primes, bases), unlearned, alarms, run_verdict(primes, alarms), seed,
                     round(monotonic() - began, 1))


def overlaps(primes: Sequence[Prime], bases: Sequence[Basis]) -> list[list[float | None]]:
    """The overlap of every two subspaces at one site."""
    def cell(i: int, j: int) -> float | None:
        return overlap(bases[i], bases[j]) if bases[i].keys() == bases[j].keys() else None

    return [[cell(i, j) for j in range(len(primes))] for i in range(len(primes))]


def family_of(exchange: Interchange) -> str:
    return "recurrent" if exchange.sites.final else "transformer"
