"""What a person sees while a run trains: nothing, plain lines, or a live page in the terminal.

The loop calls a view; a view never changes a run. It imports no torch, so that a verb can speak before that is loaded.
"""

from __future__ import annotations

import logging
import os
import platform
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import datetime
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import IO, TYPE_CHECKING

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress import Progress as FileProgress
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from gcdformer.config import Config
from gcdformer.data import Problem
from gcdformer.data.reading import Progress
from gcdformer.display.terminal import prediction_grid
from gcdformer.display.words import clock, headline
from gcdformer.evaluation import Scores
from gcdformer.runs.metrics import Line
from gcdformer.training.events import Announcer
from gcdformer.training.limits import seconds_left

if TYPE_CHECKING:
    from gcdformer.models import Seq2Seq
    from gcdformer.runs.checkpoint import TrainingState

LOG = logging.getLogger("gcdformer")
EVERY = 30.0
"""Seconds of training after which plain lines say how far the epoch is."""
EVERY_READING = 5.0


def say_line(text: str, file: IO[str]) -> None:
    """Print a line at once. If its reader has gone, say so where warnings go, and let the work continue."""
    try:
        print(text, file=file, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), file.fileno())
        LOG.warning("gcdformer: nobody reads the output any more; continuing without it")


class View:
    """Shows nothing but warnings; the base of those that do."""

    config: Config

    def __enter__(self) -> View:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        """Called when the session ends, however it ends."""

    def note(self, message: str) -> None:
        """Something a person should know."""

    def warn(self, message: str) -> None:
        """Something a person has to know, even where nothing is shown."""
        LOG.warning("gcdformer: %s", message)

    def reading(self, name: str) -> AbstractContextManager[Progress]:
        """A file of examples is being read, before the session begins; what is entered is told how far."""
        return nullcontext(lambda done, total: None)

    def started(self, config: Config, problem: Problem, model: Seq2Seq, state: TrainingState,
                lines: list[Line]) -> None:
        """Training is about to begin or to resume."""

    def stepped(self, state: TrainingState, loss: float, rate: float) -> None:
        """A step was taken."""

    def evaluating(self, state: TrainingState, share: float) -> None:
        """An evaluation is under way."""

    def evaluated(self, state: TrainingState, line: Line, scores: Scores | None) -> None:
        """An epoch ended and its line was written."""

    def ended(self, state: TrainingState, reason: str) -> None:
        """The session ended in order."""


class PlainView(View):
    """Some lines at the start, one per epoch, some within long epochs, one at the end; no control characters: for logs and
    pipes."""

    def __init__(self, file: IO[str] | None = None, folder: Path | None = None) -> None:
        self.file, self.folder = file or sys.stdout, folder
        self.lines: list[Line] = []
        self.announcer = Announcer()
        self.said = perf_counter()

    def __enter__(self) -> PlainView:
        if self.folder is not None:
            self.say(f"run  {self.folder}")
        return self

    def say(self, text: str) -> None:
        self.said = perf_counter()
        say_line(text, self.file)

    def note(self, message: str) -> None:
        self.say(f"note: {message}")

    def warn(self, message: str) -> None:
        self.note(message)

    @contextmanager
    def reading(self, name: str) -> Iterator[Progress]:
        def told(done: int, total: int) -> None:
            if perf_counter() - self.said > EVERY_READING:
                self.say(f"reading {name}: {100 * done / max(total, 1):.0f} %")

        yield told

    def started(self, config: Config, problem: Problem, model: Seq2Seq, state: TrainingState,
                lines: list[Line]) -> None:
        self.config, self.lines = config, list(lines)
        for line in lines:
            self.announcer.follow(line)
        where = f", resumed at step {state.step}" if state.step else ""
        self.say(f"started {datetime.now():%Y-%m-%d %H:%M:%S} on {platform.node()}{job_text()}")
        self.say(f"{headline(config)}; {sum(p.numel() for p in model.parameters()):,} parameters{where}")

    def stepped(self, state: TrainingState, loss: float, rate: float) -> None:
        self.within(state, f"{100 * share_of_epoch(self.config, state):.0f} % of the steps, loss {loss:.4f}")

    def evaluating(self, state: TrainingState, share: float) -> None:
        self.within(state, f"evaluating, {100 * share:.0f} %")

    def within(self, state: TrainingState, text: str) -> None:
        """How far an epoch is, where it takes long."""
        if perf_counter() - self.said > EVERY:
            self.say(f"epoch {state.evaluations + 1}: {text}, {clock(state.seconds)}")

    def evaluated(self, state: TrainingState, line: Line, scores: Scores | None) -> None:
        self.lines.append(line)
        speed = f", {line['throughput']:,.0f} examples/s" if line["throughput"] else ""
        gcds = f", {line['n_correct']} correct GCD" if scores else ""
        left = seconds_left(self.config, state, self.lines)
        events = str(self.announcer.follow(line))
        self.say(f"epoch {line['epoch']}: loss {line['loss']:.4f}, accuracy {line['accuracy']:.2f} %{gcds}{speed}, "
                 f"{clock(line['seconds'])}{f', about {clock(left)} left' if left else ''}{': ' + events if events else ''}")

    def ended(self, state: TrainingState, reason: str) -> None:
        where = f" in epoch {state.evaluations + 1}" if state.loss_count else ""
        self.say(f"stopped{where}: {reason}, after {state.step:,} steps and {clock(state.seconds)}")


