"""Measures the paper's tables: from experiments to trials, to those that are missing, to trained runs.

Runs lie in OUT/RECIPE/EXPERIMENT_seed-S, ordinary run folders; a recipe is a preset, its version and a budget, so that
neither budgets nor versions of a preset share a folder. What a run becomes in the ledger is in `record`.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field

from gcdformer.config import Config, LimitsSection
from gcdformer.errors import UserError
from gcdformer.paper.comparison import open_experiments
from gcdformer.paper.entry import Entry
from gcdformer.paper.ledger import deviations, matching_experiments, recipe_key
from gcdformer.paper.record import MARK, Mark, recipe_folder
from gcdformer.paper.table import Experiment, Json, Settings, Table
from gcdformer.paper.text import count_of
from gcdformer.presets import preset_version, repeat_command
from gcdformer.runs.files import replace_file
from gcdformer.runs.priors import saved_scan
from gcdformer.runs.run import Run
from gcdformer.sweeps.plan import Planned
from gcdformer.sweeps.sweep import Needs, Trial, with_budget

ONE_THREAD = Needs(cpus=1)
RECORDED = "in the ledger"
MEASURED = "measured with another budget"


@dataclass(frozen=True)
class Recipe:
    """How experiments are run: a preset, the budget of a run, and what is changed in the preset."""

    preset: str = "fast"
    minutes: float | None = None
    epochs: int | None = None
    changed: Settings = field(default_factory=dict)

    @property
    def version(self) -> str:
        return preset_version(self.preset)

    @property
    def limits(self) -> LimitsSection:
        return LimitsSection(max_minutes=self.minutes, max_epochs=self.epochs)

    @property
    def folder(self) -> str:
        return recipe_folder(self.preset, self.version, self.limits)

    def limits_for(self, experiment: Experiment, table: Table | None) -> LimitsSection:
        """The paper's own preset takes the table's epochs if no budget is given."""
        if self.preset != "paper" or self.minutes is not None or self.epochs is not None:
            return self.limits
        epochs = None if table is None else table.epochs_for(experiment)
        if epochs is None:
            raise UserError("minutes: the paper does not state its epochs for this table; give --minutes or --max-epochs")
        return LimitsSection(max_epochs=epochs)


def make_trials(experiments: Iterable[Experiment], recipe: Recipe, seeds: Iterable[int], table: Table | None = None
                ) -> list[Trial]:
    """The runs of some experiments, each once."""
    listed, trials = list(experiments), dict[str, Trial]()
    for seed in seeds:
        for experiment in listed:
            changed = {name: value for name, value in recipe.changed.items()
                       if name != "batch_size" or not experiment.batch_size}
            config = experiment.config(recipe.preset, seed).derive(changed, threads=ONE_THREAD.cpus)
            config = with_budget(config, recipe.limits_for(experiment, table))
            trial = Trial(f"{experiment.name}_seed-{seed}", config, ONE_THREAD)
            trials.setdefault(trial.digest, trial)
    return list(trials.values())


def mark_recorded(planned: Iterable[Planned], recipe: Recipe, entries: Iterable[Entry]) -> None:
    """What is missing but in the ledger, in the same recipe and seed and for the same experiments, gets that status."""
    known: dict[tuple[str, int], set[str]] = {}
    for entry in entries:
        key = recipe_key(entry.config, entry.preset, entry.version), entry.seed
        known.setdefault(key, set()).update(entry.experiments)
    for trial in planned:
        key = recipe_key(trial.config, recipe.preset, recipe.version), trial.config.training.seed
        if not trial.over and key in known and experiments_of(trial, recipe) <= known[key]:
            trial.status = RECORDED


def mark_measured(planned: Iterable[Planned], recipe: Recipe, table: Table, recorded: list[Entry], known: list[Entry]
                  ) -> None:
    """What is missing counts as measured if each experiment of the table that it is a run of has a run of that seed, in the
    newest version of the preset and of whatever budget, among those `recorded` or all that are `known`. A run that leaves a
    cell of the table open does not count."""
    trials, wanted = list(planned), {experiment.name for experiment in table.experiments()}
    still_open = open_experiments(table, known, recipe.preset)
    for status, entries in ((RECORDED, recorded), (MEASURED, known)):
        measured = {(name, entry.seed) for entry in entries for name in entry.experiments
                    if entry.preset == recipe.preset and entry.is_current and not deviations(entry)
                    and not still_open & set(entry.experiments)}
        for trial in to_train(trials):
            names = wanted & experiments_of(trial, recipe)
            if names and all((name, trial.config.training.seed) in measured for name in names):
                trial.status = status


def experiments_of(trial: Planned, recipe: Recipe) -> set[str]:
    return set(matching_experiments(trial.config, recipe.preset)[0])


def to_train(planned: Iterable[Planned]) -> list[Planned]:
    return [trial for trial in planned if not trial.over and trial.status not in (RECORDED, MEASURED)]


def plan_json(planned: list[Planned], jobs: int | None) -> Json:
    runs = [{"name": trial.name, "run": str(trial.path), "status": trial.status,
             "command": repeat_command(trial.config, trial.name)} for trial in planned]
    return {"runs": runs, "slots": slots(jobs), "seconds": wall_time(to_train(planned), jobs)}


def plan_text(planned: list[Planned], jobs: int | None) -> str:
    """How many runs of what budget are to train, and how long that takes if it is known."""
    todo = to_train(planned)
    budgets = Counter(budget_text(trial.config) for trial in todo)
    parts = [f"{count_of(count, 'run')} of {budget}" for budget, count in budgets.items()] or ["no run"]
    text = f"to train: {' and '.join(parts)}"
    if todo:
        seconds = wall_time(todo, jobs)
        text += f", {slots(jobs)} at a time"
        if seconds is not None:
            hours, minutes = seconds / 3600, max(1, round(seconds / 60))
            text += f": about {hours:.1f} h" if hours >= 1.5 else f": about {minutes} min"
    counts = Counter(trial.status for trial in planned)
    over = sum(trial.over for trial in planned)
    text += f"; {over} over" if over else ""
    return text + "".join(f"; {counts[status]} {status} (--again trains {'it' if counts[status] == 1 else 'them'})"
                          for status in (RECORDED, MEASURED) if counts[status])


def budget_text(config: Config) -> str:
    limits = config.limits
    words = [f"{limits.max_minutes:g} minutes"] if limits.max_minutes else []
    if limits.max_epochs:
        words.append(f"{count_of(limits.max_epochs, 'epoch')} ({limits.max_epochs * config.training.epoch_size:,} examples)")
    return " or ".join(words)


def slots(jobs: int | None) -> int:
    from gcdformer.sweeps.launcher import slots_here
    return jobs or slots_here(ONE_THREAD)


def wall_time(todo: list[Planned], jobs: int | None) -> float | None:
    """Seconds that all runs take here, if their budgets are minutes. For epochs the speed would have to be measured, which
    takes minutes for the wide models of some tables: then it is not known."""
    from gcdformer.sweeps.estimate import estimate, needs_speed, wall_seconds
    if any(needs_speed(trial.config) for trial in todo):
        return None
    known = [value for value in estimate(todo).values() if value is not None]
    return wall_seconds(known, slots(jobs)) if len(known) == len(todo) else None


def train_missing(planned: list[Planned], recipe: Recipe, jobs: int | None, *, quiet: bool, as_json: bool) -> int:
    """Hand what is missing to the local launcher, each run a process with one thread; the exit code. With `as_json` standard
    output is left to what is printed later."""
    if not quiet and not all(trial.over for trial in planned):
        print(plan_text(planned, jobs), file=sys.stderr if as_json else sys.stdout, flush=True)
    missing = to_train(planned)
    if not missing:
        return 0
    from gcdformer.sweeps.board import board_for
    from gcdformer.sweeps.launcher import LocalLauncher, exit_code, run_trials, went_wrong
    from gcdformer.training.signals import StopRequest
    here = [trial for trial in planned if trial.status not in (RECORDED, MEASURED)]
    write_marks(missing, recipe)
    with StopRequest() as stop, LocalLauncher(ONE_THREAD, jobs) as launcher:
        run_trials(here, launcher, board_for(here, launcher.slots, quiet=quiet, as_json=as_json), stop)
        interrupted = bool(stop)
    for trial in here:
        if went_wrong(trial, interrupted):
            print(f"gcdformer: {trial.status} {trial.name}: {trial.reason}", file=sys.stderr)
    return exit_code(here, interrupted)


def not_asked(planned: Iterable[Planned]) -> list[Run]:
    """The finished runs of a plan that were not asked under other priors yet."""
    return [run for trial in planned if trial.over and saved_scan(run := Run(trial.path)) is None]


def write_marks(planned: Iterable[Planned], recipe: Recipe) -> None:
    """Note in each folder what its run is started as."""
    for trial in planned:
        path = trial.path / MARK
        if not path.exists():
            trial.path.mkdir(parents=True, exist_ok=True)
            mark = Mark(recipe.preset, recipe.version, *matching_experiments(trial.config, recipe.preset))
            replace_file(path, (json.dumps(asdict(mark)) + "\n").encode())
