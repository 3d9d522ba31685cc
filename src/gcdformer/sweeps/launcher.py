"""Runs the trials that are missing, on any launcher, until all are over or a signal comes.

A launcher starts trials and tells how they ended. What an ending means, and whether a trial is tried again, is decided
here, from its exit code and its files.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter, deque
from types import TracebackType
from typing import Self

from gcdformer.sweeps.board import Board
from gcdformer.sweeps.plan import Planned, note_start, refresh, write_record
from gcdformer.sweeps.sweep import Needs
from gcdformer.sweeps.trial import BAD_INPUT, DIVERGED, DONE, IN_USE, Ending
from gcdformer.training.signals import EXIT_INTERRUPTED, StopRequest


class Launcher(ABC):
    """Where trials run. Entered before the first is started; on exit nothing it started is left."""

    slots: int  # how many may be started at a time

    def __enter__(self) -> Self:
        return self

    @abstractmethod
    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None: ...

    def at_once(self, needs: Needs) -> int:
        """How many trials run side by side."""
        return self.slots

    @abstractmethod
    def start(self, one: Planned) -> None:
        """Start a trial, or queue it."""

    @abstractmethod
    def wait(self, seconds: float) -> list[tuple[Planned, Ending]]:
        """The trials that ended, after at most so many seconds."""

    @abstractmethod
    def ask_to_stop(self) -> None:
        """Let running trials save and stop; forget queued ones."""


def run_trials(planned: list[Planned], launcher: Launcher, board: Board, stop: StopRequest, retries: int = 3) -> None:
    """Run what is not over. Sets the status and reason of each trial."""
    waiting = deque(one for one in planned if not one.over)
    tried: Counter[str] = Counter()
    running: dict[str, Planned] = {}
    asked = False
    with board:
        while running or (waiting and not asked):
            while waiting and len(running) < launcher.slots and not stop:
                one = waiting.popleft()
                note_start(one)
                launcher.start(one)
                running[one.name] = one
                one.status = "running"
                board.started(one)
            if stop and not asked:
                asked = True
                board.note(f"{stop.received.name if stop.received else 'a signal'}: the trials save and stop")
                launcher.ask_to_stop()
            for one, ending in launcher.wait(0.25):
                del running[one.name]
                if asked and ending.code < 0:  # it was starting, or waited for its folder: it had nothing to save
                    ending = Ending(EXIT_INTERRUPTED, ending.reason)
                if was_killed(ending) and not asked and tried[one.name] < retries:
                    tried[one.name] += 1
                    one.status = "begun"
                    board.note(f"{one.name}: {ending.reason}; resumes from its last checkpoint")
                    waiting.appendleft(one)
                    continue
                record_outcome(one, ending)
                board.ended(one)
            board.refresh()


def was_killed(ending: Ending) -> bool:
    """Whether a trial ended through no fault of its own: killed, or asked to stop by someone else than the sweep."""
    return ending.code == EXIT_INTERRUPTED or ending.code not in (DONE, 1, BAD_INPUT, DIVERGED, IN_USE)


def record_outcome(one: Planned, ending: Ending) -> None:
    """Status and reason of a trial that ended."""
    if ending.code == DIVERGED:
        one.status, one.reason = "diverged", ending.reason
        write_record(one, "diverged", ending.reason)
    elif ending.code == IN_USE:
        one.status, one.reason = "in use", ending.reason
    else:
        now = refresh(one)
        one.status, one.reason = now.status, now.reason or ending.reason
        if not one.over and ending.code != EXIT_INTERRUPTED:
            one.status, one.reason = "failed", ending.reason


def exit_code(planned: list[Planned], interrupted: bool) -> int:
    """75 stopped by a signal, 1 a trial is not over, 3 one diverged, 0 all are over."""
    if interrupted:
        return EXIT_INTERRUPTED
    if not all(trial.over for trial in planned):
        return 1
    return DIVERGED if any(trial.status == "diverged" for trial in planned) else 0


def went_wrong(trial: Planned, interrupted: bool) -> bool:
    """Whether a trial did not come to a good end; after a signal, those that were stopped by it are as they should be."""
    return trial.status in ("failed", "diverged", "in use") or not (trial.over or interrupted)
