"""The model's weights, or tensors of their shapes, in one flat memory. Knows no mathematics."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from gcdformer.models.transformer import Transformer, is_inner_map


class FlatTensors:
    """Tensors of the model's shapes in one flat memory, by the parameters' names; the maps inside the layers come first."""

    def __init__(self, model: Transformer) -> None:
        named = sorted(model.named_parameters(), key=lambda pair: not is_inner_map(*pair))
        self.shapes = {name: weight.shape for name, weight in named}
        self.inner = sum(weight.numel() for name, weight in named if is_inner_map(name, weight))
        self.flat = torch.zeros(sum(shape.numel() for shape in self.shapes.values()))
        self.tensors = dict(self.views(self.flat))

    def views(self, flat: Tensor) -> Iterator[tuple[str, Tensor]]:
        """The tensors in another flat memory of the same order, which may lack the inner maps."""
        start = len(flat) - sum(shape.numel() for shape in self.shapes.values())
        for name, shape in self.shapes.items():
            if start >= 0:
                yield name, flat[start:start + shape.numel()].view(shape)
            start += shape.numel()

    @classmethod
    def adopt(cls, model: Transformer) -> FlatTensors:
        """The model's own weights, moved into one flat memory that the model keeps using."""
        flat = cls(model)
        for name, weight in model.named_parameters():
            flat.tensors[name].copy_(weight.data)
            weight.data = flat.tensors[name]
        return flat
