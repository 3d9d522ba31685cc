"""A model that is asked in integers and answers in integers: encode, decode for real, read.

The only part of the evaluation that needs torch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any, overload

import numpy as np
import torch

from gcdformer.data.problem import Problem
from gcdformer.errors import UserError
from gcdformer.evaluation.operands import operand_arrays
from gcdformer.evaluation.prior import DecisionPrior
from gcdformer.evaluation.scores import Calibration, Confidences
from gcdformer.evaluation.table import UNREADABLE, PredictionTable
from gcdformer.models import Seq2Seq, autocast, generate, sequence_loss
from gcdformer.models.decide import Paths, PlainPaths, generate_best, log_evidence, sequence_log_probs
from gcdformer.models.packed import PackedRows, can_pack, one_thread_each
from gcdformer.models.transformer import Transformer
from gcdformer.numbers.encoding import Integers, Mask

TOKENS_A_BATCH = 4096
"""Input tokens decoded together: what fits a CPU's caches; an accelerator takes more."""
TOKENS_ON_ACCELERATOR = 262_144
LOSS_EXAMPLES = 10_000
CONFIDENCE_ROWS, CONFIDENCE_TOLERANCE = 512, 0.01
"""Rows whose confidence is computed together, and its relative error at most (half of it: the middle is taken)."""
CALIBRATED = 10_000
"""Questions on which calibration is measured: confidences cost more than answers."""
SEARCHED = 1024
"""Batch size for the rows that need the full search."""
WORTH_PACKING = 256
"""Questions from which on it pays to load the compiled decoder."""


class Stopped(Exception):
    """The evaluation was asked to stop."""


