"""One step of learning: examples by number, loss, gradient, Adam. The loop, the bench and the estimate all use it."""

from __future__ import annotations

import math

import torch

from gcdformer.config import Config
from gcdformer.data import Problem, Stream
from gcdformer.models import Seq2Seq, autocast, sequence_loss
from gcdformer.training.distributed import BatchParts, Ranks
from gcdformer.training.optimizer import build_optimizer
from gcdformer.training.schedules import learning_rate


class Diverged(Exception):
    """The loss or its gradient is no longer a number."""


class Learner:
    """A model with its optimiser and its stream, on a device."""

    def __init__(self, config: Config, problem: Problem, model: Seq2Seq, device: torch.device,
                 ranks: Ranks | None = None) -> None:
        self.training, self.problem, self.device = config.training, problem, device
        self.model = model.to(device)
        self.optimizer = build_optimizer(model, config.training, device)
        self.stream = Stream.of(config, problem)
        split = config.machine.accumulate > 1 or ranks is not None and ranks.size > 1
        self.parts = BatchParts(config, self.model, device, ranks or Ranks()) if split else None

    def learn(self, step: int) -> tuple[float, float]:
        """Take step number `step`; the loss before it and the learning rate."""
        training = self.training
        first = step * training.batch_size
        batch = self.problem.encode_batch(self.stream.examples(first, first + training.batch_size))
        rate = learning_rate(training, step)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.zero_grad(set_to_none=True)
        inputs, targets = (torch.from_numpy(t) for t in (batch.inputs, batch.targets))
        value = self.parts.backward(inputs, targets) if self.parts else self.backward(inputs, targets)
        if not math.isfinite(value):
            raise Diverged(f"the loss is {value} at step {step}")
        norm = float(torch.nn.utils.clip_grad_norm_(self.model.parameters(), training.clip or math.inf))
        if not math.isfinite(norm):
            raise Diverged(f"the norm of the gradient is {norm} at step {step}")
        self.optimizer.step()
        return value, rate

    def backward(self, inputs: torch.Tensor, targets: torch.Tensor) -> float:
        """Set the gradients of a batch's loss; the loss."""
        with autocast(self.training.precision, self.device):
            loss = sequence_loss(self.model, inputs.to(self.device), targets.to(self.device))
        loss.backward()  # type: ignore[no-untyped-call]
        return float(loss.detach())
