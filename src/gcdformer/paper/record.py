"""From a run folder to an entry of the ledger.

What `reproduce` starts a run as is noted in its folder, in `.reproduce.json`, so that a preset that changes later changes
neither its name nor its experiments.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Literal

from gcdformer.config import LimitsSection
from gcdformer.errors import DamagedFile, UserError
from gcdformer.evaluation.scores import score_gcd
from gcdformer.explanation.certificate import shares_of
from gcdformer.explanation.classes import find_classes
from gcdformer.paper.entry import FORMAT, Entry, compress, pack
from gcdformer.paper.ledger import changes, find_experiment, ledger_entries, matching_experiments
from gcdformer.paper.table import REASONS, Note, Settings
from gcdformer.presets import preset_version
from gcdformer.runs.files import sha256
from gcdformer.runs.priors import saved_scan
from gcdformer.runs.run import Run
from gcdformer.version import __version__

MARK = ".reproduce.json"
Column = Literal["epoch", "examples", "seconds", "loss", "test_loss", "accuracy", "n_correct"]
CURVE: dict[Column, int | None] = {"epoch": None, "examples": None, "seconds": 1, "loss": 5, "test_loss": 5, "accuracy": 3,
                                   "n_correct": None}
"""What is recorded of each evaluation, and its decimals."""
LATE_EPOCHS, LATE_GCDS = 7, 20
"""Under uniform outcomes f(k) of these last epochs and first k is recorded too: it changes from epoch to epoch."""


@dataclass(frozen=True)
class Mark:
    """What a run was started as."""

    preset: str
    version: str
    experiments: list[str]
    changed: Settings


def read_mark(run: Run, preset: str) -> Mark:
    """What a run was started as; for one that was not started by `reproduce`, what it is in the preset of today."""
    path = run.path / MARK
    try:
        return Mark(**json.loads(path.read_bytes()))
    except FileNotFoundError:
        return Mark(preset, preset_version(preset), *matching_experiments(run.config, preset))
    except (OSError, ValueError, TypeError):
        raise DamagedFile(f"{path}: not readable") from None


def recipe_folder(preset: str, version: str, limits: LimitsSection) -> str:
    """The name of a preset, its version and a budget."""
    budget = [f"{limits.max_minutes:g}min"] if limits.max_minutes else []
    budget += [f"{limits.max_epochs}epochs"] if limits.max_epochs else []
    return "-".join([preset, version, *budget])


def measure_run(path: Path, *, preset: str = "fast", experiment: str | None = None, why: Note | None = None) -> Entry:
    """A run folder as an entry of the ledger. `experiment` is the one to record it for if its recipe is another."""
    run = Run(path)
    mark = read_mark(run, preset)
    if experiment is not None:
        wanted, task = find_experiment(experiment), run.config.task
        if (wanted.base, wanted.task) != (task.base, task.task):
            raise UserError(f"as: {experiment} is {wanted.task} in base {wanted.base}, the run is {task.task} in base "
                            f"{task.base}")
        mark = replace(mark, experiments=[experiment], changed=changes(wanted, run.config, mark.preset))
    if not mark.experiments:
        raise UserError(f"{path}: no experiment of the paper has this task, these distributions and this model in preset "
                        f"'{mark.preset}'; name the one to record it for by --as")
    name = f"{path.resolve().name}_{recipe_folder(mark.preset, mark.version, run.config.limits)}"
    if mark.changed:
        name += "_" + sha256(json.dumps(mark.changed, sort_keys=True).encode())[:7]
    return entry_of(run, name, mark, why)


def entry_of(run: Run, name: str, mark: Mark, why: Note | None = None) -> Entry:
    """What is recorded of a run folder."""
    lines = run.metrics
    if not lines:
        raise UserError(f"{run.path}: no epoch has been evaluated yet, so there is nothing to record")
    if why is not None and why.reason not in REASONS:
        raise UserError(f"why: one of {', '.join(REASONS)}, got '{why.reason}'")
    has_gcd = run.problem.task.has_gcd
    uniform = has_gcd and run.config.data.outcomes == "uniform"
    throughputs = [rate for line in lines if (rate := line["throughput"])]
    facts = {
        "format": FORMAT, "gcdformer": run.made_by.get("version", __version__), "preset": mark.preset,
        "preset_version": mark.version, "changed": mark.changed, "experiments": sorted(mark.experiments),
        "config": run.config.model_dump(exclude_none=True),
        "examples_per_s": round(median(throughputs)) if throughputs else None, "why": why.to_json() if why else None,
        "curve": {key: [round(line[key], decimals) for line in lines] for key, decimals in CURVE.items() if key in lines[0]},
        "events": [[line["epoch"], line["events"]["entered"], line["events"]["left"]] for line in lines
                   if any(line.get("events", {}).values())],
        "late": late_predictions(run) if uniform else {}, "classes": class_history(run) if uniform else "",
        "tables": pack(run.prediction_tables()) if has_gcd else ""}
    scan = saved_scan(run)
    if scan is not None and scan.epoch == lines[-1]["epoch"]:
        facts["priors"] = compress([figures.to_json() for figures in scan.under])
    return Entry(name, json.loads(json.dumps(facts)))


def late_predictions(run: Run) -> dict[str, list[tuple[int | None, float]]]:
    """For uniform outcomes: f(k) and its percentage for the first k at each of the last epochs."""
    predictions = {}
    for line in run.metrics[-LATE_EPOCHS:]:
        table = run.prediction_tables(line["epoch"])["stratified"]
        scores = [score_gcd(table, k) for k in range(1, LATE_GCDS + 1) if k in set(table.tested())]
        predictions[str(line["epoch"])] = [(scored.prediction, round(100 * scored.frequency, 1)) for scored in scores]
    return predictions


def class_history(run: Run) -> str:
    """For uniform outcomes: [label, prediction] of every class at each evaluation, compressed."""
    history = {}
    for line in run.metrics:
        shares, *_ = shares_of(run.prediction_tables(line["epoch"])["stratified"], 1)
        history[line["epoch"]] = [[group.label, group.prediction] for group in find_classes(shares)]
    return compress(history)


def known_entries(ledger: Path | None, out: Path, *, prefer_runs: bool = False) -> list[Entry]:
    """The ledger and the finished runs under OUT. A run that is in both is as it was recorded, unless runs are preferred or
    it has been asked under other priors since."""
    recorded = {entry.name: entry for entry in ledger_entries(ledger)}
    finished = {entry.name: entry for entry in finished_runs(out)}
    if not prefer_runs:
        finished = {name: entry for name, entry in finished.items()
                    if name not in recorded or (entry.under_priors and not recorded[name].under_priors)}
    return list((recorded | finished).values())


def finished_runs(out: Path) -> list[Entry]:
    """The runs under OUT that are over, as entries."""
    folders = [path.parent for path in sorted(out.glob(f"*/*/{MARK}")) if (path.parent / "config.toml").exists()]
    if not folders:
        return []
    from gcdformer.sweeps.plan import status_of  # loads torch
    return [measure_run(run.path) for run in map(Run, folders)
            if run.metrics and status_of(run.path, run.config)[0] == "finished"]