class Predictor:
    """A model with its problem, on a device."""

    def __init__(self, model: Seq2Seq, problem: Problem, device: torch.device, beam: int = 1, precision: str = "float32",
                 on_batch: Callable[[int], None] = lambda done: None, threads: int | None = None,
                 prior: DecisionPrior | None = None) -> None:
        if prior is not None and beam > 1:
            raise UserError(f"beam: under a prior every answer is scored as a whole, so that beam is 1, not {beam}")
        self.model = model
        self.problem = problem
        self.device = device
        self.beam = beam
        self.precision = precision
        self.on_batch = on_batch
        """Called with the number of questions answered so far; it may raise `Stopped`."""
        self.threads = threads or torch.get_num_threads()
        self.prior = prior
        """The prior under which answers are decided, if it is not the training's."""
        self.tree = prior.tree(problem.base) if prior else None

    def tokens(self, questions: Integers) -> Integers:
        """Generated token rows. Questions of like length are decoded together, so that little is padding."""
        inputs, lengths = self.problem.encode_questions(questions)
        outputs = np.zeros((len(questions), self.problem.longest_target), dtype=np.int64)
        order = np.argsort(lengths, kind="stable")
        batches: list[Integers] = []
        budget = TOKENS_A_BATCH if self.device.type == "cpu" else TOKENS_ON_ACCELERATOR
        start = 0
        while start < len(order):
            size = max(64, budget // int(lengths[order[min(start + 512, len(order) - 1)]]))
            batches.append(order[start:start + size])
            start += size
        done = 0
        for rows, answers in self.generated(inputs, lengths, batches):
            outputs[rows] = answers
            done += len(rows)
            self.on_batch(done)
        return outputs

    def generated(self, inputs: Integers, lengths: Integers, batches: list[Integers]) -> Iterator[tuple[Integers, Integers]]:
        """Each batch of row numbers with its output tokens."""
        many = sum(map(len, batches)) >= WORTH_PACKING
        if many and self.beam == 1 and can_pack(self.model, self.device, self.precision):
            yield from self.generated_by_threads(inputs, lengths, batches)
            return
        longest = self.problem.longest_target
        was_training = self.model.training
        self.model.eval()
        for rows in batches:
            batch = torch.from_numpy(inputs[rows, :int(lengths[rows].max())]).to(self.device)
            with autocast(self.precision, self.device):
                if self.tree is not None:
                    yield rows, generate_best(self.model, batch, longest, self.tree)
                else:
                    yield rows, generate(self.model, batch, longest, self.beam).cpu().numpy()
        self.model.train(was_training)

    def generated_by_threads(self, inputs: Integers, lengths: Integers,
                             batches: list[Integers]) -> Iterator[tuple[Integers, Integers]]:
        """The same by packed rows; a thread has a generator of its own, and answers come in order."""
        from gcdformer.models.packed.decide import PackedDecider
        from gcdformer.models.packed.generate import PackedGenerator

        assert isinstance(self.model, Transformer)
        longest = self.problem.longest_target
        generators = SimpleQueue[PackedGenerator | PackedDecider]()
        for _ in range(self.threads):
            generators.put(PackedDecider(self.model, self.tree) if self.tree else PackedGenerator(self.model))
        left: list[Integers] = []

        @contextmanager
        def free_generator() -> Iterator[PackedGenerator | PackedDecider]:
            generator = generators.get()
            try:
                yield generator
            finally:  # also if a batch fails: the other threads wait for it
                generators.put(generator)

        def packed(rows: Integers) -> PackedRows:
            return PackedRows.of(inputs[rows, :int(lengths[rows].max())], lengths[rows])

        def answer(rows: Integers) -> tuple[Integers, Integers]:
            with free_generator() as generator:
                return rows, generator.generate(packed(rows), longest)

        def choose(rows: Integers) -> tuple[Integers, Integers]:
            """The rows whose answer of one token is proved; the others are left."""
            with free_generator() as decider:
                assert isinstance(decider, PackedDecider)
                answers, proved = decider.choose(packed(rows), longest)
            left.append(rows[~proved])
            return rows[proved], answers[proved]

        if self.tree is not None and self.tree.one_token and longest >= 3:
            yield from self.in_threads(choose, batches)
            rest = np.sort(np.concatenate(left))  # few are left, from many batches: they are searched together
            batches = [rest[start:start + SEARCHED] for start in range(0, len(rest), SEARCHED)]
        yield from self.in_threads(answer, batches)

    def in_threads(self, work: Callable[[Integers], tuple[Integers, Integers]],
                   batches: list[Integers]) -> Iterator[tuple[Integers, Integers]]:
        """What comes of each batch, in order."""
        if self.threads == 1 or len(batches) <= 1:
            yield from map(work, batches)
            return
        with one_thread_each(self.threads) as pool:
            waiting = deque[Future[tuple[Integers, Integers]]]()
            try:
                for rows in batches:
                    waiting.append(pool.submit(work, rows))
                    if len(waiting) > 2 * self.threads:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                pool.shutdown(cancel_futures=True)

    def confidences(self, questions: Integers, tokens: Integers) -> Confidences:
        """The probability of each generated row (n, longest) under the prior that decided it, among all sequences."""
        inputs, lengths = self.problem.encode_questions(questions)
        logs = np.zeros(len(questions))
        read = self.reader()
        was_training = self.model.training
        self.model.eval()
        for start in range(0, len(questions), CONFIDENCE_ROWS):
            part = slice(start, start + CONFIDENCE_ROWS)
            with torch.inference_mode(), autocast(self.precision, self.device):
                paths = read(inputs[part, :int(lengths[part].max())], lengths[part])
                logs[part] = self.log_confidences(paths, tokens[part])
            self.on_batch(min(start + CONFIDENCE_ROWS, len(questions)))
        self.model.train(was_training)
        return np.minimum(np.exp(logs), 1.0)

    def reader(self) -> Callable[[Integers, Integers], Paths]:
        """A function of a batch of inputs and their lengths: the model after reading them."""
        if not can_pack(self.model, self.device, self.precision):
            return lambda inputs, lengths: PlainPaths(self.model, torch.from_numpy(inputs).to(self.device))
        from gcdformer.models.packed.decide import PackedPaths
        from gcdformer.models.packed.generate import PackedGenerator

        assert isinstance(self.model, Transformer)
        packed = PackedPaths(self.model, PackedGenerator(self.model))
        return lambda inputs, lengths: packed.read(PackedRows.of(inputs, lengths), self.problem.longest_target)

    def log_confidences(self, paths: Paths, tokens: Integers) -> Confidences:
        logs = sequence_log_probs(paths, np.arange(len(tokens)), tokens)
        if self.tree is None:
            return logs
        logs += self.tree.offsets_of(tokens)
        return logs - log_evidence(paths, self.tree, len(tokens), CONFIDENCE_TOLERANCE)

    def calibration(self, questions: Integers) -> Calibration:
        """How well the probabilities of the answers to the first questions are calibrated."""
        asked = questions[:CALIBRATED]
        rows = self.tokens(asked)
        values, readable = self.problem.decode_answers(rows)
        right = readable & (values == self.problem.answer(asked)).all(1)
        return Calibration.of(self.confidences(asked, rows), right)

    def answers(self, questions: Integers) -> tuple[Integers, Mask]:
        """Predicted integers (n, outputs) and which rows are readable."""
        return self.problem.decode_answers(self.tokens(questions))

    @overload
    def predict(self, a: int, b: int) -> int: ...
    @overload
    def predict(self, a: Sequence[int] | Integers, b: Sequence[int] | Integers) -> Integers: ...
    def predict(self, a: Any, b: Any) -> Any:
        """Predictions of a two-operand task with one answer: an integer for two integers, an array for two lists or arrays
        of one length. UNREADABLE where the sequence is no integer."""
        if self.problem.task.inputs != 2 or self.problem.task.outputs != 1:
            raise UserError("predict(a, b) is for tasks with two operands and one answer, "
                            f"not '{self.problem.task.name}': use answers(questions)")
        first, second = operand_arrays(a, b)
        questions = np.stack([first.ravel(), second.ravel()], axis=1)
        self.problem.check_questions(questions)
        values, readable = self.answers(questions)
        predictions = np.where(readable, values[:, 0], UNREADABLE)
        return predictions if first.ndim else int(predictions[0])

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
