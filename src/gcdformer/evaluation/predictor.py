"""A model that is asked in integers and answers in integers: encode, decode for real, read.

The only part of the evaluation that needs torch.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from gcdformer.data.problem import Problem
from gcdformer.evaluation.table import UNREADABLE, PredictionTable
from gcdformer.models import Seq2Seq, autocast, generate, sequence_loss
from gcdformer.numbers.encoding import Integers, Mask

TOKENS_A_BATCH = 4096
"""Input tokens decoded together: what fits a CPU's caches; an accelerator takes more."""
TOKENS_ON_ACCELERATOR = 262_144
LOSS_EXAMPLES = 10_000


class Stopped(Exception):
    """The evaluation was asked to stop."""


class Predictor:
    """A model with its problem, on a device."""

    def __init__(self, model: Seq2Seq, problem: Problem, device: torch.device, beam: int = 1, precision: str = "float32",
                 on_batch: Callable[[int], None] = lambda done: None) -> None:
        self.model = model
        self.problem = problem
        self.device = device
        self.beam = beam
        self.precision = precision
        self.on_batch = on_batch
        """Called with the number of questions answered so far; it may raise `Stopped`."""

    def tokens(self, questions: Integers) -> Integers:
        """Generated token rows. Questions of like length are decoded together, so that little is padding."""
        inputs, lengths = self.problem.encode_questions(questions)
        longest = self.problem.longest_target
        outputs = np.zeros((len(questions), longest), dtype=np.int64)
        order = np.argsort(lengths, kind="stable")
        was_training = self.model.training
        self.model.eval()
        start = 0
        while start < len(order):
            budget = TOKENS_A_BATCH if self.device.type == "cpu" else TOKENS_ON_ACCELERATOR
            size = max(64, budget // int(lengths[order[min(start + 512, len(order) - 1)]]))
            rows = order[start:start + size]
            batch = torch.from_numpy(inputs[rows, :int(lengths[rows[-1]])]).to(self.device)
            with autocast(self.precision, self.device):
                outputs[rows] = generate(self.model, batch, longest, self.beam).cpu().numpy()
            start += size
            self.on_batch(min(start, len(order)))
        self.model.train(was_training)
        return outputs

    def answers(self, questions: Integers) -> tuple[Integers, Mask]:
        """Predicted integers (n, outputs) and which rows are readable."""
        return self.problem.decode_answers(self.tokens(questions))

    def predict(self, a: Integers, b: Integers) -> Integers:
        """Predictions of a two-operand task with one answer; UNREADABLE where the sequence is no integer."""
        values, readable = self.answers(np.stack([a, b], axis=1))
        return np.where(readable, values[:, 0], UNREADABLE)

    def table(self, pairs: Integers) -> PredictionTable:
        return PredictionTable.of(pairs[:, 0], pairs[:, 1], self.predict(pairs[:, 0], pairs[:, 1]))

    def accuracy(self, questions: Integers) -> float:
        """Percent of questions answered right."""
        values, readable = self.answers(questions)
        return 100.0 * float((readable & (values == self.problem.answer(questions)).all(1)).mean())

    @torch.inference_mode()
    def loss(self, questions: Integers) -> float:
        """Mean cross-entropy of a target token under teacher forcing, over the first questions."""
        total, tokens = 0.0, 0
        for start in range(0, min(len(questions), LOSS_EXAMPLES), 1000):
            batch = self.problem.encode_batch(questions[start:start + 1000])
            inputs = torch.from_numpy(batch.inputs).to(self.device)
            targets = torch.from_numpy(batch.targets).to(self.device)
            with autocast(self.precision, self.device):
                total += float(sequence_loss(self.model, inputs, targets, reduction="sum"))
            tokens += int((batch.target_lengths - 1).sum())
            self.on_batch(0)
        return total / tokens
