"""The runs behind a table of `gcdformer reproduce`: which are missing, how long they take, and their training."""

from __future__ import annotations

import argparse
import sys
from collections import Counter

from gcdformer.commands.reproduce import known_entries
from gcdformer.config import Config
from gcdformer.options import print_json
from gcdformer.paper.compare import count_of, open_experiments
from gcdformer.paper.ledger import ledger_entries
from gcdformer.paper.reproduce import (
    MEASURED,
    ONE_THREAD,
    RECORDED,
    Recipe,
    mark,
    mark_measured,
    mark_recorded,
    to_train,
)
from gcdformer.paper.table import Table
from gcdformer.presets import repeat_command
from gcdformer.sweeps.plan import Planned


def find_measured(args: argparse.Namespace, table: Table, planned: list[Planned], recipe: Recipe, *, exactly: bool) -> None:
    """What was measured is not trained, unless --again asks for it: in the ledger, or under --out with another budget.

    `exactly`: a recipe of one's own was given, so only a run of just that recipe counts.
    """
    if args.again:
        return
    recorded = ledger_entries(args.ledger)
    if exactly:
        mark_recorded(planned, recipe, recorded)
        return
    entries = known_entries(args)
    wanted, still_open = {one.name for one in table.experiments()}, open_experiments(table, entries, recipe.preset)
    for status, known in ((RECORDED, recorded), (MEASURED, entries)):
        telling = [entry for entry in known if not still_open & set(entry.experiments)]
        mark_measured(planned, recipe, telling, wanted, status)


def show_plan(args: argparse.Namespace, planned: list[Planned]) -> int:
    rows = [{"name": one.name, "run": str(one.path), "status": one.status,
             "command": repeat_command(one.config, one.name)} for one in planned]
    if args.json:
        print_json({"runs": rows, "slots": slots(args), "seconds": wall_time(args, to_train(planned))})
    else:
        for row in rows:
            print(f"{row['status']:13} {row['run']}")
        print(work(args, planned))
    return 0


def work(args: argparse.Namespace, planned: list[Planned]) -> str:
    """How many runs of what budget are to train, and how long that takes if it is known."""
    todo = to_train(planned)
    budgets = Counter(budget_words(one.config) for one in todo)
    parts = [f"{count_of(count, 'run')} of {budget}" for budget, count in budgets.items()] or ["no run"]
    told = f"to train: {' and '.join(parts)}"
    if todo:
        seconds = wall_time(args, todo)
        told += f", {slots(args)} at a time" + ("" if seconds is None else f": about {duration(seconds)}")
    counts = Counter(one.status for one in planned)
    over = len(planned) - len(todo) - counts[RECORDED] - counts[MEASURED]
    told += f"; {over} over" if over else ""
    return told + "".join(f"; {counts[status]} {status} (--again trains {'it' if counts[status] == 1 else 'them'})"
                          for status in (RECORDED, MEASURED) if counts[status])


def budget_words(config: Config) -> str:
    limits = config.limits
    words = [f"{limits.max_minutes:g} minutes"] if limits.max_minutes else []
    if limits.max_epochs:
        words.append(f"{count_of(limits.max_epochs, 'epoch')} ({limits.max_epochs * config.training.epoch_size:,} examples)")
    return " or ".join(words)


def duration(seconds: float) -> str:
    return f"{seconds / 3600:.1f} h" if seconds >= 5400 else f"{max(1, round(seconds / 60))} min"


def slots(args: argparse.Namespace) -> int:
    from gcdformer.sweeps.launcher import slots_here
    return int(args.jobs or slots_here(ONE_THREAD))


def wall_time(args: argparse.Namespace, todo: list[Planned]) -> float | None:
    """Seconds that all runs take here, if minutes tell it. Of epochs the speed would have to be measured, which takes
    minutes for the wide models of some tables: then it is not known."""
    from gcdformer.sweeps.estimate import estimate, needs_speed, wall_seconds
    if any(needs_speed(one.config) for one in todo):
        return None
    found = [value for value in estimate(todo).values() if value is not None]
    return wall_seconds(found, slots(args)) if len(found) == len(todo) else None


def train_missing(args: argparse.Namespace, planned: list[Planned], recipe: Recipe) -> int:
    """Hand what is missing to the local launcher: each run a process with one thread."""
    missing = to_train(planned)
    as_json = args.json or args.markdown
    if not all(one.over for one in planned) and not args.quiet:
        print(work(args, planned), file=sys.stderr if as_json else sys.stdout, flush=True)
    if not missing:
        return 0
    from gcdformer.sweeps.board import board_for
    from gcdformer.sweeps.launcher import LocalLauncher, exit_code, run_trials, went_wrong
    from gcdformer.training.signals import StopRequest
    here = [one for one in planned if one.status not in (RECORDED, MEASURED)]
    mark(missing, recipe)
    with StopRequest() as stop, LocalLauncher(ONE_THREAD, args.jobs) as launcher:
        run_trials(here, launcher, board_for(here, launcher.slots, quiet=args.quiet, as_json=as_json), stop)
        interrupted = bool(stop)
    for one in here:
        if went_wrong(one, interrupted):
            print(f"gcdformer: {one.status} {one.name}: {one.reason}", file=sys.stderr)
    return exit_code(here, interrupted)
