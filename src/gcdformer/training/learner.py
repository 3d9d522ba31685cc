"""One step of learning: examples by number, loss, gradient, Adam. The loop, the bench and the estimate all use it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from gcdformer.config import Config
from gcdformer.data import Problem, Stream
from gcdformer.data.problem import Batch
from gcdformer.data.stream import BLOCK
from gcdformer.errors import UserError
from gcdformer.models import Seq2Seq
from gcdformer.models.packed import PackedBatch
from gcdformer.training.distributed import Ranks, cuts
from gcdformer.training.engines import build_engine
from gcdformer.training.schedules import learning_rate


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


class Learner:
    """A model with its engine and its stream, on a device."""

    def __init__(self, config: Config, problem: Problem, model: Seq2Seq, device: torch.device,
                 ranks: Ranks | None = None) -> None:
        self.training, self.problem, self.ranks = config.training, problem, ranks or Ranks()
        self.micro = config.machine.accumulate
        least = self.ranks.size * self.micro
        if config.training.batch_size < least:
            raise UserError(f"batch_size: at least {least} for {self.ranks.size} ranks with accumulate {self.micro}, "
                            f"got {config.training.batch_size}")
        self.engine = build_engine(model, config, device, self.ranks)
        self.model = self.engine.model
        self.stream = Stream.of(config, problem)
        self._steps_encoded = max(1, BLOCK // config.training.batch_size)
        self._encoded: tuple[int, Batch | PackedBatch] | None = None

    def learn(self, step: int) -> tuple[float, float]:
        """Take step number `step`; the loss before it and the learning rate."""
        with without_denormals():
            return self._learn(step)

    def _learn(self, step: int) -> tuple[float, float]:
        rate = learning_rate(self.training, step)
        loss = self.backward(self.batch(step))
        if not math.isfinite(loss):
            raise Diverged(f"the loss is {loss} at step {step}")
        norm = self.engine.clip(self.training.clip)
        if not math.isfinite(norm):
            raise Diverged(f"the norm of the gradient is {norm} at step {step}")
        self.engine.update(rate)
        return loss, rate

    def backward(self, batch: Batch | PackedBatch) -> float:
        """Set the gradient of the mean loss over a batch, from this rank's rows in micro-batches; that loss."""
        size, share, loss = self.training.batch_size, 1.0 / batch.target_tokens, 0.0
        start, stop = cuts(size, self.ranks.size)[self.ranks.rank]
        for index, (first, last) in enumerate(cuts(stop - start, self.micro)):
            part = batch.part(start + first, start + last)
            loss += self.engine.backward(part, share, add=index > 0, last=index == self.micro - 1)
        return self.ranks.total(loss)

    def batch(self, step: int) -> Batch | PackedBatch:
        """The examples of a step; those of several steps are drawn and encoded together."""
        chunk, place = divmod(step, self._steps_encoded)
        size = self.training.batch_size
        if self._encoded is None or self._encoded[0] != chunk:
            first = chunk * self._steps_encoded * size
            questions = self.stream.examples(first, first + self._steps_encoded * size)
            self._encoded = (chunk, self.engine.encode(self.problem.encode_batch(questions)))
        return self._encoded[1].part(place * size, (place + 1) * size)
