"""Int2Int's types of a question or an answer: `int`, `int[n]`, `range(a,b)`; and examples that only a file knows.

Such examples are no task: there is no distribution to draw from and no function that answers. Knows integers, not lines.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from gcdformer.config import FILE_TASK, LARGEST_INTEGER
from gcdformer.errors import UserError

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
    """That many integers, without bounds of their own: an array if more than one."""
    return Kind(count, array=count > 1)


def parse_kind(text: str) -> Kind:
    match = GRAMMAR.fullmatch(text.strip())
    if match is None:
        raise UserError(f"data_types: 'int', 'int[n]' or 'range(a,b)' on each side of one colon, got '{text[:50]}'")
    single, count, low, high = match.groups()
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


@dataclass(frozen=True)
class FileExamples:
    """Questions and answers of any meaning, in a file: its types say how many integers each has. Stands where a task does
    in a problem; what only a task can do, draw and answer, it has not."""

    question: Kind
    reply: Kind
    name: str = FILE_TASK
    has_gcd: bool = False

    @classmethod
    def of(cls, data_types: str) -> FileExamples:
        left, colon, right = data_types.partition(":")
        return cls(parse_kind(left), parse_kind(right if colon else ""))

    @property
    def inputs(self) -> int:
        return self.question.count

    @property
    def outputs(self) -> int:
        return self.reply.count

    def largest_input(self, maximum: int) -> int:
        return self.question.largest(maximum)

    def largest_output(self, maximum: int) -> int:
        return self.reply.largest(maximum)
