"""What a person sees of a sweep: a line per trial with its time left, live in a terminal; plain lines elsewhere.

A board keeps the figures of the trials and never changes one.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterable
from typing import IO, final

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from gcdformer.display.progress import in_window
from gcdformer.display.words import clock
from gcdformer.errors import one_line
from gcdformer.sweeps.plan import Planned
from gcdformer.sweeps.trial import TrialProgress, read_progress
from gcdformer.training.live import Page
from gcdformer.training.view import say_line

STYLES = {"finished": "green", "running": "bold", "diverged": "red", "failed": "red", "stopped": "yellow"}
RANKS = {"running": 0, "finished": 2, "diverged": 1, "failed": 1, "stopped": 2, "in use": 1}


@final
class Board:
    """The figures of the trials; shown on a console that redraws itself, as lines in a file, or not at all."""

    def __init__(self, planned: list[Planned], slots: int, *, console: Console | None = None,
                 file: IO[str] | None = None) -> None:
        self.planned, self.slots, self.file = planned, slots, file
        self.page = None if console is None else Page(self.render, console, per_second=2, most_notes=3)
        self.progress: dict[str, TrialProgress] = {}
        self.results: dict[str, str] = {trial.name: result(trial) for trial in planned if trial.over}
        self.took: list[float] = []
        self.began: dict[str, float] = {}
        self.ended_last: list[str] = []
        self.looked = 0.0

    def __enter__(self) -> Board:
        if self.page:
            self.page.open()
        return self

    def __exit__(self, *error: object) -> None:
        if self.page:
            self.page.close()

    def say(self, text: str) -> None:
        if self.file:
            say_line(one_line(text), self.file)

    def note(self, message: str) -> None:
        """Something a person should know."""
        self.say(f"note: {message}")
        if self.page:
            self.page.note(message)

    def started(self, trial: Planned) -> None:
        self.began[trial.name] = time.monotonic()
        self.say(f"start {trial.name}")

    def ended(self, trial: Planned) -> None:
        self.progress.pop(trial.name, None)
        self.results[trial.name] = result(trial)
        self.ended_last.insert(0, trial.name)
        if trial.status == "finished":
            self.took.append(time.monotonic() - self.began[trial.name])
        self.say(f"{trial.status} {trial.name}: {self.results[trial.name]} ({self.summary()})")

    def refresh(self) -> None:
        """Read what the running trials report, once a second."""
        if time.monotonic() - self.looked < 1:
            return
        self.looked = time.monotonic()
        for trial in self.planned:
            if trial.status == "running" and (progress := read_progress(trial.path)) is not None:
                self.progress[trial.name] = progress

    def left(self) -> float | None:
        """Seconds until all are over, from the trials that run and those that ended; None before anything is known."""
        running = [trial for trial in self.planned if trial.status == "running"]
        waiting = [trial for trial in self.planned if trial.status in ("missing", "begun")]
        reported = [self.progress[trial.name] for trial in running if trial.name in self.progress]
        known = [(left, progress["seconds"]) for progress in reported if (left := progress.get("left")) is not None]
        whole = self.took or [left + seconds for left, seconds in known]
        if not whole or (running and not known):
            return None
        typical = sum(whole) / len(whole)
        times = [left for left, _ in known]
        queued = len(waiting) + len(running) - len(reported)
        return max(max(times, default=0.0), (sum(times) + typical * queued) / self.slots)

    def summary(self) -> str:
        """How many are in which state, and the time left."""
        states = ("queued" if trial.status == "running" and trial.name not in self.progress else trial.status
                  for trial in self.planned)
        left = self.left()
        return count_states(states) + (f"; about {clock(left)} left" if left else "")

    def render(self) -> RenderableType:
        """A table: the running trials first, then the last ended, as many as the window holds."""
        assert self.page is not None
        table = Table.grid(padding=(0, 2))
        ended = {name: place for place, name in enumerate(self.ended_last)}
        rows = sorted(self.planned, key=lambda trial: (RANKS.get(trial.status, 3), ended.get(trial.name, len(ended))))
        most = max(3, self.page.console.height - 6)
        for trial in rows[:most]:
            words = self.results.get(trial.name) or running_text(self.progress.get(trial.name))
            table.add_row(Text(trial.status, style=STYLES.get(trial.status, "dim")),
                          Text(one_line(trial.name), no_wrap=True, overflow="ellipsis"), Text(one_line(words), style="dim"))
        if len(rows) > most:
            table.add_row("", Text(f"… and {len(rows) - most} more", style="dim"), "")
        return Group(table, Text(self.summary(), style="bold"), *self.page.shown_notes())


def board_for(planned: list[Planned], slots: int, *, quiet: bool, as_json: bool) -> Board:
    """The board that fits the output."""
    console = Console(highlight=False)
    if quiet:
        return Board(planned, slots)
    if in_window(console) and not as_json:
        return Board(planned, slots, console=console)
    return Board(planned, slots, file=sys.stderr if as_json else sys.stdout)


def count_states(states: Iterable[str]) -> str:
    """`5 trials: 3 finished, 2 running`."""
    counts = Counter(states)
    return f"{counts.total()} trials: " + ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))


def running_text(progress: TrialProgress | None) -> str:
    """What a running trial last reported, in a few words."""
    if progress is None or "epoch" not in progress:
        return "" if progress is None else progress["doing"]
    parts = [f"epoch {progress['epoch'] + 1}", progress["doing"]]
    if progress["accuracy"] is not None:
        parts.append(f"{progress['accuracy']:.1f} %")
    if progress["n_correct"] is not None:
        parts.append(f"{progress['n_correct']} GCD")
    if progress["left"] is not None:
        parts.append(f"{clock(progress['left'])} left")
    return ", ".join(parts)


def result(trial: Planned) -> str:
    """What came of a trial that ended."""
    lines, problem = trial.lines() if trial.status in ("finished", "stopped") else ([], "")
    if not lines:
        return problem or trial.reason
    last = lines[-1]
    gcds = f", {last['n_correct']} correct GCD" if "n_correct" in last else ""
    return f"epoch {last['epoch']}, accuracy {last['accuracy']:.2f}{gcds}, {clock(last['seconds'])}"
