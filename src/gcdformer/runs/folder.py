"""A run folder on disk: its configuration with checksum, its lock, its metrics and prediction tables, which checkpoints.

Knows files and configurations, not models, and imports no torch. One process writes; any number may read.
"""

from __future__ import annotations

import fcntl
import os
import platform
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np

from gcdformer.config import Config, parse_toml
from gcdformer.errors import DamagedFile, InUse, UserError
from gcdformer.evaluation.table import PredictionTable, tables_from_bytes, tables_to_bytes
from gcdformer.runs.files import read_sums, replace_file, require_folder, sha256, writing
from gcdformer.runs.metrics import Line, append_metrics, read_metrics
from gcdformer.tasks.registry import require_trusted, task_digest
from gcdformer.version import __version__

HEADER = "# gcdformer run, do not edit; sha256 of all that follows: "


@dataclass(frozen=True)
class RunFolder:
    """Paths and readers of one run."""

    path: Path

    @property
    def config_path(self) -> Path:
        return self.path / "config.toml"

    @property
    def metrics_path(self) -> Path:
        return self.path / "metrics.jsonl"

    def predictions_path(self, epoch: int) -> Path:
        return self.path / "predictions" / f"epoch-{epoch:05d}.npz"

    def exists(self) -> bool:
        return self.config_path.exists()

    def write_config(self, config: Config, files: Mapping[str, str] | None = None) -> None:
        """The configuration, what made it, the SHA-256 of the files of examples, and a checksum of all."""
        made_by = {**versions(), "python": platform.python_version(), **(files or {})}
        digest = task_digest(config.task.task)
        if digest:
            made_by["task_sha256"] = digest
        lines = ["[gcdformer]", *(f'{key} = "{value}"' for key, value in made_by.items()), ""]
        body = "\n".join(lines) + "\n" + config.to_toml()
        replace_file(self.config_path, f"{checksum_line(body)}\n{body}".encode())

    def read_config(self) -> tuple[Config, dict[str, str]]:
        """The configuration and what made it: versions, and digests of the files it read."""
        require_folder(self.path)
        try:
            text = self.config_path.read_bytes().decode()
        except FileNotFoundError:
            raise UserError(f"{self.path}: not a run folder, it has no config.toml") from None
        except (OSError, UnicodeDecodeError) as error:
            raise DamagedFile(f"{self.config_path}: unreadable: {error}") from None
        first, _, body = text.partition("\n")
        if first != checksum_line(body):
            raise DamagedFile(f"{self.config_path}: does not match its checksum; a run's configuration is fixed, "
                              "start a new run to change it")
        tree = parse_toml(body, str(self.config_path))
        made_by = tree.pop("gcdformer", {})
        if not isinstance(made_by, dict):
            raise DamagedFile(f"{self.config_path}: [gcdformer] must be a table")
        try:
            config = Config.parse(tree)
        except UserError as error:
            raise DamagedFile(f"{self.config_path}: written by gcdformer {made_by.get('version')}, "
                              f"this is {__version__}: {error}") from None
        require_trusted(config.task.task, self.config_path)
        return config, {name: str(value) for name, value in made_by.items()}

    def metrics(self) -> list[Line]:
        return read_metrics(self.metrics_path)

    def write_predictions(self, epoch: int, tables: Mapping[str, PredictionTable]) -> str:
        """Save the tables of an epoch; returns the file's SHA-256, which goes into the metrics line."""
        data = tables_to_bytes(dict(tables))
        path = self.predictions_path(epoch)
        with writing(path):
            path.parent.mkdir(exist_ok=True)
        replace_file(path, data)
        return sha256(data)

    def read_predictions(self, epoch: int) -> dict[str, PredictionTable]:
        """The tables of an epoch, checked against the metrics line."""
        line = next((line for line in self.metrics() if line["epoch"] == epoch), None)
        if line is None:
            epochs = [line["epoch"] for line in self.metrics()]
            known = f"1..{epochs[-1]}" if epochs else "none yet"
            raise UserError(f"epoch {epoch}: not evaluated in {self.path}: its epochs are {known}")
        path = self.predictions_path(epoch)
        try:
            data = path.read_bytes()
        except OSError:
            raise DamagedFile(f"{path}: missing or unreadable") from None
        if sha256(data) != line.get("predictions_sha256"):
            raise DamagedFile(f"{path}: does not match its checksum")
        tables = tables_from_bytes(data, str(path))
        if set(tables) != {"natural", "stratified"}:
            raise DamagedFile(f"{path}: needs the tables natural and stratified")
        return tables

    def append_metrics(self, line: Line) -> None:
        append_metrics(self.metrics_path, line)

    def drop_predictions_after(self, epoch: int) -> None:
        for path in (self.path / "predictions").glob("epoch-*.npz"):
            number = path.stem.removeprefix("epoch-")
            if number.isdecimal() and int(number) > epoch:
                path.unlink()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the run for writing; refused while another process does. The lock ends with its process."""
        path = self.path / "lock"
        with writing(path):
            self.path.mkdir(parents=True, exist_ok=True)
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                owner = os.read(handle, 100).decode(errors="replace").strip() or "another process"
                raise InUse(f"{self.path}: in use by {owner}; one process at a time trains a run") from None
            except OSError as error:
                raise UserError(f"{path}: cannot be locked: {error.strerror}; keep runs on a file system that can") from None
            with writing(path):
                os.ftruncate(handle, 0)
                os.pwrite(handle, f"process {os.getpid()} on {platform.node()}\n".encode(), 0)
            yield
        finally:
            os.close(handle)


def checksum_line(body: str) -> str:
    """The first line of a config.toml with this text behind it."""
    return HEADER + sha256(body.encode())


def versions() -> dict[str, str]:
    """What the bits of a run depend on beside its configuration."""
    return {"version": __version__, "numpy": np.__version__, "torch": version("torch")}


def best_line(lines: list[Line]) -> Line | None:
    """The evaluation with most correct GCD, then highest accuracy; the earliest of equals."""
    return max(lines, key=lambda line: (line.get("n_correct", 0), line["accuracy"], -line["epoch"]), default=None)


FILES = ["model.safetensors", "optimizer.safetensors", "state.json"]
"""What a checkpoint holds, beside SHA256SUMS."""
AVERAGE = "average"
"""The kind of the averaged weights among the optimiser's tensors, `kind/parameter`; if there are any, they answer."""


def checkpoint_path(folder: Path, step: int) -> Path:
    return folder / "checkpoints" / f"step-{step:09d}"


def checkpoint_steps(folder: Path) -> list[int]:
    """The steps that have a checkpoint, whole or damaged, in order."""
    names = [path.name.removeprefix("step-") for path in (folder / "checkpoints").glob("step-*")]
    return sorted(int(name) for name in names if name.isdecimal())


def epochs_with_weights(folder: Path, steps_per_epoch: int) -> list[int]:
    """The epochs whose weights at the end are kept, in order."""
    return [step // steps_per_epoch for step in checkpoint_steps(folder) if step and step % steps_per_epoch == 0]


def weights_digest(folder: Path, step: int) -> str:
    """The SHA-256 of a checkpoint's weights, as the checkpoint names it."""
    return read_sums(checkpoint_path(folder, step), FILES)["model.safetensors"]


def fresh_folder(parent: Path, name: str, taken: Container[str] = ()) -> Path:
    """parent/name, or the first parent/name-N that is neither there nor taken."""
    number = 1
    while (path := parent / (name if number == 1 else f"{name}-{number}")).exists() or path.name in taken:
        number += 1
    return path
