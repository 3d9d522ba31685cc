"""The runs below a folder, by id, and what the list shows of each.

Ids are looked up, never turned into paths: what is not found by walking the folder cannot be asked for. Links are not
followed. A summary reads a bounded part of a run's files, whatever its length, and is kept until those files change.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from gcdformer.config import Config
from gcdformer.display.words import examples_in_words
from gcdformer.errors import UserError
from gcdformer.lab.damage import reading
from gcdformer.lab.liveness import held_locks, is_live
from gcdformer.runs.folder import RunFolder
from gcdformer.runs.metrics import Line, from_text

EXAMPLE = Path(__file__).parent / "example"
GROKKING = Path(__file__).parent / "example-grokking"
DEPTH = 3
MOST_RUNS = 5000
CURVE_POINTS = 16
TAIL = 16_384
"""Bytes read at the end of a metrics file; a line is a fraction of it."""


@dataclass(frozen=True)
class Entry:
    """A run folder and the id under which the API knows it."""

    id: str
    name: str
    path: Path

    @property
    def is_example(self) -> bool:
        """Whether it comes with the package."""
        return self.path in (EXAMPLE, GROKKING)


EXAMPLES = {entry.id: entry for entry in (Entry("example", "example", EXAMPLE),
                                          Entry("example-grokking", "example-grokking", GROKKING))}
"""The runs that come with the package, by id."""


class UnknownRun(UserError):
    """No run has this id."""


class Catalogue:
    """The runs below `root`, which may be a run itself or not be there yet; the bundled examples if there are none."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._lock = threading.Lock()
        self._found: dict[str, Entry] = {}
        self._configs: dict[Path, tuple[Any, Config]] = {}
        self._summaries: dict[Path, tuple[Any, dict[str, Any]]] = {}

    def entries(self) -> list[Entry]:
        """Every run, by name; the bundled examples if there is none."""
        if (self.root / "config.toml").is_file():
            return [Entry(self.root.resolve().name, self.root.resolve().name, self.root)]
        found: dict[str, Entry] = {}
        for path in walk(self.root, DEPTH):
            name = path.relative_to(self.root).as_posix()
            number, key = 1, name.replace("/", "~")
            while key in found or key in EXAMPLES:
                number, key = number + 1, f"{name.replace('/', '~')}~{number + 1}"
            found[key] = Entry(key, name, path)
            if len(found) >= MOST_RUNS:
                break
        return sorted(found.values(), key=lambda entry: entry.name) or list(EXAMPLES.values())

    def has_runs(self) -> bool:
        """Whether there are runs, so that no bundled example is shown."""
        return not self.entries()[0].is_example

    def find(self, key: str) -> Entry:
        """The run of this id; the folder is walked again unless it was found before and is still there."""
        if key in EXAMPLES:
            return EXAMPLES[key]
        entry = self._found.get(key)
        if entry is None or not self.still_there(entry):
            self._found = {one.id: one for one in self.entries()}
            entry = self._found.get(key)
        if entry is None:
            raise UnknownRun(f"run: there is none called '{key[:100]}' here")
        return entry

    def still_there(self, entry: Entry) -> bool:
        """Whether its folder is, and neither it nor one above has become a link."""
        above = entry.path.relative_to(self.root).parts
        folders = [self.root.joinpath(*above[:length]) for length in range(1, len(above) + 1)]
        return entry.path.is_dir() and not any(folder.is_symlink() for folder in folders)

    def config(self, entry: Entry) -> Config:
        """The run's configuration, read again only when its file changes."""
        folder = RunFolder(entry.path)
        mark = stamp(folder.config_path)
        with self._lock:
            kept = self._configs.get(entry.path)
        if kept is None or kept[0] != mark:
            kept = (mark, folder.read_config()[0])
            with self._lock:
                self._configs[entry.path] = kept
        return kept[1]

    def summaries(self) -> list[dict[str, Any]]:
        """One mapping a run; a damaged run says so and does not hide the others."""
        locks = held_locks()
        return [self.summary(entry) | {"live": is_live(entry.path, locks)} for entry in self.entries()]

    def summary(self, entry: Entry) -> dict[str, Any]:
        mark = (stamp(entry.path / "config.toml"), stamp(entry.path / "metrics.jsonl"))
        with self._lock:
            kept = self._summaries.get(entry.path)
        if kept is not None and kept[0] == mark:
            return kept[1]
        made: dict[str, Any] = {"id": entry.id, "name": entry.name, "example": entry.is_example, "damaged": None,
                                "changed": max(mark[0][0], mark[1][0]) / 1e9}
        try:
            with reading(entry.path):
                made |= describe(self.config(entry)) | progress(entry.path / "metrics.jsonl")
        except UserError as error:
            made["damaged"] = str(error)
        with self._lock:
            self._summaries[entry.path] = (mark, made)
        return made


def walk(folder: Path, depth: int) -> Iterator[Path]:
    """Folders with a configuration or metrics, not looking into them, into links or into hidden ones."""
    try:
        with os.scandir(folder) as found:
            children = sorted((one for one in found if not one.name.startswith(".") and one.is_dir(follow_symlinks=False)),
                              key=lambda one: one.name)
    except OSError:
        return  # not there (yet), or not ours to read: no runs in it
    for child in children:
        path = Path(child.path)
        if any(os.path.lexists(path / name) for name in ("config.toml", "metrics.jsonl")):
            yield path
        elif depth > 1:
            yield from walk(path, depth - 1)


def stamp(path: Path) -> tuple[int, int]:
    """When a file changed and how long it is; zeros if it is not there."""
    try:
        found = path.lstat()
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_size


def describe(config: Config) -> dict[str, Any]:
    """What a person calls a run by."""
    task, data, model = config.task, config.data, config.model
    drawn = data.train_file is None
    sizes = (f"{model.encoder_layers}+{model.decoder_layers} layers" if model.encoder_layers != model.decoder_layers
             or model.family == "transformer" else f"{model.decoder_layers} layers")
    return {"task": task.task, "base": task.base, "maximum": task.maximum, "examples_from": examples_in_words(config),
            "operands": data.operands if drawn else None,
            "outcomes": data.outcomes_in_words if drawn and task.task == "gcd" else None,
            "family": model.family, "dim": model.decoder_dim,
            "model": f"{model.family}, {sizes}, {model.hidden_dim or model.decoder_dim} dimensions",
            "short_model": f"{model.family} {model.encoder_layers}+{model.decoder_layers}, d = {model.decoder_dim}",
            "seed": config.training.seed}


def progress(path: Path) -> dict[str, Any]:
    """The last evaluation and a small curve."""
    lines: Sequence[Mapping[str, Any]] = sample_lines(path)
    last: Mapping[str, Any] = lines[-1] if lines else {}
    measure = "n_correct" if "n_correct" in last else "accuracy"
    return {"epochs": last.get("epoch", 0), "accuracy": last.get("accuracy"), "n_correct": last.get("n_correct"),
            "examples": last.get("examples", 0), "seconds": last.get("seconds", 0.0), "curve_of": measure,
            "curve": [[int(line["epoch"]), float(line[measure])] for line in lines]}


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
    found = {int(line["epoch"]): line for line in (from_text(row.decode("ascii"), str(path)) for row in rows)}
    return [found[epoch] for epoch in sorted(found)]


def row_after(file: BinaryIO, place: int) -> bytes | None:
    """The first whole line that starts at this place or behind it; None within the last one, or before one being written."""
    file.seek(place)
    if place:
        file.readline(TAIL)
    row = file.readline(TAIL)
    return row[:-1] if row.endswith(b"\n") else None
