"""Whether a test left processes running: they are ended, and the test fails.

Orphans are counted too: on Linux this process adopts them. A process that was there before the test may start others (a
browser its pages); only the servers that fork processes for the fault tests are looked into. Without /proc it does nothing.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PATIENCE = 60.0
"""Seconds in which a process that is ending may end."""
ADOPT_ORPHANS = 36  # PR_SET_CHILD_SUBREAPER of <sys/prctl.h>
SERVERS = ("multiprocessing.forkserver", "multiprocessing.resource_tracker", "wandb-core")
"""Processes that serve this one until it ends."""
STARTS = {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn"}
_count = [0]


def count_starts() -> None:
    """Count the processes that this one starts, from now on."""
    def started(event: str, args: object) -> None:
        _count[0] += event in STARTS

    sys.addaudithook(started)


def note_start() -> None:
    """Count a process that a server forked for this one."""
    _count[0] += 1


def starts() -> int:
    """How many processes have been started."""
    return _count[0]


def adopt_orphans() -> None:
    """Be the parent of processes whose own has ended."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(ADOPT_ORPHANS, 1, 0, 0, 0)


def children_of(process: int) -> list[int]:
    """The processes that a process started or adopted and that have not ended."""
    found = []
    for path in Path(f"/proc/{process}/task").glob("*/children"):
        with suppress(OSError):
            found += [int(word) for word in path.read_text().split()]
    return [child for child in found if is_running(child)]


def is_running(process: int) -> bool:
    """Whether a process is there and has not ended; one that nobody has waited for yet has ended too."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def command_of(process: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{process}/cmdline").read_text().replace("\0", " ").strip()
    return ""


def started_here() -> dict[int, str]:
    """The processes that this one, or a server of its own, started or adopted; with their commands."""
    found = {}
    for child in children_of(os.getpid()):
        command = command_of(child)
        if any(name in command for name in SERVERS):
            found |= dict.fromkeys(children_of(child), f"forked by {command}")
        else:
            found[child] = command
    return found


@contextmanager
def nothing_left() -> Iterator[None]:
    """Fail if what runs inside leaves a process behind."""
    before = set(started_here())
    try:
        yield
    finally:
        deadline = time.monotonic() + PATIENCE
        while (left := {p: c for p, c in started_here().items() if p not in before}) and time.monotonic() < deadline:
            time.sleep(0.05)
        for process in left:
            end(process)
        assert not left, f"left running, and ended now: {left}"


def end(process: int) -> None:
    """Kill a process and all that it started."""
    doomed = [process]
    for parent in doomed:
        doomed += children_of(parent)
    for victim in doomed:
        with suppress(ProcessLookupError):
            os.kill(victim, signal.SIGKILL)
