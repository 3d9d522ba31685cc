"""Whether a run is being trained right now, without touching its lock: taking it, even shared, could turn a trainer away."""

from __future__ import annotations

import os
import platform
from pathlib import Path

LOCKS = Path("/proc/locks")


def held_locks() -> set[tuple[int, int]] | None:
    """(process, inode) of every lock held on this machine; None where the system does not tell."""
    try:
        rows = [row.split() for row in LOCKS.read_text().splitlines()]
    except OSError:
        return None
    return {(int(row[4]), int(row[5].rpartition(":")[2])) for row in rows if len(row) > 5 and row[1] == "FLOCK"}


def is_live(run: Path, locks: set[tuple[int, int]] | None) -> bool:
    """Whether the process named in the run's lock file holds it."""
    path = run / "lock"
    try:
        words = path.read_text(errors="replace")[:200].split()
        inode = path.stat().st_ino
    except OSError:
        return False
    if len(words) != 4 or words[0] != "process" or not words[1].isdecimal() or words[3] != platform.node():
        return False
    process = int(words[1])
    return (process, inode) in locks if locks is not None else is_running(process)


def is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True
