"""Input positions that mean the same in questions of different lengths: signs and digits counted from the end of an operand.

A slot is a position of the longest question. A shorter operand has no leading digits; the slots of those are empty. Knows
token rows, not values in a network.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gcdformer.data.problem import Problem
from gcdformer.numbers.encoding import Integers, digit_counts

RARE = 0.01
"""Operands with more digits than others are left out if fewer than this share of 1..M has them: in base 1000 only M itself
has four."""
OPERANDS = ("a", "b")


@dataclass(frozen=True)
class Layout:
    """The slots of a question of two operands with up to `digits` digits each."""

    base: int
    digits: int
    largest: int
    """The largest operand that fits."""
    framed: bool

    @classmethod
    def of(cls, problem: Problem) -> Layout:
        base, largest = problem.base, problem.maximum
        digits = int(digit_counts(np.array([largest]), base)[0])
        if digits > 1 and largest - base ** (digits - 1) + 1 < RARE * largest:
            digits -= 1
            largest = base**digits - 1
        return cls(base, digits, largest, problem.framed)

    @cached_property
    def names(self) -> list[str]:
        """What is at each slot."""
        names = [name for operand in OPERANDS for name in
                 (f"sign of {operand}", *(f"{digit_name(j)} of {operand}" for j in reversed(range(self.digits))))]
        return ["begin", *names, "end"] if self.framed else names

    def digit_slot(self, side: int, j: int) -> int:
        """The slot of an operand's digit j, counted from its end."""
        return int(self.framed) + side * (self.digits + 1) + self.digits - j

    def digit_slots(self, side: int) -> tuple[int, ...]:
        """An operand's digits, the first one first."""
        return tuple(self.digit_slot(side, j) for j in reversed(range(self.digits)))

    def digit_of(self, slot: int) -> tuple[int, int] | None:
        """The operand and the digit from its end at a slot; None for signs."""
        return next(((side, j) for side in range(2) for j in range(self.digits) if self.digit_slot(side, j) == slot), None)

    def tokens(self, pairs: Integers) -> Integers:
        """For each pair the token index of every slot (n, slots), -1 where it is empty."""
        counts = digit_counts(pairs, self.base)
        start = int(self.framed)
        where = np.full((len(pairs), len(self.names)), -1, dtype=np.int64)
        for side in range(2):
            where[:, start + side * (self.digits + 1)] = start + side * (1 + counts[:, 0])
            last = start + (0 if side == 0 else 1 + counts[:, 0]) + counts[:, side]
            for j in range(self.digits):
                where[:, self.digit_slot(side, j)] = np.where(j < counts[:, side], last - j, -1)
        if self.framed:
            where[:, 0] = 0
            where[:, -1] = 3 + counts.sum(1)
        return where


def digit_name(j: int) -> str:
    """A digit counted from the end of its operand, in words."""
    names = ("last digit", "second-to-last digit", "third-to-last digit")
    return names[j] if j < len(names) else f"{j + 1}th-to-last digit"
