"""One step of learning: examples by number, loss, gradient, Adam. The loop, the bench and the estimate all use it."""

from __future__ import annotations

import math

import torch

from gcdformer.config import Config
from gcdformer.data import Problem, Stream
from gcdformer.data.problem import Batch
from gcdformer.data.stream import BLOCK
from gcdformer.models import Seq2Seq
from gcdformer.models.packed import PackedBatch
from gcdformer.training.device import available_cores
from gcdformer.training.engines import build_engine
from gcdformer.training.schedules import learning_rate


class Diverged(Exception):
    """The loss or its gradient is no longer a number."""


class Learner:
    """A model with its engine and its stream, on a device."""

    def __init__(self, config: Config, problem: Problem, model: Seq2Seq, device: torch.device) -> None:
        self.training, self.problem = config.training, problem
        threads = config.machine.threads or available_cores()
        self.engine = build_engine(model, config.training, device, config.machine.engine, threads)
        self.model = self.engine.model
        self.stream = Stream.of(config, problem)
        self._steps_encoded = max(1, BLOCK // config.training.batch_size)
        self._encoded: tuple[int, Batch | PackedBatch] | None = None

    def learn(self, step: int) -> tuple[float, float]:
        """Take step number `step`; the loss before it and the learning rate."""
        batch = self.batch(step)
        rate = learning_rate(self.training, step)
        loss = self.engine.backward(batch, 1.0 / batch.target_tokens)
        if not math.isfinite(loss):
            raise Diverged(f"the loss is {loss} at step {step}")
        norm = self.engine.clip(self.training.clip)
        if not math.isfinite(norm):
            raise Diverged(f"the norm of the gradient is {norm} at step {step}")
        self.engine.update(rate)
        return loss, rate

    def batch(self, step: int) -> Batch | PackedBatch:
        """The examples of a step; those of several steps are drawn and encoded together."""
        chunk, place = divmod(step, self._steps_encoded)
        size = self.training.batch_size
        if self._encoded is None or self._encoded[0] != chunk:
            first = chunk * self._steps_encoded * size
            questions = self.stream.examples(first, first + self._steps_encoded * size)
            self._encoded = (chunk, self.engine.encode(self.problem.encode_batch(questions)))
        return self._encoded[1].part(place * size, (place + 1) * size)
