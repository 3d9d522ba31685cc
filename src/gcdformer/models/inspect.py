"""What a model does with one question: the distribution at each step of greedy decoding, and who attends to whom.

Attention is recomputed from the layers' own weights, apart from the fast path of training, so that the one may change
without the other; a test holds the two to the same logits. Knows token ids, not integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor

from gcdformer.models.interface import Seq2Seq
from gcdformer.models.layers import CrossAttention, DecoderLayer, EncoderLayer, SelfAttention
from gcdformer.models.transformer import Transformer
from gcdformer.numbers.encoding import BEGIN, END

Pattern = Tensor
"""One layer's attention, (heads, queries, keys), rows summing to one."""


@dataclass(frozen=True)
class Trace:
    """Greedy decoding of one row: the tokens chosen, and the distribution over the vocabulary each was chosen from."""

    tokens: list[int]
    distributions: list[Tensor]


@dataclass(frozen=True)
class Attention:
    """A transformer's forward over one row: attention of every layer, and the logits they lead to, (T, V)."""

    encoder: list[Pattern]
    decoder: list[Pattern]
    cross: list[Pattern]
    logits: Tensor


@torch.inference_mode()
def trace(model: Seq2Seq, inputs: Sequence[int], longest: int, forced: Sequence[int] | None = None) -> Trace:
    """Decode one unpadded row as `generate` does, or to the tokens `forced`, and keep the distributions."""
    device = next(model.parameters()).device
    state = model.encode(torch.tensor([list(inputs)], device=device))
    token = BEGIN
    tokens: list[int] = []
    distributions: list[Tensor] = []
    while len(tokens) < longest and token != END:
        states, state = model.advance(state, torch.tensor([[token]], device=device))
        logits = model.project(states[0, -1]).float()
        token = int(logits.argmax()) if forced is None else forced[len(tokens)]
        tokens.append(token)
        distributions.append(logits.softmax(-1))
    return Trace(tokens, distributions)


@torch.inference_mode()
def attention(model: Seq2Seq, inputs: Sequence[int], outputs: Sequence[int]) -> Attention | None:
    """Attention of a transformer that reads `inputs` and is fed `outputs` (BEGIN first); None for recurrent models."""
    if not isinstance(model, Transformer):
        return None
    encoder, decoder, cross = [], [], []
    device = next(model.parameters()).device
    memory = model.embed_inputs(torch.tensor([list(inputs)], device=device))[0]
    for module in model.encoder:
        layer = cast(EncoderLayer, module)
        mixed, pattern = attend_to_itself(layer.attention, memory, None)
        encoder.append(pattern)
        memory = layer.norm_attention(memory + mixed)
        memory = layer.norm_feed_forward(memory + layer.feed_forward(memory))
    x = model.embed_outputs(torch.tensor([list(outputs)], device=device))[0]
    later = torch.ones(len(outputs), len(outputs), dtype=torch.bool, device=device).triu(1)
    for module in model.decoder:
        reader = cast(DecoderLayer, module)
        mixed, pattern = attend_to_itself(reader.attention, x, later)
        decoder.append(pattern)
        state = reader.norm_attention(x + mixed)
        read, pattern = attend_to_inputs(reader.cross_attention, x if reader.query_from_input else state, memory)
        cross.append(pattern)
        state = reader.norm_cross_attention(state + read)
        x = reader.norm_feed_forward(state + reader.feed_forward(state))
    return Attention(encoder, decoder, cross, model.project(x))


def attend_to_itself(layer: SelfAttention, x_TD: Tensor, hidden: Tensor | None) -> tuple[Tensor, Pattern]:
    queries, keys, values = (heads_of(part, layer.heads) for part in layer.qkv(x_TD).chunk(3, dim=-1))
    return mix(queries, keys, values, hidden, layer.out)


def attend_to_inputs(layer: CrossAttention, x_TD: Tensor, memory_SD: Tensor) -> tuple[Tensor, Pattern]:
    keys, values = (heads_of(part, layer.heads) for part in layer.kv(memory_SD).chunk(2, dim=-1))
    return mix(heads_of(layer.q(x_TD), layer.heads), keys, values, None, layer.out)


def heads_of(x_TD: Tensor, heads: int) -> Tensor:
    """(T, D) to (heads, T, D / heads)."""
    return x_TD.reshape(len(x_TD), heads, -1).transpose(0, 1)


def mix(queries: Tensor, keys: Tensor, values: Tensor, hidden: Tensor | None,
        out: torch.nn.Linear) -> tuple[Tensor, Pattern]:
    scores = queries @ keys.transpose(-1, -2) * queries.shape[-1] ** -0.5
    if hidden is not None:
        scores = scores.masked_fill(hidden, float("-inf"))
    pattern = scores.softmax(-1)
    return out((pattern @ values).transpose(0, 1).flatten(1)), pattern
