"""Int2Int's types of a question or an answer: `int`, `int[n]`, `range(a,b)`; and the task that only a file knows.

Such a task has no distribution to draw from and no function that answers: both are in the file. Knows integers, not lines.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from gcdformer.config import LARGEST_INTEGER
from gcdformer.errors import UserError
from gcdformer.numbers.distributions import OperandDistribution, PairDistribution
from gcdformer.numbers.encoding import Integers
from gcdformer.tasks.task import Task

MOST_INTEGERS = 1000
GRAMMAR = re.compile(r"(?:(int)|int\[(\d{1,4})\]|range\((?:(-?\d{1,19}), ?)?(-?\d{1,19})\))", re.ASCII)


@dataclass(frozen=True)
class Kind:
    """One side of an example: `count` integers, written with a prefix if an array, as one word each if a range."""

    count: int
    array: bool = False
    low: int | None = None
    high: int | None = None

    @property
    def symbol(self) -> bool:
        """Whether it is a single decimal word, as ranges are."""
        return self.low is not None

    def bounds(self, maximum: int) -> tuple[int, int]:
        """The smallest and the largest integer it may hold; those without a range reach up to the maximum in size."""
        return (-maximum, maximum) if self.low is None or self.high is None else (self.low, self.high)

    def largest(self, maximum: int) -> int:
        return max(map(abs, self.bounds(maximum)))


def several(count: int) -> Kind:
    """So many integers, without bounds of their own: an array if more than one."""
    return Kind(count, array=count > 1)


def parse_kind(text: str) -> Kind:
    found = GRAMMAR.fullmatch(text.strip())
    if found is None:
        raise UserError(f"data_types: 'int', 'int[n]' or 'range(a,b)' on each side of one colon, got '{text[:50]}'")
    single, count, low, high = found.groups()
    if single:
        return Kind(1)
    if count:
        if not 1 <= int(count) <= MOST_INTEGERS:
            raise UserError(f"data_types: 1 to {MOST_INTEGERS} integers in an array, got {count}")
        return Kind(int(count), array=True)
    first, last = int(low or 0), int(high) - 1
    if first > last or max(-first, last) > LARGEST_INTEGER:
        raise UserError(f"data_types: a range(a,b) holds a..b-1, within 2^62; '{text.strip()[:50]}' does not")
    return Kind(1, low=first, high=last)


class FromFile(Task):
    """Questions and answers of any meaning: `data_types` says how many integers each has, a file which."""

    name = "file"

    def __init__(self, data_types: str) -> None:
        left, colon, right = data_types.partition(":")
        self.question, self.reply = parse_kind(left), parse_kind(right if colon else "")
        self.inputs, self.outputs = self.question.count, self.reply.count

    def draw(self, rng: np.random.Generator, count: int, operands: OperandDistribution, pairs: PairDistribution,
             maximum: int) -> Integers:
        raise UserError("task: 'file' has no distribution to draw from; its examples are those of train_file and test_file")

    def answer(self, questions: Integers) -> Integers:
        raise UserError("task: the answers of 'file' are only known for the rows of its files")

    def largest_input(self, maximum: int) -> int:
        return self.question.largest(maximum)

    def largest_output(self, maximum: int) -> int:
        return self.reply.largest(maximum)
