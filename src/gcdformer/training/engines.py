"""How a step is computed: by torch's autograd on any model and device, or by the packed transformer on a CPU.

An engine has the gradient of a batch, the optimiser and its state under the parameters' names. Both leave the same
numbers within rounding, and each can go on with the other's checkpoint. It knows nothing of steps, streams or schedules.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from gcdformer.config import Config, TrainingSection
from gcdformer.data.problem import Batch
from gcdformer.models import Seq2Seq, autocast, sequence_loss
from gcdformer.models.packed import PackedBatch, can_pack, is_packable, one_thread_each
from gcdformer.models.transformer import Transformer
from gcdformer.training.optimizer import build_optimizer, load_optimizer, optimizer_tensors

ROWS_A_SHARD = 128


class Engine(ABC):
    """A model with its optimiser."""

    model: Seq2Seq

    @abstractmethod
    def encode(self, batch: Batch) -> Batch | PackedBatch:
        """The batch in the form that this engine reads; parts of it are batches too."""

    @abstractmethod
    def backward(self, batch: Batch | PackedBatch, share: float, *, add: bool = False) -> float:
        """`share` times the summed loss of a batch; its gradient replaces what is there, or is added to it."""

    @abstractmethod
    def gradients(self) -> list[Tensor]:
        """The gradient, to be changed in place."""

    @abstractmethod
    def update(self, rate: float) -> None:
        """A step of the optimiser."""

    @abstractmethod
    def optimizer_tensors(self) -> dict[str, Tensor]:
        """The optimiser's state as `kind/parameter` -> tensor."""

    @abstractmethod
    def load_optimizer(self, tensors: dict[str, Tensor]) -> None:
        """Set the optimiser's state."""

    def clip(self, largest: float) -> float:
        """The norm of the gradient, which is scaled down to `largest` if it is above (0: never)."""
        gradients = self.gradients()
        norms = torch.stack([torch.linalg.vector_norm(gradient) for gradient in gradients])
        norm = float(torch.linalg.vector_norm(norms))
        if largest and math.isfinite(norm) and norm > largest:
            for gradient in gradients:
                gradient.mul_(largest / (norm + 1e-6))
        return norm


class AutogradEngine(Engine):
    """Any model on any device."""

    def __init__(self, model: Seq2Seq, training: TrainingSection, device: torch.device) -> None:
        self.model, self.device, self.precision = model.to(device), device, training.precision
        self.optimizer = build_optimizer(list(model.parameters()), training, device)

    def encode(self, batch: Batch) -> Batch:
        return batch

    def backward(self, batch: Batch | PackedBatch, share: float, *, add: bool = False) -> float:
        assert isinstance(batch, Batch)
        inputs, targets = (torch.from_numpy(t).to(self.device) for t in (batch.inputs, batch.targets))
        with autocast(self.precision, self.device):
            loss = sequence_loss(self.model, inputs, targets, reduction="sum") * share
        if not add:
            self.optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        return float(loss.detach())

    def gradients(self) -> list[Tensor]:
        return [weight.grad for weight in self.model.parameters() if weight.grad is not None]

    def update(self, rate: float) -> None:
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.step()

    def optimizer_tensors(self) -> dict[str, Tensor]:
        return optimizer_tensors(self.optimizer, dict(self.model.named_parameters()))

    def load_optimizer(self, tensors: dict[str, Tensor]) -> None:
        load_optimizer(self.optimizer, dict(self.model.named_parameters()), tensors)


class PackedEngine(Engine):
    """A transformer on a CPU: shards of rows side by side on threads, summed in order, weights in one flat memory."""

    def __init__(self, model: Transformer, training: TrainingSection, threads: int) -> None:
        from gcdformer.models.packed.back import Shard
        from gcdformer.models.packed.memory import FlatTensors

        torch.set_num_threads(1)  # the threads are the shards'
        self.model = model
        self.weights = FlatTensors.adopt(model)
        self.total = FlatTensors(model)
        self.new_shard: Callable[[], Shard] = partial(Shard, model, self.weights)
        self.shards: list[Shard] = []
        self.threads = threads
        self.pool = one_thread_each(threads - 1) if threads > 1 else None
        self.flat = torch.nn.Parameter(self.weights.flat)
        self.flat.grad = self.total.flat
        self.optimizer = build_optimizer([self.flat], training, torch.device("cpu"))

    def encode(self, batch: Batch) -> PackedBatch:
        return PackedBatch.of(batch.inputs, batch.input_lengths, batch.targets, batch.target_lengths)

    def backward(self, batch: Batch | PackedBatch, share: float, *, add: bool = False) -> float:
        assert isinstance(batch, PackedBatch)
        rows = len(batch.inputs.lengths)
        count = max(min(2, rows), -(-rows // ROWS_A_SHARD))
        cuts = [rows * index // count for index in range(count + 1)]
        while len(self.shards) < count:
            self.shards.append(self.new_shard())
        losses = [0.0] * count

        def work(first: int) -> None:
            for index in range(first, count, self.threads):
                part = batch.part(cuts[index], cuts[index + 1])
                losses[index] = self.shards[index].learn(part, share)

        others = [self.pool.submit(work, first) for first in range(1, min(self.threads, count))] if self.pool else []
        work(0)
        for other in others:
            other.result()
        for index, shard in enumerate(self.shards[:count]):
            if index or add:
                self.total.flat.add_(shard.gradients.flat)
            else:
                self.total.flat.copy_(shard.gradients.flat)
        return share * math.fsum(losses)

    def gradients(self) -> list[Tensor]:
        return [self.total.flat]

    def update(self, rate: float) -> None:
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.step()

    def optimizer_tensors(self) -> dict[str, Tensor]:
        found: dict[str, Tensor] = {}
        for key, value in optimizer_tensors(self.optimizer, {"": self.flat}).items():
            if value.dim():
                found |= {key + name: part for name, part in self.weights.views(value)}
            else:
                found |= {key + name: value.clone() for name in self.weights.shapes}
        return found

    def load_optimizer(self, tensors: dict[str, Tensor]) -> None:
        whole: dict[str, Tensor] = {}
        for key, value in tensors.items():
            kind, _, name = key.partition("/")
            if not value.dim():
                whole[f"{kind}/"] = value
                continue
            flat = whole.setdefault(f"{kind}/", torch.zeros_like(self.weights.flat))
            dict(self.weights.views(flat))[name].copy_(value)
        load_optimizer(self.optimizer, {"": self.flat}, whole)


def build_engine(model: Seq2Seq, training: TrainingSection, device: torch.device, engine: str, threads: int) -> Engine:
    """The packed engine where it can be, unless autograd is asked for."""
    if engine == "auto" and can_pack(model, device, training.precision):
        assert isinstance(model, Transformer)
        return PackedEngine(model, training, threads)
    return AutogradEngine(model, training, device)


def has_to_compile(config: Config, device: torch.device) -> bool:
    """Whether the first step will take some seconds to compile the packed loops, once on this machine."""
    if config.machine.engine != "auto" or not is_packable(config.model.family, device, config.training.precision):
        return False
    from gcdformer.models.packed.kernels import were_compiled

    return not were_compiled()
