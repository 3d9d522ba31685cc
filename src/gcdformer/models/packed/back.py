"""The gradient of some rows of a batch, written out by hand, layer by layer in reverse."""

from __future__ import annotations

import torch

from gcdformer.models.packed.forward import Forward
from gcdformer.models.packed.memory import FlatTensors
from gcdformer.models.packed.operations import (
    ADD,
    ATTEND_BACK,
    CROSS_ENTROPY,
    EMBED_BACK,
    GIVEN,
    INPUTS,
    NORM_BACK,
    PRODUCT,
    RELU_BACK,
    SUM_ROWS,
    ZERO,
)
from gcdformer.models.packed.rows import PackedBatch
from gcdformer.models.packed.tape import Room
from gcdformer.models.transformer import Transformer

FIRST, ANOTHER = "first", "another"
"""The parts of the tape: the first rows of a shard set its gradient, others add to it."""
ROWS_AT_ONCE = 64
"""So few that what the way back needs is still in the cache."""


class Shard(Forward):
    """Forward and back for some rows of a batch, with rooms of its own; its gradients too, unless they are given."""

    def __init__(self, model: Transformer, weights: FlatTensors, gradients: FlatTensors | None = None) -> None:
        super().__init__(model.sizes, weights.tensors)
        self.gradients = gradients or FlatTensors(model)
        fixed = self.tape.fixed
        self.changes = {name: fixed(f"d {name}", tensor) for name, tensor in self.gradients.tensors.items()}
        self.added_to = fixed("d all but the maps inside the layers", self.gradients.flat[self.gradients.inner:])
        self.no_bias = [fixed(f"no bias {side}", torch.zeros(self.dim(side))) for side in (INPUTS, GIVEN)]
        for self.part, self.adding in ((FIRST, False), (ANOTHER, True)):
            self.write_all()

    def learn(self, batch: PackedBatch, share: float) -> float:
        """The summed loss of these rows; `gradients` becomes the gradient of `share` times it."""
        rows, loss = len(batch.inputs.lengths), 0.0
        for start in range(0, rows, ROWS_AT_ONCE):
            some = batch.part(start, min(rows, start + ROWS_AT_ONCE))
            loss += self.tape.run(ANOTHER if start else FIRST, (some.inputs, some.given, some.given), some.wanted, share)
        return loss

    def write_all(self) -> None:
        if not self.adding:
            self.write(ZERO, self.added_to)  # the maps inside the layers are written, not added to
        memory = self.encode()
        state = self.decode(memory)
        logits = self.logits(state)
        self.write(CROSS_ENTROPY, logits, self.weights["output_bias"], self.changes["output_bias"])
        words = "embed_outputs.tokens.weight"
        self.write(PRODUCT, self.changes[words], logits, state, True, False, self.adding)
        change = self.tape.room("change", GIVEN, self.sizes.decoder_dim)
        self.write(PRODUCT, change, logits, self.weights[words], False, False, False)
        self.encode_back(self.decode_back(change, memory))

    def encode_back(self, change: Room) -> None:
        for index in reversed(range(self.sizes.encoder_layers)):
            layer = f"encoder.{index}"
            change = self.feed_forward_back(layer, change)
            x = self.tape.rooms[f"encoder.{index - 1}.norm_feed_forward.out" if index else "embed_inputs.norm.out"]
            change = self.self_attention_back(layer, change, x, causal=False)
        self.embed_back("embed_inputs", change)

    def decode_back(self, change: Room, memory: Room) -> Room:
        d_memory = self.tape.room("d_memory", INPUTS, memory.width)
        self.write(ZERO, d_memory)
        from_input = self.sizes.cross_query == "input"
        for index in reversed(range(self.sizes.decoder_layers)):
            layer = f"decoder.{index}"
            change = self.feed_forward_back(layer, change)
            x = self.tape.rooms[f"decoder.{index - 1}.norm_feed_forward.out" if index else "embed_outputs.norm.out"]
            asking = x if from_input else self.tape.rooms[f"{layer}.norm_attention.out"]
            change, d_asking = self.cross_attention_back(layer, change, asking, memory, d_memory)
            if not from_input:
                self.write(ADD, change, d_asking)
            change = self.self_attention_back(layer, change, x, causal=True)
            if from_input:
                self.write(ADD, change, d_asking)
        self.embed_back("embed_outputs", change)
        return d_memory

    def norm_back(self, norm: str, change: Room, added: Room, room: str) -> Room:
        rooms, d = self.norm_rooms(norm, change.rows), self.changes
        d_total = self.tape.room(f"{room} {change.rows}", change.rows, change.width)
        self.write(NORM_BACK, change, rooms.unit, rooms.scale, self.weights[f"{norm}.weight"], d[f"{norm}.weight"],
                   d[f"{norm}.bias"], d_total, added)
        return d_total

    def linear_back(self, name: str, change: Room, x: Room, room: str) -> Room:
        """The weight's gradient, and the change of x in a room."""
        self.write(PRODUCT, self.changes[f"{name}.weight"], change, x, True, False, self.adding)
        d_x = self.tape.room(f"{room} {x.rows}", x.rows, x.width)
        self.write(PRODUCT, d_x, change, self.weights[f"{name}.weight"], False, False, False)
        return d_x

    def linear_back_onto(self, name: str, change: Room, x: Room, d_x: Room) -> None:
        """The weight's gradient; the change of x is added to what is there."""
        self.write(PRODUCT, self.changes[f"{name}.weight"], change, x, True, False, self.adding)
        self.write(PRODUCT, d_x, change, self.weights[f"{name}.weight"], False, False, True)

    def feed_forward_back(self, layer: str, change: Room) -> Room:
        name, d, rooms = f"{layer}.feed_forward", self.changes, self.tape.rooms
        before = "norm_attention" if change.rows == INPUTS else "norm_cross_attention"
        d_x = self.norm_back(f"{layer}.norm_feed_forward", change, d[f"{name}.down.bias"], "d1")
        inner = rooms[f"{name}.up.out"]
        d_inner = self.linear_back(f"{name}.down", d_x, inner, "d_inner")
        self.write(RELU_BACK, d_inner, inner, d[f"{name}.up.bias"])
        self.linear_back_onto(f"{name}.up", d_inner, rooms[f"{layer}.{before}.out"], d_x)
        return d_x

    def self_attention_back(self, layer: str, change: Room, x: Room, *, causal: bool) -> Room:
        name, side, dim, rooms = f"{layer}.attention", x.rows, x.width, self.tape.rooms
        d_x = self.norm_back(f"{layer}.norm_attention", change, self.changes[f"{name}.out.bias"], "d2")
        d_mixed = self.linear_back(f"{name}.out", d_x, rooms[f"{name}.mixed"], "d_mixed")
        qkv, d_qkv = rooms[f"{name}.qkv.out"], self.tape.room(f"d_qkv {side}", side, 3 * dim)
        self.write(ZERO, d_qkv)
        self.write(ATTEND_BACK, side, side, self.heads(side), causal, qkv, qkv, dim, 2 * dim, self.shares(name, side, side),
                   d_mixed, d_qkv, d_qkv)
        self.write(SUM_ROWS, d_qkv, self.changes[f"{name}.qkv.bias"])
        self.linear_back_onto(f"{name}.qkv", d_qkv, x, d_x)
        return d_x

    def cross_attention_back(self, layer: str, change: Room, asking: Room, memory: Room,
                             d_memory: Room) -> tuple[Room, Room]:
        """The change of the state, and that of what the queries were made from."""
        name, dim, d, rooms = f"{layer}.cross_attention", change.width, self.changes, self.tape.rooms
        d_state = self.norm_back(f"{layer}.norm_cross_attention", change, d[f"{name}.out.bias"], "d3")
        d_mixed = self.linear_back(f"{name}.out", d_state, rooms[f"{name}.mixed"], "d_mixed")
        d_q, d_kv = self.tape.room("d_q", GIVEN, dim), self.tape.room("d_kv", INPUTS, 2 * dim)
        self.write(ZERO, d_q)
        self.write(ZERO, d_kv)
        self.write(ATTEND_BACK, GIVEN, INPUTS, self.heads(GIVEN), False, rooms[f"{name}.q.out"], rooms[f"{name}.kv.out"], 0,
                   dim, self.shares(name, GIVEN, INPUTS), d_mixed, d_q, d_kv)
        self.write(SUM_ROWS, d_q, d[f"{name}.q.bias"])
        self.write(SUM_ROWS, d_kv, d[f"{name}.kv.bias"])
        self.linear_back_onto(f"{name}.kv", d_kv, memory, d_memory)
        return d_state, self.linear_back(f"{name}.q", d_q, asking, "d_asking")

    def embed_back(self, name: str, change: Room) -> None:
        d_total = self.norm_back(f"{name}.norm", change, self.no_bias[change.rows], "d")
        self.write(EMBED_BACK, change.rows, d_total, self.changes[f"{name}.tokens.weight"],
                   self.changes[f"{name}.positions.weight"])
