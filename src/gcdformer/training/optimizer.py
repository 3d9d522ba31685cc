"""Adam, and its state as named tensors."""

from __future__ import annotations

import torch
from torch import Tensor

from gcdformer.config import TrainingSection
from gcdformer.errors import DamagedFile
from gcdformer.models import Seq2Seq

ADAM = ("step", "exp_avg", "exp_avg_sq")


def build_optimizer(model: Seq2Seq, training: TrainingSection, device: torch.device) -> torch.optim.Optimizer:
    """Adam, or AdamW if weights decay; one fused kernel where the device has it."""
    kind = torch.optim.AdamW if training.weight_decay else torch.optim.Adam
    return kind(model.parameters(), lr=training.lr, betas=(training.beta1, training.beta2), eps=training.epsilon,
                weight_decay=training.weight_decay, fused=device.type in ("cpu", "cuda"))


def optimizer_tensors(model: Seq2Seq, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The optimiser's state as `kind/parameter` -> tensor."""
    return {f"{kind}/{name}": value for name, weight in model.named_parameters()
            for kind, value in optimizer.state[weight].items()}


def load_optimizer(model: Seq2Seq, optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    """Set the optimiser's state; names, shapes and types must be those that Adam has for this model."""
    weights = dict(model.named_parameters())
    if tensors and set(tensors) != {f"{kind}/{name}" for name in weights for kind in ADAM}:
        raise DamagedFile("optimizer.safetensors: does not hold exactly Adam's state of this model's parameters")
    for key, value in tensors.items():
        kind, _, name = key.partition("/")
        weight = weights[name]
        if value.dtype != torch.float32 or value.shape != (() if kind == "step" else weight.shape):
            raise DamagedFile(f"optimizer.safetensors: '{key}' is {value.dtype} {list(value.shape)}, "
                              f"which does not fit {list(weight.shape)}")
        place = weight.device if kind != "step" or optimizer.defaults.get("fused") else "cpu"
        optimizer.state[weight][kind] = value.to(place).clone()
