"""The best of listed answers by the packed transformer: the search of `models/decide.py` on packed rows.

Where answers are one token each, the compiled decoder can choose them, and says which are proved: the search is for others.
"""

from __future__ import annotations

from functools import cached_property
from typing import final

import numpy as np
import torch

from gcdformer.models.answer_tree import AnswerTree
from gcdformer.models.decide import LogProbs, Paths, Search
from gcdformer.models.packed.forward import Forward
from gcdformer.models.packed.generate import PackedGenerator
from gcdformer.models.packed.instructions import ADD_BIAS
from gcdformer.models.packed.rows import PackedRows
from gcdformer.models.transformer import Transformer
from gcdformer.numbers.encoding import Integers, Mask

ENCODE, FOLLOW = "encode", "follow"
"""The sections of the program: read the inputs; go along a path for some of them."""

NONE: Integers = np.zeros(0, dtype=np.int64)
NO_ROWS = PackedRows(NONE, NONE, np.zeros(1, dtype=np.int64), NONE, 0)
"""There is no KV cache: a path is gone along as a whole."""


@final
class PackedDecider:
    """Decides packed rows by a tree of answers; one per thread."""

    def __init__(self, model: Transformer, tree: AnswerTree) -> None:
        self.model, self.tree = model, tree
        self.generator = PackedGenerator(model, tree if tree.one_token else None)

    @cached_property
    def paths(self) -> PackedPaths:
        """Made when it is needed: where answers are one token, a search is rare."""
        return PackedPaths(self.model, self.generator)

    def choose(self, inputs: PackedRows, longest: int) -> tuple[Integers, Mask]:
        """Answers of one token each, as output tokens (N, longest), and which of them are proved to be the best."""
        return self.generator.generate_one_token(inputs, longest)

    def generate(self, inputs: PackedRows, longest: int) -> Integers:
        """The best answers, by search, as output tokens (N, longest) after BEGIN, END included, padded."""
        return Search(self.paths.read(inputs, longest), self.tree, len(inputs.lengths), longest).run()


@final
class PackedPaths(Paths):
    """What follows a prefix of the output, by one pass over it."""

    def __init__(self, model: Transformer, generator: PackedGenerator) -> None:
        self.generator = generator
        self.layers = Forward(model.sizes, {name: weight.data for name, weight in model.named_parameters()})
        layers, names = self.layers, [f"decoder.{index}" for index in range(model.sizes.decoder_layers)]
        layers.section = ENCODE
        memory = layers.encode()
        memories = {name: layers.memory_keys(name, memory) for name in names}
        layers.section = FOLLOW
        self.logits = layers.logits(layers.decode_from(memories))
        layers.emit(ADD_BIAS, self.logits, layers.weights["output_bias"])

    def read(self, inputs: PackedRows, longest: int) -> PackedPaths:
        """Read a batch of inputs; there is room for paths up to `longest` tokens, for all rows at once."""
        self.inputs, total = inputs, len(inputs.lengths) * longest
        cached = PackedRows(NONE, NONE, np.array([0, total]), np.array([total]), longest)
        self.layers.program.run(ENCODE, (inputs, cached, NO_ROWS), NONE)
        return self

    def log_probs(self, rows: Integers, paths: Integers, lengths: Integers, last: int = 1) -> LogProbs:
        given = PackedRows.of(paths[:, :int(lengths.max(initial=1))], lengths)
        self.layers.program.run(FOLLOW, (some_of(self.inputs, rows), given, NO_ROWS), NONE)
        places = given.starts[1:, None] - last + np.arange(last)
        logits = torch.from_numpy(self.layers.program.values(self.logits)[places])
        log_probs: LogProbs = logits.log_softmax(-1).numpy()
        return log_probs

    def greedy(self, rows: Integers, longest: int) -> Integers:
        return self.generator.generate(chosen_rows(self.inputs, rows), longest)


def some_of(inputs: PackedRows, rows: Integers) -> PackedRows:
    """Some rows of inputs that have been read, where they are: for keys and values only."""
    return PackedRows(inputs.tokens, inputs.positions, np.append(inputs.starts[rows], inputs.starts[-1]),
                      np.ascontiguousarray(inputs.lengths[rows]), inputs.longest)


def chosen_rows(inputs: PackedRows, rows: Integers) -> PackedRows:
    """Some rows of inputs as a batch of their own."""
    lengths = inputs.lengths[rows]
    starts = np.concatenate([[0], np.cumsum(lengths)])
    places = np.repeat(inputs.starts[rows] - starts[:-1], lengths) + np.arange(starts[-1])
    return PackedRows(inputs.tokens[places], inputs.positions[places], starts, np.ascontiguousarray(lengths), inputs.longest)
