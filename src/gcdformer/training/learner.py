"""One step of learning: examples by number, loss, gradient, Adam. The loop, the bench and the estimate all use it."""

from __future__ import annotations

import math

import torch

from gcdformer.config import Config
from gcdformer.data import Problem, Stream
from gcdformer.models import Seq2Seq, autocast, sequence_loss
from gcdformer.training.optimizer import build_optimizer
from gcdformer.training.schedules import learning_rate


class Diverged(Exception):
    """The loss or its gradient is no longer a number."""


class Learner:
    """A model with its optimiser and its stream, on a device."""

    def __init__(self, config: Config, problem: Problem, model: Seq2Seq, device: torch.device) -> None:
        self.training, self.problem, self.device = config.training, problem, device
        self.model = model.to(device)
        self.optimizer = build_optimizer(model, config.training, device)
        self.stream = Stream.of(config, problem)

    def learn(self, step: int) -> tuple[float, float]:
        """Take step number `step`; the loss before it and the learning rate."""
        training = self.training
        first = step * training.batch_size
        batch = self.problem.encode_batch(self.stream.examples(first, first + training.batch_size))
        inputs, targets = (torch.from_numpy(t).to(self.device) for t in (batch.inputs, batch.targets))
        rate = learning_rate(training, step)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        with autocast(training.precision, self.device):
            loss = sequence_loss(self.model, inputs, targets)
        value = float(loss.detach())
        if not math.isfinite(value):
            raise Diverged(f"the loss is {value} at step {step}")
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        norm = float(torch.nn.utils.clip_grad_norm_(self.model.parameters(), training.clip or math.inf))
        if not math.isfinite(norm):
            raise Diverged(f"the norm of the gradient is {norm} at step {step}")
        self.optimizer.step()
        return value, rate
