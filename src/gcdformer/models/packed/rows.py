"""Token rows without padding: all tokens of a batch one after another, and where each row starts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gcdformer.numbers.encoding import Integers


@dataclass(frozen=True)
class PackedRows:
    """Token rows one after another: row n is tokens[starts[n]:starts[n + 1]], at positions 0, 1, 2 …"""

    tokens: Integers
    positions: Integers
    starts: Integers
    lengths: Integers
    longest: int

    @classmethod
    def of(cls, rows: Integers, lengths: Integers) -> PackedRows:
        """From padded rows (n, width) and their lengths."""
        is_token = np.arange(rows.shape[1]) < lengths[:, None]
        starts = np.concatenate([[0], np.cumsum(lengths)])
        positions = np.broadcast_to(np.arange(rows.shape[1]), rows.shape)[is_token]
        return cls(rows[is_token], positions, starts, np.ascontiguousarray(lengths), rows.shape[1])

    def part(self, first: int, last: int) -> PackedRows:
        a, b = self.starts[first], self.starts[last]
        return PackedRows(self.tokens[a:b], self.positions[a:b], self.starts[first:last + 1] - a, self.lengths[first:last],
                          self.longest)


@dataclass(frozen=True)
class PackedBatch:
    """Inputs, what the decoder is given (BEGIN …) and the targets that it should predict (… END), token by token."""

    inputs: PackedRows
    given: PackedRows
    targets: Integers

    @property
    def target_tokens(self) -> int:
        return len(self.targets)

    @classmethod
    def of(cls, inputs: Integers, input_lengths: Integers, targets: Integers, target_lengths: Integers) -> PackedBatch:
        given = PackedRows.of(targets[:, :-1], target_lengths - 1)
        shifted = PackedRows.of(targets[:, 1:], target_lengths - 1)
        return cls(PackedRows.of(inputs, input_lengths), given, shifted.tokens)

    def part(self, first: int, last: int) -> PackedBatch:
        a, b = self.given.starts[first], self.given.starts[last]
        return PackedBatch(self.inputs.part(first, last), self.given.part(first, last), self.targets[a:b])
