"""From a configuration and a folder to a finished run: start it, or resume it, exactly.

`train` is for Python; `run_session` is one session of a run, in this process or as one of several ranks; the steps
themselves are taken by `loop.py`. A folder that holds another configuration is refused, naming the fields that differ.
Limits, device, threads and how many checkpoints stay are not part of a run's identity; raising a limit extends it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch

from gcdformer.config import Config
from gcdformer.data import Problem
from gcdformer.data.reading import read_examples
from gcdformer.errors import UserError
from gcdformer.evaluation.predictor import Stopped
from gcdformer.numbers.distributions import read_weights
from gcdformer.runs.checkpoint import (
    Checkpoint,
    drop_checkpoints_after,
    load_checkpoint,
    load_model,
    newest_whole,
    recover_checkpoints,
)
from gcdformer.runs.folder import RunFolder, checkpoint_path, versions
from gcdformer.runs.metrics import Line, keep_metrics
from gcdformer.runs.run import Run
from gcdformer.tasks.registry import task_digest, trust_task
from gcdformer.training.backends import has_to_compile
from gcdformer.training.device import Ranks, choose_device, in_ranks
from gcdformer.training.learner import start_model
from gcdformer.training.loop import TrainingLoop
from gcdformer.training.signals import StopRequest
from gcdformer.training.throughput import measure_speed
from gcdformer.training.trackers import check_trackers, tracked
from gcdformer.training.view import Ended, PlainView, SilentView, Started, View

FILE_FIELDS = ("train_file", "test_file", "weights_file")


@dataclass(frozen=True)
class Outcome:
    """How a session ended."""

    path: Path
    reason: str
    interrupted: bool


def train(config: Config, out: str | Path, view: View | None = None, *, progress: bool = True) -> Run:
    """Train a new run in `out`, or resume the one that is there; the run, to be read and asked.

    For notebooks and scripts. Prints a line per epoch, and some within long ones, on standard error; nothing with
    `progress=False`. A `view` of your own shows something else.
    """
    return Run(run_session(config, Path(out), view or (PlainView(sys.stderr) if progress else SilentView())).path)


def run_session(config: Config, out: Path, view: View) -> Outcome:
    """Start or resume a run and train it until a limit or a signal: what `train` of Python and of the command line share."""
    trust_task(config.task.task)
    problem = Problem.of(config)
    device = choose_device(config.machine)
    check_trackers(config)
    folder = RunFolder(out)
    check_folder(folder)
    if not folder.exists():
        check_start(config)
    files = read_files(config, problem, view)
    with StopRequest() as stop:
        return in_ranks(device, lambda ranks: run_rank(config, problem, device, folder, files, stop, view, ranks))


def run_rank(config: Config, problem: Problem, device: torch.device, folder: RunFolder, files: dict[str, str],
             stop: StopRequest, view: View, ranks: Ranks) -> Outcome:
    """The session of one rank among all."""
    out = folder.path
    with held_by_first(folder, ranks), view:
        if has_to_compile(config, device):
            view.note("compiling the training step for this machine, once (some ten seconds) …")
        if ranks.by_first(folder.exists):
            config = ranks.by_first(lambda: agreed_config(folder, config, files))
            note_versions(folder, view)
        else:
            try:
                config = with_horizon(config, problem, device, stop, view, ranks)
            except Stopped:
                return Outcome(out, "interrupted before training began, nothing is saved", True)
        ranks.by_first(lambda: recover_checkpoints(out))
        checkpoint = newest_for_all(folder, view, ranks)
        model = (load_model(config, problem, checkpoint.model, checkpoint_path(out, checkpoint.state.step)) if checkpoint
                 else start_model(config, problem))
        lines = ranks.by_first(lambda: make_ready(folder, config, checkpoint, files))
        loop = TrainingLoop(config, problem, model, device, folder, stop, view, ranks)
        if checkpoint:
            loop.restore(checkpoint, lines)
        view.show(Started(config, sum(weight.numel() for weight in model.parameters()), loop.state, loop.lines))
        with tracked(config, folder, loop.lines, view, stop, first=ranks.first) as loop.trackers:
            reason = loop.run()
            view.show(Ended(loop.state, reason))
        return Outcome(out, reason, loop.stop_signal is not None)


@contextmanager
def held_by_first(folder: RunFolder, ranks: Ranks) -> Iterator[None]:
    """The run's lock, held by rank 0 for all."""
    with ExitStack() as stack:
        ranks.by_first(lambda: stack.enter_context(folder.locked()))
        yield


def read_files(config: Config, problem: Problem, view: View) -> dict[str, str]:
    """Read the files that the examples come from, once for the session; the SHA-256 of each, by its name in the folder."""
    digests = {}
    if config.data.weights_file is not None:
        digests["weights_file_sha256"] = read_weights(config.data.weights_file, config.task.maximum)[1]
    for field, name in example_files(config).items():
        with view.reading(name) as on_read:
            digests[f"{field}_sha256"] = read_examples(name, problem, field, on_read).sha256
    return digests


def example_files(config: Config) -> dict[str, str]:
    """The files of examples that a configuration names, by field."""
    named = {"train_file": config.data.train_file, "test_file": config.evaluation.test_file}
    return {field: name for field, name in named.items() if name is not None}


