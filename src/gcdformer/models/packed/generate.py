"""Greedy decoding by the packed transformer: the encoder once, then the decoder token by token with a KV cache.

The same loop for any model is in `models/generate.py`; the layers are those of `forward.py`.
"""

from __future__ import annotations

from typing import final

import numpy as np

from gcdformer.models.packed.forward import Forward, Keys
from gcdformer.models.packed.instructions import APPEND_TO_CACHE, ARGMAX, CACHED, GIVEN
from gcdformer.models.packed.rows import PackedRows
from gcdformer.models.transformer import Transformer
from gcdformer.numbers.encoding import BEGIN, END, PAD, Integers

ENCODE, ADVANCE = "encode", "advance"
"""The sections of the program."""


@final
class PackedGenerator:
    """Answers packed rows; the weights are read where the model has them."""

    def __init__(self, model: Transformer) -> None:
        self.layers = Forward(model.sizes, {name: weight.data for name, weight in model.named_parameters()})
        names = [f"decoder.{index}" for index in range(model.sizes.decoder_layers)]
        self.layers.section = ENCODE
        memory = self.layers.encode()
        memories = {name: self.layers.memory_keys(name, memory) for name in names}
        self.layers.section = ADVANCE
        self.emit_advance(memories)

    def emit_advance(self, memories: dict[str, Keys]) -> None:
        """From the newest token of every row to the next."""
        layers = self.layers
        x, dim = layers.embed("embed_outputs", GIVEN), layers.sizes.decoder_dim
        for layer, memory in memories.items():
            name = f"{layer}.attention"
            qkv = layers.linear_with_bias(f"{name}.qkv", x)
            cache = layers.program.buffer(f"{layer}.cache", CACHED, 2 * dim)
            layers.emit(APPEND_TO_CACHE, qkv, cache, CACHED)
            mixed = layers.attend(name, qkv, Keys(cache, CACHED, 0, dim), causal=False)
            state = layers.add_norm(f"{layer}.norm_attention", x, layers.out_of(f"{name}.out", mixed), f"{name}.out")
            x = layers.rest_of_decoder_layer(layer, x, state, memory)
        layers.emit(ARGMAX, layers.logits(x), layers.weights["output_bias"])

    def generate(self, inputs: PackedRows, longest: int) -> Integers:
        """Output tokens (N, longest) after BEGIN, END included, padded. Rows that do not end are cut at `longest`."""
        n, run = len(inputs.lengths), self.layers.program.run
        outputs = np.full((n, longest), PAD, dtype=np.int64)
        tokens, ones = np.full(n, BEGIN, dtype=np.int64), np.ones(n, dtype=np.int64)
        unfinished = np.ones(n, dtype=np.bool_)
        for position in range(longest):
            given = PackedRows(tokens, position * ones, np.arange(n + 1), ones, 1)
            cached = PackedRows(tokens, given.positions, np.arange(n + 1) * longest, (position + 1) * ones, longest)
            if position == 0:
                run(ENCODE, (inputs, given, cached), tokens)
            run(ADVANCE, (inputs, given, cached), tokens)
            outputs[unfinished, position] = tokens[unfinished]
            unfinished &= tokens != END
            if not unfinished.any():
                break
        return outputs
