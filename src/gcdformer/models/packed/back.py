"""The gradient of some rows of a batch, written out by hand, layer by layer in reverse."""

from __future__ import annotations

import numpy as np
import torch

from gcdformer.models.packed import kernels
from gcdformer.models.packed.forward import Attend, Forward
from gcdformer.models.packed.memory import FlatTensors, Floats, Pair
from gcdformer.models.packed.rows import PackedBatch, PackedRows
from gcdformer.models.transformer import Transformer


class Shard(Forward):
    """Forward and back for some rows of a batch, with rooms of its own; its gradients too, unless they are given."""

    def __init__(self, model: Transformer, weights: FlatTensors, gradients: FlatTensors | None = None) -> None:
        super().__init__(model.sizes, weights.pairs)
        self.gradients = gradients or FlatTensors(model)
        self.no_bias: Floats = np.zeros(max(self.sizes.encoder_dim, self.sizes.decoder_dim), dtype=np.float32)

    def learn(self, batch: PackedBatch, share: float) -> float:
        """The summed loss of these rows; `gradients` becomes the gradient of `share` times it."""
        self.gradients.flat[self.gradients.inner:].zero_()  # the maps inside the layers are written, not added to
        inputs, given = batch.inputs, batch.given
        memory = self.encode(inputs)
        state = self.decode(given, memory, inputs)
        words = self.weights["embed_outputs.tokens.weight"]
        logits = self.room("logits", len(given.tokens), len(words.a))
        torch.mm(state.t, words.t.t(), out=logits.t)
        loss: float = kernels.cross_entropy(logits.a, self.weights["output_bias"].a, batch.wanted, np.float32(share),
                                            self.gradients["output_bias"].a, self.lanes)
        torch.mm(logits.t.t(), state.t, out=self.gradients["embed_outputs.tokens.weight"].t)
        change = self.room("change", len(given.tokens), self.sizes.decoder_dim)
        torch.mm(logits.t, words.t, out=change.t)
        d_memory = self.decode_back(change, given, memory, inputs)
        self.encode_back(d_memory, inputs)
        return loss

    def encode_back(self, change: Pair, rows: PackedRows) -> None:
        for index in reversed(range(self.sizes.encoder_layers)):
            layer = f"encoder.{index}"
            change = self.feed_forward_back(layer, change)
            x = self.output_of(f"encoder.{index - 1}.norm_feed_forward" if index else "embed_inputs.norm", change)
            change = self.self_attention_back(layer, change, x, rows, self.sizes.encoder_heads, self.encoder_kernels[1],
                                              causal=False)
        self.embed_back("embed_inputs", change, rows)

    def decode_back(self, change: Pair, rows: PackedRows, memory: Pair, memory_rows: PackedRows) -> Pair:
        d_memory = self.room("d_memory", *memory.a.shape)
        d_memory.t.zero_()
        for index in reversed(range(self.sizes.decoder_layers)):
            layer = f"decoder.{index}"
            change = self.feed_forward_back(layer, change)
            x = self.output_of(f"decoder.{index - 1}.norm_feed_forward" if index else "embed_outputs.norm", change)
            state = self.output_of(f"{layer}.norm_attention", change)
            from_input = self.sizes.cross_query == "input"
            change, d_asking = self.cross_attention_back(layer, change, x if from_input else state, rows, memory,
                                                         memory_rows, d_memory)
            if not from_input:
                change.t.add_(d_asking.t)
            change = self.self_attention_back(layer, change, x, rows, self.sizes.decoder_heads, self.decoder_kernels[1],
                                              causal=True)
            if from_input:
                change.t.add_(d_asking.t)
        self.embed_back("embed_outputs", change, rows)
        return d_memory

    def output_of(self, norm: str, like: Pair) -> Pair:
        return self.room(f"{norm}.out", *like.a.shape)

    def norm_back(self, norm: str, change: Pair, added: Floats, room: str) -> Pair:
        n, dim = change.a.shape
        _, unit, scale, _ = self.norm_rooms(norm, n, dim)
        d_total = self.room(room, n, dim)
        kernels.norm_back(change.a, unit, scale, self.weights[f"{norm}.weight"].a, self.gradients[f"{norm}.weight"].a,
                          self.gradients[f"{norm}.bias"].a, d_total.a, added)
        return d_total

    def linear_back(self, name: str, change: Pair, x: Pair, room: str) -> Pair:
        """The weight's gradient, and the change of x in a room."""
        torch.mm(change.t.t(), x.t, out=self.gradients[f"{name}.weight"].t)
        d_x = self.room(room, *x.a.shape)
        torch.mm(change.t, self.weights[f"{name}.weight"].t, out=d_x.t)
        return d_x

    def linear_back_onto(self, name: str, change: Pair, x: Pair, d_x: Pair) -> None:
        """The weight's gradient; the change of x is added to what is there."""
        torch.mm(change.t.t(), x.t, out=self.gradients[f"{name}.weight"].t)
        torch.addmm(d_x.t, change.t, self.weights[f"{name}.weight"].t, out=d_x.t)

    def feed_forward_back(self, layer: str, change: Pair) -> Pair:
        name, g = f"{layer}.feed_forward", self.gradients
        side = layer.partition(".")[0]
        inner_name = "norm_attention" if side == "encoder" else "norm_cross_attention"
        d_x = self.norm_back(f"{layer}.norm_feed_forward", change, g[f"{name}.down.bias"].a, f"{side}.d1")
        inner = self.room(f"{name}.up.out", len(change.a), len(g[f"{name}.up.bias"].a))
        d_inner = self.linear_back(f"{name}.down", d_x, inner, f"{side}.d_inner")
        kernels.relu_back(d_inner.a, inner.a, g[f"{name}.up.bias"].a)
        self.linear_back_onto(f"{name}.up", d_inner, self.output_of(f"{layer}.{inner_name}", change), d_x)
        return d_x

    def self_attention_back(self, layer: str, change: Pair, x: Pair, rows: PackedRows, heads: int, attend_back: Attend, *,
                            causal: bool) -> Pair:
        name, n, dim = f"{layer}.attention", *x.a.shape
        side, g = layer.partition(".")[0], self.gradients
        d_x = self.norm_back(f"{layer}.norm_attention", change, g[f"{name}.out.bias"].a, f"{side}.d2")
        d_mixed = self.linear_back(f"{name}.out", d_x, self.room(f"{name}.mixed", n, dim), f"{side}.d_mixed")
        qkv, d_qkv = self.room(f"{name}.qkv.out", n, 3 * dim), self.room(f"{side}.d_qkv", n, 3 * dim)
        shares = self.room(f"{name}.shares", n * heads * rows.longest, 1)
        flat, d_flat = qkv.a.reshape(-1), d_qkv.a.reshape(-1)
        d_qkv.t.zero_()
        attend_back(d_mixed.a.reshape(-1), flat, 3 * dim, flat, 3 * dim, dim, 2 * dim, rows.starts, rows.starts,
                    rows.lengths, heads, causal, shares.a.reshape(-1), d_flat, d_flat,
                    self.room("scores", rows.longest, 1).a.reshape(-1))
        kernels.sum_rows(d_qkv.a, g[f"{name}.qkv.bias"].a)
        self.linear_back_onto(f"{name}.qkv", d_qkv, x, d_x)
        return d_x

    def cross_attention_back(self, layer: str, change: Pair, asking: Pair, rows: PackedRows, memory: Pair,
                             memory_rows: PackedRows, d_memory: Pair) -> tuple[Pair, Pair]:
        """The change of the state, and that of what the queries were made from."""
        name, n, dim = f"{layer}.cross_attention", *change.a.shape
        heads, g = self.sizes.decoder_heads, self.gradients
        d_state = self.norm_back(f"{layer}.norm_cross_attention", change, g[f"{name}.out.bias"].a, "decoder.d3")
        d_mixed = self.linear_back(f"{name}.out", d_state, self.room(f"{name}.mixed", n, dim), "decoder.d_mixed")
        q, kv = self.room(f"{name}.q.out", n, dim), self.room(f"{name}.kv.out", len(memory.a), 2 * dim)
        d_q, d_kv = self.room("decoder.d_q", n, dim), self.room("decoder.d_kv", len(memory.a), 2 * dim)
        shares = self.room(f"{name}.shares", n * heads * memory_rows.longest, 1)
        d_q.t.zero_()
        d_kv.t.zero_()
        self.decoder_kernels[1](
            d_mixed.a.reshape(-1), q.a.reshape(-1), dim, kv.a.reshape(-1), 2 * dim, 0, dim, rows.starts,
            memory_rows.starts, memory_rows.lengths, heads, False, shares.a.reshape(-1), d_q.a.reshape(-1),
            d_kv.a.reshape(-1), self.room("scores", memory_rows.longest, 1).a.reshape(-1))
        kernels.sum_rows(d_q.a, g[f"{name}.q.bias"].a)
        kernels.sum_rows(d_kv.a, g[f"{name}.kv.bias"].a)
        self.linear_back_onto(f"{name}.kv", d_kv, memory, d_memory)
        return d_state, self.linear_back(f"{name}.q", d_q, asking, "decoder.d_asking")

    def embed_back(self, name: str, change: Pair, rows: PackedRows) -> None:
        dim = change.a.shape[1]
        d_total = self.norm_back(f"{name}.norm", change, self.no_bias[:dim], f"{name}.d")
        kernels.embed_back(rows.tokens, rows.places, d_total.a, self.gradients[f"{name}.tokens.weight"].a,
                           self.gradients[f"{name}.positions.weight"].a)
