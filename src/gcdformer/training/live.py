"""A page in the terminal that redraws itself, and the page of a run that trains. The board of a sweep uses the first too."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, final

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress import Progress
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from gcdformer.config import Config
from gcdformer.display.terminal import prediction_grid
from gcdformer.display.words import clock, describe_answers, headline
from gcdformer.errors import one_line
from gcdformer.evaluation import Scores
from gcdformer.runs.metrics import Line
from gcdformer.training.events import Announcer
from gcdformer.training.limits import seconds_left
from gcdformer.training.view import (
    Closed,
    Ended,
    Evaluated,
    Evaluating,
    Event,
    Note,
    Opened,
    Reading,
    Started,
    Stepped,
    View,
    share_of_epoch,
)

if TYPE_CHECKING:
    from gcdformer.runs.checkpoint import TrainingState


@final
class Page:
    """Redraws what a function gives, some times a second, from `open` to `close`; holds the last few notes for it."""

    def __init__(self, draw: Callable[[], RenderableType], console: Console | None, *, per_second: int,
                 most_notes: int) -> None:
        self.draw, self.console, self.per_second, self.most_notes = draw, console or Console(), per_second, most_notes
        self.notes: list[str] = []
        self.live: Live | None = None

    def open(self) -> None:
        self.live = Live(console=self.console, refresh_per_second=self.per_second, get_renderable=self.draw)
        self.live.start()

    def close(self) -> None:
        if self.live:
            self.live.stop()

    def note(self, message: str) -> None:
        self.notes = [*self.notes, message][-self.most_notes:]

    def shown_notes(self) -> list[Text]:
        return [Text(one_line(note), style="yellow") for note in self.notes]


@final
class LiveView(View):
    """A page that redraws itself: progress, loss, speed, accuracy, and the grid of f(k) as the sieve grows."""

    def __init__(self, console: Console | None = None, folder: Path | None = None) -> None:
        self.page = Page(self.render, console, per_second=4, most_notes=4)
        self.folder, self.config = folder, Config()
        self.bars: Progress | None = None
        self.state: TrainingState | None = None
        self.scores: Scores | None = None
        self.lines: list[Line] = []
        self.announcer = Announcer()
        self.events: list[str] = []
        self.loss = self.rate = 0.0
        self.share: float | None = None
        self.reason = ""
        self.marks: list[tuple[float, int]] = []

    def show(self, event: Event) -> None:
        match event:
            case Opened():
                self.page.open()
            case Closed():
                self.page.close()
            case Note(message):
                self.page.note(message)
            case Reading():
                self.show_reading(event)
            case Started(config, _, state, lines):
                self.config, self.state = config, state
                for line in lines:
                    self.follow(line)
                self.page.notes = [note for note in self.page.notes if not note.endswith("…")]
            case Stepped():
                self.step(event)
            case Evaluating(state, share):
                self.state, self.share, self.marks = state, share, []
            case Evaluated(state, line, scores):
                self.state, self.scores, self.share = state, scores, None
                self.follow(line)
            case Ended(state, reason):
                self.state, self.reason = state, reason

    def show_reading(self, event: Reading) -> None:
        """A bar of its own, since the page is not open yet."""
        if event.done is None:
            if self.bars is not None:
                self.bars.stop()
            self.bars = None
            return
        if self.bars is None:
            self.bars = Progress(console=self.page.console, transient=True)
            self.bars.add_task(f"reading {event.name}", total=None)
            self.bars.start()
        self.bars.update(self.bars.task_ids[0], completed=event.done, total=event.total)

    def step(self, event: Stepped) -> None:
        self.state, self.rate, self.share = event.state, event.rate, None
        self.loss = event.loss if not self.loss else 0.98 * self.loss + 0.02 * event.loss
        now = perf_counter()
        if not self.marks or now - self.marks[-1][0] > 0.5:
            self.marks = [*self.marks[-10:], (now, event.state.step)]

    def follow(self, line: Line) -> None:
        self.lines.append(line)
        if events := str(self.announcer.follow(line)):
            self.events = [*self.events[-3:], f"epoch {line['epoch']}: {events}"]

    def speed(self) -> str:
        if len(self.marks) > 1:
            (t0, s0), (t1, s1) = self.marks[0], self.marks[-1]
            return f"{(s1 - s0) * self.config.training.batch_size / (t1 - t0):,.0f}"
        last = self.lines[-1]["throughput"] if self.lines else None
        return f"{last:,.0f}" if last else "…"

    def render(self) -> RenderableType:
        notes, state = self.page.shown_notes(), self.state
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
        if answers := describe_answers(self.config):
            parts.append(Text(answers, style="dim"))
        if self.scores:
            parts += [Text(), prediction_grid(self.scores, self.page.console.width - 4)]
        parts += [Text(event, style="dim", no_wrap=True, overflow="ellipsis") for event in self.events]
        return Panel(Group(*parts, *notes), title=headline(self.config), title_align="left", border_style="cyan",
                     subtitle=None if self.folder is None else Text(f"run  {self.folder}"), subtitle_align="left")
