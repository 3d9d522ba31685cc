"""A run as a Python object: configuration, metrics, prediction tables, and its model, ready to be asked."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from gcdformer.data import Problem, Stream
from gcdformer.data.reading import read_examples
from gcdformer.errors import DamagedFile, MissingExtra, UserError
from gcdformer.evaluation import PredictionTable, Scores, score
from gcdformer.numbers.distributions import read_weights
from gcdformer.numbers.encoding import Integers
from gcdformer.runs.folder import RunFolder, best_line, checkpoint_path, checkpoint_steps
from gcdformer.runs.metrics import Line
from gcdformer.tasks.registry import task_digest

if TYPE_CHECKING:
    import pandas

    from gcdformer.evaluation.predictor import Predictor

LOG = logging.getLogger("gcdformer")


class Run:
    """A run folder, read. Files are read when they are asked for, so that a run in progress can be followed."""

    def __init__(self, path: str | Path) -> None:
        self.folder = RunFolder(Path(path))
        self.config, self.made_by = self.folder.read_config()
        if self.made_by.get("task_sha256") != task_digest(self.config.task.task):
            raise UserError(f"task: {self.config.task.task} is missing or has changed since {path} was started")

    @property
    def path(self) -> Path:
        return self.folder.path

    def __repr__(self) -> str:
        """One line: the folder, what was trained, how far it has come."""
        from gcdformer.display.words import describe_task
        try:
            lines = self.metrics
        except DamagedFile:
            state = "its metrics are damaged"
        else:
            state = f"{len(lines)} epochs, accuracy {lines[-1]['accuracy']:.2f} %" if lines else "no epoch evaluated"
            if lines and "n_correct" in lines[-1]:
                state += f", {lines[-1]['n_correct']} correct GCD"
        return f"Run({str(self.path)!r}: {describe_task(self.config)}, {self.config.model.family}, {state})"

    def _repr_html_(self) -> str:
        """What a notebook shows: the run as it is now; a file that cannot be read is named instead."""
        from gcdformer.display.html import framed, run_html
        from gcdformer.runs.explain import explain_run
        try:
            lines = self.metrics
            explanation = explain_run(self) if lines and self.problem.task.has_gcd else None
            return run_html(self.path.name, self.config, lines, explanation)
        except UserError as error:
            return framed(f"<h4>{escape(self.path.name)}</h4><p>{escape(str(error))}</p>")

    @cached_property
    def problem(self) -> Problem:
        return Problem.of(self.config)

    @property
    def stream(self) -> Stream:
        """The training examples, by number."""
        self.require_same_file("train_file", self.config.data.train_file)
        self.require_same_weights(self.config.data.weights_file)
        return Stream.of(self.config, self.problem)

    def require_same_file(self, field: str, name: str | None) -> None:
        """Refuse a file of examples that is not the one this run was started with."""
        if name is not None and read_examples(name, self.problem, field).sha256 != self.made_by.get(f"{field}_sha256"):
            raise UserError(f"{field}: {name} has changed since {self.path} was started")

    def require_same_weights(self, name: str | None) -> None:
        """Refuse a file of weights that is not the one this run was started with."""
        if name is not None and read_weights(name, self.config.task.maximum)[1] != self.made_by.get("weights_file_sha256"):
            raise UserError(f"weights_file: {name} has changed since {self.path} was started")

    @property
    def metrics(self) -> list[Line]:
        """One mapping for each evaluation."""
        return self.folder.metrics()

    def metrics_frame(self) -> pandas.DataFrame:
        """The metrics as a pandas DataFrame."""
        try:
            import pandas
        except ImportError:
            raise MissingExtra("pandas", "query") from None
        return pandas.DataFrame(self.metrics)

    def epoch(self, checkpoint: str = "last") -> int:
        """The evaluated epoch that `best`, `last`, `certified` or a number means; `certified` is the last one whose tables
        give a certificate."""
        lines = self.metrics
        best = best_line(lines)
        if best is None:
            raise UserError(f"{self.path}: no epoch has been evaluated yet")
        if checkpoint == "best":
            return int(best["epoch"])
        if checkpoint == "last":
            return int(lines[-1]["epoch"])
        if checkpoint == "certified":
            from gcdformer.runs.explain import certified_epoch
            certified = certified_epoch(self)
            if certified is None:
                raise UserError(f"checkpoint certified: no epoch of {self.path} is certified; take best, last or an epoch")
            return certified
        return parse_epoch(checkpoint)

    def prediction_tables(self, checkpoint: str | int = "last") -> dict[str, PredictionTable]:
        """The tables `natural` and `stratified` of an epoch."""
        self.require_gcd()
        return self.folder.read_predictions(self.epoch(str(checkpoint)))

    def scores(self, checkpoint: str | int = "last") -> Scores:
        """The scores of an epoch, from its prediction tables."""
        tables = self.prediction_tables(checkpoint)
        return score(tables["natural"], tables["stratified"], self.config.evaluation.threshold)

    def require_gcd(self) -> None:
        if not self.problem.task.has_gcd:
            raise UserError(f"{self.path}: prediction tables are for task 'gcd' and others with a GCD, not "
                            f"'{self.config.task.task}'")

    def checkpoint_step(self, checkpoint: str = "last") -> int:
        """The step of the checkpoint that `best`, `last`, `certified` or an epoch means; for `last`, damaged ones are
        named in a warning and passed over."""
        from gcdformer.runs.checkpoint import load_checkpoint, newest_whole
        steps = checkpoint_steps(self.path)
        if not steps:
            raise UserError(f"{self.path}: no checkpoint yet")
        if checkpoint == "last":
            newest = newest_whole(self.path, load_checkpoint)
            assert newest is not None, "there are steps"
            for problem in newest.damaged:
                LOG.warning("gcdformer: damaged, passed over: %s; the weights are those of step %d", problem, newest.step)
            return newest.step
        per_epoch = self.config.training.steps_per_epoch
        epoch = self.epoch(checkpoint)
        step = epoch * per_epoch
        if step not in steps:
            stored = ", ".join(str(s // per_epoch) for s in steps if s % per_epoch == 0) or "none"
            name = checkpoint if checkpoint == str(epoch) else f"{checkpoint} (epoch {epoch})"
            raise UserError(f"checkpoint {name}: its weights are not kept; epochs with weights: {stored}")
        return step

    def predictor(self, checkpoint: str | int = "last", *, device: str = "cpu", beam: int = 1,
                  prior: str | float | None = None, averaged: bool = True) -> Predictor:
        """The model of a checkpoint, to be asked in integers. Answers are decided under `prior`: training, natural, uniform,
        the exponent ALPHA of k^-ALPHA, or what the run's `evaluation.prior` says if none is given. Its weights are the
        averaged ones if the run has them and unless `averaged` is false."""
        import torch

        from gcdformer.evaluation.predictor import Predictor
        from gcdformer.evaluation.prior import decision_prior
        from gcdformer.runs.checkpoint import load_checkpoint, load_model
        step = self.checkpoint_step(str(checkpoint))
        checkpoint_files = load_checkpoint(self.path, step)
        problem, weights = self.problem, checkpoint_files.evaluated if averaged else checkpoint_files.model
        model = load_model(self.config, problem, weights, checkpoint_path(self.path, step))
        place = torch.device(device)
        chosen = self.config.evaluation.prior if prior is None else prior
        if chosen != "training":
            self.require_same_file("train_file", self.config.data.train_file)
            self.require_same_weights(self.config.data.weights_file)
        return Predictor(model.to(place).eval(), problem, place, beam, self.config.training.precision,
                         prior=decision_prior(self.config, problem, chosen, step))

    @cached_property
    def _last_predictors(self) -> dict[str | float | None, Predictor]:
        """Those that `predict` has used, by prior."""
        return {}

    @overload
    def predict(self, a: int, b: int, *, prior: str | float | None = None) -> int: ...
    @overload
    def predict(self, a: Sequence[int] | Integers, b: Sequence[int] | Integers, *,
                prior: str | float | None = None) -> Integers: ...
    def predict(self, a: Any, b: Any, *, prior: str | float | None = None) -> Any:
        """Predictions of the last checkpoint: an integer for two integers, an array for two lists or arrays of one length.
        `UNREADABLE` where the answer is no integer; a `UserError` for operands that are no integers of 1..M. `prior`: as for
        `predictor`."""
        if prior not in self._last_predictors:
            self._last_predictors[prior] = self.predictor(prior=prior)
        return self._last_predictors[prior].predict(a, b)


def parse_epoch(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise UserError(f"checkpoint: 'best', 'last', 'certified' or the number of an epoch, got '{text}'")
    return int(text)


def load_run(path: str | Path) -> Run:
    """Read a run folder."""
    return Run(path)
