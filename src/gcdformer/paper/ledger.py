"""The ledger: the measured runs that are committed with the package, and the one that stands for an experiment.

Results of two recipes are never mixed: the best of n seeds is taken among runs that differ in nothing but the seed, and a
preset's newest version goes before older ones. A run of another task, distribution or model than the experiment's, which was
recorded as standing for it, counts only where there is no other.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gcdformer.config import Config, config_leaves
from gcdformer.errors import UserError
from gcdformer.paper import experiments
from gcdformer.paper.entry import Entry, read_entry
from gcdformer.paper.table import Experiment
from gcdformer.presets import VERSIONS

FREE = {"seed", "horizon"}
DEFAULTS = {"max_gcd": 100, "mixture_share": 0.05, "repeat_size": 50_000}
PROBLEM = {"init_from", *(leaf.name for leaf in config_leaves() if leaf.section in ("task", "data", "model"))}
"""What makes an experiment; weights that another run has trained make another one too."""


def ledger_entries(folder: Path | None = None) -> list[Entry]:
    """The committed runs, or those of another folder."""
    found = sorted((ledger_folder() if folder is None else folder).glob("*.json"))
    return [read_entry(one.stem, one.read_text(encoding="utf-8"), str(one)) for one in found]


def ledger_folder() -> Path:
    """Where the package keeps its ledger; committed when the package is a checkout."""
    return Path(__file__).parent / "ledger"


@dataclass(frozen=True)
class Choice:
    """The run that stands for an experiment: the best of those that differ from it in the seed only."""

    entry: Entry
    group: tuple[Entry, ...]
    known: tuple[Entry, ...] = ()
    """All runs of the experiment, in whatever recipe."""

    @property
    def seeds(self) -> list[int]:
        return sorted({one.config.training.seed for one in self.group})

    @property
    def current(self) -> bool:
        """Whether its recipe is the preset's newest."""
        return is_current(self.entry)


def is_current(entry: Entry) -> bool:
    return bool(VERSIONS.get(entry.facts["preset"]) == entry.facts["preset_version"])


def choose(entries: Iterable[Entry], preset: str | None = None) -> dict[str, Choice]:
    """For each experiment that was measured, the run that stands for it."""
    groups: dict[str, dict[str, list[Entry]]] = {}
    for entry in entries:
        if preset in (None, entry.facts["preset"]):
            for name in entry.experiments:
                groups.setdefault(name, {}).setdefault(recipe_key(entry), []).append(entry)
    chosen = {}
    for name, recipes in groups.items():
        known = tuple(entry for group in recipes.values() for entry in group)
        choices = [Choice(max(group, key=lambda one: one.rank), tuple(group), known) for group in recipes.values()]
        chosen[name] = max(choices, key=lambda choice: (not deviations(choice.entry), choice.current, choice.entry.rank,
                                                        len(choice.group)))
    return chosen


def deviations(entry: Entry) -> dict[str, Any]:
    """The leaves of task, distribution, model and first weights in which a run differs from the experiment it was recorded
    as."""
    changed = {name: value for name, value in entry.facts["changed"].items() if name in PROBLEM}
    if not changed:
        return {}
    wanted = find_experiment(entry.experiments[0]).config(entry.facts["preset"]).identity()
    return {name: value for name, value in changed.items() if or_default(name, wanted[name]) != or_default(name, value)}


def recipe_key(entry: Entry) -> str:
    """All that two seeds of one experiment share: configuration, limits, preset and its version."""
    return recipe_key_of(entry.config, entry.facts["preset"], entry.facts["preset_version"])


def recipe_key_of(config: Config, preset: str, version: str) -> str:
    identity = {name: value for name, value in config.identity().items() if name not in FREE}
    return json.dumps([preset, version, identity, config.limits.model_dump()], sort_keys=True)


def matching_experiments(config: Config, preset: str) -> tuple[list[str], dict[str, Any]]:
    """The experiments that a configuration is a run of, in the recipe of a preset, and what it changes in the recipe.

    Task, distributions and model have to be the experiment's; the optimiser, the epochs and the tests may be others. A batch
    size that a table is about counts for that table only.
    """
    matching = [one for one in experiments().values() if one.base == config.task.base and same_problem(one, config, preset)]
    if not matching:
        return [], {}
    exact = [one for one in matching if one.batch_size]
    plain = [one for one in matching if not one.batch_size]
    usual = [one for one in plain if one.config(preset).training.batch_size == config.training.batch_size]
    serving = exact + (usual if exact else plain)
    return sorted(one.name for one in serving), changes(serving[0], config, preset)


def same_problem(one: Experiment, config: Config, preset: str) -> bool:
    wanted = one.config(preset)
    return (wanted.task == config.task and wanted.model == config.model and effective(wanted) == effective(config)
            and (one.batch_size is None or one.batch_size == config.training.batch_size))


def effective(config: Config) -> dict[str, Any]:
    """The distributions with what stands for a field that is not given."""
    return {name: or_default(name, value) for name, value in config.data.model_dump().items()}


def or_default(name: str, value: Any) -> Any:
    return DEFAULTS.get(name) if value is None else value


def changes(one: Experiment, config: Config, preset: str) -> dict[str, Any]:
    """The leaves in which a run differs from the recipe; the schedule's horizon follows from the budget."""
    have, want = one.config(preset).identity(), config.identity()
    return {name: value for name, value in want.items() if have[name] != value and name not in FREE}


def find_experiment(name: str) -> Experiment:
    known = experiments()
    if name not in known:
        near = [other for other in known if other.startswith(name.split("_")[0])][:5]
        raise UserError(f"unknown experiment '{name}'" + (f": among them are {', '.join(near)}" if near else ""))
    return known[name]
