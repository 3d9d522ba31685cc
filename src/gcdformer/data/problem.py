"""A problem: a task in a base with its distributions, as one object that draws, answers, encodes and decodes.

Its examples come from a task, which draws questions and answers them, or from files alone (`FileExamples`).

Everything below it (models, evaluation, training) sees token rows; only this object knows both sides.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gcdformer.config import LARGEST_INTEGER, Config
from gcdformer.data.kinds import FileExamples, Kind, several
from gcdformer.errors import UserError
from gcdformer.numbers.distributions import OPERAND_DISTRIBUTIONS, OperandDistribution, PairDistribution, pair_distribution
from gcdformer.numbers.encoding import BEGIN, END, Integers, Mask, Vocabulary, decode, encode, longest_row
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
    """A task, a base, a maximum and the distributions of the training examples."""

    task: Task | FileExamples
    base: int
    maximum: int
    operands: OperandDistribution
    pairs: PairDistribution
    framed: bool = False
    """Whether a question is put between BEGIN and END."""

    @classmethod
    def of(cls, config: Config) -> Problem:
        types = config.data.data_types
        task = find_task(config.task.task) if types is None else FileExamples.of(types)
        maximum, base = config.task.maximum, config.task.base
        if not task.has_gcd and config.data.outcomes != "natural":
            raise UserError(f"outcomes must be 'natural' for task '{task.name}': it has no GCD to choose, "
                            f"got '{config.data.outcomes}'")
        if not task.has_gcd and config.evaluation.prior != "training":
            raise UserError(f"prior must be 'training' for task '{task.name}': its answers are no GCD, "
                            f"got '{config.evaluation.prior}'")
        for side, largest in (("questions", task.largest_input(maximum)), ("answers", task.largest_output(maximum))):
            if largest > LARGEST_INTEGER:
                raise UserError(f"max: {maximum} is too large for task '{task.name}': its {side} reach "
                                f"{largest}, above 2^62")
        problem = cls(task, base, maximum, OPERAND_DISTRIBUTIONS[config.data.operands],
                      pair_distribution(config.data, maximum), config.task.framing == "published")
        positions, longest = config.model.positions, max(problem.longest_input, problem.longest_target)
        if positions is not None and positions < longest:
            raise UserError(f"positions: at least {longest} for this task, base and max, got {positions}")
        return problem

    @property
    def vocabulary(self) -> Vocabulary:
        return Vocabulary(self.base)

    @property
    def longest_input(self) -> int:
        return longest_row(self.task.inputs, self.task.largest_input(self.maximum), self.base) + 2 * self.framed

    @property
    def longest_target(self) -> int:
        """Tokens of the longest answer, END included."""
        return 1 + longest_row(self.task.outputs, self.task.largest_output(self.maximum), self.base)

    def draw(self, rng: np.random.Generator, count: int) -> Integers:
        """`count` questions of the task; a `UserError` if the examples are those of files alone."""
        if isinstance(self.task, FileExamples):
            raise UserError(f"task: '{self.task.name}' has no distribution to draw from; its examples are those of "
                            "train_file and test_file")
        return self.task.draw(rng, count, self.operands, self.pairs, self.maximum)

    @property
    def kinds(self) -> tuple[Kind, Kind]:
        """The types of a question and of an answer."""
        if isinstance(self.task, FileExamples):
            return self.task.question, self.task.reply
        return several(self.task.inputs), several(self.task.outputs)

    @property
    def knows_answers(self) -> bool:
        """Whether any question has a known answer, not only those of a file."""
        return isinstance(self.task, Task)

    def answer(self, questions: Integers) -> Integers:
        """The answers: those that the rows of a file carry behind the question, else the task's."""
        if questions.shape[1] > self.task.inputs:
            return questions[:, self.task.inputs:]
        if isinstance(self.task, FileExamples):
            raise UserError(f"task: the answers of '{self.task.name}' are only known for the rows of its files")
        return self.task.answer(questions)

    def encode_questions(self, questions: Integers) -> tuple[Integers, Integers]:
        tokens, lengths = encode(questions[:, :self.task.inputs], self.base)
        return framed(tokens, lengths) if self.framed else (tokens, lengths)

    def encode_batch(self, questions: Integers) -> Batch:
        """Questions and their answers as padded token rows, trimmed to the longest of this batch."""
        inputs, input_lengths = self.encode_questions(questions)
        return Batch(inputs, input_lengths, *framed(*encode(self.answer(questions), self.base)))

    def decode_answers(self, tokens: Integers) -> tuple[Integers, Mask]:
        """Generated rows as integers; a row that does not end is no answer."""
        values, readable = decode(tokens, self.base, self.task.outputs)
        readable &= (tokens == END).any(1)
        values[~readable] = 0
        return values, readable

    def check_questions(self, questions: Integers) -> None:
        """A `UserError` for integers that the model cannot have positions for."""
        low, high = self.question_bounds
        bad = questions[(questions < low) | (questions > high)]
        if len(bad):
            raise UserError(f"integers must lie in {low}..{high} for this run: {int(bad[0])} does not")

    @property
    def question_bounds(self) -> tuple[int, int]:
        """The smallest and the largest integer of a question."""
        if isinstance(self.task, FileExamples):
            return self.task.question.bounds(self.maximum)
        return 1, self.task.largest_input(self.maximum)


def framed(tokens: Integers, lengths: Integers) -> tuple[Integers, Integers]:
    """Token rows with BEGIN in front and END behind, and their lengths."""
    n, width = tokens.shape
    rows = np.zeros((n, width + 2), dtype=np.int64)
    rows[:, 0] = BEGIN
    rows[:, 1:-1] = tokens
    rows[np.arange(n), lengths + 1] = END
    return rows, lengths + 2


def column_names(problem: Problem) -> list[str]:
    """a, b, ... (x1, x2, ... if many) for the question; the task's name (and a number if several) for the answer."""
    inputs, outputs = problem.task.inputs, problem.task.outputs
    names = [chr(ord("a") + i) for i in range(inputs)] if inputs <= 26 else [f"x{i + 1}" for i in range(inputs)]
    answer = problem.task.name if problem.knows_answers else "answer"
    return names + ([answer] if outputs == 1 else [f"{answer}_{i + 1}" for i in range(outputs)])
