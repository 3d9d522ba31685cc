"""The layers of a post-norm transformer with ReLU, each written once and used both for training and for decoding.

Shapes: N rows, T query positions, S key positions, H heads, E = D / H, D the width.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gcdformer.numbers.encoding import PAD

KeysValues = tuple[Tensor, Tensor]


def attend(queries_NHTE: Tensor, keys_NHSE: Tensor, values_NHSE: Tensor, bias: Tensor | None, pattern: nn.Module) -> Tensor:
    """Attention; `bias` is added to the scores (-inf hides a key), `pattern` is their softmax. Gives (N, T, D)."""
    scale = queries_NHTE.shape[-1] ** -0.5
    scores = (queries_NHTE * scale) @ keys_NHSE.transpose(-1, -2)
    if bias is not None:
        scores = scores + bias
    mixed: Tensor = pattern(scores) @ values_NHSE
    return mixed.transpose(1, 2).flatten(2)


class SelfAttention(nn.Module):
    """Attention of a sequence to itself; queries, keys and values in one product."""

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.pattern = nn.Softmax(dim=-1)
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)

    def forward(self, x_NTD: Tensor, bias: Tensor | None, past: KeysValues | None) -> tuple[Tensor, KeysValues]:
        n, t, dim = x_NTD.shape
        queries, keys, values = self.qkv(x_NTD).view(n, t, 3, self.heads, dim // self.heads).permute(2, 0, 3, 1, 4)
        if past is not None:
            keys, values = torch.cat([past[0], keys], 2), torch.cat([past[1], values], 2)
        return self.out(attend(queries, keys, values, bias, self.pattern)), (keys, values)


class CrossAttention(nn.Module):
    """Attention of the decoder to the encoder, whose width may differ."""

    def __init__(self, dim: int, memory_dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.pattern = nn.Softmax(dim=-1)
        self.q = nn.Linear(dim, dim)
        self.kv = nn.Linear(memory_dim, 2 * dim)
        self.out = nn.Linear(dim, dim)

    def keys_values(self, memory_NSD: Tensor) -> KeysValues:
        n, s, _ = memory_NSD.shape
        keys, values = self.kv(memory_NSD).view(n, s, 2, self.heads, -1).permute(2, 0, 3, 1, 4)
        return keys, values

    def forward(self, x_NTD: Tensor, memory: KeysValues, bias: Tensor | None) -> Tensor:
        n, t, _ = x_NTD.shape
        queries = self.q(x_NTD).view(n, t, self.heads, -1).transpose(1, 2)
        return self.out(attend(queries, *memory, bias, self.pattern))  # type: ignore[no-any-return]


class FeedForward(nn.Module):
    """Two linear maps with a ReLU between, four times as wide inside."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.up = nn.Linear(dim, 4 * dim)
        self.down = nn.Linear(4 * dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(F.relu(self.up(x)))  # type: ignore[no-any-return]


class EncoderLayer(nn.Module):
    """Self-attention and feed-forward, each added to its input and normalised."""

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.attention = SelfAttention(dim, heads)
        self.norm_attention = nn.LayerNorm(dim)
        self.feed_forward = FeedForward(dim)
        self.norm_feed_forward = nn.LayerNorm(dim)

    def forward(self, x_NSD: Tensor, bias: Tensor | None) -> Tensor:
        x_NSD = self.norm_attention(x_NSD + self.attention(x_NSD, bias, None)[0])
        return self.norm_feed_forward(x_NSD + self.feed_forward(x_NSD))  # type: ignore[no-any-return]


class DecoderLayer(nn.Module):
    """Self-attention, attention to the encoder and feed-forward, each added to its input and normalised."""

    def __init__(self, dim: int, memory_dim: int, heads: int, *, query_from_input: bool) -> None:
        super().__init__()
        self.query_from_input = query_from_input
        self.attention = SelfAttention(dim, heads)
        self.norm_attention = nn.LayerNorm(dim)
        self.cross_attention = CrossAttention(dim, memory_dim, heads)
        self.norm_cross_attention = nn.LayerNorm(dim)
        self.feed_forward = FeedForward(dim)
        self.norm_feed_forward = nn.LayerNorm(dim)

    def keys_values(self, memory_NSD: Tensor) -> KeysValues:
        """What this layer reads of the encoder, computed once for all output tokens."""
        return self.cross_attention.keys_values(memory_NSD)

    def forward(self, x_NTD: Tensor, bias: Tensor | None, past: KeysValues | None, memory: KeysValues,
                memory_bias: Tensor | None) -> tuple[Tensor, KeysValues]:
        mixed, past = self.attention(x_NTD, bias, past)
        state = self.norm_attention(x_NTD + mixed)
        queries = x_NTD if self.query_from_input else state
        state = self.norm_cross_attention(state + self.cross_attention(queries, memory, memory_bias))
        return self.norm_feed_forward(state + self.feed_forward(state)), past


class Embedding(nn.Module):
    """Tokens plus learned positions, normalised."""

    def __init__(self, vocabulary: int, positions: int, dim: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, dim, padding_idx=PAD)
        self.positions = nn.Embedding(positions, dim)
        self.norm = nn.LayerNorm(dim)

    def forward(self, tokens_NT: Tensor, start: int = 0) -> Tensor:
        places = self.positions.weight[start:start + tokens_NT.shape[1]]
        return self.norm(self.tokens(tokens_NT) + places)  # type: ignore[no-any-return]


def initialise_layers(model: nn.Module, generator: torch.Generator) -> None:
    """Linear maps by Xavier's uniform distribution with zero biases, embeddings normal with variance 1/D, norms at one."""
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight, generator=generator)
            nn.init.zeros_(module.bias)
        elif isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, std=module.embedding_dim**-0.5, generator=generator)
            if module.padding_idx is not None:
                with torch.no_grad():
                    module.weight[module.padding_idx].zero_()
        elif isinstance(module, nn.LayerNorm):
            nn.init.ones_(module.weight)
            nn.init.zeros_(module.bias)
