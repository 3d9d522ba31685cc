"""Inputs to states: every layer's forward on packed rows, written on a tape. What the way back needs is left in rooms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from gcdformer.config import ModelSection
from gcdformer.models.packed.operations import ADD_BIAS, ADD_NORM, ATTEND, EMBED, GIVEN, INPUTS, PRODUCT, RELU
from gcdformer.models.packed.tape import Room, Tape


class Keys(NamedTuple):
    """What queries look at: tokens of a side, whose keys are at column `key` of a room, their values at column `value`."""

    room: Room
    side: int
    key: int
    value: int


class Norm(NamedTuple):
    """The rooms of a layer norm: one vector, the normalised ones, what each was multiplied by, and the result."""

    total: Room
    unit: Room
    scale: Room
    out: Room


class Forward:
    """Writes the layers; the weights are read where they are."""

    def __init__(self, sizes: ModelSection, weights: Mapping[str, Tensor]) -> None:
        self.sizes, self.part = sizes, ""
        self.tape = Tape(sizes.encoder_dim // sizes.encoder_heads, sizes.decoder_dim // sizes.decoder_heads,
                         sizes.norm_epsilon)
        self.weights = {name: self.tape.fixed(name, weight) for name, weight in weights.items()}
        self.totals = [self.tape.fixed(f"total {side}", torch.zeros(self.dim(side))) for side in (INPUTS, GIVEN)]

    def write(self, operation: int, *numbers: Room | int) -> None:
        self.tape.write(self.part, operation, *numbers)

    def dim(self, side: int) -> int:
        return self.sizes.encoder_dim if side == INPUTS else self.sizes.decoder_dim

    def heads(self, side: int) -> int:
        return self.sizes.encoder_heads if side == INPUTS else self.sizes.decoder_heads

    def encode(self) -> Room:
        x = self.embed("embed_inputs", INPUTS)
        for index in range(self.sizes.encoder_layers):
            layer = f"encoder.{index}"
            x = self.self_attention(layer, x, causal=False)
            x = self.feed_forward(layer, x)
        return x

    def decode(self, memory: Room) -> Room:
        x = self.embed("embed_outputs", GIVEN)
        for index in range(self.sizes.decoder_layers):
            layer = f"decoder.{index}"
            state = self.self_attention(layer, x, causal=True)
            asking = x if self.sizes.cross_query == "input" else state
            x = self.feed_forward(layer, self.cross_attention(layer, asking, state, self.memory_keys(layer, memory)))
        return x

    def logits(self, state: Room) -> Room:
        """Without the bias."""
        words = self.weights["embed_outputs.tokens.weight"]
        out = self.tape.room("logits", GIVEN, self.tape.counts[words.rows])
        self.write(PRODUCT, out, state, words, False, True, False)
        return out

    def embed(self, name: str, side: int) -> Room:
        w, norm = self.weights, self.norm_rooms(f"{name}.norm", side)
        self.write(EMBED, side, w[f"{name}.tokens.weight"], w[f"{name}.positions.weight"], w[f"{name}.norm.weight"],
                   w[f"{name}.norm.bias"], *norm)
        return norm.out

    def norm_rooms(self, name: str, side: int) -> Norm:
        dim, room = self.dim(side), self.tape.room
        return Norm(self.totals[side], room(f"{name}.unit", side, dim), room(f"{name}.scale", side, 1),
                    room(f"{name}.out", side, dim))

    def linear(self, name: str, x: Room, room: str = "") -> Room:
        """x W^T, without the bias."""
        weight = self.weights[f"{name}.weight"]
        out = self.tape.room(room or f"{name}.out", x.rows, self.tape.counts[weight.rows])
        self.write(PRODUCT, out, x, weight, False, True, False)
        return out

    def linear_with_bias(self, name: str, x: Room) -> Room:
        out = self.linear(name, x)
        self.write(ADD_BIAS, out, self.weights[f"{name}.bias"])
        return out

    def add_norm(self, norm: str, x: Room, y: Room, linear: str) -> Room:
        """norm(x + y + the linear map's bias)."""
        w, rooms = self.weights, self.norm_rooms(norm, x.rows)
        self.write(ADD_NORM, x, y, w[f"{linear}.bias"], w[f"{norm}.weight"], w[f"{norm}.bias"], *rooms)
        return rooms.out

    def attend(self, name: str, queries: Room, keys: Keys, *, causal: bool) -> Room:
        """Values mixed by attention; `queries` has its queries in its first columns."""
        side = queries.rows
        mixed = self.tape.room(f"{name}.mixed", side, self.dim(side))
        self.write(ATTEND, side, keys.side, self.heads(side), causal, queries, keys.room, keys.key, keys.value,
                   self.shares(name, side, keys.side), mixed)
        return mixed

    def shares(self, name: str, asking: int, asked: int) -> Room:
        return self.tape.room(f"{name}.shares", asking, self.heads(asking), longest=asked)

    def out_of(self, name: str, mixed: Room) -> Room:
        """The map after attention or inside the feed-forward layer, whose result is added at once."""
        return self.linear(name, mixed, f"y{mixed.rows}")

    def self_attention(self, layer: str, x: Room, *, causal: bool) -> Room:
        name = f"{layer}.attention"
        qkv = self.linear_with_bias(f"{name}.qkv", x)
        mixed = self.attend(name, qkv, Keys(qkv, x.rows, x.width, 2 * x.width), causal=causal)
        return self.add_norm(f"{layer}.norm_attention", x, self.out_of(f"{name}.out", mixed), f"{name}.out")

    def memory_keys(self, layer: str, memory: Room) -> Keys:
        """What a decoder layer reads of the encoder."""
        return Keys(self.linear_with_bias(f"{layer}.cross_attention.kv", memory), INPUTS, 0, self.sizes.decoder_dim)

    def cross_attention(self, layer: str, asking: Room, state: Room, keys: Keys) -> Room:
        name = f"{layer}.cross_attention"
        mixed = self.attend(name, self.linear_with_bias(f"{name}.q", asking), keys, causal=False)
        return self.add_norm(f"{layer}.norm_cross_attention", state, self.out_of(f"{name}.out", mixed), f"{name}.out")

    def feed_forward(self, layer: str, x: Room) -> Room:
        name = f"{layer}.feed_forward"
        inner = self.linear(f"{name}.up", x)
        self.write(RELU, inner, self.weights[f"{name}.up.bias"])
        return self.add_norm(f"{layer}.norm_feed_forward", x, self.out_of(f"{name}.down", inner), f"{name}.down")
