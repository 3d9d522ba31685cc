"""The greatest common divisor of two integers: the task of the paper."""

from __future__ import annotations

import numpy as np

from gcdformer.numbers.distributions import OperandDistribution, PairDistribution, fast_gcd
from gcdformer.numbers.encoding import Integers
from gcdformer.tasks.task import Task


class Gcd(Task):
    """(a, b) -> gcd(a, b)."""

    name = "gcd"
    inputs = 2
    has_gcd = True

    def draw(self, rng: np.random.Generator, count: int, operands: OperandDistribution, pairs: PairDistribution,
             maximum: int) -> Integers:
        return np.stack(pairs.draw(rng, count), axis=1)

    def answer(self, questions: Integers) -> Integers:
        return fast_gcd(questions[:, 0], questions[:, 1]).astype(np.int64)[:, None]

    def largest_input(self, maximum: int) -> int:
        return maximum

    def largest_output(self, maximum: int) -> int:
        return maximum
