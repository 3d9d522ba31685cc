"""Emits the forward pass of every layer, on packed rows. What the backward pass needs stays in buffers.

The same mathematics is in `transformer.py` (encode, advance, project) and `layers.py`: the methods here have the names of
the modules there. Shapes: rows are tokens (of a side, all sequences one after another); D is that side's width, H its
heads, V the vocabulary, S the longest sequence on the key side.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from gcdformer.config import ModelSection
from gcdformer.models.packed.instructions import ADD_BIAS, ADD_NORM, ATTENTION, EMBED, GIVEN, INPUTS, MATMUL, RELU
from gcdformer.models.packed.program import Buffer, Program


class Keys(NamedTuple):
    """What queries attend to: tokens of a side, with keys from column `key` of a buffer and values from column `value`."""

    buffer: Buffer
    side: int
    key: int
    value: int


class Norm(NamedTuple):
    """The buffers of a LayerNorm: one row before it, the normalised rows, 1 / standard deviation of each, the result."""

    total: Buffer
    unit: Buffer
    scale: Buffer
    out: Buffer


class Forward:
    """Emits layers into the section of a program that is set last; the weights are read where they are."""

    def __init__(self, sizes: ModelSection, weights: Mapping[str, Tensor]) -> None:
        self.sizes, self.section = sizes, ""
        self.program = Program(sizes.encoder_dim // sizes.encoder_heads, sizes.decoder_dim // sizes.decoder_heads,
                               sizes.norm_epsilon)
        self.weights = {name: self.program.tensor(name, weight) for name, weight in weights.items()}
        self.totals = [self.program.tensor(f"total {side}", torch.zeros(self.dim(side))) for side in (INPUTS, GIVEN)]

    def emit(self, code: int, *operands: Buffer | int) -> None:
        self.program.emit(self.section, code, *operands)

    def dim(self, side: int) -> int:
        return self.sizes.encoder_dim if side == INPUTS else self.sizes.decoder_dim

    def heads(self, side: int) -> int:
        return self.sizes.encoder_heads if side == INPUTS else self.sizes.decoder_heads

    def encode(self) -> Buffer:
        """Tokens of the inputs to the encoder's last residual stream, D columns."""
        x = self.embed("embed_inputs", INPUTS)
        for index in range(self.sizes.encoder_layers):
            layer = f"encoder.{index}"
            x = self.self_attention(layer, x, causal=False)
            x = self.feed_forward(layer, x)
        return x

    def decode(self, memory: Buffer) -> Buffer:
        """Tokens the decoder is given to its last residual stream, all positions at once."""
        names = [f"decoder.{index}" for index in range(self.sizes.decoder_layers)]
        return self.decode_from({name: self.memory_keys(name, memory) for name in names})

    def decode_from(self, memories: Mapping[str, Keys]) -> Buffer:
        """The same from the keys and values that each decoder layer has made of the encoder's output."""
        x = self.embed("embed_outputs", GIVEN)
        for layer, memory in memories.items():
            state = self.self_attention(layer, x, causal=True)
            x = self.rest_of_decoder_layer(layer, x, state, memory)
        return x

    def rest_of_decoder_layer(self, layer: str, x: Buffer, state: Buffer, memory: Keys) -> Buffer:
        """Cross-attention and feed-forward, after self-attention has made `state` of `x`."""
        queries_from = x if self.sizes.cross_query == "input" else state
        return self.feed_forward(layer, self.cross_attention(layer, queries_from, state, memory))

    def logits(self, state: Buffer) -> Buffer:
        """logits = state E^T, V columns, without the bias; E is the decoder's token embedding."""
        embedding = self.weights["embed_outputs.tokens.weight"]
        out = self.program.buffer("logits", GIVEN, self.program.row_counts[embedding.rows])
        self.emit(MATMUL, out, state, embedding, False, True, False)
        return out

    def embed(self, name: str, side: int) -> Buffer:
        w, norm = self.weights, self.norm_buffers(f"{name}.norm", side)
        self.emit(EMBED, side, w[f"{name}.tokens.weight"], w[f"{name}.positions.weight"], w[f"{name}.norm.weight"],
                  w[f"{name}.norm.bias"], *norm)
        return norm.out

    def norm_buffers(self, name: str, side: int) -> Norm:
        dim, buffer = self.dim(side), self.program.buffer
        return Norm(self.totals[side], buffer(f"{name}.unit", side, dim), buffer(f"{name}.scale", side, 1),
                    buffer(f"{name}.out", side, dim))

    def linear(self, name: str, x: Buffer, buffer: str = "") -> Buffer:
        """out = x W^T, without the bias."""
        weight = self.weights[f"{name}.weight"]
        out = self.program.buffer(buffer or f"{name}.out", x.rows, self.program.row_counts[weight.rows])
        self.emit(MATMUL, out, x, weight, False, True, False)
        return out

    def linear_with_bias(self, name: str, x: Buffer) -> Buffer:
        """out = x W^T + bias."""
        out = self.linear(name, x)
        self.emit(ADD_BIAS, out, self.weights[f"{name}.bias"])
        return out

    def add_norm(self, norm: str, x: Buffer, y: Buffer, linear: str) -> Buffer:
        """out = LayerNorm(x + y + bias), with the bias of the linear map that made y."""
        w, buffers = self.weights, self.norm_buffers(norm, x.rows)
        self.emit(ADD_NORM, x, y, w[f"{linear}.bias"], w[f"{norm}.weight"], w[f"{norm}.bias"], *buffers)
        return buffers.out

    def attend(self, name: str, queries: Buffer, keys: Keys, *, causal: bool) -> Buffer:
        """softmax(q k^T / sqrt(D / H)) v, D columns; `queries` has the queries in its first columns."""
        side = queries.rows
        mixed = self.program.buffer(f"{name}.mixed", side, self.dim(side))
        self.emit(ATTENTION, side, keys.side, self.heads(side), causal, queries, keys.buffer, keys.key, keys.value,
                  self.probabilities(name, side, keys.side), mixed)
        return mixed

    def probabilities(self, name: str, query_side: int, key_side: int) -> Buffer:
        """The attention probabilities: for each query token H rows of up to S."""
        return self.program.buffer(f"{name}.probabilities", query_side, self.heads(query_side), longest=key_side)

    def out_of(self, name: str, mixed: Buffer) -> Buffer:
        """The last map of attention or feed-forward; its result is added at once, so they all share a buffer."""
        return self.linear(name, mixed, f"y{mixed.rows}")

    def self_attention(self, layer: str, x: Buffer, *, causal: bool) -> Buffer:
        name = f"{layer}.attention"
        qkv = self.linear_with_bias(f"{name}.qkv", x)
        mixed = self.attend(name, qkv, Keys(qkv, x.rows, x.width, 2 * x.width), causal=causal)
        return self.add_norm(f"{layer}.norm_attention", x, self.out_of(f"{name}.out", mixed), f"{name}.out")

    def memory_keys(self, layer: str, memory: Buffer) -> Keys:
        """Keys and values that a decoder layer makes of the encoder's output."""
        return Keys(self.linear_with_bias(f"{layer}.cross_attention.kv", memory), INPUTS, 0, self.sizes.decoder_dim)

    def cross_attention(self, layer: str, queries_from: Buffer, state: Buffer, keys: Keys) -> Buffer:
        name = f"{layer}.cross_attention"
        mixed = self.attend(name, self.linear_with_bias(f"{name}.q", queries_from), keys, causal=False)
        return self.add_norm(f"{layer}.norm_cross_attention", state, self.out_of(f"{name}.out", mixed), f"{name}.out")

    def feed_forward(self, layer: str, x: Buffer) -> Buffer:
        """LayerNorm(x + max(x W1^T + b1, 0) W2^T + b2)."""
        name = f"{layer}.feed_forward"
        hidden = self.linear(f"{name}.up", x)
        self.emit(RELU, hidden, self.weights[f"{name}.up.bias"])
        return self.add_norm(f"{layer}.norm_feed_forward", x, self.out_of(f"{name}.down", hidden), f"{name}.down")
