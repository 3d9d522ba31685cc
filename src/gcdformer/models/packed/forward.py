"""Inputs to states: every layer's forward on packed rows. What the way back needs is left in rooms.

Shapes: a Pair's rows are tokens; D the width, H heads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import torch

from gcdformer.config import ModelSection
from gcdformer.models.packed import kernels
from gcdformer.models.packed.memory import Floats, Pair, Rooms
from gcdformer.models.packed.rows import PackedRows
from gcdformer.numbers.encoding import Integers

Attend = Callable[..., Any]


class Keys(NamedTuple):
    """What queries look at: token i of `pair` has its keys at column `key`, its values at column `value`; row n of the
    batch is tokens starts[n] .. starts[n] + lengths[n]."""

    pair: Pair
    key: int
    value: int
    starts: Integers
    lengths: Integers
    longest: int


class Forward:
    """The layers, reading the weights where they are."""

    def __init__(self, sizes: ModelSection, weights: Mapping[str, Pair]) -> None:
        self.sizes, self.weights = sizes, weights
        self.room = Rooms()
        self.epsilon = np.float32(sizes.norm_epsilon)
        self.lanes: Floats = np.zeros(kernels.LANES, dtype=np.float32)
        self.encoder_kernels = kernels.attention_kernels(sizes.encoder_dim // sizes.encoder_heads)
        self.decoder_kernels = kernels.attention_kernels(sizes.decoder_dim // sizes.decoder_heads)

    def encode(self, rows: PackedRows) -> Pair:
        x = self.embed("embed_inputs", rows, self.sizes.encoder_dim)
        for index in range(self.sizes.encoder_layers):
            layer = f"encoder.{index}"
            x = self.self_attention(layer, x, rows, self.sizes.encoder_heads, self.encoder_kernels[0], causal=False)
            x = self.feed_forward(layer, x)
        return x

    def decode(self, rows: PackedRows, memory: Pair, memory_rows: PackedRows) -> Pair:
        x = self.embed("embed_outputs", rows, self.sizes.decoder_dim)
        for index in range(self.sizes.decoder_layers):
            layer = f"decoder.{index}"
            state = self.self_attention(layer, x, rows, self.sizes.decoder_heads, self.decoder_kernels[0], causal=True)
            asking = x if self.sizes.cross_query == "input" else state
            keys = self.memory_keys(layer, memory, memory_rows)
            state = self.cross_attention(layer, asking, state, rows, keys)
            x = self.feed_forward(layer, state)
        return x

    def embed(self, name: str, rows: PackedRows, dim: int) -> Pair:
        w, n = self.weights, len(rows.tokens)
        total, unit, scale, out = self.norm_rooms(f"{name}.norm", n, dim)
        kernels.embed(rows.tokens, rows.places, w[f"{name}.tokens.weight"].a, w[f"{name}.positions.weight"].a,
                      w[f"{name}.norm.weight"].a, w[f"{name}.norm.bias"].a, self.epsilon, total, unit, scale, out.a)
        return out

    def norm_rooms(self, name: str, n: int, dim: int) -> tuple[Floats, Floats, Floats, Pair]:
        return (self.room(f"{name}.total", 1, dim).a[0], self.room(f"{name}.unit", n, dim).a,
                self.room(f"{name}.scale", n, 1).a[:, 0], self.room(f"{name}.out", n, dim))

    def linear(self, name: str, x: Pair, room: str = "") -> Pair:
        """x W^T, without the bias."""
        weight = self.weights[f"{name}.weight"]
        out = self.room(room or f"{name}.out", len(x.a), len(weight.a))
        torch.mm(x.t, weight.t.t(), out=out.t)
        return out

    def linear_with_bias(self, name: str, x: Pair) -> Pair:
        out = self.linear(name, x)
        kernels.add_bias(out.a, self.weights[f"{name}.bias"].a)
        return out

    def add_norm(self, norm: str, x: Pair, y: Pair, linear: str) -> Pair:
        """norm(x + y + the linear map's bias)."""
        w = self.weights
        total, unit, scale, out = self.norm_rooms(norm, *x.a.shape)
        kernels.add_norm(x.a, y.a, w[f"{linear}.bias"].a, w[f"{norm}.weight"].a, w[f"{norm}.bias"].a, self.epsilon, total,
                         unit, scale, out.a)
        return out

    def attend(self, name: str, kernel: Attend, heads: int, queries: Pair, rows: PackedRows, keys: Keys, dim: int, *,
               causal: bool) -> Pair:
        """Values mixed by attention; `queries` has its queries in its first `dim` columns."""
        n = len(queries.a)
        mixed = self.room(f"{name}.mixed", n, dim)
        shares = self.room(f"{name}.shares", n * heads * keys.longest, 1)
        kernel(queries.a.reshape(-1), queries.a.shape[1], keys.pair.a.reshape(-1), keys.pair.a.shape[1], keys.key,
               keys.value, rows.starts, keys.starts, keys.lengths, heads, causal, shares.a.reshape(-1), mixed.a.reshape(-1))
        return mixed

    def self_attention(self, layer: str, x: Pair, rows: PackedRows, heads: int, kernel: Attend, *, causal: bool) -> Pair:
        name, dim = f"{layer}.attention", x.a.shape[1]
        qkv = self.linear_with_bias(f"{name}.qkv", x)
        keys = Keys(qkv, dim, 2 * dim, rows.starts, rows.lengths, rows.longest)
        mixed = self.attend(name, kernel, heads, qkv, rows, keys, dim, causal=causal)
        return self.add_norm(f"{layer}.norm_attention", x, self.linear(f"{name}.out", mixed, f"y{dim}"), f"{name}.out")

    def memory_keys(self, layer: str, memory: Pair, memory_rows: PackedRows) -> Keys:
        """What a decoder layer reads of the encoder."""
        kv = self.linear_with_bias(f"{layer}.cross_attention.kv", memory)
        return Keys(kv, 0, self.sizes.decoder_dim, memory_rows.starts, memory_rows.lengths, memory_rows.longest)

    def cross_attention(self, layer: str, asking: Pair, state: Pair, rows: PackedRows, keys: Keys) -> Pair:
        name, dim = f"{layer}.cross_attention", state.a.shape[1]
        q = self.linear_with_bias(f"{name}.q", asking)
        mixed = self.attend(name, self.decoder_kernels[0], self.sizes.decoder_heads, q, rows, keys, dim, causal=False)
        y = self.linear(f"{name}.out", mixed, f"y{dim}")
        return self.add_norm(f"{layer}.norm_cross_attention", state, y, f"{name}.out")

    def feed_forward(self, layer: str, x: Pair) -> Pair:
        name, dim = f"{layer}.feed_forward", x.a.shape[1]
        inner = self.linear(f"{name}.up", x)
        kernels.relu(inner.a, self.weights[f"{name}.up.bias"].a)
        y = self.linear(f"{name}.down", inner, f"y{dim}")
        return self.add_norm(f"{layer}.norm_feed_forward", x, y, f"{name}.down")
