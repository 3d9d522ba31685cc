"""The five tasks on positive rational numbers, with questions drawn as in the paper's appendix."""

from __future__ import annotations

import numpy as np

from gcdformer.numbers.distributions import OperandDistribution, PairDistribution
from gcdformer.numbers.encoding import Integers
from gcdformer.tasks.task import Task, draw_columns


def lowest_terms(numerators: Integers, denominators: Integers) -> Integers:
    """(n, 2): numerator and denominator, each divided by their GCD."""
    common = np.gcd(numerators, denominators)
    return np.stack([numerators // common, denominators // common], axis=1)


class FourOperands(Task):
    """A question is two fractions a/b, c/d with all four integers from the operand distribution."""

    inputs = 4

    def draw(self, rng: np.random.Generator, count: int, operands: OperandDistribution, pairs: PairDistribution,
             maximum: int) -> Integers:
        return draw_columns(rng, count, operands, maximum, 4)

    def largest_input(self, maximum: int) -> int:
        return maximum


class Comparison(FourOperands):
    """(a, b, c, d) -> 1 if a/b < c/d, else 0."""

    name = "comparison"

    def answer(self, questions: Integers) -> Integers:
        if questions.size and questions.max() >= 2**31:
            questions = questions.astype(object)  # products of two such integers need Python's own
        a, b, c, d = questions.T
        return np.asarray(a * d < c * b, dtype=np.int64)[:, None]

    def largest_output(self, maximum: int) -> int:
        return 1


class Addition(FourOperands):
    """(a, b, c, d) -> a/b + c/d in lowest terms."""

    name = "addition"
    outputs = 2

    def answer(self, questions: Integers) -> Integers:
        a, b, c, d = questions.T
        return lowest_terms(a * d + c * b, b * d)

    def largest_output(self, maximum: int) -> int:
        return 2 * maximum**2


class Multiplication(FourOperands):
    """(a, b, c, d) -> a/b times c/d in lowest terms."""

    name = "multiplication"
    outputs = 2

    def answer(self, questions: Integers) -> Integers:
        a, b, c, d = questions.T
        return lowest_terms(a * c, b * d)

    def largest_output(self, maximum: int) -> int:
        return maximum**2


class Division(Task):
    """(a, b) -> a div b, with a = p n + m, b = n, m < n, so that the answer is p."""

    name = "division"
    inputs = 2

    def draw(self, rng: np.random.Generator, count: int, operands: OperandDistribution, pairs: PairDistribution,
             maximum: int) -> Integers:
        p = operands.draw(rng, maximum, count)
        m = operands.draw(rng, maximum, count)
        n = operands.draw(rng, maximum, count)
        left = np.flatnonzero(m >= n)
        while len(left):
            m[left] = operands.draw(rng, maximum, len(left))
            n[left] = operands.draw(rng, maximum, len(left))
            left = left[m[left] >= n[left]]
        return np.stack([p * n + m, n], axis=1)

    def answer(self, questions: Integers) -> Integers:
        return (questions[:, 0] // questions[:, 1])[:, None]

    def largest_input(self, maximum: int) -> int:
        return maximum * maximum + maximum

    def largest_output(self, maximum: int) -> int:
        return maximum


class Simplification(Task):
    """(a, b) -> a/b in lowest terms, with a, b a common multiple p of a reduced fraction."""

    name = "simplification"
    inputs = 2
    outputs = 2

    def draw(self, rng: np.random.Generator, count: int, operands: OperandDistribution, pairs: PairDistribution,
             maximum: int) -> Integers:
        m, n, p = draw_columns(rng, count, operands, maximum, 3).T
        return np.asarray(lowest_terms(m, n) * p[:, None])

    def answer(self, questions: Integers) -> Integers:
        return lowest_terms(questions[:, 0], questions[:, 1])

    def largest_input(self, maximum: int) -> int:
        return maximum * maximum

    def largest_output(self, maximum: int) -> int:
        return maximum
