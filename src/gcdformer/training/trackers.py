"""Copies of the metrics for TensorBoard and Weights & Biases. The JSONL of the run stays the source of truth.

A tracker gets each line after it is written and saved, in a thread of its own: whatever it does there, slow, broken or
stuck, the run continues as if it were not there, and one line says so. What it got is noted in RUN/trackers/NAME.json before
it is written, so that no epoch is written twice, also after a kill; epochs that it did not get (it was off, or had failed)
it gets from the run folder when the run is resumed. Its own files are in RUN/trackers/NAME. Knows no GCD but through scores.
"""

from __future__ import annotations

import json
import os
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from queue import SimpleQueue
from threading import Lock, Thread
from threading import enumerate as running_threads
from time import monotonic
from typing import Any, final

from gcdformer.config import Config
from gcdformer.errors import MissingExtra
from gcdformer.evaluation import Scores, score
from gcdformer.runs.files import replace_file
from gcdformer.runs.folder import RunFolder
from gcdformer.runs.metrics import Line
from gcdformer.training.signals import StopRequest
from gcdformer.training.view import View

PATIENCE, HURRY = 30.0, 5.0
"""Seconds a run waits at its end for its trackers to finish: usually, and when a signal stopped it."""
THREAD_NAME = "gcdformer-tracker-"
SCALARS = ("loss", "test_loss", "accuracy", "stratified_accuracy", "n_correct", "n_modal", "learning_rate", "throughput",
           "examples", "seconds")


def scalars(line: Line) -> dict[str, float]:
    """The numbers of a line, under the names they have there."""
    values: Mapping[str, Any] = line
    return {name: float(values[name]) for name in SCALARS if values.get(name) is not None}


def picture(scores: Scores) -> Any:
    """The grid of f(k) as an array; matplotlib is loaded by the first one, in the tracker's thread."""
    from gcdformer.display.figures import grid_picture
    return grid_picture(scores)


class Tracker(ABC):
    """Receives each epoch once, in order."""

    package: str | None = None
    """What has to be installed for it, if anything."""

    @abstractmethod
    def __init__(self, run: Path, config: Config, name: str) -> None:
        """Open it for a run that it knows by a name of its own."""

    @abstractmethod
    def write(self, line: Line, scores: Scores | None) -> None:
        """The numbers of an epoch, D and the picture of f(k), so that a reader can see them."""

    @abstractmethod
    def close(self) -> None:
        """Write what is left."""


@final
class TensorBoard(Tracker):
    """Event files; the step is the epoch."""

    package = "tensorboard"

    def __init__(self, run: Path, config: Config, name: str) -> None:
        from torch.utils.tensorboard import SummaryWriter
        folder = run / "trackers" / "tensorboard"
        fresh = not folder.exists()
        self.writer: Any = SummaryWriter(str(folder))
        if fresh:
            self.writer.add_text("config", "\n".join("    " + row for row in config.to_toml().splitlines()), 0)

    def write(self, line: Line, scores: Scores | None) -> None:
        for name, value in scalars(line).items():
            self.writer.add_scalar(name, value, line["epoch"])
        if scores is not None:
            self.writer.add_text("D", ", ".join(map(str, scores.correct)) or "empty", line["epoch"])
            self.writer.add_image("grid", picture(scores), line["epoch"], dataformats="HWC")
        self.writer.flush()

    def close(self) -> None:
        self.writer.close()


@final
class WeightsAndBiases(Tracker):
    """One W&B run for all sessions of a run; the step is the epoch.

    Offline unless WANDB_MODE says otherwise: nothing leaves the machine until `wandb sync` is asked to send it.
    """

    package = "wandb"

    def __init__(self, run: Path, config: Config, name: str) -> None:
        mode: Any = os.environ.get("WANDB_MODE", "offline")
        if mode == "offline":
            os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
        import wandb
        folder = run / "trackers" / "wandb"
        folder.mkdir(exist_ok=True)
        quiet = wandb.Settings(console="off", silent=True, disable_git=True, disable_code=True, save_code=False,
                               symlink=False, x_disable_stats=True, x_disable_machine_info=True, x_save_requirements=False,
                               login_timeout=10)
        self.image = wandb.Image
        self.run = wandb.init(project=os.environ.get("WANDB_PROJECT", "gcdformer"), id=name, name=run.resolve().name,
                              dir=str(folder), mode=mode, resume="allow", reinit="create_new",
                              config=config.model_dump(exclude_none=True), settings=quiet)

    def write(self, line: Line, scores: Scores | None) -> None:
        row: dict[str, object] = dict(scalars(line))
        if scores is not None:
            row |= {"D": ", ".join(map(str, scores.correct)) or "empty", "grid": self.image(picture(scores))}
        self.run.log(row, step=line["epoch"])

    def close(self) -> None:
        self.run.finish()


