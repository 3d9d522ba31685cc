"""`gcdformer sweep`: run the trials of a file that are missing."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gcdformer.display.progress import progress
from gcdformer.errors import UserError, one_line
from gcdformer.options import add_json, add_quiet, bounded, print_json, run_path
from gcdformer.runs.hints import hint
from gcdformer.sweeps.sweep import SweepFile, expand, read_sweep

if TYPE_CHECKING:
    from gcdformer.sweeps.launcher import Launcher
    from gcdformer.sweeps.plan import Planned


class Row(TypedDict):
    """A trial in the JSON output."""

    name: str
    run: str
    status: str
    reason: str
    epoch: int | None
    accuracy: float | None
    n_correct: int | None
    seconds: float | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE", help="the sweep, a TOML file")
    parser.add_argument("--out", required=True, type=run_path, metavar="DIR", help="folder of the trials, each a run folder")
    parser.add_argument("--dry-run", action="store_true", help="show the trials and the estimated time, run nothing")
    parser.add_argument("--engine", choices=["local", "ray"], default="local",
                        help="where trials run: processes on this machine, or Ray (default: local)")
    parser.add_argument("--jobs", type=bounded("jobs", 1, 10_000), metavar="N",
                        help="trials at a time with --engine local (default: what the cores and GPUs allow)")
    parser.add_argument("--address", metavar="ADDR", help="an existing Ray cluster (default: one is started and stopped)")
    parser.add_argument("--part", type=part, default=(0, 1), metavar="I/N",
                        help="only trials I, I+N, I+2N …, I from 0: for an array of jobs")
    parser.add_argument("--retries", type=bounded("retries", 0, 1000), default=3, metavar="N",
                        help="how often a trial that was killed resumes elsewhere (default: 3)")
    parser.add_argument("--retry", action="store_true", help="try again what diverged or was stopped early")
    parser.add_argument("--asha", action="store_true", help="stop hopeless trials early, by Ray Tune's ASHA")
    parser.add_argument("--asha-grace", type=bounded("asha-grace", 1, 10**6), metavar="N",
                        help="epochs before a trial may be stopped (default: 1)")
    parser.add_argument("--asha-reduction", type=bounded("asha-reduction", 2, 100), metavar="N",
                        help="one of N continues at each rung (default: 4)")
    add_quiet(parser, "print nothing but what failed")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    check(args)
    sweep = read_sweep(args.file)
    index, count = args.part
    with progress("looking which trials are missing", quiet=args.quiet):
        trials = expand(sweep, str(args.file))
        from gcdformer.sweeps.plan import plan
        planned = plan(trials[index::count], args.out, retry=args.retry, beside=trials)
    if args.dry_run:
        return show_plan(args, sweep, planned)
    return run_planned(args, sweep, planned)


def check(args: argparse.Namespace) -> None:
    """Flags that clash."""
    if args.engine == "local":
        for name in ("address", "asha", "asha_grace", "asha_reduction"):
            if getattr(args, name):
                raise UserError(f"--{name.replace('_', '-')} needs --engine ray")
    elif args.jobs:
        raise UserError("--jobs is for --engine local; Ray places trials by what they need")
    if not args.asha and (args.asha_grace or args.asha_reduction):
        raise UserError("--asha-grace and --asha-reduction need --asha")


def part(text: str) -> tuple[int, int]:
    """I/N as two integers."""
    first, slash, second = text.partition("/")
    if not slash or not first.isdecimal() or not second.isdecimal() or int(first) >= int(second):
        raise UserError(f"part: I/N with I from 0 to N-1, got '{text}'")
    return int(first), int(second)


def show_plan(args: argparse.Namespace, sweep: SweepFile, planned: list[Planned]) -> int:
    """The trials, their status, and how long each will take here."""
    with progress("measuring the speed of this machine", quiet=args.quiet):
        from gcdformer.display.words import clock
        from gcdformer.sweeps.estimate import estimate, wall_seconds
        from gcdformer.sweeps.launcher import slots_here
        slots = args.jobs or slots_here(sweep.needs)
        seconds = estimate(planned)
    known = [value for value in seconds.values() if value is not None]
    wall = wall_seconds(known, slots)
    if args.json:
        rows = [{"name": trial.name, "status": trial.status, "seconds": seconds[trial.name]} for trial in planned]
        print_json({"trials": rows, "slots": slots, "seconds": wall})
        return 0
    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading in ("trial", "status", "time"):
        table.add_column(heading, no_wrap=heading != "trial", overflow="fold")
    for trial in planned:
        value = seconds[trial.name]
        table.add_row(Text(one_line(trial.name)), trial.status, "" if trial.over else "?" if value is None else clock(value))
    Console(highlight=False).print(table)
    unknown = len(seconds) - len(known)
    print(f"{len(planned)} trials, {sum(trial.over for trial in planned)} of them over; {slots} at a time on this machine: "
          f"about {clock(wall)}, estimated from measured speed" + (f", and {unknown} of unknown length" if unknown else ""))
    return 0


def run_planned(args: argparse.Namespace, sweep: SweepFile, planned: list[Planned]) -> int:
    from gcdformer.sweeps.board import board_for
    from gcdformer.sweeps.launcher import exit_code, run_trials
    from gcdformer.training.signals import StopRequest
    if any(not trial.over for trial in planned):
        args.out.mkdir(parents=True, exist_ok=True)
        with StopRequest() as stop:
            if args.asha:
                from gcdformer.sweeps.asha import run_with_asha
                board = board_for(planned, 1, quiet=args.quiet, as_json=args.json)
                run_with_asha(planned, board, stop, address=args.address, grace=args.asha_grace or 1,
                              reduction=args.asha_reduction or 4, retries=args.retries)
            else:
                with build_launcher(args, sweep) as launcher:
                    slots = launcher.at_once(sweep.needs)
                    board = board_for(planned, slots, quiet=args.quiet, as_json=args.json)
                    run_trials(planned, launcher, board, stop, args.retries)
            interrupted = bool(stop)
    else:
        interrupted = False
    show_outcome(args, planned, interrupted)
    return exit_code(planned, interrupted)


def build_launcher(args: argparse.Namespace, sweep: SweepFile) -> Launcher:
    if args.engine == "ray":
        from gcdformer.sweeps.on_ray import RayLauncher
        return RayLauncher(args.address)
    from gcdformer.sweeps.launcher import LocalLauncher
    return LocalLauncher(sweep.needs, args.jobs)


def show_outcome(args: argparse.Namespace, planned: list[Planned], interrupted: bool) -> None:
    """The status of each trial."""
    from gcdformer.sweeps.board import count_states
    from gcdformer.sweeps.launcher import went_wrong
    if args.json:
        print_json({"out": str(args.out), "trials": [row(trial) for trial in planned]})
        return
    for trial in planned:
        if went_wrong(trial, interrupted):
            print(one_line(f"{trial.status} {trial.name}: {trial.reason}"), file=sys.stderr)
    if args.quiet:
        return
    print(count_states(trial.status for trial in planned))
    print(f"look at them  {hint('runs', args.out)}")


def row(trial: Planned) -> Row:
    lines, problem = trial.lines()
    last = lines[-1] if lines else None
    return {"name": trial.name, "run": str(trial.path), "status": trial.status, "reason": problem or trial.reason,
            "epoch": last and last["epoch"], "accuracy": last and last["accuracy"],
            "n_correct": last.get("n_correct") if last else None, "seconds": last and last["seconds"]}
