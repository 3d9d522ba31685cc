"""What a person sees of a sweep: a line per trial with its time left, live in a terminal; plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import IO, Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from gcdformer.display.progress import in_window
from gcdformer.display.words import clock
from gcdformer.errors import one_line
from gcdformer.sweeps.plan import Planned
from gcdformer.sweeps.trial import read_progress
from gcdformer.training.view import say_line

STYLES = {"finished": "green", "running": "bold", "diverged": "red", "failed": "red", "stopped": "yellow"}


class Board:
    """Keeps the figures; shows nothing."""

    def __init__(self, planned: list[Planned], slots: int) -> None:
        self.planned, self.slots = planned, slots
        self.progress: dict[str, dict[str, Any]] = {}
        self.results: dict[str, str] = {one.name: result(one) for one in planned if one.over}
        self.took: list[float] = []
        self.began: dict[str, float] = {}
        self.looked = 0.0

    def __enter__(self) -> Board:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        """Called when the sweep ends, however it ends."""

    def note(self, message: str) -> None:
        """Something a person should know."""

    def started(self, one: Planned) -> None:
        self.began[one.name] = time.monotonic()

    def ended(self, one: Planned) -> None:
        self.progress.pop(one.name, None)
        self.results[one.name] = result(one)
        if one.status == "finished":
            self.took.append(time.monotonic() - self.began[one.name])

    def refresh(self) -> None:
        """Read what the running trials tell, once a second."""
        if time.monotonic() - self.looked < 1:
            return
        self.looked = time.monotonic()
        for one in self.planned:
            if one.status == "running" and (facts := read_progress(one.path)) is not None:
                self.progress[one.name] = facts

    def left(self) -> float | None:
        """Seconds until all are over, from the trials that run and those that ended; None before anything is known."""
        running = [one for one in self.planned if one.status == "running"]
        waiting = [one for one in self.planned if one.status in ("missing", "begun")]
        told = [self.progress[one.name] for one in running if one.name in self.progress]
        known: list[tuple[float, float]] = [(facts["left"], facts["seconds"]) for facts in told
                                            if facts.get("left") is not None]
        whole = self.took or [left + seconds for left, seconds in known]
        if not whole or (running and not known):
            return None
        typical = sum(whole) / len(whole)
        times = [left for left, _ in known]
        queued = len(waiting) + len(running) - len(told)
        return max(max(times, default=0.0), (sum(times) + typical * queued) / self.slots)

    def summary(self) -> str:
        """How many are in which state, and the time left."""
        counts: dict[str, int] = {}
        for one in self.planned:
            status = "queued" if one.status == "running" and one.name not in self.progress else one.status
            counts[status] = counts.get(status, 0) + 1
        left = self.left()
        text = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))
        return f"{len(self.planned)} trials: {text}" + (f"; about {clock(left)} left" if left else "")


class PlainBoard(Board):
    """Lines for logs and pipes."""

    def __init__(self, planned: list[Planned], slots: int, file: IO[str] | None = None) -> None:
        super().__init__(planned, slots)
        self.file = file or sys.stdout

    def say(self, text: str) -> None:
        say_line(one_line(text), self.file)

    def note(self, message: str) -> None:
        self.say(f"note: {message}")

    def started(self, one: Planned) -> None:
        super().started(one)
        self.say(f"start {one.name}")

    def ended(self, one: Planned) -> None:
        super().ended(one)
        self.say(f"{one.status} {one.name}: {self.results[one.name]} ({self.summary()})")


class LiveBoard(Board):
    """A table that redraws itself: the running trials first, then the last ended, as many as the window holds."""

    def __init__(self, planned: list[Planned], slots: int, console: Console | None = None) -> None:
        super().__init__(planned, slots)
        self.console = console or Console()
        self.order: list[str] = []
        self.notes: list[str] = []
        self.live = Live(console=self.console, refresh_per_second=2, get_renderable=self.render)

    def __enter__(self) -> LiveBoard:
        self.live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        self.live.stop()

    def note(self, message: str) -> None:
        self.notes = [*self.notes[-2:], message]

    def ended(self, one: Planned) -> None:
        super().ended(one)
        self.order.insert(0, one.name)

    def render(self) -> RenderableType:
        table = Table.grid(padding=(0, 2))
        ended = {name: place for place, name in enumerate(self.order)}
        ranks = {"running": 0, "finished": 2, "diverged": 1, "failed": 1, "stopped": 2, "in use": 1}
        rows = sorted(self.planned, key=lambda one: (ranks.get(one.status, 3), ended.get(one.name, len(ended))))
        room = max(3, self.console.height - 6)
        for one in rows[:room]:
            told = self.results.get(one.name) or running_text(self.progress.get(one.name))
            table.add_row(Text(one.status, style=STYLES.get(one.status, "dim")),
                          Text(one_line(one.name), no_wrap=True, overflow="ellipsis"), Text(one_line(told), style="dim"))
        if len(rows) > room:
            table.add_row("", Text(f"… and {len(rows) - room} more", style="dim"), "")
        notes = [Text(one_line(note), style="yellow") for note in self.notes]
        return Group(table, Text(self.summary(), style="bold"), *notes)


def board_for(planned: list[Planned], slots: int, *, quiet: bool, as_json: bool) -> Board:
    """The board that fits the output."""
    console = Console(highlight=False)
    if quiet:
        return Board(planned, slots)
    if in_window(console) and not as_json:
        return LiveBoard(planned, slots, console)
    return PlainBoard(planned, slots, sys.stderr if as_json else None)


def running_text(facts: dict[str, Any] | None) -> str:
    """What a running trial last told, in a few words."""
    if facts is None or "epoch" not in facts:
        return "" if facts is None else str(facts["doing"])
    parts = [f"epoch {facts['epoch'] + 1}", str(facts["doing"])]
    if facts["accuracy"] is not None:
        parts.append(f"{facts['accuracy']:.1f} %")
    if facts["n_correct"] is not None:
        parts.append(f"{facts['n_correct']} GCD")
    if facts["left"] is not None:
        parts.append(f"{clock(facts['left'])} left")
    return ", ".join(parts)


def result(one: Planned) -> str:
    """What came of a trial that ended."""
    lines, problem = one.lines() if one.status in ("finished", "stopped") else ([], "")
    if not lines:
        return problem or one.reason
    last = lines[-1]
    gcds = f", {last['n_correct']} correct GCD" if "n_correct" in last else ""
    return f"epoch {last['epoch']}, accuracy {last['accuracy']:.2f}{gcds}, {clock(last['seconds'])}"
