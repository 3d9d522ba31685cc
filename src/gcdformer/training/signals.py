"""Ctrl-C, SIGTERM and SIGUSR1 ask for a stop; the loop saves at the next step and exits with 75.

75 is the shell's "try again": the same command goes on where this one stopped. A second Ctrl-C ends at once.
"""

from __future__ import annotations

import signal
from types import FrameType, TracebackType
from typing import Any, ClassVar

EXIT_INTERRUPTED = 75
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)


class StopRequest:
    """Remembers the first signal, while entered. An inner one takes over what an outer one has received: the command
    line enters one before torch is loaded, so that no moment of a start is without."""

    _entered: ClassVar[list[StopRequest]] = []

    def __init__(self) -> None:
        self.received: signal.Signals | None = None
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> StopRequest:
        try:
            for name in SIGNALS:
                self._before[name] = signal.signal(name, self._handle)
        except ValueError:
            pass  # not the main thread (a notebook's worker): signals stay as they are
        if self._entered:
            self.received = self.received or self._entered[-1].received
        self._entered.append(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        self._entered.remove(self)
        for name, handler in self._before.items():
            signal.signal(name, handler)

    def __bool__(self) -> bool:
        return self.received is not None

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.received is not None and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.received = signal.Signals(number)
