"""Measures the paper's tables: from tables to trials for the sweep's engine, and from run folders to entries of the ledger.

Runs lie in OUT/RECIPE/EXPERIMENT_seed-S, ordinary run folders; a recipe is a preset, its version and a budget, so that
neither budgets nor versions of a preset share a folder. Which preset and version a run was started in is noted in the run's
folder, in `.reproduce.json`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gcdformer.config import LimitsSection
from gcdformer.errors import DamagedFile, UserError
from gcdformer.experiments.paper.entry import Entry, entry_of
from gcdformer.experiments.paper.ledger import changes, find_experiment, served
from gcdformer.experiments.paper.table import Experiment, Note, Table
from gcdformer.experiments.plan import Planned, plan, standing
from gcdformer.experiments.presets import preset_version
from gcdformer.experiments.sweep import Needs, Trial, with_budget
from gcdformer.runs.files import replace_file
from gcdformer.runs.run import Run

MARK = ".reproduce.json"
ONE_THREAD = Needs(cpus=1)


@dataclass(frozen=True)
class Recipe:
    """How experiments are run: a preset, the budget of a run, and what is changed in the preset."""

    preset: str = "fast"
    minutes: float | None = None
    epochs: int | None = None
    changed: dict[str, Any] = field(default_factory=dict)
    version: str = ""
    """Of the preset; its newest if not given."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "version", self.version or preset_version(self.preset))

    @property
    def folder(self) -> str:
        budget = [f"{self.minutes:g}min"] if self.minutes else []
        budget += [f"{self.epochs}epochs"] if self.epochs else []
        return "-".join([self.preset, self.version, *budget])


def make_trials(experiments: Iterable[Experiment], recipe: Recipe, seeds: Iterable[int], table: Table | None = None
                ) -> list[Trial]:
    """The runs of some experiments, each once. The paper's own preset takes the table's epochs if no budget is given."""
    budget = LimitsSection(max_minutes=recipe.minutes, max_epochs=recipe.epochs)
    if recipe.preset == "paper" and recipe.minutes is recipe.epochs is None:
        if table is None or table.epochs is None:
            raise UserError("minutes: the paper does not state its epochs for this table; give --minutes or --max-epochs")
        budget = LimitsSection(max_epochs=table.epochs)
    trials: dict[str, Trial] = {}
    for seed in seeds:
        for one in experiments:
            changed = {name: value for name, value in recipe.changed.items() if name != "batch_size" or not one.batch_size}
            config = one.config(recipe.preset, seed).replace(**changed, threads=ONE_THREAD.cpus)
            trial = Trial(f"{one.name}_seed-{seed}", with_budget(config, budget), ONE_THREAD)
            trials.setdefault(trial.digest, trial)
    return list(trials.values())


def make_plan(trials: list[Trial], recipe: Recipe, out: Path) -> list[Planned]:
    """Every trial with its folder and how it stands."""
    return plan(trials, out / recipe.folder)


def mark(planned: Iterable[Planned], recipe: Recipe) -> None:
    """Note in each folder in which preset, and version of it, the run is started."""
    for one in planned:
        path = one.path / MARK
        if not path.exists():
            one.path.mkdir(parents=True, exist_ok=True)
            facts = {"preset": recipe.preset, "version": recipe.version}
            replace_file(path, (json.dumps(facts) + "\n").encode())


def read_mark(path: Path, preset: str) -> tuple[str, str]:
    """The preset and version a run was started in; those of today for a run that was not started by `reproduce`."""
    try:
        facts = json.loads((path / MARK).read_bytes())
        return str(facts["preset"]), str(facts["version"])
    except FileNotFoundError:
        return preset, preset_version(preset)
    except (OSError, ValueError, KeyError, TypeError):
        raise DamagedFile(f"{path / MARK}: not readable") from None


def measure_run(path: Path, *, preset: str = "fast", stands_for: str | None = None, why: Note | None = None) -> Entry:
    """A run folder as an entry of the ledger. `stands_for` names an experiment whose recipe the run departs from."""
    run = Run(path)
    name, version = read_mark(path, preset)
    if stands_for is None:
        serving, changed = served(run.config, name)
        if not serving:
            raise UserError(f"{path}: no experiment of the paper has this task, these laws and this model in preset "
                            f"'{name}'; say which one it stands for by --as")
    else:
        wanted = find_experiment(stands_for)
        if (wanted.base, wanted.task) != (run.config.task.base, run.config.task.task):
            raise UserError(f"as: {stands_for} is {wanted.task} in base {wanted.base}, the run is {run.config.task.task} "
                            f"in base {run.config.task.base}")
        serving, changed = [stands_for], changes(wanted, run.config, name)
    recipe = Recipe(name, run.config.limits.max_minutes, run.config.limits.max_epochs, version=version)
    return entry_of(run, f"{path.resolve().name}_{recipe.folder}", experiments=serving, preset=name, version=version,
                    changed=changed, why=why)


def finished_runs(out: Path) -> list[Entry]:
    """The runs under OUT that are over, as entries."""
    found = []
    for path in sorted(out.glob(f"*/*/{MARK}")):
        folder = path.parent
        if (folder / "config.toml").exists():
            run = Run(folder)
            if run.metrics and standing(folder, run.config)[0] == "finished":
                found.append(measure_run(folder))
    return found
