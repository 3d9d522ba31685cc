"""The training loop: draw, encode, learn; after each epoch evaluate, write a line, save.

All that the next step depends on is the weights, the optimiser and `TrainingState`; examples are a function of the
step. So a run that is stopped anywhere, by a signal or by `kill -9`, resumes bit for bit as if it never was.
"""

from __future__ import annotations

import math
import signal
from contextlib import nullcontext
from dataclasses import replace
from time import perf_counter
from typing import final

import torch

from gcdformer.config import Config
from gcdformer.data import Problem
from gcdformer.data.testsets import test_sets
from gcdformer.evaluation import Scores
from gcdformer.evaluation.evaluate import evaluate
from gcdformer.evaluation.predictor import Predictor, Stopped
from gcdformer.evaluation.prior import decision_prior
from gcdformer.explanation import Explanation
from gcdformer.models import Seq2Seq
from gcdformer.runs.checkpoint import Checkpoint, TrainingState, prune_checkpoints, save_checkpoint
from gcdformer.runs.explain import earlier_shares, explain_evaluation
from gcdformer.runs.folder import AVERAGE, RunFolder, best_line
from gcdformer.runs.metrics import Line, Scored
from gcdformer.training.device import Ranks, chosen_threads
from gcdformer.training.learner import Diverged, Learner
from gcdformer.training.limits import limit_reached
from gcdformer.training.optimizer import learning_rate
from gcdformer.training.signals import StopRequest
from gcdformer.training.trackers import Trackers
from gcdformer.training.view import Evaluated, Evaluating, Stepped, View


