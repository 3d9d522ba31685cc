"""A program: the instructions of a forward or backward pass, emitted once when the model is built and run for any batch.

Instructions name buffers: memory that is allocated once and used again at every step; how many rows of it count is known
when a batch comes. Running a program is one compiled call (`kernels.interpret`), without Python. Knows no mathematics:
which instructions make a layer is in `forward.py` and `backward.py`. `FlatTensors` holds the weights, and their gradients.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from gcdformer.models.packed.choice import sgemm_address
from gcdformer.models.packed.instructions import CACHED, INSTRUCTION_LENGTH, MATMUL
from gcdformer.models.packed.kernels import MAXIMUM_LANES, interpret
from gcdformer.models.packed.product import PANEL, beats_blas
from gcdformer.models.packed.rows import PackedRows
from gcdformer.models.transformer import Transformer, is_inner_map
from gcdformer.numbers.encoding import Integers

Numbers = npt.NDArray[np.float32]
SIDES = CACHED + 1
ALIGNMENT = 16
"""Buffers start at multiples of this many float32, 64 bytes."""


class Buffer(NamedTuple):
    """A matrix of float32; `rows` is a side (a row per token of it) or names a fixed count."""

    number: int
    rows: int
    width: int
    longest: int
    """A side, if each row has `width` values for every token of that side's longest sequence; -1 otherwise."""


