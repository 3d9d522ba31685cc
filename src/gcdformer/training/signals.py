"""Ctrl-C, SIGTERM and SIGUSR1 ask for a stop; the loop saves at the next step and exits with 75.

75 is the shell's "try again": the same command resumes where this one stopped. A second Ctrl-C ends at once.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

EXIT_INTERRUPTED = 75
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)
GRACE = 1.0
"""Seconds in which a verb that has nothing to save may unwind after a signal."""


class Interrupted(BaseException):
    """A signal came while nothing was being trained."""


def interrupted_text(name: str) -> str:
    """What a verb says that ends by a signal while nothing is being trained."""
    return f"gcdformer: interrupted by {name} while nothing was being trained; the same command resumes"


class EndAtOnce:
    """A handler that raises `Interrupted`. An exception that comes within a callback of the interpreter (a finaliser, a weak
    reference, an import of some library) is swallowed there, so the signal is remembered too, and the process ends after
    `GRACE` seconds unless it has unwound, or a `StopRequest` has taken over, by then."""

    def __init__(self) -> None:
        self.received: signal.Signals | None = None
        self._alarm: Any = None
        self._armed = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.received = signal.Signals(number)
        if hasattr(signal, "setitimer") and not self._armed:
            self._alarm, self._armed = signal.signal(signal.SIGALRM, self._end), True
            signal.setitimer(signal.ITIMER_REAL, GRACE)
        raise Interrupted(self.received.name)

    def over(self) -> None:
        """No signal that came before ends the process any more."""
        if self._armed:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, self._alarm)
            self._armed = False

    def _end(self, number: int, frame: FrameType | None) -> None:
        assert self.received is not None
        os.write(2, f"{interrupted_text(self.received.name)}\n".encode())
        os._exit(EXIT_INTERRUPTED)


@contextmanager
def ending_at_once() -> Iterator[None]:
    """Signals raise `Interrupted`, until a `StopRequest` takes over: from a verb's first moment to its training, and after
    it, there is nothing to save, and loading torch may take long."""
    end = EndAtOnce()
    before: dict[signal.Signals, Any] = {}
    try:
        with suppress(ValueError):  # not the main thread
            for name in SIGNALS:
                before[name] = signal.signal(name, end)
        yield
    finally:
        try:
            for name, handler in before.items():
                signal.signal(name, handler)
        finally:
            end.over()


class StopRequest:
    """Remembers the first signal, while entered; one that came before and was swallowed too."""

    def __init__(self) -> None:
        self.received: signal.Signals | None = None
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> StopRequest:
        try:
            for name in SIGNALS:
                before = self._before[name] = signal.signal(name, self._handle)
                if isinstance(before, EndAtOnce):
                    self.received = self.received or before.received
                    before.over()
        except ValueError:
            pass  # not the main thread (a notebook's worker): signals stay as they are
        return self

    def __exit__(self, *error: object) -> None:
        for name, handler in self._before.items():
            signal.signal(name, handler)

    def __bool__(self) -> bool:
        return self.received is not None

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.received is not None and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.received = signal.Signals(number)
