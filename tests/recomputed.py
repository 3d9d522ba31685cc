"""A transformer's attention, computed a second time from the layers' weights, apart from the layers' own forward pass.

An opinion independent of the hooks and of the code that trains: tests hold them to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor

from gcdformer.models import Seq2Seq
from gcdformer.models.inspect import Attention, Pattern
from gcdformer.models.layers import CrossAttention, DecoderLayer, EncoderLayer, SelfAttention
from gcdformer.models.transformer import Transformer


@torch.inference_mode()
def recomputed_attention(model: Seq2Seq, inputs: Sequence[int], outputs: Sequence[int]) -> Attention | None:
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
