"""A sign of life for work that may take more than two seconds.

    with progress("reading the stream", total=len(blocks), quiet=args.quiet) as advance:
        for index, block in enumerate(blocks):
            ...
            advance(index + 1)

It goes to standard error, so that standard output stays what was asked for: a bar in a terminal, plain lines elsewhere,
nothing with `quiet` or with GCDFORMER_PROGRESS=off in the environment. Work that never calls `advance` is seen to be alive
too. It imports no torch, so that it can be entered before torch is loaded; it does not know what is being done.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from time import monotonic
from typing import IO, Protocol

from rich.console import Console

SWITCH = "GCDFORMER_PROGRESS"
FIRST = 1.5
"""Seconds of work before the first plain line: what is over sooner says nothing."""
EVERY = 5.0
"""Seconds between the lines after it."""


class Advance(Protocol):
    """Says how much is done, in the units of the total; a total given here replaces the one before."""

    def __call__(self, done: float, total: float | None = None) -> None: ...


@contextmanager
def progress(label: str, total: float | None = None, quiet: bool = False, *,
             file: IO[str] | None = None) -> Iterator[Advance]:
    """Show that the work within is alive, and how far it is if it says so; on standard error unless there is a file."""
    file = file or sys.stderr
    console = Console(file=file)
    if quiet or os.environ.get(SWITCH) == "off":
        yield lambda done, total=None: None
    elif in_window(console):
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
        with Progress(*columns, console=console, transient=True) as bars:
            bar = bars.add_task(label, total=total)
            yield lambda done, total=None: bars.update(bar, completed=done, total=total)
    else:
        lines = PlainLines(label, total, file)
        try:
            yield lines.advance
        finally:
            lines.end()


class PlainLines:
    """Says from a thread of its own how the work stands, since the work may be one long call."""

    def __init__(self, label: str, total: float | None, file: IO[str]) -> None:
        self.label, self.done, self.total, self.file = label, 0.0, total, file
        self.began = monotonic()
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.watch, daemon=True)
        self.thread.start()

    def advance(self, done: float, total: float | None = None) -> None:
        self.done, self.total = done, self.total if total is None else total

    def watch(self) -> None:
        wait = FIRST
        while not self.over.wait(wait):
            self.say()
            wait = EVERY

    def say(self) -> None:
        with suppress(OSError, ValueError):  # nobody reads it any more: no reason to end the work
            print(self.text(), file=self.file, flush=True)

    def text(self) -> str:
        """How far, and since when: `reading the stream: 34 %, 6 s`."""
        share = f": {min(100.0, 100 * self.done / self.total):.0f} %" if self.total else ""
        return f"{self.label}{share}, {monotonic() - self.began:.0f} s"

    def end(self) -> None:
        self.over.set()
        self.thread.join()


def in_window(console: Console) -> bool:
    """Whether a person watches: a real terminal that can redraw, not a file or pipe, whatever FORCE_COLOR says."""
    return console.file.isatty() and not console.is_dumb_terminal
