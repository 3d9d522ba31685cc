"""Optimisers over named weights, and their state as named tensors. Knows no model beyond its parameters' names."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any

import torch
from torch import Tensor, nn

from gcdformer.config import TrainingSection
from gcdformer.errors import DamagedFile
from gcdformer.models.transformer import is_inner_map
from gcdformer.training.muon import Muon

ADAM = ("step", "exp_avg", "exp_avg_sq")


HALVES_MEET = 64
"""The first half ends at a multiple of so many weights, so that both start where vectors do."""


class FlatAdam(torch.optim.AdamW):
    """AdamW of one flat weight on a CPU, its two halves side by side."""

    def __init__(self, weight: nn.Parameter, training: TrainingSection, pool: Executor | None) -> None:
        super().__init__([weight], lr=training.lr, betas=(training.beta1, training.beta2), eps=training.epsilon,
                         weight_decay=training.weight_decay, fused=True)
        self.weight, self.pool = weight, pool

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> None:  # type: ignore[override]
        state, group = self.state[self.weight], self.param_groups[0]
        if not state:
            state["step"] = torch.zeros(())
            state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(self.weight), torch.zeros_like(self.weight)
        state["step"] += 1
        gradient = self.weight.grad
        assert gradient is not None

        def move(part: slice) -> None:
            torch._fused_adamw_([self.weight.data[part]], [gradient[part]], [state["exp_avg"][part]],
                                [state["exp_avg_sq"][part]], [], [state["step"]], lr=group["lr"], beta1=group["betas"][0],
                                beta2=group["betas"][1], weight_decay=group["weight_decay"], eps=group["eps"], amsgrad=False,
                                maximize=False)

        middle = len(self.weight) // (2 * HALVES_MEET) * HALVES_MEET
        other = self.pool.submit(move, slice(middle, None)) if self.pool else None
        move(slice(0, middle))
        if other:
            other.result()
        else:
            move(slice(middle, None))


class Optimizers:
    """Adam (AdamW if weights decay, fused where the device can), or Muon for inner maps and Adam for others."""

    def __init__(self, weights: dict[str, nn.Parameter], training: TrainingSection, pool: Executor | None = None) -> None:
        self.weights = weights
        self.all: list[torch.optim.Optimizer] = []
        inner = {name: weight for name, weight in weights.items() if is_inner_map(name, weight)}
        if training.optimizer == "muon" and inner:
            self.all.append(Muon(inner, training.lr, training.weight_decay, pool))
            weights = {name: weight for name, weight in weights.items() if name not in inner}
        first = next(iter(weights.values()))
        if len(weights) == 1 and first.dim() == 1 and first.device.type == "cpu":
            self.all.append(FlatAdam(first, training, pool))
            return
        kind = torch.optim.AdamW if training.weight_decay else torch.optim.Adam
        fused = all(weight.device.type in ("cpu", "cuda") for weight in weights.values())
        self.all.append(kind(list(weights.values()), lr=training.lr, betas=(training.beta1, training.beta2),
                             eps=training.epsilon, weight_decay=training.weight_decay, fused=fused))

    def step(self, rate: float) -> None:
        for optimizer in self.all:
            for group in optimizer.param_groups:
                group["lr"] = rate
            optimizer.step()

    def tensors(self) -> dict[str, Tensor]:
        """The state as `kind/parameter` -> tensor."""
        return {f"{kind}/{name}": value for name, weight in self.weights.items() for optimizer in self.all
                if weight in optimizer.state for kind, value in optimizer.state[weight].items()}

    def load(self, tensors: dict[str, Tensor]) -> None:
        """Set the state."""
        for key, value in tensors.items():
            kind, _, name = key.partition("/")
            weight = self.weights[name]
            owner = next(o for o in self.all if any(weight is w for group in o.param_groups for w in group["params"]))
            place = weight.device if kind != "step" or owner.defaults.get("fused") else "cpu"
            owner.state[weight][kind] = value.to(place).clone()


def check_state(tensors: dict[str, Tensor], weights: dict[str, nn.Parameter], training: TrainingSection) -> None:
    """`DamagedFile` unless names, shapes and types are those of the optimiser's state for these weights (or none at all)."""
    muon = training.optimizer == "muon"
    kinds = {name: ("momentum",) if muon and is_inner_map(name, weight) else ADAM for name, weight in weights.items()}
    if tensors and set(tensors) != {f"{kind}/{name}" for name in weights for kind in kinds[name]}:
        raise DamagedFile(f"optimizer.safetensors: does not hold exactly the state of {training.optimizer} for this model")
    for key, value in tensors.items():
        kind, _, name = key.partition("/")
        wanted = () if kind == "step" else weights[name].shape
        if value.dtype != torch.float32 or value.shape != wanted:
            raise DamagedFile(f"optimizer.safetensors: '{key}' is {value.dtype} {list(value.shape)}, "
                              f"which does not fit {list(weights[name].shape)}")
