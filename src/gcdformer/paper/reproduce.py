"""Measures the paper's tables: from tables to trials for a launcher, and from run folders to entries of the ledger.

Runs lie in OUT/RECIPE/EXPERIMENT_seed-S, ordinary run folders; a recipe is a preset, its version and a budget, so that
neither budgets nor versions of a preset share a folder. What a run was started as is noted in its folder, in
`.reproduce.json`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from gcdformer.config import LimitsSection
from gcdformer.errors import DamagedFile, UserError
from gcdformer.paper.entry import Entry, entry_of
from gcdformer.paper.ledger import (
    changes,
    deviations,
    find_experiment,
    is_current,
    matching_experiments,
    recipe_key,
    recipe_key_of,
)
from gcdformer.paper.table import Experiment, Note, Table
from gcdformer.presets import preset_version
from gcdformer.runs.files import replace_file, sha256
from gcdformer.runs.run import Run
from gcdformer.sweeps.plan import Planned, plan, status_of
from gcdformer.sweeps.sweep import Needs, Trial, with_budget

MARK = ".reproduce.json"
ONE_THREAD = Needs(cpus=1)
RECORDED = "in the ledger"
MEASURED = "measured with another budget"


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
    trials: dict[str, Trial] = {}
    for seed in seeds:
        for one in experiments:
            changed = {name: value for name, value in recipe.changed.items() if name != "batch_size" or not one.batch_size}
            config = one.config(recipe.preset, seed).derive(**changed, threads=ONE_THREAD.cpus)
            trial = Trial(f"{one.name}_seed-{seed}", with_budget(config, budget_of(one, recipe, table)), ONE_THREAD)
            trials.setdefault(trial.digest, trial)
    return list(trials.values())


def budget_of(one: Experiment, recipe: Recipe, table: Table | None) -> LimitsSection:
    if recipe.preset != "paper" or recipe.minutes is not None or recipe.epochs is not None:
        return LimitsSection(max_minutes=recipe.minutes, max_epochs=recipe.epochs)
    epochs = None if table is None else table.epochs_for(one)
    if epochs is None:
        raise UserError("minutes: the paper does not state its epochs for this table; give --minutes or --max-epochs")
    return LimitsSection(max_epochs=epochs)


def make_plan(trials: list[Trial], recipe: Recipe, out: Path) -> list[Planned]:
    """Every trial with its folder and how it stands."""
    return plan(trials, out / recipe.folder)


def mark_recorded(planned: Iterable[Planned], recipe: Recipe, entries: Iterable[Entry]) -> None:
    """What is missing but in the ledger, in the same recipe and seed and for the same experiments, gets that status."""
    known: dict[tuple[str, int], set[str]] = {}
    for entry in entries:
        known.setdefault((recipe_key(entry), entry.config.training.seed), set()).update(entry.experiments)
    for one in planned:
        key = recipe_key_of(one.config, recipe.preset, recipe.version), one.config.training.seed
        if not one.over and key in known and set(matching_experiments(one.config, recipe.preset)[0]) <= known[key]:
            one.status = RECORDED


def mark_measured(planned: Iterable[Planned], recipe: Recipe, entries: Iterable[Entry], wanted: set[str], status: str
                  ) -> None:
    """What is missing gets the status if each of the wanted experiments that it would serve has a run of that seed, in the
    newest version of the preset and of whatever budget."""
    known = {(name, entry.config.training.seed) for entry in entries for name in entry.experiments
             if entry.facts["preset"] == recipe.preset and is_current(entry) and not deviations(entry)}
    for one in to_train(planned):
        serving = wanted & set(matching_experiments(one.config, recipe.preset)[0])
        if serving and all((name, one.config.training.seed) in known for name in serving):
            one.status = status


def to_train(planned: Iterable[Planned]) -> list[Planned]:
    return [one for one in planned if not one.over and one.status not in (RECORDED, MEASURED)]


@dataclass(frozen=True)
class Mark:
    """What a run was started as; a preset that changes later does not change it."""

    preset: str
    version: str
    experiments: list[str]
    changed: dict[str, Any]


def mark(planned: Iterable[Planned], recipe: Recipe) -> None:
    """Note in each folder what its run is started as."""
    for one in planned:
        path = one.path / MARK
        if not path.exists():
            one.path.mkdir(parents=True, exist_ok=True)
            facts = asdict(Mark(recipe.preset, recipe.version, *matching_experiments(one.config, recipe.preset)))
            replace_file(path, (json.dumps(facts) + "\n").encode())


def read_mark(run: Run, preset: str) -> Mark:
    """What a run was started as; for one that was not started by `reproduce`, what it is in the preset of today."""
    path = run.path / MARK
    try:
        return Mark(**json.loads(path.read_bytes()))
    except FileNotFoundError:
        return Mark(preset, preset_version(preset), *matching_experiments(run.config, preset))
    except (OSError, ValueError, TypeError):
        raise DamagedFile(f"{path}: not readable") from None


def measure_run(path: Path, *, preset: str = "fast", stands_for: str | None = None, why: Note | None = None) -> Entry:
    """A run folder as an entry of the ledger. `stands_for` names an experiment whose recipe the run departs from."""
    run = Run(path)
    started = read_mark(run, preset)
    if stands_for is not None:
        started = replace(started, experiments=[stands_for], changed=departures(run, stands_for, started.preset))
    if not started.experiments:
        raise UserError(f"{path}: no experiment of the paper has this task, these distributions and this model in preset "
                        f"'{started.preset}'; say which one it stands for by --as")
    recipe = Recipe(started.preset, run.config.limits.max_minutes, run.config.limits.max_epochs, version=started.version)
    name = f"{path.resolve().name}_{recipe.folder}"
    if started.changed:
        name += "_" + sha256(json.dumps(started.changed, sort_keys=True).encode())[:7]
    return entry_of(run, name, experiments=started.experiments, preset=started.preset, version=started.version,
                    changed=started.changed, why=why)


def departures(run: Run, stands_for: str, preset: str) -> dict[str, Any]:
    """In what a run differs from the experiment that it stands for."""
    wanted = find_experiment(stands_for)
    if (wanted.base, wanted.task) != (run.config.task.base, run.config.task.task):
        raise UserError(f"as: {stands_for} is {wanted.task} in base {wanted.base}, the run is {run.config.task.task} "
                        f"in base {run.config.task.base}")
    return changes(wanted, run.config, preset)


def finished_runs(out: Path) -> list[Entry]:
    """The runs under OUT that are over, as entries."""
    found = []
    for path in sorted(out.glob(f"*/*/{MARK}")):
        folder = path.parent
        if (folder / "config.toml").exists():
            run = Run(folder)
            if run.metrics and status_of(folder, run.config)[0] == "finished":
                found.append(measure_run(folder))
    return found
