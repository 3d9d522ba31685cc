"""Hook points: named places in a model whose values can be read and replaced while it runs, without a copy of the model.

    with torch.no_grad():
        logits, cache = run_with_cache(model, inputs, targets)         # every point, by name
    with patched(model, {"encoder.0.residual.feed_forward": cache["..."]}):
        model.project(model(inputs, targets))                          # a value replaced, or changed by a function

A point is a tensor that a module of the model takes or gives, so torch's own hooks do the work and a model without them
runs as if there were no points. The names are stable; docs/HOOKS.md lists them. Knows modules, not GCDs. The packed code
has no points: a model with hooks is never packed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pad_packed_sequence

from gcdformer.errors import UserError

if TYPE_CHECKING:
    from gcdformer.models.interface import Seq2Seq

Cache = dict[str, Tensor]
Patch = Tensor | Callable[[Tensor], Tensor | None]
"""A value to put in place, or a function of the value that gives the one to put in its place (None: it stays)."""


@dataclass(frozen=True)
class Point:
    """A tensor of a model: where it is taken from, and its shape in letters (N rows, T and S positions, H heads)."""

    module: nn.Module
    shape: str
    path: tuple[int, ...] = ()
    """Where it is in what the module gives; () if it is all of it."""
    before: bool = False
    """Taken from the module's input instead."""
    read_only: bool = False
    """Nothing reads it afterwards, so that replacing it would change nothing."""


Points = dict[str, Point]


class Logits(nn.Module):
    """A model whose `forward` gives logits (N, T, V) under teacher forcing, for tools that trace `forward`, as nnsight."""

    def __init__(self, model: Seq2Seq) -> None:
        super().__init__()
        self.model = model

    def forward(self, inputs_NS: Tensor, targets_NT: Tensor) -> Tensor:
        return self.model.project(self.model(inputs_NS, targets_NT))


def run_with_cache(model: Seq2Seq, inputs_NS: Any, targets_NT: Any, names: str | Iterable[str] = "*",
                   patches: Mapping[str, Patch] | None = None) -> tuple[Tensor, Cache]:
    """Logits (N, T, V) under teacher forcing, and the values of the points that `names` (globs) choose.

    `targets` begin with BEGIN; logits t is what follows target t. With `patches` the values are those after them. Values
    belong to autograd's graph unless the caller is under `torch.no_grad()`.
    """
    points = model.points()
    wanted = chosen(points, [names] if isinstance(names, str) else names)
    cache: Cache = {}
    device = next(model.parameters()).device
    with patched(model, patches or {}), ExitStack() as stack:
        for name in wanted:
            stack.enter_context(hooked(points[name], partial(cache.__setitem__, name)))
        logits = Logits(model)(torch.as_tensor(inputs_NS, device=device), torch.as_tensor(targets_NT, device=device))
    return logits, {name: cache[name] for name in wanted}


@contextmanager
def patched(model: Seq2Seq, patches: Mapping[str, Patch]) -> Iterator[None]:
    """While entered, the values of these points are replaced, in training, teacher forcing and decoding."""
    points = model.points()
    with ExitStack() as stack:
        for name, patch in patches.items():
            if name not in points:
                raise unknown(name, points)
            if points[name].read_only:
                raise UserError(f"{name}: can be read but not patched, since nothing reads it afterwards")
            stack.enter_context(hooked(points[name], replacing(name, patch)))
        yield


def replacing(name: str, patch: Patch) -> Callable[[Tensor], Tensor | None]:
    """The patch as a function that refuses a value of another shape."""
    def replace(value: Tensor) -> Tensor | None:
        new = patch if isinstance(patch, Tensor) else patch(value)
        if new is not None and new.shape != value.shape:
            raise UserError(f"{name}: a patch of shape {tuple(value.shape)}, got {tuple(new.shape)}")
        return new

    return replace


def chosen(points: Points, patterns: Iterable[str]) -> list[str]:
    """The names that any of these globs matches, in the model's order; each must match one."""
    wanted: set[str] = set()
    for pattern in patterns:
        matching = {name for name in points if fnmatchcase(name, pattern)}
        if not matching:
            raise unknown(pattern, points)
        wanted |= matching
    return [name for name in points if name in wanted]


def unknown(name: str, points: Points) -> UserError:
    return UserError(f"hook point: none is called '{name}'; they are {', '.join(points)}")


@contextmanager
def hooked(point: Point, function: Callable[[Tensor], Tensor | None]) -> Iterator[None]:
    """While entered, call the function with the point's value; what it gives, if anything, takes its place."""
    def after(module: nn.Module, given: Any, output: Any) -> Any:
        new = function(pick(output, point.path))
        return None if new is None else place(output, point.path, new)

    def before(module: nn.Module, given: tuple[Any, ...]) -> Any:
        new = function(given[0])
        return None if new is None else (new, *given[1:])

    handle = point.module.register_forward_pre_hook(before) if point.before else point.module.register_forward_hook(after)
    try:
        yield
    finally:
        handle.remove()


def pick(output: Any, path: tuple[int, ...]) -> Tensor:
    for index in path:
        output = output[index]
    if isinstance(output, PackedSequence):
        return pad_packed_sequence(output, batch_first=True)[0]
    return output  # type: ignore[no-any-return]


def place(output: Any, path: tuple[int, ...], new: Tensor) -> Any:
    if not path:
        return new
    return tuple(place(part, path[1:], new) if index == path[0] else part for index, part in enumerate(output))


def has_hooks(model: nn.Module) -> bool:
    """Whether anything is hooked to the model or to a part of it."""
    return any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
