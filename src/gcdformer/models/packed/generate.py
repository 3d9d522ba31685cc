"""Greedy decoding on packed rows, the keys and values of earlier tokens kept."""

from __future__ import annotations

import numpy as np
import torch

from gcdformer.models.packed import kernels
from gcdformer.models.packed.forward import Forward, Keys
from gcdformer.models.packed.memory import Pair, parameter_pairs
from gcdformer.models.packed.rows import PackedRows
from gcdformer.models.transformer import Transformer
from gcdformer.numbers.encoding import BEGIN, END, PAD, Integers


class PackedGenerator(Forward):
    """A model that answers packed rows; the weights are read where the model has them."""

    def __init__(self, model: Transformer) -> None:
        super().__init__(model.sizes, parameter_pairs(model))

    def generate(self, inputs: PackedRows, longest: int) -> Integers:
        """Output tokens (N, longest) after BEGIN, END included, padded. Rows that do not end are cut at `longest`."""
        n = len(inputs.lengths)
        outputs = np.full((n, longest), PAD, dtype=np.int64)
        memory = self.encode(inputs)
        layers = range(self.sizes.decoder_layers)
        memories = [self.memory_keys(f"decoder.{index}", memory, inputs) for index in layers]
        pasts = [self.room(f"decoder.{index}.past", n * longest, 2 * self.sizes.decoder_dim) for index in layers]
        tokens = np.full(n, BEGIN, dtype=np.int64)
        going = np.ones(n, dtype=np.bool_)
        for position in range(longest):
            state = self.advance(tokens, position, longest, pasts, memories)
            words = self.weights["embed_outputs.tokens.weight"]
            logits = self.room("logits", n, len(words.a))
            torch.mm(state.t, words.t.t(), out=logits.t)
            kernels.choose(logits.a, self.weights["output_bias"].a, tokens, self.lanes)
            outputs[going, position] = tokens[going]
            going &= tokens != END
            if not going.any():
                break
        return outputs

    def advance(self, tokens: Integers, position: int, longest: int, pasts: list[Pair], memories: list[Keys]) -> Pair:
        """States after one more token a row."""
        n, dim, heads = len(tokens), self.sizes.decoder_dim, self.sizes.decoder_heads
        ones = np.ones(n, dtype=np.int64)
        rows = PackedRows(tokens, position * ones, np.arange(n + 1), ones, 1)
        x = self.embed("embed_outputs", rows, dim)
        for index, (past, memory) in enumerate(zip(pasts, memories, strict=True)):
            layer = f"decoder.{index}"
            name = f"{layer}.attention"
            qkv = self.linear_with_bias(f"{name}.qkv", x)
            past.a.reshape(n, longest, 2 * dim)[:, position] = qkv.a[:, dim:]
            keys = Keys(past, 0, dim, np.arange(n) * longest, (position + 1) * ones, longest)
            mixed = self.attend(name, self.decoder_kernels[0], heads, qkv, rows, keys, dim, causal=False)
            state = self.add_norm(f"{layer}.norm_attention", x, self.linear(f"{name}.out", mixed, f"y{dim}"), f"{name}.out")
            asking = x if self.sizes.cross_query == "input" else state
            x = self.feed_forward(layer, self.cross_attention(layer, asking, state, rows, memory))
        return x
