"""The ledger: the measured runs that are committed with the package, and the one that represents an experiment.

Results of two recipes are never mixed: the best of n seeds is taken among runs that differ in nothing but the seed, and a
preset's newest version goes before older ones. A run of another task, distribution or model than the experiment that it was
recorded for counts only where there is no other.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from gcdformer.config import Config, config_leaves
from gcdformer.errors import UserError
from gcdformer.paper import experiments
from gcdformer.paper.entry import Entry, read_entry
from gcdformer.paper.table import Experiment, Settings

FREE = {"seed", "horizon"}
DEFAULTS = {"max_gcd": 100, "mixture_share": 0.05, "repeat_size": 50_000}
PROBLEM = {"init_from", *(leaf.name for leaf in config_leaves() if leaf.section in ("task", "data", "model"))}
"""What makes an experiment; weights that another run has trained make another one too."""
LARGEST_RATIO = 1.2
"""Budgets that differ by more are not compared: before its horizon a cosine schedule still has a part of its rate (half at
half of it, a twelfth at five sixths), so the longer run would be read before it has settled."""


def ledger_entries(folder: Path | None = None) -> list[Entry]:
    """The committed runs, or those of another folder."""
    paths = sorted((ledger_folder() if folder is None else folder).glob("*.json"))
    return [read_entry(path.stem, path.read_text(encoding="utf-8"), str(path)) for path in paths]


def ledger_folder() -> Path:
    """Where the package has its ledger; committed when the package is a checkout."""
    return Path(__file__).parent / "ledger"


@dataclass(frozen=True)
class Choice:
    """The run that represents an experiment: the best of those that differ from it in the seed only."""

    entry: Entry
    group: tuple[Entry, ...]
    known: tuple[Entry, ...] = ()
    """All runs of the experiment, in whatever recipe."""

    @property
    def seeds(self) -> list[int]:
        return sorted({entry.seed for entry in self.group})


Choices = dict[str, Choice]
"""Experiment -> the run that represents it."""


def choose(entries: Iterable[Entry], preset: str | None = None) -> Choices:
    """For each experiment that was measured, the run that represents it."""
    groups: dict[str, dict[str, list[Entry]]] = {}
    for entry in entries:
        if preset in (None, entry.preset):
            key = recipe_key(entry.config, entry.preset, entry.version)
            for name in entry.experiments:
                groups.setdefault(name, {}).setdefault(key, []).append(entry)
    chosen = {}
    for name, recipes in groups.items():
        known = tuple(entry for group in recipes.values() for entry in group)
        choices = [Choice(max(group, key=lambda entry: entry.rank), tuple(group), known) for group in recipes.values()]
        chosen[name] = max(choices, key=lambda choice: (not deviations(choice.entry), choice.entry.is_current,
                                                        choice.entry.rank, len(choice.group)))
    return chosen


def deviations(entry: Entry) -> Settings:
    """The leaves of task, distribution, model and first weights in which a run differs from the experiment that it was
    recorded for."""
    changed = {name: value for name, value in entry.changed.items() if name in PROBLEM}
    if not changed:
        return {}
    wanted = find_experiment(entry.experiments[0]).config(entry.preset).identity()
    return {name: value for name, value in changed.items() if or_default(name, wanted[name]) != or_default(name, value)}


def measured_as(entry: Entry) -> str | None:
    """In words what a run has in place of the task, distribution or model of the experiment that it was recorded for."""
    return ", ".join(f"{name} {value}" for name, value in deviations(entry).items()) or None


def recipe_key(config: Config, preset: str, version: str) -> str:
    """All that two seeds of one experiment share: configuration, limits, preset and its version."""
    identity = {name: value for name, value in config.identity().items() if name not in FREE}
    return json.dumps([preset, version, identity, config.limits.model_dump()], sort_keys=True)


def same_recipe(first: Entry, second: Entry) -> bool:
    """Whether two runs, perhaps of two experiments, share preset, version, changes to it and seed."""
    return (first.preset, first.version, first.changed, first.seed) == (
        second.preset, second.version, second.changed, second.seed)


def budget_ratio(first: Entry, second: Entry) -> float:
    """By what factor the examples of two runs differ."""
    return max(first.examples, second.examples) / max(min(first.examples, second.examples), 1)


def matching_experiments(config: Config, preset: str) -> tuple[list[str], Settings]:
    """The experiments that a configuration is a run of, in the recipe of a preset, and what it changes in the recipe.

    Task, distributions and model have to be the experiment's; the optimiser, the epochs and the tests may be others. A batch
    size that a table is about counts for that table only.
    """
    matching = [run for run in experiments().values()
                if run.base == config.task.base and same_problem(run, config, preset)]
    if any(run.batch_size for run in matching):
        matching = [run for run in matching if run.config(preset).training.batch_size == config.training.batch_size]
        matching.sort(key=lambda run: run.batch_size is None)
    return sorted(run.name for run in matching), changes(matching[0], config, preset) if matching else {}


def same_problem(experiment: Experiment, config: Config, preset: str) -> bool:
    wanted = experiment.config(preset)
    return (wanted.task == config.task and wanted.model == config.model and effective(wanted) == effective(config)
            and experiment.batch_size in (None, config.training.batch_size))


def effective(config: Config) -> Settings:
    """The distributions, with the default of each field that is not given."""
    return {name: or_default(name, value) for name, value in config.data.model_dump().items()}


def or_default(name: str, value: object) -> object:
    return DEFAULTS.get(name) if value is None else value


def changes(experiment: Experiment, config: Config, preset: str) -> Settings:
    """The leaves in which a run differs from the recipe; the schedule's horizon follows from the budget."""
    have, want = experiment.config(preset).identity(), config.identity()
    return {name: value for name, value in want.items() if have[name] != value and name not in FREE}


def find_experiment(name: str) -> Experiment:
    known = experiments()
    if name not in known:
        near = [other for other in known if other.startswith(name.split("_")[0])][:5]
        raise UserError(f"unknown experiment '{name}'" + (f": among them are {', '.join(near)}" if near else ""))
    return known[name]
