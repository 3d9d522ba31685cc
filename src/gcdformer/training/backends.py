"""How a step is computed: by torch's autograd on any model and device, or by the packed transformer on a CPU.

A backend has the gradient of a batch, the optimiser and its state under the parameters' names. Both leave the same
numbers within rounding, and each can resume the other's checkpoint. It knows nothing of steps, streams or schedules.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import final

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from gcdformer.config import Config, TrainingSection
from gcdformer.data.problem import Batch
from gcdformer.models import Seq2Seq, autocast, sequence_loss
from gcdformer.models.interface import can_look
from gcdformer.models.packed import PackedBatch, can_pack, is_packable, one_thread_each
from gcdformer.models.transformer import Transformer, is_inner_map
from gcdformer.numbers.encoding import Integers
from gcdformer.training.device import Ranks, chosen_threads, cuts
from gcdformer.training.optimizer import OPTIMIZERS, Optimizers, check_state

ROWS_A_SHARD = 128
ALL_THE_REST = "*"
"""The name of all weights that have no optimiser state of their own: one flat tensor is one call of Adam."""


Figure = float | Tensor
"""A loss or a norm: a number on a CPU; on an accelerator a tensor, since reading it would wait for all that is queued."""


class Backend(ABC):
    """A model with its optimiser."""

    model: Seq2Seq
    training: TrainingSection
    optimizers: Optimizers

    @abstractmethod
    def encode(self, batch: Batch) -> Batch | PackedBatch:
        """The batch in the form that this backend reads; parts of it are batches too."""

    @abstractmethod
    def backward(self, batch: Batch | PackedBatch, share: float, *, add: bool = False, last: bool = True) -> Figure:
        """`share` times the summed loss of a batch; its gradient replaces what is there, or is added to it.

        After the last batch of a step the gradient is summed over the ranks.
        """

    @abstractmethod
    def gradients(self) -> list[Tensor]:
        """The gradient, to be changed in place."""

    @abstractmethod
    def blocks(self) -> list[Tensor]:
        """The weights in their own memory, in as few tensors as there can be."""

    @abstractmethod
    def named(self, blocks: list[Tensor]) -> dict[str, Tensor]:
        """The parts of tensors like `blocks` by the parameters' names."""

    def update(self, rate: float) -> None:
        """A step of the optimiser."""
        self.optimizers.step(rate)

    @abstractmethod
    def optimizer_tensors(self) -> dict[str, Tensor]:
        """The optimiser's state as `kind/parameter` -> tensor."""

    def load_optimizer(self, tensors: dict[str, Tensor]) -> None:
        """Set the optimiser's state; `DamagedFile` if it is not this model's."""
        check_state(tensors, dict(self.model.named_parameters()), self.training)
        self.set_optimizer(tensors)

    @abstractmethod
    def set_optimizer(self, tensors: dict[str, Tensor]) -> None:
        """Set the optimiser's state, which has been checked."""

    def clip(self, largest: float) -> Figure:
        """The norm of the gradient, which is scaled down to `largest` if it is above (0: never)."""
        gradients = self.gradients()
        total: Tensor = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(gradient) for gradient in gradients]))
        if not can_look(total):
            if largest:
                scale = (largest / (total + 1e-6)).clamp(max=1.0)
                for gradient in gradients:
                    gradient.mul_(scale)
            return total
        norm = float(total)
        if largest and math.isfinite(norm) and norm > largest:
            for gradient in gradients:
                gradient.mul_(largest / (norm + 1e-6))
        return norm


def to_device(array: Integers, device: torch.device) -> Tensor:
    """A copy that the host does not wait for: from memory that CUDA can read by itself."""
    tensor = torch.from_numpy(array)
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)


class SummedLoss(nn.Module):
    """Inputs and targets to the summed loss over target tokens: one forward, as DDP wants it."""

    def __init__(self, model: Seq2Seq) -> None:
        super().__init__()
        self.model = model

    def forward(self, inputs_NS: Tensor, targets_NT: Tensor) -> Tensor:
        return sequence_loss(self.model, inputs_NS, targets_NT, reduction="sum")


@final
class AutogradBackend(Backend):
    """Any model on any device; several ranks by DDP."""

    def __init__(self, model: Seq2Seq, training: TrainingSection, device: torch.device, ranks: Ranks | None = None) -> None:
        self.model, self.training, self.device, self.precision = model.to(device), training, device, training.precision
        self.loss: nn.Module = SummedLoss(model)
        self.ranks = ranks.size if ranks else 1
        if self.ranks > 1:
            place = [device.index] if device.type == "cuda" else None
            self.loss = DistributedDataParallel(self.loss, device_ids=place, gradient_as_bucket_view=True)
        self.optimizers = Optimizers(dict(model.named_parameters()), training)

    def encode(self, batch: Batch) -> Batch:
        return batch

    def backward(self, batch: Batch | PackedBatch, share: float, *, add: bool = False, last: bool = True) -> Figure:
        assert isinstance(batch, Batch)
        inputs, targets = (to_device(t, self.device) for t in (batch.inputs, batch.targets))
        if not add:
            self.model.zero_grad(set_to_none=True)
        alone = isinstance(self.loss, DistributedDataParallel) and not last
        with self.loss.no_sync() if alone else nullcontext():  # type: ignore[operator]
            with autocast(self.precision, self.device):
                loss = self.loss(inputs, targets) * share
            (loss * self.ranks).backward()  # DDP takes the mean over the ranks
        return float(loss.detach()) if can_look(loss) else loss.detach()

    def gradients(self) -> list[Tensor]:
        return [weight.grad for weight in self.model.parameters() if weight.grad is not None]

    def blocks(self) -> list[Tensor]:
        return [weight.data for weight in self.model.parameters()]

    def named(self, blocks: list[Tensor]) -> dict[str, Tensor]:
        return {name: block for (name, _), block in zip(self.model.named_parameters(), blocks, strict=True)}

    def optimizer_tensors(self) -> dict[str, Tensor]:
        return self.optimizers.tensors()

    def set_optimizer(self, tensors: dict[str, Tensor]) -> None:
        self.optimizers.load(tensors)