class LiveView(View):
    """A page that redraws itself: progress, loss, speed, accuracy, and the grid of f(k) as the sieve grows."""

    def __init__(self, console: Console | None = None, folder: Path | None = None) -> None:
        self.console, self.folder = console or Console(), folder
        self.notes: list[str] = []
        self.state: TrainingState | None = None
        self.scores: Scores | None = None
        self.lines: list[Line] = []
        self.announcer = Announcer()
        self.events: list[str] = []
        self.loss = self.rate = 0.0
        self.share: float | None = None
        self.reason = ""
        self.marks: list[tuple[float, int]] = []
        self.live = Live(console=self.console, refresh_per_second=4, get_renderable=self.render, transient=False)

    def __enter__(self) -> LiveView:
        self.live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        self.live.stop()

    def note(self, message: str) -> None:
        self.notes = [*self.notes[-3:], message]

    def warn(self, message: str) -> None:
        self.note(message)

    @contextmanager
    def reading(self, name: str) -> Iterator[Progress]:
        with FileProgress(console=self.console, transient=True) as bars:
            bar = bars.add_task(f"reading {name}", total=None)
            yield lambda done, total: bars.update(bar, completed=done, total=total)

    def started(self, config: Config, problem: Problem, model: Seq2Seq, state: TrainingState,
                lines: list[Line]) -> None:
        self.config, self.state = config, state
        for line in lines:
            self.follow(line)
        self.notes = [note for note in self.notes if not note.endswith("…")]

    def stepped(self, state: TrainingState, loss: float, rate: float) -> None:
        self.state, self.rate, self.share = state, rate, None
        self.loss = loss if not self.loss else 0.98 * self.loss + 0.02 * loss
        now = perf_counter()
        if not self.marks or now - self.marks[-1][0] > 0.5:
            self.marks = [*self.marks[-10:], (now, state.step)]

    def evaluating(self, state: TrainingState, share: float) -> None:
        self.state, self.share, self.marks = state, share, []

    def evaluated(self, state: TrainingState, line: Line, scores: Scores | None) -> None:
        self.state, self.scores, self.share = state, scores, None
        self.follow(line)

    def follow(self, line: Line) -> None:
        self.lines.append(line)
        if events := str(self.announcer.follow(line)):
            self.events = [*self.events[-3:], f"epoch {line['epoch']}: {events}"]

    def ended(self, state: TrainingState, reason: str) -> None:
        self.state, self.reason = state, reason

    def speed(self) -> str:
        if len(self.marks) > 1:
            (t0, s0), (t1, s1) = self.marks[0], self.marks[-1]
            return f"{(s1 - s0) * self.config.training.batch_size / (t1 - t0):,.0f}"
        last = self.lines[-1]["throughput"] if self.lines else None
        return f"{last:,.0f}" if last else "…"

    def render(self) -> RenderableType:
        notes = [Text(note, style="yellow") for note in self.notes]
        state = self.state
        if state is None:
            return Group(Text("getting ready …", style="dim"), *notes)
        bar = Table.grid(padding=(0, 1))
        doing = self.reason or (f"evaluating {100 * self.share:.0f} %" if self.share is not None else "training")
        left = None if self.reason else seconds_left(self.config, state, self.lines)
        between = bool(self.reason) and not state.loss_count
        bar.add_row(Text(f"epoch {state.evaluations if between else state.evaluations + 1}", style="bold"),
                    ProgressBar(1.0, 1.0 if between else share_of_epoch(self.config, state), width=30), doing,
                    Text(clock(state.seconds) + (f", {clock(left)} left" if left else ""), style="dim"))
        facts = Table.grid(padding=(0, 3))
        last = self.lines[-1] if self.lines else None
        facts.add_row(*(Text.assemble((name + " ", "dim"), (value, "bold")) for name, value in [
            ("loss", f"{self.loss or (last['loss'] if last else 0):.4f}"), ("rate", f"{self.rate:.2g}"),
            ("examples/s", self.speed()),
            ("accuracy", f"{last['accuracy']:.2f} %" if last else "…"),
            *([("correct GCD", str(last["n_correct"]))] if last and "n_correct" in last else [])]))
        parts: list[RenderableType] = [bar, facts]
        if self.scores:
            parts += [Text(), prediction_grid(self.scores, self.console.width - 4)]
        parts += [Text(event, style="dim", no_wrap=True, overflow="ellipsis") for event in self.events]
        return Panel(Group(*parts, *notes), title=headline(self.config), title_align="left", border_style="cyan",
                     subtitle=None if self.folder is None else Text(f"run  {self.folder}"), subtitle_align="left")


def job_text() -> str:
    """The job of SLURM that this is, and how often it was requeued: its logs are often one file for all."""
    job, restarts = os.environ.get("SLURM_JOB_ID"), os.environ.get("SLURM_RESTART_COUNT")
    return "" if job is None else f", job {job}" + (f", restart {restarts}" if restarts else "")


def share_of_epoch(config: Config, state: TrainingState) -> float:
    """How much of the epoch is trained, 0 to 1."""
    per_epoch = config.training.steps_per_epoch
    return min(1.0, (state.step - state.evaluations * per_epoch) / per_epoch)
