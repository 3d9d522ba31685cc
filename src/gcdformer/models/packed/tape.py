"""What a model does, written down once as lines that name rooms, and run for any batch without Python.

A room is memory that is used again at every step; its rows are counted when a batch comes. Knows no mathematics.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from gcdformer.models.packed.gemm import sgemm_address
from gcdformer.models.packed.kernels import LANES, interpret
from gcdformer.models.packed.operations import NUMBERS, PAST
from gcdformer.models.packed.rows import PackedRows
from gcdformer.numbers.encoding import Integers

SIDES = PAST + 1
ALIGNED = 16
"""Rooms start at multiples of so many numbers, 64 bytes."""


class Room(NamedTuple):
    """Where a tape's numbers are: `rows` is a side (as many as it has tokens) or names a fixed count."""

    number: int
    rows: int
    width: int
    longest: int
    """A side, if there is one such row for every token of its longest row too; -1 otherwise."""


class Tape:
    """Parts, each a list of lines that are run together, and the rooms that they share."""

    def __init__(self, encoder_head: int, decoder_head: int, epsilon: float) -> None:
        self.heads = (False,) * encoder_head, (False,) * decoder_head
        self.epsilon = np.float32(epsilon)
        self.rooms: dict[str, Room] = {}
        self.elsewhere: dict[int, Tensor] = {}
        self.parts: dict[str, list[tuple[int, ...]]] = {}
        self.counts = [0] * SIDES
        self.largest = [0] * (2 * SIDES)
        self.lanes = np.zeros(LANES, dtype=np.float32)
        self.written: dict[str, Integers] = {}
        address = sgemm_address()
        assert address is not None, "asked for by `is_packable`"
        self.gemm = address

    def room(self, name: str, rows: int, width: int, longest: int = -1) -> Room:
        """The room of this name, for so many rows as a side has tokens."""
        if name not in self.rooms:
            self.rooms[name] = Room(len(self.rooms), rows, width, longest)
        return self.rooms[name]

    def fixed(self, name: str, tensor: Tensor) -> Room:
        """A room that is a tensor's memory; a vector is one row."""
        assert name not in self.rooms, name
        rows, width = tensor.shape if tensor.dim() == 2 else (1, len(tensor))
        self.counts.append(rows)
        found = self.rooms[name] = Room(len(self.rooms), len(self.counts) - 1, width, -1)
        self.elsewhere[found.number] = tensor
        return found

    def write(self, part: str, operation: int, *numbers: Room | int) -> None:
        """One more line of a part."""
        line = [operation, *(one.number if isinstance(one, Room) else int(one) for one in numbers)]
        self.parts.setdefault(part, []).append((*line, *[0] * (NUMBERS - len(line))))

    def furnish(self) -> None:
        """Memory for all rooms, enough for batches up to `largest`."""
        tokens, longest = self.largest[:SIDES], self.largest[SIDES:]
        sizes = []
        for room in self.rooms.values():
            count = self.counts[room.rows] if room.rows >= SIDES else tokens[room.rows]
            sizes.append(count * room.width * (longest[room.longest] if room.longest >= 0 else 1))
        starts = np.cumsum([0, *(0 if index in self.elsewhere else -(-size // ALIGNED) * ALIGNED
                                 for index, size in enumerate(sizes))])
        self.memory = torch.zeros(int(starts[-1]) + ALIGNED)
        first = -(-self.memory.data_ptr() // (4 * ALIGNED)) * 4 * ALIGNED
        addresses = [self.elsewhere[index].data_ptr() if index in self.elsewhere else first + 4 * int(starts[index])
                     for index in range(len(sizes))]
        self.scores = np.zeros(max(1, *longest), dtype=np.float32)
        self.table = (np.array(addresses), np.array(sizes), np.array([room.rows for room in self.rooms.values()]),
                      np.array([room.width for room in self.rooms.values()]), np.array(self.counts))
        self.written = {part: np.array(lines) for part, lines in self.parts.items()}

    def run(self, part: str, sides: tuple[PackedRows, PackedRows, PackedRows], wanted: Integers,
            share: float = 1.0) -> float:
        """The loss, if this part computes one."""
        sizes = [*(int(rows.starts[-1]) for rows in sides), *(rows.longest for rows in sides)]
        if not self.written or any(size > largest for size, largest in zip(sizes, self.largest, strict=True)):
            self.largest = [max(size + size // 8, largest) for size, largest in zip(sizes, self.largest, strict=True)]
            self.furnish()
        self.table[-1][:SIDES] = sizes[:SIDES]
        inputs, given, past = sides
        return float(interpret(
            self.written[part], self.table, (inputs.tokens, given.tokens, past.tokens),
            (inputs.places, given.places, past.places), (inputs.starts, given.starts, past.starts),
            (inputs.lengths, given.lengths, past.lengths), wanted, np.float32(share), self.epsilon, self.lanes, self.scores,
            self.gemm, *self.heads))
