"""Adam, and its state as named tensors."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gcdformer.config import TrainingSection
from gcdformer.errors import DamagedFile


def build_optimizer(weights: list[nn.Parameter], training: TrainingSection, device: torch.device) -> torch.optim.Optimizer:
    """Adam, or AdamW if weights decay; one fused kernel where the device has it."""
    kind = torch.optim.AdamW if training.weight_decay else torch.optim.Adam
    return kind(weights, lr=training.lr, betas=(training.beta1, training.beta2), eps=training.epsilon,
                weight_decay=training.weight_decay, fused=device.type in ("cpu", "cuda"))


def optimizer_tensors(optimizer: torch.optim.Optimizer, weights: dict[str, nn.Parameter]) -> dict[str, Tensor]:
    """The optimiser's state as `kind/parameter` -> tensor."""
    return {f"{kind}/{name}": value for name, weight in weights.items() for kind, value in optimizer.state[weight].items()}


def load_optimizer(optimizer: torch.optim.Optimizer, weights: dict[str, nn.Parameter], tensors: dict[str, Tensor]) -> None:
    """Set the optimiser's state."""
    for key, value in tensors.items():
        kind, _, name = key.partition("/")
        if name not in weights:
            raise DamagedFile(f"optimizer.safetensors: '{name}' is not a parameter of this model")
        weight = weights[name]
        place = weight.device if kind != "step" or optimizer.defaults.get("fused") else "cpu"
        optimizer.state[weight][kind] = value.to(place).clone()
