"""The optimisers over named weights, their state as named tensors, and the learning rate of each step.

`OPTIMIZERS` is the table of them. Knows no model beyond its parameters' names, and no clock: the rate is a function of the
step.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from math import cos, pi, sqrt
from typing import Any

import torch
from torch import Tensor, nn

from gcdformer.config import TrainingSection
from gcdformer.errors import DamagedFile
from gcdformer.models.transformer import is_inner_map, maps_in

HALVES_MEET = 64
"""The first half ends at a multiple of this many weights, so that both start where vectors do."""
DEFAULT_FINAL_SHARE = 0.02
MOMENTUM = 0.95
ITERATIONS = 5
COEFFICIENTS = (3.4445, -4.7750, 2.0315)
RMS_OF_ADAM = 0.2
"""What an update of Adam measures on average, so that one learning rate fits both."""

Weights = dict[str, nn.Parameter]


def learning_rate(training: TrainingSection, step: int) -> float:
    """The rate of step 0, 1, 2, ...: a linear rise over the warm-up, then the schedule."""
    if step < training.warmup:
        return training.lr * (step + 1) / training.warmup
    if training.schedule == "constant":
        return training.lr
    if training.schedule == "inverse-sqrt":
        return training.lr * sqrt(training.warmup / (step + 1))
    assert training.horizon is not None, "a session fixes the horizon before it trains"
    final = DEFAULT_FINAL_SHARE if training.final_lr_share is None else training.final_lr_share
    done = min(1.0, (step - training.warmup) / max(1, training.horizon - training.warmup))
    return training.lr * (final + (1 - final) * (1 + cos(pi * done)) / 2)


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


def nearly_orthogonal(matrices_NRC: Tensor) -> Tensor:
    """Matrices with the same directions and singular values near one, by Newton and Schulz's iteration; R <= C."""
    a, b, c = COEFFICIENTS
    x: Tensor = matrices_NRC / torch.linalg.matrix_norm(matrices_NRC, keepdim=True).clamp_min(1e-7)
    for _ in range(ITERATIONS):
        square = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(square, square, square, beta=b, alpha=c), x, beta=a)
    return x


class Muon(torch.optim.Optimizer):
    """Muon: steps of fixed size along momentum whose matrices are made nearly orthogonal, with decoupled weight decay.

    For the maps inside the layers; embeddings, norms and biases stay with Adam. Matrices of one shape are handled together,
    in float32: torch's own Muon takes them one by one in bfloat16, which costs more than the rest of a small model's step.
    A stack of maps (queries, keys and values in one matrix) counts as several.
    """

    def __init__(self, weights: dict[str, nn.Parameter], lr: float, weight_decay: float,
                 pool: Executor | None = None) -> None:
        super().__init__(list(weights.values()), dict(lr=lr, weight_decay=weight_decay))
        self.pool = pool
        """Threads that take matrices of other shapes meanwhile."""
        self.by_shape: dict[tuple[int, int], list[tuple[nn.Parameter, int, int]]] = {}
        for name, weight in weights.items():
            count = maps_in(name)
            rows, columns = weight.shape[0] // count, weight.shape[1]
            shape = (min(rows, columns), max(rows, columns))
            self.by_shape.setdefault(shape, []).extend((weight, index * rows, rows) for index in range(count))

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> None:  # type: ignore[override]
        weights = self.param_groups[0]["params"]
        gradients = [weight.grad for weight in weights]
        momenta = [self.state[weight].setdefault("momentum", torch.zeros_like(weight)) for weight in weights]
        torch._foreach_lerp_(momenta, gradients, 1 - MOMENTUM)
        ahead = dict(zip(weights, torch._foreach_lerp(gradients, momenta, MOMENTUM), strict=True))  # Nesterov's look ahead
        if decay := self.param_groups[0]["lr"] * self.param_groups[0]["weight_decay"]:
            torch._foreach_mul_(weights, 1 - decay)
        first, *others = self.by_shape
        waiting = [self.pool.submit(self.move, shape, ahead) for shape in others] if self.pool else []
        for shape in [first] if self.pool else [first, *others]:
            self.move(shape, ahead)
        for future in waiting:
            future.result()

    @torch.no_grad()
    def move(self, shape: tuple[int, int], ahead: dict[nn.Parameter, Tensor]) -> None:
        """A step of all maps of this shape along their directions, each turned to be wider than high."""
        maps = self.by_shape[shape]

        def views(of: Callable[[nn.Parameter], Tensor]) -> list[Tensor]:
            parts = [(of(weight)[start:start + rows], rows > weight.shape[1]) for weight, start, rows in maps]
            return [part.mT if high else part for part, high in parts]

        directions = nearly_orthogonal(torch.stack(views(ahead.__getitem__)))
        rate = self.param_groups[0]["lr"] * RMS_OF_ADAM * max(shape)**0.5
        torch._foreach_add_(views(lambda weight: weight), list(directions.unbind()), alpha=-rate)


