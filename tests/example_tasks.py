"""A task of your own: one file, one class, four methods.

    gcdformer train --task tests/example_tasks.py:ModularAddition --base 10 --max 1000 --out runs/modular

Questions and answers are arrays of int64, a row for each example. `draw` takes all its randomness from `rng`, so
that the examples of a run can be replayed; `largest_input` and `largest_output` size the model's positions.
The file is yours and is executed as it is: keep it with the run, which notices when it changes.
"""

from __future__ import annotations

import numpy as np

from gcdformer import Task
from gcdformer.numbers.distributions import OperandDistribution, PairDistribution
from gcdformer.numbers.encoding import Integers


class ModularAddition(Task):
    """(a, b) -> (a + b) mod 67."""

    name = "modular-addition"
    inputs = 2
    outputs = 1
    modulus = 67

    def draw(self, rng: np.random.Generator, count: int, operands: OperandDistribution, pairs: PairDistribution,
             maximum: int) -> Integers:
        """Both operands from the run's operand distribution on 1..maximum (`--operands`, `--max`)."""
        return np.stack([operands.draw(rng, maximum, count), operands.draw(rng, maximum, count)], axis=1)

    def answer(self, questions: Integers) -> Integers:
        return np.asarray(questions.sum(axis=1, keepdims=True) % self.modulus)

    def largest_input(self, maximum: int) -> int:
        return maximum

    def largest_output(self, maximum: int) -> int:
        return self.modulus - 1
