"""A problem: a task in a base with its laws, as one object that draws, answers, encodes and decodes.

Everything below it (models, evaluation, training) sees token rows; only this object knows both sides.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gcdformer.config import LARGEST_INTEGER, Config
from gcdformer.errors import UserError
from gcdformer.numbers.encoding import BEGIN, END, Integers, Mask, Vocabulary, decode, encode, longest_row
from gcdformer.numbers.laws import OPERAND_LAWS, OperandLaw, PairLaw, pair_law
from gcdformer.tasks import Task, find_task


@dataclass(frozen=True)
class Batch:
    """Token rows of some examples: inputs (n, S) and targets (n, T), padded; targets go from BEGIN to END."""

    inputs: Integers
    input_lengths: Integers
    targets: Integers
    target_lengths: Integers

    @property
    def target_tokens(self) -> int:
        """Tokens that have to be predicted."""
        return int(self.target_lengths.sum()) - len(self.target_lengths)

    def part(self, first: int, last: int) -> Batch:
        """Some of the rows, trimmed to their longest."""
        input_lengths, target_lengths = self.input_lengths[first:last], self.target_lengths[first:last]
        return Batch(self.inputs[first:last, :int(input_lengths.max(initial=0))], input_lengths,
                     self.targets[first:last, :int(target_lengths.max(initial=0))], target_lengths)


@dataclass(frozen=True)
class Problem:
    """A task, a base, a maximum and the laws of the training examples."""

    task: Task
    base: int
    maximum: int
    operands: OperandLaw
    pairs: PairLaw

    @classmethod
    def of(cls, config: Config) -> Problem:
        task = find_task(config.task.task)
        maximum, base = config.task.maximum, config.task.base
        if not task.has_gcd and config.data.outcomes != "natural":
            raise UserError(f"outcomes must be 'natural' for task '{task.name}': it has no GCD to choose, "
                            f"got '{config.data.outcomes}'")
        for side, largest in (("questions", task.largest_input(maximum)), ("answers", task.largest_output(maximum))):
            if largest > LARGEST_INTEGER:
                raise UserError(f"max: {maximum} is too large for task '{task.name}': its {side} reach "
                                f"{largest}, above 2^62")
        problem = cls(task, base, maximum, OPERAND_LAWS[config.data.operands], pair_law(config.data, maximum))
        positions, longest = config.model.positions, max(problem.longest_input, problem.longest_target)
        if positions is not None and positions < longest:
            raise UserError(f"positions: at least {longest} for this task, base and max, got {positions}")
        return problem

    @property
    def vocabulary(self) -> Vocabulary:
        return Vocabulary(self.base)

    @property
    def longest_input(self) -> int:
        return longest_row(self.task.inputs, self.task.largest_input(self.maximum), self.base)

    @property
    def longest_target(self) -> int:
        """Tokens of the longest answer, END included."""
        return 1 + longest_row(self.task.outputs, self.task.largest_output(self.maximum), self.base)

    def draw(self, rng: np.random.Generator, count: int) -> Integers:
        return self.task.draw(rng, count, self.operands, self.pairs, self.maximum)

    def answer(self, questions: Integers) -> Integers:
        return self.task.answer(questions)

    def encode_questions(self, questions: Integers) -> tuple[Integers, Integers]:
        return encode(questions, self.base)

    def encode_batch(self, questions: Integers) -> Batch:
        """Questions and their answers as padded token rows, trimmed to the longest of this batch."""
        inputs, input_lengths = encode(questions, self.base)
        answers, lengths = encode(self.answer(questions), self.base)
        n, width = answers.shape
        targets = np.zeros((n, width + 2), dtype=np.int64)
        targets[:, 0] = BEGIN
        targets[:, 1:-1] = answers
        targets[np.arange(n), lengths + 1] = END
        return Batch(inputs, input_lengths, targets, lengths + 2)

    def decode_answers(self, tokens: Integers) -> tuple[Integers, Mask]:
        """Generated rows as integers; a row that does not end is no answer."""
        values, readable = decode(tokens, self.base, self.task.outputs)
        readable &= (tokens == END).any(1)
        values[~readable] = 0
        return values, readable

    def check_questions(self, questions: Integers) -> None:
        """A `UserError` for integers that the model cannot have positions for."""
        largest = self.task.largest_input(self.maximum)
        bad = questions[(questions < 1) | (questions > largest)]
        if len(bad):
            raise UserError(f"integers must lie in 1..{largest} for this run: {int(bad[0])} does not")