def build_adam(weights: Weights, training: TrainingSection, pool: Executor | None) -> torch.optim.Optimizer:
    """Adam, or AdamW if weights decay; fused where the device can; in two halves if all is one flat weight on a CPU."""
    first = next(iter(weights.values()))
    if len(weights) == 1 and first.dim() == 1 and first.device.type == "cpu":
        return FlatAdam(first, training, pool)
    kind = torch.optim.AdamW if training.weight_decay else torch.optim.Adam
    fused = all(weight.device.type in ("cpu", "cuda") for weight in weights.values())
    return kind(list(weights.values()), lr=training.lr, betas=(training.beta1, training.beta2), eps=training.epsilon,
                weight_decay=training.weight_decay, fused=fused)


def build_muon(weights: Weights, training: TrainingSection, pool: Executor | None) -> torch.optim.Optimizer:
    return Muon(weights, training.lr, training.weight_decay, pool)


@dataclass(frozen=True)
class Kind:
    """An optimiser: how it is built, and the names of its state's tensors (`step` a scalar, others of a weight's shape)."""

    build: Callable[[Weights, TrainingSection, Executor | None], torch.optim.Optimizer]
    state: tuple[str, ...]
    inner_only: bool = False
    """Whether it needs matrices: then it takes the maps inside the layers, and Adam the rest. One that works value by value
    is given all weights, on a CPU as one flat tensor."""


OPTIMIZERS = {
    "adam": Kind(build_adam, ("step", "exp_avg", "exp_avg_sq")),
    "muon": Kind(build_muon, ("momentum",), inner_only=True),
}
"""The optimisers by the names that `training.optimizer` may have."""
ADAM = OPTIMIZERS["adam"]


class Optimizers:
    """The optimisers of a model's weights: the one of the configuration, and Adam for what it does not take."""

    def __init__(self, weights: Weights, training: TrainingSection, pool: Executor | None = None) -> None:
        self.weights = weights
        kind = OPTIMIZERS[training.optimizer]
        taken = {name: weight for name, weight in weights.items() if kind_of(name, weight, training) is kind}
        rest = {name: weight for name, weight in weights.items() if name not in taken}
        self.all = [each.build(part, training, pool) for each, part in ((kind, taken), (ADAM, rest)) if part]

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


def kind_of(name: str, weight: Tensor, training: TrainingSection) -> Kind:
    """Which optimiser takes a weight."""
    kind = OPTIMIZERS[training.optimizer]
    return ADAM if kind.inner_only and not is_inner_map(name, weight) else kind


def check_state(tensors: dict[str, Tensor], weights: Weights, training: TrainingSection) -> None:
    """`DamagedFile` unless names, shapes and types are those of the optimiser's state for these weights (or none at all)."""
    wanted_keys = {f"{part}/{name}" for name, weight in weights.items() for part in kind_of(name, weight, training).state}
    if tensors and set(tensors) != wanted_keys:
        raise DamagedFile(f"optimizer.safetensors: does not hold exactly the state of {training.optimizer} for this model")
    for key, value in tensors.items():
        kind, _, name = key.partition("/")
        wanted = () if kind == "step" else weights[name].shape
        if value.dtype != torch.float32 or value.shape != wanted:
            raise DamagedFile(f"optimizer.safetensors: '{key}' is {value.dtype} {list(value.shape)}, "
                              f"which does not fit {list(weights[name].shape)}")
