"""The gradient of some rows of a batch: emits the backward pass of every layer, in reverse order of `forward.py`.

What autograd derives from `transformer.py` and `layers.py`, written out by hand. A gradient has the shape of what it is the
gradient of; `grad_x` is d loss / d x.
"""

from __future__ import annotations

from typing import final

import torch

from gcdformer.models.packed.forward import Forward
from gcdformer.models.packed.instructions import (
    ADD,
    ATTENTION_BACKWARD,
    CROSS_ENTROPY,
    EMBED_BACKWARD,
    GIVEN,
    INPUTS,
    MATMUL,
    NORM_BACKWARD,
    RELU_BACKWARD,
    SUM_ROWS,
    ZERO,
)
from gcdformer.models.packed.program import Buffer, FlatTensors
from gcdformer.models.packed.rows import PackedBatch
from gcdformer.models.transformer import Transformer

FIRST, ANOTHER = "first", "another"
"""The sections of the program: the first rows of a shard set its gradient, others add to it."""
ROWS_AT_ONCE = 64
"""So few that what the backward pass needs is still in the cache."""


@final
class Shard:
    """Forward and backward for some rows of a batch, with buffers of its own; its gradients too, unless they are given."""

    def __init__(self, model: Transformer, weights: FlatTensors, gradients: FlatTensors | None = None) -> None:
        self.layers = Forward(model.sizes, weights.tensors)
        self.sizes, self.weights, self.program = model.sizes, self.layers.weights, self.layers.program
        self.gradients = gradients or FlatTensors(model)
        tensor = self.program.tensor
        self.grads = {name: tensor(f"grad {name}", grad) for name, grad in self.gradients.tensors.items()}
        self.accumulated = tensor("grad of all but the maps inside the layers", self.gradients.flat[self.gradients.inner:])
        self.no_bias = [tensor(f"no bias {side}", torch.zeros(self.layers.dim(side))) for side in (INPUTS, GIVEN)]
        for self.layers.section, self.accumulate in ((FIRST, False), (ANOTHER, True)):
            self.emit_all()

    def learn(self, batch: PackedBatch, loss_weight: float) -> float:
        """The summed loss of these rows; `gradients` becomes the gradient of `loss_weight` times it."""
        rows, loss = len(batch.inputs.lengths), 0.0
        for start in range(0, rows, ROWS_AT_ONCE):
            part = batch.part(start, min(rows, start + ROWS_AT_ONCE))
            sides = (part.inputs, part.given, part.given)
            loss += self.program.run(ANOTHER if start else FIRST, sides, part.targets, loss_weight)
        return loss

    def emit(self, code: int, *operands: Buffer | int) -> None:
        self.layers.emit(code, *operands)

    def emit_all(self) -> None:
        if not self.accumulate:
            self.emit(ZERO, self.accumulated)  # the gradients of the maps inside the layers are set, not added to
        memory = self.layers.encode()
        state = self.layers.decode(memory)
        logits = self.layers.logits(state)
        self.emit(CROSS_ENTROPY, logits, self.weights["output_bias"], self.grads["output_bias"])  # logits become grad_logits
        embedding = "embed_outputs.tokens.weight"
        self.emit(MATMUL, self.grads[embedding], logits, state, True, False, self.accumulate)
        grad = self.program.buffer("grad_state", GIVEN, self.sizes.decoder_dim)
        self.emit(MATMUL, grad, logits, self.weights[embedding], False, False, False)
        self.encode_backward(self.decode_backward(grad, memory))

    def encode_backward(self, grad: Buffer) -> None:
        for index in reversed(range(self.sizes.encoder_layers)):
            layer = f"encoder.{index}"
            grad = self.feed_forward_backward(layer, grad)
            x = self.program.buffers[f"encoder.{index - 1}.norm_feed_forward.out" if index else "embed_inputs.norm.out"]
            grad = self.self_attention_backward(layer, grad, x, causal=False)
        self.embed_backward("embed_inputs", grad)

    def decode_backward(self, grad: Buffer, memory: Buffer) -> Buffer:
        """The gradient of the encoder's output, summed over the decoder's layers."""
        grad_memory = self.program.buffer("grad_memory", INPUTS, memory.width)
        self.emit(ZERO, grad_memory)
        from_input = self.sizes.cross_query == "input"
        for index in reversed(range(self.sizes.decoder_layers)):
            layer = f"decoder.{index}"
            grad = self.feed_forward_backward(layer, grad)
            x = self.program.buffers[f"decoder.{index - 1}.norm_feed_forward.out" if index else "embed_outputs.norm.out"]
            queries_from = x if from_input else self.program.buffers[f"{layer}.norm_attention.out"]
            grad, grad_queries_from = self.cross_attention_backward(layer, grad, queries_from, memory, grad_memory)
            if not from_input:
                self.emit(ADD, grad, grad_queries_from)
            grad = self.self_attention_backward(layer, grad, x, causal=True)
            if from_input:
                self.emit(ADD, grad, grad_queries_from)
        self.embed_backward("embed_outputs", grad)
        return grad_memory

    def norm_backward(self, norm: str, grad: Buffer, added_bias: Buffer, buffer: str) -> Buffer:
        """The gradient of the sum that was normalised; those of gain and bias, and of a bias in the sum, are added."""
        buffers, grads = self.layers.norm_buffers(norm, grad.rows), self.grads
        grad_total = self.program.buffer(f"{buffer} {grad.rows}", grad.rows, grad.width)
        self.emit(NORM_BACKWARD, grad, buffers.unit, buffers.scale, self.weights[f"{norm}.weight"], grads[f"{norm}.weight"],
                  grads[f"{norm}.bias"], grad_total, added_bias)
        return grad_total

    def linear_backward(self, name: str, grad: Buffer, x: Buffer, buffer: str) -> Buffer:
        """grad_weight = grad^T x; grad_x = grad W, in a buffer."""
        self.emit(MATMUL, self.grads[f"{name}.weight"], grad, x, True, False, self.accumulate)
        grad_x = self.program.buffer(f"{buffer} {x.rows}", x.rows, x.width)
        self.emit(MATMUL, grad_x, grad, self.weights[f"{name}.weight"], False, False, False)
        return grad_x

    def linear_backward_onto(self, name: str, grad: Buffer, x: Buffer, grad_x: Buffer) -> None:
        """grad_weight = grad^T x; grad_x += grad W."""
        self.emit(MATMUL, self.grads[f"{name}.weight"], grad, x, True, False, self.accumulate)
        self.emit(MATMUL, grad_x, grad, self.weights[f"{name}.weight"], False, False, True)

    def feed_forward_backward(self, layer: str, grad: Buffer) -> Buffer:
        name, grads, buffers = f"{layer}.feed_forward", self.grads, self.program.buffers
        before = "norm_attention" if grad.rows == INPUTS else "norm_cross_attention"
        grad_x = self.norm_backward(f"{layer}.norm_feed_forward", grad, grads[f"{name}.down.bias"], "grad_feed_forward")
        hidden = buffers[f"{name}.up.out"]
        grad_hidden = self.linear_backward(f"{name}.down", grad_x, hidden, "grad_hidden")
        self.emit(RELU_BACKWARD, grad_hidden, hidden, grads[f"{name}.up.bias"])
        self.linear_backward_onto(f"{name}.up", grad_hidden, buffers[f"{layer}.{before}.out"], grad_x)
        return grad_x

    def self_attention_backward(self, layer: str, grad: Buffer, x: Buffer, *, causal: bool) -> Buffer:
        name, side, dim, buffers = f"{layer}.attention", x.rows, x.width, self.program.buffers
        grad_x = self.norm_backward(f"{layer}.norm_attention", grad, self.grads[f"{name}.out.bias"], "grad_attention")
        grad_mixed = self.linear_backward(f"{name}.out", grad_x, buffers[f"{name}.mixed"], "grad_mixed")
        qkv, grad_qkv = buffers[f"{name}.qkv.out"], self.program.buffer(f"grad_qkv {side}", side, 3 * dim)
        self.emit(ZERO, grad_qkv)
        self.emit(ATTENTION_BACKWARD, side, side, self.layers.heads(side), causal, qkv, qkv, dim, 2 * dim,
                  self.layers.probabilities(name, side, side), grad_mixed, grad_qkv, grad_qkv)
        self.emit(SUM_ROWS, grad_qkv, self.grads[f"{name}.qkv.bias"])
        self.linear_backward_onto(f"{name}.qkv", grad_qkv, x, grad_x)
        return grad_x

    def cross_attention_backward(self, layer: str, grad: Buffer, queries_from: Buffer, memory: Buffer,
                                 grad_memory: Buffer) -> tuple[Buffer, Buffer]:
        """The gradients of the state and of what the queries were made from; that of the memory is added."""
        name, dim, grads, buffers = f"{layer}.cross_attention", grad.width, self.grads, self.program.buffers
        grad_state = self.norm_backward(f"{layer}.norm_cross_attention", grad, grads[f"{name}.out.bias"], "grad_cross")
        grad_mixed = self.linear_backward(f"{name}.out", grad_state, buffers[f"{name}.mixed"], "grad_mixed")
        grad_q, grad_kv = self.program.buffer("grad_q", GIVEN, dim), self.program.buffer("grad_kv", INPUTS, 2 * dim)
        self.emit(ZERO, grad_q)
        self.emit(ZERO, grad_kv)
        self.emit(ATTENTION_BACKWARD, GIVEN, INPUTS, self.layers.heads(GIVEN), False, buffers[f"{name}.q.out"],
                  buffers[f"{name}.kv.out"], 0, dim, self.layers.probabilities(name, GIVEN, INPUTS), grad_mixed, grad_q,
                  grad_kv)
        self.emit(SUM_ROWS, grad_q, grads[f"{name}.q.bias"])
        self.emit(SUM_ROWS, grad_kv, grads[f"{name}.kv.bias"])
        self.linear_backward_onto(f"{name}.kv", grad_kv, memory, grad_memory)
        return grad_state, self.linear_backward(f"{name}.q", grad_q, queries_from, "grad_queries_from")

    def embed_backward(self, name: str, grad: Buffer) -> None:
        grad_total = self.norm_backward(f"{name}.norm", grad, self.no_bias[grad.rows], "grad_embedding")
        self.emit(EMBED_BACKWARD, grad.rows, grad_total, self.grads[f"{name}.tokens.weight"],
                  self.grads[f"{name}.positions.weight"])
