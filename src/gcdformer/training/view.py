"""What a person sees while a run trains: nothing, or plain lines; the live page is in `live.py`.

A session shows events to a view; a view never changes a run. It imports no torch, so that a verb can speak before that is
loaded.
"""

from __future__ import annotations

import logging
import os
import platform
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from time import perf_counter
from typing import IO, TYPE_CHECKING, Self, final

from gcdformer.config import Config
from gcdformer.data.reading import Progress
from gcdformer.display.words import clock, describe_answers, headline
from gcdformer.evaluation import Scores
from gcdformer.runs.metrics import Line
from gcdformer.training.events import Announcer
from gcdformer.training.limits import seconds_left

if TYPE_CHECKING:
    from gcdformer.runs.checkpoint import TrainingState

LOG = logging.getLogger("gcdformer")
EVERY = 30.0
"""Seconds of training after which plain lines say how far the epoch is."""
EVERY_READING = 5.0


@dataclass(frozen=True)
class Opened:
    """The session holds the run; it may still compile, measure and load."""


@dataclass(frozen=True)
class Closed:
    """The session is over, however it ended."""


@dataclass(frozen=True)
class Note:
    """Something a person should know; a warning has to be seen even where nothing else is shown."""

    message: str
    warning: bool = False


@dataclass(frozen=True)
class Reading:
    """A file of examples is being read, before the session opens: how many of its bytes or rows so far; None at the end."""

    name: str
    done: int | None
    total: int = 0


@dataclass(frozen=True)
class Started:
    """Training is about to begin or to resume; the lines are those of earlier sessions."""

    config: Config
    parameters: int
    state: TrainingState
    lines: list[Line]


@dataclass(frozen=True)
class Stepped:
    """A step was taken."""

    state: TrainingState
    loss: float
    rate: float


@dataclass(frozen=True)
class Evaluating:
    """An evaluation is under way; a share of it is done."""

    state: TrainingState
    share: float


@dataclass(frozen=True)
class Evaluated:
    """An epoch ended and its line was written."""

    state: TrainingState
    line: Line
    scores: Scores | None


@dataclass(frozen=True)
class Ended:
    """Training ended in order."""

    state: TrainingState
    reason: str


Event = Opened | Closed | Note | Reading | Started | Stepped | Evaluating | Evaluated | Ended


class View(ABC):
    """Is shown the events of a session, in order. One of your own decides in `show` which of them it wants."""

    @abstractmethod
    def show(self, event: Event) -> None:
        """An event, at the moment it happens; a tracker's warning may come from another thread."""

    def note(self, message: str) -> None:
        self.show(Note(message))

    def warn(self, message: str) -> None:
        self.show(Note(message, warning=True))

    @contextmanager
    def reading(self, name: str) -> Iterator[Progress]:
        """While a file is read; what is entered is called with how far."""
        try:
            yield lambda done, total: self.show(Reading(name, done, total))
        finally:
            self.show(Reading(name, None))

    def __enter__(self) -> Self:
        self.show(Opened())
        return self

    def __exit__(self, *error: object) -> None:
        self.show(Closed())


@final
class SilentView(View):
    """Shows nothing but warnings."""

    def show(self, event: Event) -> None:
        if isinstance(event, Note) and event.warning:
            LOG.warning("gcdformer: %s", event.message)


@final
class PlainView(View):
    """Some lines at the start, one per epoch, some within long epochs, one at the end; no control characters: for logs and
    pipes."""

    def __init__(self, file: IO[str] | None = None, folder: Path | None = None) -> None:
        self.file, self.folder = file or sys.stdout, folder
        self.config = Config()
        self.lines: list[Line] = []
        self.announcer = Announcer()
        self.said = perf_counter()

    def show(self, event: Event) -> None:
        match event:
            case Opened() if self.folder is not None:
                self.say(f"run  {self.folder}")
            case Note(message):
                self.say(f"note: {message}")
            case Reading(name, int(done), total):
                self.say_within(f"reading {name}: {100 * done / max(total, 1):.0f} %", EVERY_READING)
            case Started():
                self.start(event)
            case Stepped(state, loss, _):
                text = f"{100 * share_of_epoch(self.config, state):.0f} % of the steps, loss {loss:.4f}"
                self.say_within(f"epoch {state.evaluations + 1}: {text}, {clock(state.seconds)}", EVERY)
            case Evaluating(state, share):
                text = f"evaluating, {100 * share:.0f} %"
                self.say_within(f"epoch {state.evaluations + 1}: {text}, {clock(state.seconds)}", EVERY)
            case Evaluated():
                self.end_epoch(event)
            case Ended(state, reason):
                where = f" in epoch {state.evaluations + 1}" if state.loss_count else ""
                self.say(f"stopped{where}: {reason}, after {state.step:,} steps and {clock(state.seconds)}")

    def say(self, text: str) -> None:
        self.said = perf_counter()
        say_line(text, self.file)

    def say_within(self, text: str, every: float) -> None:
        """How far something is that takes long, if nothing was said for a while."""
        if perf_counter() - self.said > every:
            self.say(text)

    def start(self, event: Started) -> None:
        self.config, self.lines = event.config, list(event.lines)
        for line in event.lines:
            self.announcer.follow(line)
        where = f", resumed at step {event.state.step}" if event.state.step else ""
        self.say(f"started {datetime.now():%Y-%m-%d %H:%M:%S} on {platform.node()}{job_text()}")
        answers = describe_answers(event.config)
        self.say(f"{headline(event.config)}; {event.parameters:,} parameters{'; ' if answers else ''}{answers}{where}")

    def end_epoch(self, event: Evaluated) -> None:
        line = event.line
        self.lines.append(line)
        speed = f", {line['throughput']:,.0f} examples/s" if line["throughput"] else ""
        gcds = f", {line['n_correct']} correct GCD" if event.scores else ""
        left = seconds_left(self.config, event.state, self.lines)
        events = str(self.announcer.follow(line))
        self.say(f"epoch {line['epoch']}: loss {line['loss']:.4f}, accuracy {line['accuracy']:.2f} %{gcds}{speed}, "
                 f"{clock(line['seconds'])}{f', about {clock(left)} left' if left else ''}{': ' + events if events else ''}")


def say_line(text: str, file: IO[str]) -> None:
    """Print a line at once. If its reader has gone, say so where warnings go, and let the work continue."""
    try:
        print(text, file=file, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), file.fileno())
        LOG.warning("gcdformer: nobody reads the output any more; continuing without it")


def job_text() -> str:
    """The job of SLURM that this is, and how often it was requeued: its logs are often one file for all."""
    job, restarts = os.environ.get("SLURM_JOB_ID"), os.environ.get("SLURM_RESTART_COUNT")
    return "" if job is None else f", job {job}" + (f", restart {restarts}" if restarts else "")


def share_of_epoch(config: Config, state: TrainingState) -> float:
    """How much of the epoch is trained, 0 to 1."""
    per_epoch = config.training.steps_per_epoch
    return min(1.0, (state.step - state.evaluations * per_epoch) / per_epoch)