TRACKERS: dict[str, type[Tracker]] = {"tensorboard": TensorBoard, "wandb": WeightsAndBiases}
"""Trackers by the names that `machine.trackers` may have."""


def wanted(config: Config) -> list[str]:
    """The trackers that a configuration asks for, each once."""
    names = config.machine.trackers.split(",")
    return [name for name in TRACKERS if name in names]


def check_trackers(config: Config) -> None:
    """`MissingExtra` if a tracker is wanted whose package is not installed."""
    for name in wanted(config):
        package = TRACKERS[name].package
        if package is not None and find_spec(package) is None:
            raise MissingExtra(package, "track")


def some_left_alone() -> bool:
    """Whether the thread of a tracker is still at work."""
    return any(thread.name.startswith(THREAD_NAME) for thread in running_threads())


class Notes:
    """What a tracker got so far: the last epoch, and the name it knows the run by."""

    def __init__(self, folder: RunFolder, name: str) -> None:
        self.path = folder.path / "trackers" / f"{name}.json"
        self.path.parent.mkdir(exist_ok=True)
        stored = json.loads(self.path.read_text()) if self.path.exists() else {}
        self.epoch: int = stored.get("epoch", 0)
        self.id: str = stored.get("id", uuid.uuid4().hex[:8])

    def note(self, epoch: int) -> None:
        self.epoch = epoch
        replace_file(self.path, json.dumps({"epoch": epoch, "id": self.id}).encode())


class Copier:
    """One tracker in its thread."""

    def __init__(self, name: str, config: Config, folder: RunFolder, view: View) -> None:
        self.name, self.config, self.folder, self.view = name, config, folder, view
        self._queue: SimpleQueue[tuple[Line, Scores | None] | None] = SimpleQueue()
        self._thread = Thread(target=self._run, name=f"{THREAD_NAME}{name}", daemon=True)
        self._said, self._lock = False, Lock()
        self._thread.start()

    def give(self, line: Line, scores: Scores | None = None) -> None:
        self._queue.put((line, scores))

    def end(self) -> None:
        """There will be no more."""
        self._queue.put(None)

    def wait(self, until: float) -> None:
        """Let it write what it got, until that time."""
        self._thread.join(max(0.0, until - monotonic()))
        if self._thread.is_alive():
            self._say("it did not finish in time and is left alone")

    def _run(self) -> None:
        try:
            self._copy()
        except (Exception, SystemExit) as error:  # whatever it is, it is reported, and it is the tracker's alone
            self._say(f"{type(error).__name__}: {' '.join(str(error).split())[:200]}")

    def _copy(self) -> None:
        notes = Notes(self.folder, self.name)
        tracker: Tracker | None = None
        try:
            while (item := self._queue.get()) is not None:
                line, scores = item
                if line["epoch"] <= notes.epoch:
                    continue
                tracker = tracker or TRACKERS[self.name](self.folder.path, self.config, notes.id)
                notes.note(line["epoch"])
                tracker.write(line, scores or self._read_scores(line))
        finally:
            if tracker is not None:
                tracker.close()

    def _read_scores(self, line: Line) -> Scores | None:
        """The scores of an epoch that was evaluated in an earlier session."""
        if "predictions_sha256" not in line:
            return None
        tables = self.folder.read_predictions(line["epoch"])
        return score(tables["natural"], tables["stratified"], self.config.evaluation.threshold)

    def _say(self, what: str) -> None:
        with self._lock:
            if not self._said:
                self._said = True
                self.view.warn(f"tracker {self.name} failed, the run continues without it: {what}")


class Trackers:
    """All the trackers of a session; none by default."""

    def __init__(self, copiers: list[Copier] | None = None) -> None:
        self.copiers = copiers or []

    def evaluated(self, line: Line, scores: Scores | None) -> None:
        for copier in self.copiers:
            copier.give(line, scores)


@contextmanager
def tracked(config: Config, folder: RunFolder, lines: list[Line], view: View, stop: StopRequest, *,
            first: bool) -> Iterator[Trackers]:
    """The trackers of a run, on rank 0 only; they know of the epochs so far, and have a while to finish at the end."""
    copiers = [Copier(name, config, folder, view) for name in wanted(config)] if first else []
    for copier in copiers:
        for line in lines:
            copier.give(line)
    try:
        yield Trackers(copiers)
    finally:
        for copier in copiers:
            copier.end()
        until = monotonic() + (HURRY if stop else PATIENCE)
        for copier in copiers:
            copier.wait(until)
