"""What of a sweep is done and what is missing, read from the run folders: they are the truth.

A trial's folder is known by what it is (its configuration without limits and machine), not by its name, so that a changed
file adds trials and never repeats one. Only what a run folder cannot say is recorded beside, in `.sweep/`: that a trial
diverged or was stopped early, and whether its horizon was asked for or fixed at its start.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from gcdformer.config import Config
from gcdformer.errors import DamagedFile, UserError
from gcdformer.runs.checkpoint import TrainingState, load_state, newest_whole
from gcdformer.runs.files import replace_file
from gcdformer.runs.folder import RunFolder
from gcdformer.runs.metrics import Line
from gcdformer.sweeps.sweep import Needs, Trial, distinct, identity_digest
from gcdformer.training.limits import limit_reached

HIDDEN = ".sweep"
OVER = ("finished", "diverged", "stopped")


@dataclass
class Planned:
    """A trial, its folder, and its status: missing, begun, finished; diverged, stopped (early), failed, in use."""

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
    def needs(self) -> Needs:
        return self.trial.needs

    @property
    def digest(self) -> str:
        return self.trial.digest

    @property
    def over(self) -> bool:
        return self.status in OVER

    def lines(self) -> tuple[list[Line], str]:
        """Its evaluations; none, and what is wrong in words, if its metrics are damaged."""
        try:
            return RunFolder(self.path).metrics(), ""
        except DamagedFile as error:
            return [], str(error)


def plan(trials: list[Trial], out: Path, *, retry: bool = False, beside: Iterable[Trial] = ()) -> list[Planned]:
    """Every trial with its folder and status. `retry` forgets that some diverged or were stopped; `beside` are trials
    that others run in the same folder."""
    if out.exists() and not out.is_dir():
        raise UserError(f"out: {out} is a file; name a folder")
    folders = known_folders(out, {trial.digest for trial in (*trials, *beside)})
    planned: list[Planned] = []
    for trial in trials:
        folder = folders.get(trial.digest)
        if folder is None:
            name = trial.name if not (out / trial.name / "config.toml").exists() else distinct(trial)
            planned.append(Planned(trial, out / name))
        else:
            planned.append(Planned(trial, folder, *status_of(folder, trial.config)))
    for entry in planned:
        record = read_record(record_path(entry))
        if record is None or record.digest != entry.digest:
            continue
        if retry:
            note_start(entry)
        elif record.status in OVER and entry.status != "finished":
            entry.status, entry.reason = record.status, record.reason
    return planned


def known_folders(out: Path, asked: Collection[str]) -> dict[str, Path]:
    """The run folders of a sweep by the digest of their trial, at most one trial a folder: the one it was started as;
    else the one it equals; else, if nothing is recorded, the one that leaves the horizon open."""
    claims = []
    for path in sorted(out.glob("*/config.toml")):
        config = RunFolder(path.parent).read_config()[0]
        record = read_record(out / HIDDEN / f"{path.parent.name}.json")
        free = config.model_copy(update={"training": config.training.model_copy(update={"horizon": None})})
        candidates = [identity_digest(config), identity_digest(free)] if record is None else [
            record.digest, identity_digest(config)]
        claims += [(rank, path.parent, digest) for rank, digest in enumerate(candidates) if digest in asked][:1]
    folders: dict[str, Path] = {}
    for _, folder, digest in sorted(claims, key=lambda claim: claim[:2]):
        folders.setdefault(digest, folder)
    return folders


def status_of(path: Path, wanted: Config) -> tuple[str, str]:
    """Status and reason of a run that exists, under the wanted limits. One that was never evaluated is not finished."""
    state = newest_state(path)
    if state is None:
        return "begun", ""
    try:
        lines = RunFolder(path).metrics()[:state.evaluations]
    except DamagedFile as error:
        return "begun", str(error)
    reason = limit_reached(wanted.limits, state, lines) if len(lines) == state.evaluations else None
    if reason and not lines:  # its budget is spent and nothing came of it
        return "begun", reason
    return ("finished", reason) if reason else ("begun", f"at step {state.step}")


def newest_state(path: Path) -> TrainingState | None:
    """The state of the newest whole checkpoint; None if there is none (training says which are damaged)."""
    try:
        newest = newest_whole(path, load_state)
    except DamagedFile:
        return None
    return newest.content if newest else None


def record_path(trial: Planned) -> Path:
    return trial.path.parent / HIDDEN / f"{trial.name}.json"


@dataclass(frozen=True)
class Record:
    """What was recorded of a trial; its digest says of which."""

    status: str
    reason: str
    digest: str


def read_record(path: Path) -> Record | None:
    try:
        record = json.loads(path.read_bytes())
        return Record(*(str(record[name]) for name in ("status", "reason", "digest")))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, KeyError, TypeError):
        raise DamagedFile(f"{path}: not readable; remove it to try the trial again") from None


def write_record(trial: Planned, status: str, reason: str) -> None:
    """Remember what the run folder does not say."""
    path = record_path(trial)
    path.parent.mkdir(parents=True, exist_ok=True)
    record = Record(status, reason, trial.digest)
    replace_file(path, (json.dumps(asdict(record), indent=1) + "\n").encode(), shared=True)


def note_start(trial: Planned) -> None:
    """Remember as what a trial is started; only a cosine's horizon makes a run differ from what was asked for. A run that
    was started as another trial, which it equals, stays that one's."""
    record = read_record(record_path(trial))
    if record and record.digest != trial.digest and RunFolder(trial.path).exists():
        return
    if trial.config.training.schedule == "cosine":
        write_record(trial, "begun", "")
    else:
        record_path(trial).unlink(missing_ok=True)


def refresh(trial: Planned) -> Planned:
    """The same trial as its files are now."""
    if not RunFolder(trial.path).exists():
        return replace(trial, status="missing", reason="")
    status, reason = status_of(trial.path, trial.config)
    return replace(trial, status=status, reason=reason)
