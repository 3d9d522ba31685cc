"""LSTM and GRU: the encoder's final state starts the decoder; there is no attention. Padding never reaches a state."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

from gcdformer.config import ModelSection
from gcdformer.models.hooks import Point, Points
from gcdformer.models.interface import DecoderState, Seq2Seq
from gcdformer.models.layers import initialise_layers
from gcdformer.numbers.encoding import PAD


@dataclass(frozen=True)
class RecurrentState(DecoderState):
    """The hidden tensors, each (layers, N, hidden): one for a GRU, two for an LSTM."""

    hidden: tuple[Tensor, ...]

    def select(self, rows: Tensor) -> RecurrentState:
        return RecurrentState(tuple(part[:, rows] for part in self.hidden))


class Recurrent(Seq2Seq):
    """Embedding, norm, recurrent layers on both sides; hidden states are mapped to the embedding's width to be read."""

    def __init__(self, sizes: ModelSection, vocabulary: int) -> None:
        super().__init__()
        kind = nn.LSTM if sizes.family == "lstm" else nn.GRU
        hidden = sizes.hidden_dim or sizes.encoder_dim
        self.embed_inputs = nn.Embedding(vocabulary, sizes.encoder_dim, padding_idx=PAD)
        self.norm_inputs = nn.LayerNorm(sizes.encoder_dim)
        self.encoder = kind(sizes.encoder_dim, hidden, sizes.encoder_layers, batch_first=True)
        self.embed_outputs = nn.Embedding(vocabulary, sizes.decoder_dim, padding_idx=PAD)
        self.norm_outputs = nn.LayerNorm(sizes.decoder_dim)
        self.decoder = kind(sizes.decoder_dim, hidden, sizes.decoder_layers, batch_first=True)
        self.read = nn.Linear(hidden, sizes.decoder_dim)
        self.output_bias = nn.Parameter(torch.empty(vocabulary))
        self.logits = nn.Identity()

    def initialise(self, generator: torch.Generator) -> None:
        initialise_layers(self, generator)
        for layers in (self.encoder, self.decoder):
            bound = layers.hidden_size**-0.5
            for weight in layers.parameters():
                nn.init.uniform_(weight, -bound, bound, generator=generator)
        nn.init.zeros_(self.output_bias)

    def encode(self, inputs_NS: Tensor) -> RecurrentState:
        lengths = (inputs_NS != PAD).sum(1)
        x = self.norm_inputs(self.embed_inputs(inputs_NS))
        if int(lengths.min()) < inputs_NS.shape[1]:
            _, hidden = self.encoder(pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False))
        else:
            _, hidden = self.encoder(x)
        return RecurrentState(hidden if isinstance(hidden, tuple) else (hidden,))

    def advance(self, state: DecoderState, tokens_NT: Tensor) -> tuple[Tensor, RecurrentState]:
        assert isinstance(state, RecurrentState)
        x = self.norm_outputs(self.embed_outputs(tokens_NT))
        start = tuple(part.contiguous() for part in state.hidden)
        x, hidden = self.decoder(x, start if len(start) > 1 else start[0])
        return self.read(x), RecurrentState(hidden if isinstance(hidden, tuple) else (hidden,))

    def project(self, states_D: Tensor) -> Tensor:
        return self.logits(nn.functional.linear(states_D, self.embed_outputs.weight, self.output_bias))  # type: ignore[no-any-return]

    def points(self) -> Points:
        cell = isinstance(self.encoder, nn.LSTM)
        points = {"encoder.embedding": Point(self.norm_inputs, "N S D"),
                  "encoder.states": Point(self.encoder, "N S D", (0,), read_only=True),
                  "encoder.final.hidden": Point(self.encoder, "L N D", (1, 0) if cell else (1,))}
        if cell:
            points["encoder.final.cell"] = Point(self.encoder, "L N D", (1, 1))
        return points | {"decoder.embedding": Point(self.norm_outputs, "N T D"),
                         "decoder.states": Point(self.decoder, "N T D", (0,)),
                         "decoder.read": Point(self.read, "N T D"),
                         "logits": Point(self.logits, "N T V")}