@final
class PackedBackend(Backend):
    """A transformer on a CPU: shards of rows side by side on threads, summed in order, weights in one flat memory."""

    def __init__(self, model: Transformer, training: TrainingSection, threads: int, ranks: Ranks | None = None) -> None:
        from gcdformer.models.packed.backward import Shard
        from gcdformer.models.packed.program import FlatTensors

        torch.set_num_threads(1)  # the threads are the shards'
        self.model, self.training, self.ranks = model, training, ranks.size if ranks else 1
        self.weights = FlatTensors.adopt(model)
        self.total = FlatTensors(model)
        self.new_shard: Callable[[], Shard] = partial(Shard, model, self.weights)
        self.shards = [Shard(model, self.weights, self.total)]  # the first writes where the others are added
        self.threads = threads
        self.pool = one_thread_each(threads - 1) if threads > 1 else None
        named = dict(model.named_parameters()) if OPTIMIZERS[training.optimizer].inner_only else {}
        for name, weight in named.items():
            weight.grad = self.total.tensors[name]
        inner = {name: weight for name, weight in named.items() if is_inner_map(name, weight)}
        rest = nn.Parameter(self.weights.flat[self.weights.inner if inner else 0:])
        rest.grad = self.total.flat[len(self.total.flat) - len(rest):]
        self.optimizers = Optimizers(inner | {ALL_THE_REST: rest}, training, self.pool)

    def encode(self, batch: Batch) -> PackedBatch:
        return PackedBatch.of(batch.inputs, batch.input_lengths, batch.targets, batch.target_lengths)

    def backward(self, batch: Batch | PackedBatch, share: float, *, add: bool = False, last: bool = True) -> float:
        assert isinstance(batch, PackedBatch)
        rows = len(batch.inputs.lengths)
        count = max(min(2, rows), -(-rows // ROWS_A_SHARD))
        parts = cuts(rows, count)
        first = 1 if add else 0
        while len(self.shards) < first + count:
            self.shards.append(self.new_shard())
        shards = self.shards[first:first + count]
        losses = [0.0] * count

        def work(start: int) -> None:
            for index in range(start, count, self.threads):
                losses[index] = shards[index].learn(batch.part(*parts[index]), share)

        others = [self.pool.submit(work, start) for start in range(1, min(self.threads, count))] if self.pool else []
        work(0)
        for other in others:
            other.result()
        for shard in shards[1 - first:]:
            self.total.flat.add_(shard.gradients.flat)
        if last and self.ranks > 1:
            dist.all_reduce(self.total.flat)
        return share * math.fsum(losses)

    def gradients(self) -> list[Tensor]:
        return [self.total.flat]

    def blocks(self) -> list[Tensor]:
        return [self.weights.flat]

    def named(self, blocks: list[Tensor]) -> dict[str, Tensor]:
        return dict(self.weights.views(blocks[0]))

    def optimizer_tensors(self) -> dict[str, Tensor]:
        tensors: dict[str, Tensor] = {}
        for key, value in self.optimizers.tensors().items():
            kind, _, name = key.partition("/")
            if name != ALL_THE_REST:
                tensors[key] = value
            elif value.dim():
                tensors |= {f"{kind}/{name}": part for name, part in self.weights.views(value)}
            else:
                rest = self.weights.views(self.optimizers.weights[ALL_THE_REST].data)
                tensors |= {f"{kind}/{name}": value.clone() for name, _ in rest}
        return tensors

    def set_optimizer(self, tensors: dict[str, Tensor]) -> None:
        rest = self.optimizers.weights[ALL_THE_REST].data
        names = {name for name, _ in self.weights.views(rest)}
        whole: dict[str, Tensor] = {}
        for key, value in tensors.items():
            kind, _, name = key.partition("/")
            place = f"{kind}/{ALL_THE_REST}"
            if name not in names:
                whole[key] = value
            elif not value.dim():
                whole[place] = value
            else:
                flat = whole.setdefault(place, torch.zeros_like(rest))
                dict(self.weights.views(flat))[name].copy_(value)
        self.optimizers.load(whole)


def build_backend(model: Seq2Seq, config: Config, device: torch.device, ranks: Ranks) -> Backend:
    """The packed backend where it can be, unless autograd is asked for."""
    if config.machine.backend == "auto" and can_pack(model, device, config.training.precision):
        assert isinstance(model, Transformer)
        return PackedBackend(model, config.training, chosen_threads(config.machine), ranks)
    return AutogradBackend(model, config.training, device, ranks)


def has_to_compile(config: Config, device: torch.device) -> bool:
    """Whether the first step will take some seconds to compile the packed loops, once on this machine."""
    if config.machine.backend != "auto" or not is_packable(config.model.family, device, config.training.precision):
        return False
    from gcdformer.models.packed.kernels import were_compiled

    sizes = config.model
    return not were_compiled(sizes.encoder_dim // sizes.encoder_heads, sizes.decoder_dim // sizes.decoder_heads)
