"""One step of learning: examples by number, loss, gradient, optimiser; and the model that the first step starts from.

The loop, the bench and the estimate all use it. It knows no epoch, no checkpoint and no limit.

On a CPU the loss of a step is known when the step is taken. An accelerator works through a queue of steps, and reading a
number from it waits until the queue is empty; so losses are read together, every `AHEAD` steps and when someone needs them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import final

import torch
from torch import Tensor

from gcdformer.config import Config
from gcdformer.data import Problem, Stream
from gcdformer.data.problem import Batch
from gcdformer.data.stream import BLOCK
from gcdformer.errors import UserError
from gcdformer.models import Seq2Seq, build_model
from gcdformer.models.packed import PackedBatch
from gcdformer.runs.checkpoint import load_checkpoint, load_model
from gcdformer.runs.folder import checkpoint_path
from gcdformer.runs.run import Run
from gcdformer.training.averages import Averages
from gcdformer.training.backends import Figure, build_backend
from gcdformer.training.device import Ranks, cuts
from gcdformer.training.optimizer import learning_rate

AHEAD = 32
"""Steps whose losses may be unread. A run that diverges on an accelerator takes at most as many more, and saves none."""


class Diverged(Exception):
    """The loss or its gradient is no longer a number."""


@contextmanager
def without_denormals() -> Iterator[None]:
    """Numbers below 1e-38 are zero here: the momentum of a unit that is dead goes there, and each operation on such a
    number takes as long as a hundred others."""
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)


@final
class Learner:
    """A model with its backend and its stream, on a device."""

    def __init__(self, config: Config, problem: Problem, model: Seq2Seq, device: torch.device,
                 ranks: Ranks | None = None) -> None:
        self.training, self.problem, self.ranks = config.training, problem, ranks or Ranks()
        self.micro = config.machine.accumulate
        least = self.ranks.size * self.micro
        if config.training.batch_size < least:
            raise UserError(f"batch_size: at least {least} for {self.ranks.size} ranks with accumulate {self.micro}, "
                            f"got {config.training.batch_size}")
        self.backend = build_backend(model, config, device, self.ranks)
        self.model = self.backend.model
        average = config.training.average
        self.averages = None if average is None else Averages(self.backend, average)
        self.stream = Stream.of(config, problem)
        self._steps_encoded = max(1, BLOCK // config.training.batch_size)
        self._encoded: tuple[int, Batch | PackedBatch] | None = None
        self._unread: list[tuple[int, Figure, Figure]] = []
        self._losses: list[float] = []
        self._newest: float | None = None

    def learn(self, step: int) -> tuple[float, float]:
        """Take step number `step`; the newest loss that is known (on a CPU the one before this step) and the rate."""
        with without_denormals():
            return self._learn(step)

    def _learn(self, step: int) -> tuple[float, float]:
        rate = learning_rate(self.training, step)
        loss = self.backward(self.batch(step))
        check_number("loss", loss, step)
        norm = self.backend.clip(self.training.clip)
        if isinstance(loss, float):  # known already, as among several ranks, so there is nothing to run ahead of
            norm = float(norm)
        check_number("norm of the gradient", norm, step)
        self.backend.update(rate)
        if self.averages is not None:
            self.averages.update(step)
        self._unread.append((step, loss, norm))
        if isinstance(loss, float) or self._newest is None or len(self._unread) >= AHEAD:
            self.read_losses()
        assert self._newest is not None
        return self._newest, rate

    def read_losses(self) -> None:
        """Wait until all steps are taken, and know their losses; `Diverged` names the first step whose loss is no number."""
        unread, self._unread = self._unread, []
        if unread and isinstance(unread[0][1], Tensor):
            figures = torch.stack([figure for _, *pair in unread for figure in pair if isinstance(figure, Tensor)]).tolist()
            unread = [(step, *figures[2 * n:2 * n + 2]) for n, (step, _, _) in enumerate(unread)]
        for step, loss, norm in unread:
            check_number("loss", loss, step)
            check_number("norm of the gradient", norm, step)
            self._losses.append(float(loss))
        if self._losses:
            self._newest = self._losses[-1]

    def new_losses(self, *, wait: bool = False) -> list[float]:
        """The losses that became known since this was last asked, step by step; all of them, if it may wait."""
        if wait:
            self.read_losses()
        losses, self._losses = self._losses, []
        return losses

    def backward(self, batch: Batch | PackedBatch) -> Figure:
        """Set the gradient of the mean loss over a batch, from this rank's rows in micro-batches; that loss."""
        size, share = self.training.batch_size, 1.0 / batch.target_tokens
        loss: Figure = 0.0
        start, stop = cuts(size, self.ranks.size)[self.ranks.rank]
        for index, (first, last) in enumerate(cuts(stop - start, self.micro)):
            part = batch.part(start + first, start + last)
            loss += self.backend.backward(part, share, add=index > 0, last=index == self.micro - 1)
        return loss if self.ranks.size == 1 else self.ranks.total(float(loss))

    def batch(self, step: int) -> Batch | PackedBatch:
        """The examples of a step; those of several steps are drawn and encoded together."""
        chunk, place = divmod(step, self._steps_encoded)
        size = self.training.batch_size
        if self._encoded is None or self._encoded[0] != chunk:
            first = chunk * self._steps_encoded * size
            questions = self.stream.examples(first, first + self._steps_encoded * size)
            self._encoded = (chunk, self.backend.encode(self.problem.encode_batch(questions)))
        return self._encoded[1].part(place * size, (place + 1) * size)


def check_number(what: str, value: Figure, step: int) -> None:
    """`Diverged` if a loss or norm that is known is no number."""
    if isinstance(value, float) and not math.isfinite(value):
        raise Diverged(f"the {what} is {value} at step {step}")


def new_model(config: Config, problem: Problem) -> Seq2Seq:
    """The model with weights from the seed."""
    return build_model(config, problem, seed=config.training.seed)


def start_model(config: Config, problem: Problem) -> Seq2Seq:
    """The model a new run starts with: from its seed, or with another run's last weights."""
    if config.training.init_from is None:
        return new_model(config, problem)
    source = Run(config.training.init_from)
    step = source.checkpoint_step()
    return load_model(config, problem, load_checkpoint(source.path, step).model, checkpoint_path(source.path, step))
