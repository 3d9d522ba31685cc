"""An exponential average of the weights, kept beside them: what is evaluated, while the weights themselves are trained.

After step t it is d * average + (1 - d) * weights, where d is the decay, or (1 + t) / (10 + t) while that is smaller, so
that the first weights are soon forgotten. Knows blocks of weights, no model and no optimiser.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import final

import torch
from torch import Tensor

from gcdformer.errors import DamagedFile
from gcdformer.runs.folder import AVERAGE
from gcdformer.training.backends import Backend


@final
class Averages:
    """The average of a backend's weights."""

    def __init__(self, backend: Backend, decay: float) -> None:
        self.decay, self.weights = decay, backend.blocks()
        self.averages = [weight.clone() for weight in self.weights]
        self.named = backend.named(self.averages)

    @torch.no_grad()
    def update(self, step: int) -> None:
        """After step number `step`."""
        share = 1 - min(self.decay, (1 + step) / (10 + step))
        for average, weight in zip(self.averages, self.weights, strict=True):
            average.lerp_(weight, share)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """The model has the average for its weights; its own come back bit for bit."""
        own = [weight.clone() for weight in self.weights]
        self.set(self.averages)
        try:
            yield
        finally:
            self.set(own)

    @torch.no_grad()
    def set(self, values: list[Tensor]) -> None:
        for weight, value in zip(self.weights, values, strict=True):
            weight.copy_(value)

    def tensors(self) -> dict[str, Tensor]:
        """As they are saved beside the optimiser's state."""
        return {f"{AVERAGE}/{name}": tensor for name, tensor in self.named.items()}

    @torch.no_grad()
    def load(self, tensors: dict[str, Tensor]) -> None:
        """The average of a checkpoint, by the parameters' names."""
        shapes = {name: (tensor.shape, tensor.dtype) for name, tensor in tensors.items()}
        if shapes != {name: (tensor.shape, tensor.dtype) for name, tensor in self.named.items()}:
            raise DamagedFile("optimizer.safetensors: does not hold the average of exactly this model's weights")
        for name, tensor in self.named.items():
            tensor.copy_(tensors[name])