class Program:
    """Sections, each a list of instructions that are run together, and the buffers that they share."""

    def __init__(self, encoder_head_dim: int, decoder_head_dim: int, epsilon: float) -> None:
        self.head_dims = (False,) * encoder_head_dim, (False,) * decoder_head_dim  # tuples: their lengths are compiled in
        self.epsilon = np.float32(epsilon)
        self.buffers: dict[str, Buffer] = {}
        self.tensors: dict[int, Tensor] = {}
        """Tensors whose memory is a buffer, by its number."""
        self.sections: dict[str, list[tuple[int, ...]]] = {}
        self.row_counts = [0] * SIDES
        self.largest = [0] * (2 * SIDES)
        self.lanes = np.zeros(MAXIMUM_LANES, dtype=np.float32)
        self.instructions: dict[str, Integers] = {}
        address = sgemm_address()
        assert address is not None, "`is_packable` has looked for it"
        self.gemm = 0 if beats_blas() else address
        """BLAS's matrix product; 0 if `product` takes its place."""

    def buffer(self, name: str, rows: int, width: int, longest: int = -1) -> Buffer:
        """The buffer of this name, with a row for each token of a side."""
        if name not in self.buffers:
            self.buffers[name] = Buffer(len(self.buffers), rows, width, longest)
        return self.buffers[name]

    def tensor(self, name: str, tensor: Tensor) -> Buffer:
        """A buffer that is a tensor's own memory; a vector is one row."""
        assert name not in self.buffers, name
        rows, width = tensor.shape if tensor.dim() == 2 else (1, len(tensor))
        self.row_counts.append(rows)
        buffer = self.buffers[name] = Buffer(len(self.buffers), len(self.row_counts) - 1, width, -1)
        self.tensors[buffer.number] = tensor
        return buffer

    def emit(self, section: str, code: int, *operands: Buffer | int) -> None:
        """Append an instruction to a section."""
        instruction = [code, *(x.number if isinstance(x, Buffer) else int(x) for x in operands)]
        padding = [0] * (INSTRUCTION_LENGTH - len(instruction))
        self.sections.setdefault(section, []).append((*instruction, *padding))

    def allocate(self) -> None:
        """Memory for all buffers, enough for batches up to `largest`."""
        tokens, longest = self.largest[:SIDES], self.largest[SIDES:]
        sizes = [self.rows_of(buffer, tokens) * buffer.width * (longest[buffer.longest] if buffer.longest >= 0 else 1)
                 for buffer in self.buffers.values()]
        starts = np.cumsum([0, *(0 if index in self.tensors else -(-size // ALIGNMENT) * ALIGNMENT
                                 for index, size in enumerate(sizes))])
        self.memory = np.zeros(int(starts[-1]) + self.scratch_size(tokens) + ALIGNMENT, dtype=np.float32)
        self.address = self.memory.ctypes.data
        first = -(-self.address // (4 * ALIGNMENT)) * 4 * ALIGNMENT
        self.scratch = first + 4 * int(starts[-1])
        addresses = [self.tensors[index].data_ptr() if index in self.tensors else first + 4 * int(starts[index])
                     for index in range(len(sizes))]
        self.scores = np.zeros(max(1, *longest), dtype=np.float32)
        self.table = (np.array(addresses), np.array(sizes), np.array([buffer.rows for buffer in self.buffers.values()]),
                      np.array([buffer.width for buffer in self.buffers.values()]), np.array(self.row_counts))
        self.instructions = {section: np.array(rows) for section, rows in self.sections.items()}

    def rows_of(self, buffer: Buffer, tokens: list[int]) -> int:
        return self.row_counts[buffer.rows] if buffer.rows >= SIDES else tokens[buffer.rows]

    def scratch_size(self, tokens: list[int]) -> int:
        """What `product` needs beside its matrices: a panel for the inner dimension and one for the rows."""
        buffers, longest = list(self.buffers.values()), 0
        for code, out, x, _, x_transposed, *_ in (row for rows in self.sections.values() for row in rows):
            if code == MATMUL:
                inner = self.rows_of(buffers[x], tokens) if x_transposed else buffers[x].width
                longest = max(longest, inner + self.rows_of(buffers[out], tokens))
        return longest * PANEL

    def values(self, buffer: Buffer) -> Numbers:
        """The rows of a buffer that the last run filled, in their own memory."""
        addresses, _, _, _, counts = self.table
        start, rows = (int(addresses[buffer.number]) - self.address) // 4, int(counts[buffer.rows])
        return self.memory[start:start + rows * buffer.width].reshape(rows, buffer.width)

    def run(self, section: str, sides: tuple[PackedRows, PackedRows, PackedRows], targets: Integers,
            loss_weight: float = 1.0) -> float:
        """The summed loss, if this section computes one."""
        sizes = [*(int(rows.starts[-1]) for rows in sides), *(rows.longest for rows in sides)]
        if not self.instructions or any(size > largest for size, largest in zip(sizes, self.largest, strict=True)):
            self.largest = [max(size + size // 8, largest) for size, largest in zip(sizes, self.largest, strict=True)]
            self.allocate()
        self.table[-1][:SIDES] = sizes[:SIDES]
        inputs, given, cached = sides
        return float(interpret(
            self.instructions[section], self.table, (inputs.tokens, given.tokens, cached.tokens),
            (inputs.positions, given.positions, cached.positions), (inputs.starts, given.starts, cached.starts),
            (inputs.lengths, given.lengths, cached.lengths), targets, np.float32(loss_weight), self.epsilon, self.lanes,
            self.scores, self.gemm, self.scratch, *self.head_dims))


class FlatTensors:
    """Tensors of the model's shapes in one flat memory, by the parameters' names; the maps inside the layers come first."""

    def __init__(self, model: Transformer) -> None:
        named = sorted(model.named_parameters(), key=lambda pair: not is_inner_map(*pair))
        self.shapes = {name: weight.shape for name, weight in named}
        self.inner = sum(weight.numel() for name, weight in named if is_inner_map(name, weight))
        self.flat = torch.zeros(sum(shape.numel() for shape in self.shapes.values()))
        self.tensors = dict(self.views(self.flat))

    def views(self, flat: Tensor) -> Iterator[tuple[str, Tensor]]:
        """The tensors in another flat memory of the same order, which may lack the inner maps."""
        start = len(flat) - sum(shape.numel() for shape in self.shapes.values())
        for name, shape in self.shapes.items():
            if start >= 0:
                yield name, flat[start:start + shape.numel()].view(shape)
            start += shape.numel()

    @classmethod
    def adopt(cls, model: Transformer) -> FlatTensors:
        """The model's own weights, moved into one flat memory that the model keeps using."""
        flat = cls(model)
        for name, weight in model.named_parameters():
            flat.tensors[name].copy_(weight.data)
            weight.data = flat.tensors[name]
        return flat
