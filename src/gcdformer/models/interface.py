"""What every model offers: encode the inputs once, then advance over output tokens, many or one at a time.

Teacher forcing advances over the whole target at once; decoding advances by one token and carries the state. Both
are the same function, so training, evaluation and beam search cannot drift apart.

Shapes: N rows, S input positions, T output positions, D the decoder's width, V the vocabulary.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, nullcontext

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gcdformer.models.hooks import Points
from gcdformer.numbers.encoding import PAD


class DecoderState(ABC):
    """What the decoder carries from one token to the next; opaque to its users."""

    @abstractmethod
    def select(self, rows: Tensor) -> DecoderState:
        """The state of some of the rows, in any order, with repetition."""


class Seq2Seq(nn.Module, ABC):
    """An encoder-decoder over token ids whose output projection is tied to the decoder's embedding."""

    @abstractmethod
    def encode(self, inputs_NS: Tensor) -> DecoderState:
        """Read padded inputs; the state from which decoding starts."""

    @abstractmethod
    def advance(self, state: DecoderState, tokens_NT: Tensor) -> tuple[Tensor, DecoderState]:
        """Feed T more output tokens; their states (N, T, D), each knowing only the tokens up to its own."""

    @abstractmethod
    def project(self, states_D: Tensor) -> Tensor:
        """Logits over the vocabulary, (..., V)."""

    @abstractmethod
    def initialise(self, generator: torch.Generator) -> None:
        """Set every weight from the generator."""

    @abstractmethod
    def points(self) -> Points:
        """Every hook point by its name, in the order of the forward pass."""

    def forward(self, inputs_NS: Tensor, targets_NT: Tensor) -> Tensor:
        """Decoder states (N, T, D) under teacher forcing."""
        states, _ = self.advance(self.encode(inputs_NS), targets_NT)
        return states


def autocast(precision: str, device: torch.device) -> AbstractContextManager[object]:
    """bf16 matrix products if the precision says so; float32 as it is."""
    return torch.autocast(device.type, dtype=torch.bfloat16) if precision == "bf16" else nullcontext()


def sequence_loss(model: Seq2Seq, inputs_NS: Tensor, targets_NT: Tensor, *, reduction: str = "mean") -> Tensor:
    """Cross-entropy over the target tokens. On a CPU the vocabulary is only projected to where there is a target."""
    states = model(inputs_NS, targets_NT[:, :-1])
    wanted = targets_NT[:, 1:].flatten()
    states = states.flatten(0, 1)
    padding = wanted == PAD
    if can_look(padding) and bool(padding.any()):
        states, wanted = states[~padding], wanted[~padding]
    return F.cross_entropy(model.project(states), wanted, reduction=reduction, ignore_index=PAD)


def can_look(tensor: Tensor) -> bool:
    """Whether the host may look at a value to save work: on an accelerator it would wait for all that is queued there."""
    return tensor.device.type == "cpu"