@final
class TrainingLoop:
    """The steps and evaluations of one session, from where the last one stopped."""

    def __init__(self, config: Config, problem: Problem, model: Seq2Seq, device: torch.device, folder: RunFolder,
                 stop: StopRequest, view: View, ranks: Ranks) -> None:
        self.config, self.problem, self.device = config, problem, device
        self.trackers = Trackers()
        self.folder, self.stop, self.view, self.ranks = folder, stop, view, ranks
        self.learner = Learner(config, problem, model, device, ranks)
        self.state = TrainingState()
        self.lines: list[Line] = []
        self._clock = self._saved_at = perf_counter()
        self._agreed: signal.Signals | None = None

    def restore(self, checkpoint: Checkpoint, lines: list[Line]) -> None:
        state = {key: value for key, value in checkpoint.optimizer.items() if not key.startswith(f"{AVERAGE}/")}
        self.learner.backend.load_optimizer(state)
        if self.learner.averages is not None:
            self.learner.averages.load(checkpoint.averages)
        self.state = replace(checkpoint.state)
        self.lines = lines

    def run(self) -> str:
        """Train until a limit or a signal; the reason why it ended."""
        self._clock = self._saved_at = perf_counter()
        while True:
            if self.state.step == (self.state.evaluations + 1) * self.config.training.steps_per_epoch:
                try:
                    self.evaluate_by_first()
                except Stopped:
                    self.agree()
                    self.save()
                    return f"interrupted by {self.stop_signal.name if self.stop_signal else 'a signal'}"
            reason = limit_reached(self.config.limits, self.state, self.lines)
            if reason is not None:
                if self.state.loss_count:
                    self.save()
                return reason
            self.train_step()
            if self.stop_signal is not None:
                self.save()
                return f"interrupted by {self.stop_signal.name}"
            if self.ranks.first and perf_counter() - self._saved_at > 60 * self.config.machine.checkpoint_minutes:
                self.save()

    def train_step(self) -> None:
        loss, rate = self.learner.learn(self.state.step)
        self.state.step += 1
        self.state.loss_count += 1
        self.add_losses()
        self.tick()
        self.agree()
        self.view.show(Stepped(self.state, loss, rate))

    def add_losses(self, *, wait: bool = False) -> None:
        """Add the losses that are known by now; an accelerator may still be at work on some, unless we wait."""
        for loss in self.learner.new_losses(wait=wait):
            self.state.loss_sum += loss

    def agree(self) -> None:
        """Let all ranks have the same time, and the same signal if one of them got one."""
        if self.ranks.size > 1:
            self.state.seconds, number = self.ranks.largest(self.state.seconds, float(self.stop.received or 0))
            self._agreed = signal.Signals(int(number)) if number else None

    @property
    def stop_signal(self) -> signal.Signals | None:
        """The signal that ends this session; among ranks the one that all of them know of."""
        return self.stop.received if self.ranks.size == 1 else self._agreed

    def evaluate_by_first(self) -> None:
        """Evaluate on rank 0; the others wait for what came of it."""
        state, line = self.ranks.by_first(self.evaluate)
        if not self.ranks.first:
            self.state = state
            self.lines.append(line)
            self._clock = perf_counter()

    def evaluate(self) -> tuple[TrainingState, Line]:
        """Decode both test sets, write the prediction tables and a line of metrics, save."""
        self.add_losses(wait=True)
        self.tick()
        trained = self.state.seconds - (self.lines[-1]["seconds"] if self.lines else 0.0)
        epoch = self.state.evaluations + 1
        sets = test_sets(self.config, self.problem, epoch)
        total = sum(map(len, sets.values()))

        def progress(answered: int) -> None:
            self.tick()
            self.view.show(Evaluating(self.state, answered / total))
            if self.stop.received is not None:
                raise Stopped

        predictor = Predictor(self.learner.model, self.problem, self.device,
                              precision=self.config.training.precision, threads=chosen_threads(self.config.machine),
                              prior=decision_prior(self.config, self.problem, self.config.evaluation.prior, self.state.step))
        averages = self.learner.averages
        with averages.in_place() if averages else nullcontext():
            evaluation = evaluate(predictor, sets, self.config.evaluation.threshold, progress)
        if not math.isfinite(evaluation.loss):
            raise Diverged(f"the test loss is {evaluation.loss} at step {self.state.step}")
        scored: Scored = {"accuracy": evaluation.accuracy}
        if evaluation.scores is not None:
            explanation = explain_evaluation(self.config, evaluation.tables, earlier_shares(self.folder, epoch))
            scored = score_line(evaluation.scores, explanation, self.lines[-1]["D"] if self.lines else [])
            scored["predictions_sha256"] = self.folder.write_predictions(epoch, evaluation.tables)
        self.tick()
        examples = self.state.loss_count * self.config.training.batch_size
        line: Line = {"epoch": epoch, "step": self.state.step,
                      "examples": self.state.step * self.config.training.batch_size,
                      "loss": self.state.loss_sum / self.state.loss_count,
                      "learning_rate": learning_rate(self.config.training, self.state.step - 1),
                      "test_loss": evaluation.loss, **scored, "seconds": self.state.seconds,
                      "throughput": examples / trained if trained > 0 else None}
        self.folder.append_metrics(line)
        self.lines.append(line)
        self.state.evaluations = epoch
        self.state.loss_sum, self.state.loss_count = 0.0, 0
        self.save()
        self.view.show(Evaluated(self.state, line, evaluation.scores))
        self.trackers.evaluated(line, evaluation.scores)
        return self.state, line

    def save(self) -> None:
        """Write a checkpoint; keep the newest ones, the best, and the last whose evaluation gave a certificate."""
        if not self.ranks.first:
            return
        self.add_losses(wait=True)
        model = self.learner.model
        tensors = self.learner.backend.optimizer_tensors()
        if self.learner.averages is not None:
            tensors |= self.learner.averages.tensors()
        save_checkpoint(self.folder.path, Checkpoint(dict(model.state_dict()), tensors, self.state))
        best = best_line(self.lines)
        certified = [line["step"] for line in self.lines if line.get("certified")]
        prune_checkpoints(self.folder.path, self.config.machine.keep_checkpoints,
                          {*certified[-1:], *([best["step"]] if best else [])})
        self._saved_at = perf_counter()

    def tick(self) -> None:
        """Count the time that has passed."""
        now = perf_counter()
        self.state.seconds += now - self._clock
        self._clock = now


def score_line(scores: Scores, explanation: Explanation, before: list[int]) -> Scored:
    """What a line of metrics says about the GCD; `before` is D at the evaluation before."""
    correct = scores.correct
    return {
        "accuracy": scores.accuracy,
        "stratified_accuracy": scores.stratified_accuracy,
        "n_correct": len(correct),
        "n_modal": len(scores.modal),
        "correct": correct,
        "D": correct,
        "being_learned": explanation.being_learned,
        "certified": explanation.certified,
        "events": {"entered": sorted(set(correct) - set(before)), "left": sorted(set(before) - set(correct))},
    }
