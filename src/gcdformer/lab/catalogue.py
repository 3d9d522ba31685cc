"""The runs below a folder, by id, and their configurations.

Ids are looked up, never turned into paths: what is not found by walking the folder cannot be asked for. Links are not
followed. A run folder may come from anywhere: its checksums guard against accidents, not against someone who writes them
anew, so whatever its files make a reader raise becomes `DamagedFile`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gcdformer.config import Config
from gcdformer.errors import DamagedFile, UserError
from gcdformer.lab.cache import Cache, stamp
from gcdformer.runs.folder import RunFolder

EXAMPLE = Path(__file__).parent / "example"
GROKKING = Path(__file__).parent / "example-grokking"
DEPTH = 3
MOST_RUNS = 5000


@dataclass(frozen=True)
class ListedRun:
    """A run folder and the id under which the API knows it."""

    id: str
    name: str
    path: Path

    @property
    def is_example(self) -> bool:
        """Whether it comes with the package."""
        return self.path in (EXAMPLE, GROKKING)


EXAMPLES = {entry.id: entry for entry in (ListedRun("example", "example", EXAMPLE),
                                          ListedRun("example-grokking", "example-grokking", GROKKING))}
"""The runs that come with the package, by id."""


class UnknownRun(UserError):
    """No run has this id."""


class Catalogue:
    """The runs below `root`, which may be a run itself or not be there yet; the bundled examples if there are none."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._entries: dict[str, ListedRun] = {}
        self._configs: Cache[Config] = Cache(MOST_RUNS)

    def entries(self) -> list[ListedRun]:
        """Every run, by name; the bundled examples if there is none."""
        if (self.root / "config.toml").is_file():
            return [ListedRun(self.root.resolve().name, self.root.resolve().name, self.root)]
        entries: dict[str, ListedRun] = {}
        for path in run_folders(self.root, DEPTH):
            name = path.relative_to(self.root).as_posix()
            number, key = 1, name.replace("/", "~")
            while key in entries or key in EXAMPLES:
                number, key = number + 1, f"{name.replace('/', '~')}~{number + 1}"
            entries[key] = ListedRun(key, name, path)
            if len(entries) >= MOST_RUNS:
                break
        return sorted(entries.values(), key=lambda entry: entry.name) or list(EXAMPLES.values())

    def has_runs(self) -> bool:
        """Whether there are runs, so that no bundled example is shown."""
        return not self.entries()[0].is_example

    def find(self, key: str) -> ListedRun:
        """The run of this id; the folder is walked again unless it was found before and is still there."""
        if key in EXAMPLES:
            return EXAMPLES[key]
        entry = self._entries.get(key)
        if entry is None or not self.still_there(entry):
            self._entries = {entry.id: entry for entry in self.entries()}
            entry = self._entries.get(key)
        if entry is None:
            raise UnknownRun(f"run: there is none called '{key[:100]}' here")
        return entry

    def still_there(self, entry: ListedRun) -> bool:
        """Whether its folder is, and neither it nor one above has become a link."""
        above = entry.path.relative_to(self.root).parts
        folders = [self.root.joinpath(*above[:length]) for length in range(1, len(above) + 1)]
        return entry.path.is_dir() and not any(folder.is_symlink() for folder in folders)

    def config(self, entry: ListedRun) -> Config:
        """The run's configuration, read again only when its file changes."""
        folder = RunFolder(entry.path)
        return self._configs.get((entry.path, stamp(folder.config_path)), lambda: folder.read_config()[0])


def run_folders(folder: Path, depth: int) -> Iterator[Path]:
    """Folders with a configuration or metrics, not looking into them, into links or into hidden ones."""
    try:
        with os.scandir(folder) as items:
            children = [item for item in items if not item.name.startswith(".") and item.is_dir(follow_symlinks=False)]
    except OSError:
        return  # not there (yet), or not ours to read: no runs in it
    for child in sorted(children, key=lambda item: item.name):
        path = Path(child.path)
        if any(os.path.lexists(path / name) for name in ("config.toml", "metrics.jsonl")):
            yield path
        elif depth > 1:
            yield from run_folders(path, depth - 1)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Around everything that interprets a run's files."""
    try:
        yield
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise DamagedFile(f"{path}: not as gcdformer writes it: {type(error).__name__}: {error}") from error
    except OSError as error:
        raise DamagedFile(f"{error.filename or path}: {error.strerror or error}") from error