def make_ready(folder: RunFolder, config: Config, checkpoint: Checkpoint | None, files: dict[str, str]) -> list[Line]:
    """Write the configuration and drop what came after the checkpoint; the lines of metrics that stay."""
    folder.write_config(config, files | parent_step(folder, config, checkpoint))
    lines = keep_metrics(folder.metrics_path, checkpoint.state.evaluations if checkpoint else 0)
    drop_checkpoints_after(folder.path, checkpoint.state.step if checkpoint else 0)
    folder.drop_predictions_after(lines[-1]["epoch"] if lines else 0)
    return lines


def parent_step(folder: RunFolder, config: Config, checkpoint: Checkpoint | None) -> dict[str, str]:
    """The step of the parent's checkpoint that the first weights are from, so that `seen` can ask the parent."""
    if config.training.init_from is None:
        return {}
    if checkpoint is None:
        return {"init_from_step": str(Run(config.training.init_from).checkpoint_step())}
    return {key: value for key, value in folder.read_config()[1].items() if key == "init_from_step"}


def check_folder(folder: RunFolder) -> None:
    """A folder with other things in it is nobody's run."""
    if folder.path.exists() and not folder.path.is_dir():
        raise UserError(f"out: {folder.path} is a file; name a folder")
    if folder.path.is_dir() and not folder.exists():
        others = [p.name for p in folder.path.iterdir() if p.name != "lock" and not p.name.startswith(".")]
        if others:
            raise UserError(f"out: {folder.path} is not empty and not a run (it holds {others[0]})")


def check_start(config: Config) -> None:
    """What a new run needs, before anything is written."""
    training, limits = config.training, config.limits
    if training.init_from is not None:
        Run(training.init_from).checkpoint_step()
    if training.schedule == "cosine" and training.horizon is limits.max_epochs is limits.max_minutes is None:
        raise UserError("horizon: a cosine schedule needs one; give horizon, max_epochs or max_minutes")


def agreed_config(folder: RunFolder, wanted: Config, files: dict[str, str]) -> Config:
    """The stored configuration with the wanted limits and machine; refused if the identities differ.

    A file of examples is what it holds, wherever it lies now.
    """
    stored, made_by = folder.read_config()
    if "imported_from" in made_by:
        raise UserError(f"out: {folder.path} holds weights from elsewhere, without an optimiser to resume with; start a "
                        f"new run by --init-from {folder.path}")
    if wanted.training.horizon is None and wanted.training.schedule == stored.training.schedule == "cosine":
        wanted = wanted.replace(horizon=stored.training.horizon)
    have, want = ({k: v for k, v in config.identity().items() if k not in FILE_FIELDS} for config in (stored, wanted))
    differing = [f"{name} ({have[name]} there, {want[name]} here)" for name in have if have[name] != want[name]]
    if made_by.get("task_sha256") != task_digest(wanted.task.task):
        differing.append("the task's file")
    differing += [f"{field} (it holds something else)" for field in FILE_FIELDS
                  if made_by.get(f"{field}_sha256") != files.get(f"{field}_sha256")]
    if differing:
        raise UserError(f"out: {folder.path} holds a run with another configuration: {', '.join(differing)}")
    here = stored.replace(train_file=wanted.data.train_file, test_file=wanted.evaluation.test_file,
                          weights_file=wanted.data.weights_file)
    return here.model_copy(update={"limits": wanted.limits, "machine": wanted.machine})


def note_versions(folder: RunFolder, view: View) -> None:
    """Say with what the run was made if it was something else: the bits may then differ from an uninterrupted run's."""
    before, now = folder.read_config()[1], versions()
    changed = [f"{name} {before[name]}, now {now[name]}" for name in now if before.get(name, now[name]) != now[name]]
    if changed:
        view.warn(f"this run was last trained with {'; '.join(changed)}: it resumes, but not bit for bit as before")


def newest_checkpoint(folder: RunFolder, view: View) -> Checkpoint | None:
    """The newest whole checkpoint; damaged ones are named and passed over. None if there never was one."""
    newest = newest_whole(folder.path, load_checkpoint)
    if newest is None:
        return None
    for problem in newest.damaged:
        view.warn(f"damaged, passed over: {problem}; resuming from step {newest.step}")
    return newest.content


def newest_for_all(folder: RunFolder, view: View, ranks: Ranks) -> Checkpoint | None:
    """The newest whole checkpoint: rank 0 finds it, the others read the same one."""
    if ranks.size == 1:
        return newest_checkpoint(folder, view)
    step = ranks.by_first(lambda: newest.state.step if (newest := newest_checkpoint(folder, view)) else None)
    return None if step is None else load_checkpoint(folder.path, step)


def with_horizon(config: Config, problem: Problem, device: torch.device, stop: StopRequest, view: View,
                 ranks: Ranks) -> Config:
    """A cosine schedule's horizon, fixed once: from max_epochs, or from max_minutes and the speed measured here."""
    training, limits = config.training, config.limits
    if training.schedule != "cosine" or training.horizon is not None:
        return config
    if limits.max_epochs is not None:
        return config.replace(horizon=max(limits.max_epochs * training.steps_per_epoch, training.warmup + 1))
    assert limits.max_minutes is not None, "check_start lets no other case through"
    view.note("measuring the speed of this machine, to fix the horizon of the cosine schedule …")
    seconds = 60 * limits.max_minutes
    step_seconds, test_seconds = measure_speed(config, problem, device, min(15.0, max(3.0, seconds / 200)), stop, ranks)
    epoch_seconds = training.steps_per_epoch * step_seconds + test_seconds
    epochs = int(seconds * 0.97 / epoch_seconds)
    steps = epochs * training.steps_per_epoch if epochs else int(seconds / step_seconds)
    return config.replace(horizon=max(steps, training.warmup + 1))
