"""Memory of the packed model: seen by torch and numpy at once, used again at every step. Knows no mathematics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from gcdformer.models.transformer import Transformer, is_inner_map

Floats = npt.NDArray[np.float32]


class Pair(NamedTuple):
    """One memory, seen by torch (matrix products) and by numpy (compiled loops)."""

    t: Tensor
    a: Floats


class FlatTensors:
    """Tensors of the model's shapes in one flat memory, by the parameters' names; the maps inside the layers come first."""

    def __init__(self, model: Transformer) -> None:
        named = sorted(model.named_parameters(), key=lambda pair: not is_inner_map(*pair))
        self.shapes = {name: weight.shape for name, weight in named}
        self.inner = sum(weight.numel() for name, weight in named if is_inner_map(name, weight))
        self.flat = torch.zeros(sum(shape.numel() for shape in self.shapes.values()))
        self.pairs = {name: Pair(view, view.numpy()) for name, view in self.views(self.flat)}

    def views(self, flat: Tensor) -> Iterator[tuple[str, Tensor]]:
        """The tensors in another flat memory of the same order, which may lack the inner maps."""
        start = len(flat) - sum(shape.numel() for shape in self.shapes.values())
        for name, shape in self.shapes.items():
            if start >= 0:
                yield name, flat[start:start + shape.numel()].view(shape)
            start += shape.numel()

    @classmethod
    def adopt(cls, model: Transformer) -> FlatTensors:
        """The model's own weights, moved into one flat memory that the model goes on using."""
        flat = cls(model)
        for name, weight in model.named_parameters():
            flat.pairs[name].t.copy_(weight.data)
            weight.data = flat.pairs[name].t
        return flat

    def __getitem__(self, name: str) -> Pair:
        return self.pairs[name]


def parameter_pairs(model: Transformer) -> dict[str, Pair]:
    """The model's weights where they are."""
    return {name: Pair(weight.data, weight.data.numpy()) for name, weight in model.named_parameters()}


class Rooms:
    """Memory that is used again at every step, by name; it grows when a batch is larger than any before."""

    def __init__(self) -> None:
        self._whole: dict[str, Tensor] = {}
        self._views: dict[tuple[str, int], Pair] = {}

    def __call__(self, name: str, rows: int, width: int) -> Pair:
        found = self._views.get((name, rows))
        if found is None:
            whole = self._whole.get(name)
            if whole is None or len(whole) < rows:
                whole = self._whole[name] = torch.zeros(rows + rows // 8, width)
                self._views = {key: view for key, view in self._views.items() if key[0] != name}
            if len(self._views) > 20_000:
                self._views.clear()
            view = whole[:rows]
            found = self._views[name, rows] = Pair(view, view.numpy())
        return found
