"""The paper's model: encoder-decoder, post-norm, ReLU, learned positions, output tied to the decoder's embedding."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from gcdformer.config import ModelSection
from gcdformer.models.hooks import Point, Points
from gcdformer.models.interface import DecoderState, Seq2Seq, can_look
from gcdformer.models.layers import DecoderLayer, Embedding, EncoderLayer, KeysValues, initialise_layers
from gcdformer.numbers.encoding import PAD


@dataclass(frozen=True)
class TransformerState(DecoderState):
    """Keys and values of the inputs for every layer, which of them are padding, and those of the tokens so far."""

    memory: list[KeysValues]
    memory_bias: Tensor | None
    past: list[KeysValues] | None

    @property
    def length(self) -> int:
        return self.past[0][0].shape[2] if self.past else 0

    def select(self, rows: Tensor) -> TransformerState:
        def pick(pairs: list[KeysValues]) -> list[KeysValues]:
            return [(keys[rows], values[rows]) for keys, values in pairs]

        bias = None if self.memory_bias is None else self.memory_bias[rows]
        return TransformerState(pick(self.memory), bias, None if self.past is None else pick(self.past))


class Transformer(Seq2Seq):
    """Depth, width and heads of the two sides are independent."""

    def __init__(self, sizes: ModelSection, vocabulary: int, input_positions: int, output_positions: int) -> None:
        super().__init__()
        self.sizes = sizes
        self.embed_inputs = Embedding(vocabulary, input_positions, sizes.encoder_dim)
        self.encoder = nn.ModuleList(
            EncoderLayer(sizes.encoder_dim, sizes.encoder_heads) for _ in range(sizes.encoder_layers))
        self.embed_outputs = Embedding(vocabulary, output_positions, sizes.decoder_dim)
        self.decoder = nn.ModuleList(
            DecoderLayer(sizes.decoder_dim, sizes.encoder_dim, sizes.decoder_heads,
                         query_from_input=sizes.cross_query == "input")
            for _ in range(sizes.decoder_layers))
        self.output_bias = nn.Parameter(torch.empty(vocabulary))
        self.logits = nn.Identity()

    def initialise(self, generator: torch.Generator) -> None:
        initialise_layers(self, generator)
        nn.init.zeros_(self.output_bias)

    def encode(self, inputs_NS: Tensor) -> TransformerState:
        padding = inputs_NS == PAD
        bias = hide(padding)[:, None, None, :] if not can_look(padding) or bool(padding.any()) else None
        x = self.embed_inputs(inputs_NS)
        for layer in self.encoder:
            x = layer(x, bias)
        return TransformerState([layer.keys_values(x) for layer in self.decoder], bias, None)  # type: ignore[operator]

    def advance(self, state: DecoderState, tokens_NT: Tensor) -> tuple[Tensor, TransformerState]:
        assert isinstance(state, TransformerState)
        length, t = state.length, tokens_NT.shape[1]
        bias = None
        if t > 1:
            later = torch.ones(t, length + t, dtype=torch.bool, device=tokens_NT.device).triu(length + 1)
            bias = hide(later)
        x = self.embed_outputs(tokens_NT, length)
        pasts: list[KeysValues] = []
        for index, layer in enumerate(self.decoder):
            past = None if state.past is None else state.past[index]
            x, past = layer(x, bias, past, state.memory[index], state.memory_bias)
            pasts.append(past)
        return x, TransformerState(state.memory, state.memory_bias, pasts)

    def project(self, states_D: Tensor) -> Tensor:
        return self.logits(nn.functional.linear(states_D, self.embed_outputs.tokens.weight, self.output_bias))  # type: ignore[no-any-return]

    def points(self) -> Points:
        points = {"encoder.embedding": Point(self.embed_inputs, "N S D")}
        for index, layer in enumerate(self.encoder):
            points |= layer_points(f"encoder.{index}", layer, "S", {"attention": "S"})
        points["decoder.embedding"] = Point(self.embed_outputs, "N T D")
        for index, layer in enumerate(self.decoder):
            points |= layer_points(f"decoder.{index}", layer, "T", {"attention": "T", "cross_attention": "S"})
        return points | {"logits": Point(self.logits, "N T V")}


def layer_points(layer: str, module: nn.Module, queries: str, attentions: dict[str, str]) -> Points:
    """The points of a layer: each part's own, what it adds, and the residual stream after it (and its norm)."""
    points: Points = {}
    for part, keys in attentions.items():
        attention = module.get_submodule(part)
        points[f"{layer}.{part}.pattern"] = Point(attention.get_submodule("pattern"), f"N H {queries} {keys}")
        points[f"{layer}.{part}.heads"] = Point(attention.get_submodule("out"), f"N {queries} D", before=True)
        points[f"{layer}.{part}.out"] = Point(attention.get_submodule("out"), f"N {queries} D")
        points[f"{layer}.residual.{part}"] = Point(module.get_submodule(f"norm_{part}"), f"N {queries} D")
    inner = module.get_submodule("feed_forward")
    points[f"{layer}.feed_forward.hidden"] = Point(inner.get_submodule("down"), f"N {queries} 4D", before=True)
    points[f"{layer}.feed_forward.out"] = Point(inner, f"N {queries} D")
    points[f"{layer}.residual.feed_forward"] = Point(module.get_submodule("norm_feed_forward"), f"N {queries} D")
    return points


def hide(where: Tensor) -> Tensor:
    """0 where a key may be seen, -inf where not."""
    return torch.zeros(where.shape, device=where.device).masked_fill(where, float("-inf"))


def is_inner_map(name: str, weight: Tensor) -> bool:
    """Whether a parameter is a linear map within a layer, not an embedding, a norm or a bias."""
    return weight.dim() == 2 and name.startswith(("encoder.", "decoder."))


def maps_in(name: str) -> int:
    """How many maps are stacked in an inner map: queries, keys and values are one matrix."""
    return 3 if name.endswith(".qkv.weight") else 2 if name.endswith(".kv.weight") else 1
