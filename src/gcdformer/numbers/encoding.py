"""Integers to digits in base B and back, whole arrays at a time.

An integer is a sign and its digits, most significant first: 160 in base 30 is `+ 5 10`. A row of integers
is their concatenation. This module knows tokens and integers, not what they mean.

>>> Vocabulary(30).text(encode_row([160, 120], 30))
'+ 5 10 + 4 0'
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gcdformer.errors import UserError

Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

PAD, BEGIN, END, PLUS, MINUS = range(5)
DIGIT_0 = 5
SPECIAL_SYMBOLS = ("<pad>", "<begin>", "<end>", "+", "-")


@dataclass(frozen=True)
class Vocabulary:
    """Token ids of base B: pad, begin, end, two signs, then the digits 0..B-1."""

    base: int

    @property
    def size(self) -> int:
        return DIGIT_0 + self.base

    def symbol(self, token: int) -> str:
        return SPECIAL_SYMBOLS[token] if token < DIGIT_0 else str(token - DIGIT_0)

    def text(self, tokens: Sequence[int] | Integers) -> str:
        """Tokens with blanks between, without padding."""
        return " ".join(self.symbol(int(token)) for token in tokens if token != PAD)

    def token(self, symbol: str) -> int:
        if symbol in SPECIAL_SYMBOLS:
            return SPECIAL_SYMBOLS.index(symbol)
        if symbol.isascii() and symbol.isdigit() and (symbol == "0" or symbol[0] != "0") and int(symbol) < self.base:
            return DIGIT_0 + int(symbol)
        raise UserError(f"unknown token '{symbol}' in base {self.base}")


def powers_of(base: int) -> Integers:
    """1, B, B^2, ... as far as int64 holds them."""
    powers = [1]
    while powers[-1] * base < 2**63:
        powers.append(powers[-1] * base)
    return np.array(powers, dtype=np.int64)


def digit_counts(values: Integers, base: int) -> Integers:
    """How many base-B digits each non-negative integer has; 0 has one."""
    counts = np.searchsorted(powers_of(base), values, side="right")
    return np.maximum(counts, 1).astype(np.int64, copy=False)


def longest_row(arity: int, largest: int, base: int) -> int:
    """The most tokens that a row of `arity` integers up to `largest` can take."""
    return arity * (1 + int(digit_counts(np.array([largest], dtype=np.int64), base)[0]))


def encode(values: Integers, base: int) -> tuple[Integers, Integers]:
    """Rows of integers (n, arity) to token rows (n, longest), padded with PAD, and their lengths (n,)."""
    n, arity = values.shape
    magnitudes = np.abs(values)
    counts = digit_counts(magnitudes, base)
    ends = np.cumsum(counts + 1, axis=1)
    lengths = ends[:, -1]
    width = int(lengths.max(initial=0))
    tokens = np.zeros((n, width), dtype=np.int64)
    flat = tokens.reshape(-1)
    row_starts = np.arange(n, dtype=np.int64) * width
    for column in range(arity):
        count = counts[:, column]
        last = row_starts + ends[:, column] - 1
        flat[last - count] = np.where(values[:, column] < 0, MINUS, PLUS)
        rest = magnitudes[:, column]
        chosen = last
        for place in range(int(count.max(initial=0))):
            if place:
                keep = np.flatnonzero(count > place)
                if len(keep) < len(count):
                    count, rest, chosen = count[keep], rest[keep], chosen[keep]
            quotient = rest // base
            flat[chosen - place] = rest - quotient * base + DIGIT_0
            rest = quotient
    return tokens, lengths


def encode_row(values: Sequence[int], base: int) -> list[int]:
    """The tokens of one row of integers."""
    tokens, _ = encode(np.array([values], dtype=np.int64), base)
    return [int(token) for token in tokens[0]]


def decode(tokens: Integers, base: int, arity: int) -> tuple[Integers, Mask]:
    """Token rows to rows of integers (n, arity), and which rows are readable.

    A row is read up to its first END, or its end; only padding may follow padding. It is readable if it is exactly what
    `encode` would write for some integers below 2^63 (no leading zeros, no -0, the right number of integers); others give
    zeros.
    """
    n, width = tokens.shape
    values = np.zeros((n, arity), dtype=np.int64)
    readable = np.ones(n, dtype=np.bool_)
    open_row = np.ones(n, dtype=np.bool_)
    padded = np.zeros(n, dtype=np.bool_)
    column = np.full(n, -1, dtype=np.int64)
    digits = np.zeros(n, dtype=np.int64)
    sign = np.ones(n, dtype=np.int64)
    current = np.zeros(n, dtype=np.int64)
    limit = (2**63 - 1) // base

    def close(rows: Mask) -> None:
        """End the integer being read in these rows."""
        started = rows & (column >= 0)
        readable[started & (digits == 0)] = False
        readable[started & (sign < 0) & (current == 0)] = False
        good = np.flatnonzero(started & readable)
        values[good, column[good]] = sign[good] * current[good]

    for position in range(width):
        token = tokens[:, position]
        padded |= open_row & (token == PAD)
        readable[padded & (token != PAD)] = False
        open_row &= (token != END) & (token != PAD)
        signs = open_row & ((token == PLUS) | (token == MINUS))
        if signs.any():
            close(signs)
            column[signs] += 1
            readable[signs & (column >= arity)] = False
            column[column >= arity] = arity - 1
            sign[signs] = np.where(token[signs] == MINUS, -1, 1)
            current[signs] = 0
            digits[signs] = 0
        digit_rows = open_row & (token >= DIGIT_0)
        if digit_rows.any():
            readable[digit_rows & ((column < 0) | (token >= DIGIT_0 + base))] = False
            readable[digit_rows & (digits == 1) & (current == 0)] = False
            readable[digit_rows & (current > limit)] = False
            with np.errstate(over="ignore"):
                grown = current * base + (token - DIGIT_0)
            readable[digit_rows & (grown < 0)] = False
            current = np.where(digit_rows & readable, grown, current)
            digits[digit_rows] += 1
        readable[open_row & (token == BEGIN)] = False
    close(np.ones(n, dtype=np.bool_))
    readable &= column == arity - 1
    values[~readable] = 0
    return values, readable
