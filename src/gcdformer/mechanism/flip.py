"""Flip divisibility by p of one operand of one question, in the network: what the rules predict, and what comes out.

For people who ask a model: the places are those that an analysis found.
"""

from __future__ import annotations

import numpy as np

from gcdformer.errors import UserError
from gcdformer.evaluation.table import UNREADABLE
from gcdformer.explanation.rules import readable
from gcdformer.mechanism.counterfactuals import Rules, Swaps, same_length
from gcdformer.mechanism.interchange import Interchange, Place
from gcdformer.mechanism.result import Example, Prime
from gcdformer.numbers.encoding import Integers

CANDIDATES = 20_000
"""Operands that are tried as the source of the values."""


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
