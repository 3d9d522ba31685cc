"""What of a sweep is done and what is missing, read from the run folders: they are the truth.

A trial is found by what it is (its configuration without limits and machine), not by its name, so that a changed
file adds trials and never repeats one. Only what a run folder cannot tell, that a trial diverged or was stopped early,
is recorded beside, in `.sweep/`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from gcdformer.config import Config
from gcdformer.errors import DamagedFile, UserError
from gcdformer.experiments.sweep import Trial, distinct, identity_digest
from gcdformer.runs.checkpoint import TrainingState, checkpoint_path, checkpoint_steps
from gcdformer.runs.files import replace_file
from gcdformer.runs.folder import RunFolder
from gcdformer.runs.metrics import Line
from gcdformer.training.limits import limit_reached

HIDDEN = ".sweep"
OVER = ("finished", "diverged", "stopped")


@dataclass
class Planned:
    """A trial, its folder, and how it stands: missing, begun, finished; diverged, stopped (early), failed, in use."""

    trial: Trial
    path: Path
    status: str = "missing"
    reason: str = ""

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def config(self) -> Config:
        return self.trial.config

    @property
    def over(self) -> bool:
        return self.status in OVER

    def lines(self) -> list[Line]:
        return RunFolder(self.path).metrics()


def plan(trials: list[Trial], out: Path, *, retry: bool = False) -> list[Planned]:
    """Every trial with its folder and status. `retry` forgets that some diverged or were stopped."""
    if out.exists() and not out.is_dir():
        raise UserError(f"out: {out} is a file; name a folder")
    folders = known_folders(out)
    planned: list[Planned] = []
    for trial in trials:
        found = folders.get(trial.digest)
        if found is None:
            name = trial.name if not (out / trial.name / "config.toml").exists() else distinct(trial)
            planned.append(Planned(trial, out / name))
        else:
            planned.append(Planned(trial, found, *standing(found, trial.config)))
    for one in planned:
        record = read_record(one)
        if retry:
            record_path(one).unlink(missing_ok=True)
        elif record and one.status != "finished":
            one.status, one.reason = record["status"], record["reason"]
    return planned


def known_folders(out: Path) -> dict[str, Path]:
    """The run folders of a sweep by digest; a fixed horizon counts only for trials that ask for one."""
    found: dict[str, Path] = {}
    for path in sorted(out.glob("*/config.toml")):
        config = RunFolder(path.parent).read_config()[0]
        found[identity_digest(config)] = path.parent
        if config.training.horizon is not None:
            free = config.training.model_copy(update={"horizon": None})
            found.setdefault(identity_digest(config.model_copy(update={"training": free})), path.parent)
    return found


def standing(path: Path, wanted: Config) -> tuple[str, str]:
    """Status and reason of a run that exists, under the wanted limits."""
    state = newest_state(path)
    if state is None:
        return "begun", ""
    try:
        lines = RunFolder(path).metrics()[:state.evaluations]
    except DamagedFile as error:
        return "begun", str(error)
    reason = limit_reached(wanted.limits, state, lines) if len(lines) == state.evaluations else None
    return ("finished", reason) if reason else ("begun", f"at step {state.step}")


def newest_state(path: Path) -> TrainingState | None:
    """Where the newest checkpoint stands; None if there is none or it cannot be read (training will tell)."""
    for step in reversed(checkpoint_steps(path)):
        try:
            values = json.loads((checkpoint_path(path, step) / "state.json").read_bytes())
            return TrainingState(**{field.name: values[field.name] for field in fields(TrainingState)})
        except (OSError, ValueError, KeyError, TypeError):
            return None
    return None


def record_path(one: Planned) -> Path:
    return one.path.parent / HIDDEN / f"{one.name}.json"


def read_record(one: Planned) -> dict[str, Any] | None:
    """What was recorded of a trial, if it is about this very trial."""
    try:
        record: dict[str, Any] = json.loads(record_path(one).read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError):
        raise DamagedFile(f"{record_path(one)}: not readable; remove it to try the trial again") from None
    return record if record.get("digest") == one.trial.digest else None


def write_record(one: Planned, status: str, reason: str) -> None:
    """Remember what the run folder does not tell."""
    path = record_path(one)
    path.parent.mkdir(parents=True, exist_ok=True)
    record = {"status": status, "reason": reason, "digest": one.trial.digest}
    replace_file(path, (json.dumps(record, indent=1) + "\n").encode())


def refresh(one: Planned) -> Planned:
    """The same trial as its files tell now."""
    if not RunFolder(one.path).exists():
        return replace(one, status="missing", reason="")
    status, reason = standing(one.path, one.config)
    return replace(one, status=status, reason=reason)
