"""The contract of a task: how its questions are drawn, and the answer to each.

A task of your own is one file with one subclass; `gcdformer train --task path/to/file.py:Name` trains on it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from gcdformer.numbers.distributions import OperandDistribution, PairDistribution
from gcdformer.numbers.encoding import Integers


class Task(ABC):
    """Questions are rows of `inputs` integers, answers rows of `outputs` integers."""

    name: str
    inputs: int
    outputs: int = 1
    has_gcd: bool = False
    """Whether the answer is the GCD of the two inputs, so that outcome distributions, D and the rules make sense."""

    @abstractmethod
    def draw(self, rng: np.random.Generator, count: int, operands: OperandDistribution, pairs: PairDistribution,
             maximum: int) -> Integers:
        """`count` questions, (count, inputs): operands from the operand distribution on 1..maximum, or whole pairs."""

    @abstractmethod
    def answer(self, questions: Integers) -> Integers:
        """The answers, (count, outputs)."""

    @abstractmethod
    def largest_input(self, maximum: int) -> int:
        """The largest integer a question can hold for operands up to `maximum`."""

    @abstractmethod
    def largest_output(self, maximum: int) -> int:
        """The largest integer an answer can hold."""


def draw_columns(rng: np.random.Generator, count: int, operands: OperandDistribution, maximum: int,
                 columns: int) -> Integers:
    """(count, columns) independent integers from the operand distribution on 1..maximum."""
    return np.stack([operands.draw(rng, maximum, count) for _ in range(columns)], axis=1)
