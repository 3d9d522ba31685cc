"""What the list shows of each run: what it is, its last evaluation, a small curve, whether it is being trained.

A summary reads a bounded part of a run's files, whatever their length, and is made again only when those files change.
Whether a run is being trained is found without touching its lock: taking it, even shared, could turn a trainer away.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from gcdformer.config import Config
from gcdformer.display.words import describe_model, examples_in_words, short_model
from gcdformer.errors import UserError
from gcdformer.lab.cache import Cache, stamp
from gcdformer.lab.catalogue import MOST_RUNS, Catalogue, ListedRun, reading
from gcdformer.lab.schema import DamagedRun, Description, Progress, RunSummary
from gcdformer.runs.metrics import Line, from_text
from gcdformer.tasks.registry import TASKS

CURVE_POINTS = 16
TAIL = 16_384
"""Bytes read at the end of a metrics file; a line is a fraction of it."""
LOCKS = Path("/proc/locks")
Locks = set[tuple[int, int]]
Lines = Sequence[Mapping[str, Any]]


class Summaries:
    """The summaries of a catalogue's runs."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue
        self._states: Cache[tuple[Description, Progress] | str] = Cache(MOST_RUNS)

    def all(self) -> list[RunSummary | DamagedRun]:
        """One per run; a damaged run says so and does not hide the others."""
        locks = held_locks()
        return [self.of(entry, is_live(entry.path, locks)) for entry in self.catalogue.entries()]

    def of(self, entry: ListedRun, live: bool) -> RunSummary | DamagedRun:
        stamps = stamp(entry.path / "config.toml"), stamp(entry.path / "metrics.jsonl")
        changed = max(stamps)[0] / 1e9
        state = self._states.get((entry.path, stamps), lambda: self.read(entry))
        if isinstance(state, str):
            return {"id": entry.id, "name": entry.name, "example": entry.is_example, "damaged": state, "changed": changed,
                    "live": live}
        description, progress = state
        return {"id": entry.id, "name": entry.name, "example": entry.is_example, "damaged": None, "changed": changed,
                **description, **progress, "live": live}

    def read(self, entry: ListedRun) -> tuple[Description, Progress] | str:
        """What a run is and how far it has come, or what is wrong with its files."""
        try:
            with reading(entry.path):
                config = self.catalogue.config(entry)
                lines = sample_lines(entry.path / "metrics.jsonl")
                return describe(config, has_gcd(config, lines)), progress_of(lines)
        except UserError as error:
            return str(error)


def has_gcd(config: Config, lines: Lines) -> bool:
    """Whether the run's task has a GCD. Of a user's own task the last evaluation tells, since it then has D: no one's code
    is run to show a run."""
    task = TASKS.get(config.task.task)
    return task.has_gcd if task is not None else bool(lines) and "D" in lines[-1]


def describe(config: Config, with_gcd: bool) -> Description:
    """What a person calls a run by."""
    task, data = config.task, config.data
    drawn = data.train_file is None
    return {"task": task.task, "base": task.base, "maximum": task.maximum, "examples_from": examples_in_words(config),
            "operands": data.operands if drawn else None, "outcomes": data.outcomes_in_words if drawn and with_gcd else None,
            "family": config.model.family, "dim": config.model.decoder_dim, "model": describe_model(config),
            "short_model": short_model(config), "seed": config.training.seed}


def progress_of(lines: Lines) -> Progress:
    """The last evaluation and a small curve."""
    last: Mapping[str, Any] = lines[-1] if lines else {}
    measure = "n_correct" if "n_correct" in last else "accuracy"
    return {"epochs": last.get("epoch", 0), "accuracy": last.get("accuracy"), "n_correct": last.get("n_correct"),
            "examples": last.get("examples", 0), "seconds": last.get("seconds", 0.0),
            "curve_of": "n_correct" if "n_correct" in last else "accuracy",
            "curve": [(int(line["epoch"]), float(line[measure])) for line in lines]}


def sample_lines(path: Path) -> list[Line]:
    """Some lines spread over the file, the first and the last among them: all of a short one."""
    try:
        size = path.stat().st_size
    except OSError:
        return []
    with path.open("rb") as file:
        if size <= TAIL:
            rows = file.read().split(b"\n")[:-1]
        else:
            spread = [row_after(file, number * size // CURVE_POINTS) for number in range(CURVE_POINTS)]
            rows = [row for row in spread if row is not None]
            file.seek(size - TAIL)
            rows.append(file.read().rpartition(b"\n")[0].rpartition(b"\n")[2])
    lines = {int(line["epoch"]): line for line in (from_text(row.decode("ascii"), str(path)) for row in rows)}
    return [lines[epoch] for epoch in sorted(lines)]


def row_after(file: BinaryIO, place: int) -> bytes | None:
    """The first whole line that starts at this place or behind it; None within the last one, or before one being written."""
    file.seek(place)
    if place:
        file.readline(TAIL)
    row = file.readline(TAIL)
    return row[:-1] if row.endswith(b"\n") else None


def held_locks() -> Locks | None:
    """(process, inode) of every lock held on this machine; None where the system does not say."""
    try:
        rows = [row.split() for row in LOCKS.read_text().splitlines()]
    except OSError:
        return None
    return {(int(row[4]), int(row[5].rpartition(":")[2])) for row in rows if len(row) > 5 and row[1] == "FLOCK"}


def is_live(run: Path, locks: Locks | None) -> bool:
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
