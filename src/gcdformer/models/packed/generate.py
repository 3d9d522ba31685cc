"""Answers of the packed transformer: the encoder once, then the decoder token by token with its keys and values kept."""

from __future__ import annotations

import numpy as np

from gcdformer.models.packed.forward import Forward, Keys
from gcdformer.models.packed.operations import CHOOSE, GIVEN, KEEP, PAST
from gcdformer.models.packed.rows import PackedRows
from gcdformer.models.transformer import Transformer
from gcdformer.numbers.encoding import BEGIN, END, PAD, Integers


class PackedGenerator(Forward):
    """A model that answers packed rows; the weights are read where the model has them."""

    def __init__(self, model: Transformer) -> None:
        super().__init__(model.sizes, {name: weight.data for name, weight in model.named_parameters()})
        layers = [f"decoder.{index}" for index in range(self.sizes.decoder_layers)]
        self.part = "encode"
        memory = self.encode()
        memories = {layer: self.memory_keys(layer, memory) for layer in layers}
        self.part = "advance"
        self.write_advance(memories)

    def write_advance(self, memories: dict[str, Keys]) -> None:
        """One more token a row: from it to the next."""
        x, dim = self.embed("embed_outputs", GIVEN), self.sizes.decoder_dim
        for layer, memory in memories.items():
            name = f"{layer}.attention"
            qkv = self.linear_with_bias(f"{name}.qkv", x)
            past = self.tape.room(f"{layer}.past", PAST, 2 * dim)
            self.write(KEEP, qkv, past, PAST)
            mixed = self.attend(name, qkv, Keys(past, PAST, 0, dim), causal=False)
            state = self.add_norm(f"{layer}.norm_attention", x, self.out_of(f"{name}.out", mixed), f"{name}.out")
            asking = x if self.sizes.cross_query == "input" else state
            x = self.feed_forward(layer, self.cross_attention(layer, asking, state, memory))
        self.write(CHOOSE, self.logits(x), self.weights["output_bias"])

    def generate(self, inputs: PackedRows, longest: int) -> Integers:
        """Output tokens (N, longest) after BEGIN, END included, padded. Rows that do not end are cut at `longest`."""
        n = len(inputs.lengths)
        outputs = np.full((n, longest), PAD, dtype=np.int64)
        tokens, ones = np.full(n, BEGIN, dtype=np.int64), np.ones(n, dtype=np.int64)
        going = np.ones(n, dtype=np.bool_)
        for position in range(longest):
            given = PackedRows(tokens, position * ones, np.arange(n + 1), ones, 1)
            past = PackedRows(tokens, given.places, np.arange(n + 1) * longest, (position + 1) * ones, longest)
            if position == 0:
                self.tape.run("encode", (inputs, given, past), tokens)
            self.tape.run("advance", (inputs, given, past), tokens)
            outputs[going, position] = tokens[going]
            going &= tokens != END
            if not going.any():
                break
        return outputs
