"""Muon: momentum whose matrices are made nearly orthogonal before they are applied, so that all directions learn alike.

For the maps inside the layers; embeddings, norms and biases stay with Adam. Matrices of one shape are handled together:
torch's own Muon takes them one by one, which costs more than the rest of a small model's step. The iteration is in bfloat16
where the device multiplies it in hardware, as Muon's authors have it, and in float32 elsewhere.
A stack of maps (queries, keys and values in one matrix) counts as several.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from gcdformer.models.transformer import maps_in

MOMENTUM = 0.95
ITERATIONS = 5
COEFFICIENTS = (3.4445, -4.7750, 2.0315)
RMS_OF_ADAM = 0.2
"""What an update of Adam measures on average, so that one learning rate serves both."""


@cache
def iteration_dtype(device: torch.device) -> torch.dtype:
    """bfloat16 where its products are faster than those of float32."""
    fast = torch.cpu._is_avx512_bf16_supported() if device.type == "cpu" else device.type == "cuda"
    return torch.bfloat16 if fast else torch.float32


def nearly_orthogonal(matrices_NRC: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """Matrices with the same directions and singular values near one, by Newton and Schulz's iteration; R <= C."""
    a, b, c = COEFFICIENTS
    x: Tensor = (matrices_NRC / torch.linalg.matrix_norm(matrices_NRC, keepdim=True).clamp_min(1e-7)).to(dtype)
    for _ in range(ITERATIONS):
        square = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(square, square, square, beta=b, alpha=c), x, beta=a)
    return x.to(matrices_NRC.dtype)


class Muon(torch.optim.Optimizer):
    """Steps of fixed size along nearly orthogonal momentum, with decoupled weight decay."""

    def __init__(self, weights: dict[str, nn.Parameter], lr: float, weight_decay: float,
                 pool: Executor | None = None) -> None:
        super().__init__(list(weights.values()), dict(lr=lr, weight_decay=weight_decay))
        self.pool = pool
        """Threads that take matrices of other shapes meanwhile."""
        self.alike: dict[tuple[int, int], list[tuple[nn.Parameter, int, int]]] = {}
        for name, weight in weights.items():
            count = maps_in(name)
            rows, columns = weight.shape[0] // count, weight.shape[1]
            shape = (min(rows, columns), max(rows, columns))
            self.alike.setdefault(shape, []).extend((weight, index * rows, rows) for index in range(count))

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> None:  # type: ignore[override]
        weights = self.param_groups[0]["params"]
        gradients = [weight.grad for weight in weights]
        momenta = [self.state[weight].setdefault("momentum", torch.zeros_like(weight)) for weight in weights]
        torch._foreach_lerp_(momenta, gradients, 1 - MOMENTUM)
        ahead = dict(zip(weights, torch._foreach_lerp(gradients, momenta, MOMENTUM), strict=True))  # Nesterov's look ahead
        if decay := self.param_groups[0]["lr"] * self.param_groups[0]["weight_decay"]:
            torch._foreach_mul_(weights, 1 - decay)
        first, *others = self.alike
        waiting = [self.pool.submit(self.move, shape, ahead) for shape in others] if self.pool else []
        for shape in [first] if self.pool else [first, *others]:
            self.move(shape, ahead)
        for one in waiting:
            one.result()

    @torch.no_grad()
    def move(self, shape: tuple[int, int], ahead: dict[nn.Parameter, Tensor]) -> None:
        """A step of all maps of this shape along their directions, each turned to be wider than high."""
        maps = self.alike[shape]

        def views(of: Callable[[nn.Parameter], Tensor]) -> list[Tensor]:
            parts = [(of(weight)[start:start + rows], rows > weight.shape[1]) for weight, start, rows in maps]
            return [part.mT if high else part for part, high in parts]

        stacked = torch.stack(views(ahead.__getitem__))
        directions = nearly_orthogonal(stacked, iteration_dtype(stacked.device))
        rate = self.param_groups[0]["lr"] * RMS_OF_ADAM * max(shape)**0.5
        torch._foreach_add_(views(lambda weight: weight), list(directions.unbind()), alpha=-rate)
