"""`gcdformer sweep`: run the trials of a file that are missing."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gcdformer.display.progress import progress
from gcdformer.errors import UserError, one_line
from gcdformer.options import add_json, add_quiet, parse_integer, print_json, run_path
from gcdformer.runs.hints import hint
from gcdformer.sweeps.sweep import SweepFile, expand, read_sweep

if TYPE_CHECKING:
    from gcdformer.sweeps.launcher import Launcher
    from gcdformer.sweeps.plan import Planned


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE", help="the sweep, a TOML file")
    parser.add_argument("--out", required=True, type=run_path, metavar="DIR", help="folder of the trials, each a run folder")
    parser.add_argument("--dry-run", action="store_true", help="show the trials and the estimated time, run nothing")
    parser.add_argument("--engine", choices=["local", "ray"], default="local",
                        help="where trials run: processes on this machine, or Ray (default: local)")
    parser.add_argument("--jobs", type=lambda text: parse_integer(text, "jobs", 1, 10_000), metavar="N",
                        help="trials at a time with --engine local (default: what the cores and GPUs allow)")
    parser.add_argument("--address", metavar="ADDR", help="an existing Ray cluster (default: one is started and stopped)")
    parser.add_argument("--part", type=part, default=(0, 1), metavar="I/N",
                        help="only trials I, I+N, I+2N …, I from 0: for an array of jobs")
    parser.add_argument("--retries", type=lambda text: parse_integer(text, "retries", 0, 1000), default=3, metavar="N",
                        help="how often a trial that was killed resumes elsewhere (default: 3)")
    parser.add_argument("--retry", action="store_true", help="try again what diverged or was stopped early")
    parser.add_argument("--asha", action="store_true", help="stop hopeless trials early, by Ray Tune's ASHA")
    parser.add_argument("--asha-grace", type=lambda text: parse_integer(text, "asha-grace", 1, 10**6), metavar="N",
                        help="epochs before a trial may be stopped (default: 1)")
    parser.add_argument("--asha-reduction", type=lambda text: parse_integer(text, "asha-reduction", 2, 100), metavar="N",
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
    """The trials, how they stand, and how long each will take here."""
    with progress("measuring the speed of this machine", quiet=args.quiet):
        from gcdformer.display.words import clock
        from gcdformer.sweeps.estimate import estimate, wall_seconds
        from gcdformer.sweeps.local import slots_here
        slots = args.jobs or slots_here(sweep.needs)
        seconds = estimate(planned)
    known = [value for value in seconds.values() if value is not None]
    wall = wall_seconds(known, slots)
    if args.json:
        print_json({"trials": [{"name": one.name, "status": one.status, "seconds": seconds[one.name]} for one in planned],
                    "slots": slots, "seconds": wall})
        return 0
    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading in ("trial", "status", "time"):
        table.add_column(heading, no_wrap=heading != "trial", overflow="fold")
    for one in planned:
        value = seconds[one.name]
        table.add_row(Text(one_line(one.name)), one.status, "" if one.over else "?" if value is None else clock(value))
    Console(highlight=False).print(table)
    unknown = len(seconds) - len(known)
    print(f"{len(planned)} trials, {sum(one.over for one in planned)} of them over; {slots} at a time on this machine: "
          f"about {clock(wall)}, estimated from measured speed" + (f", and {unknown} of unknown length" if unknown else ""))
    return 0


def run_planned(args: argparse.Namespace, sweep: SweepFile, planned: list[Planned]) -> int:
    from gcdformer.sweeps.board import board_for
    from gcdformer.sweeps.launcher import exit_code, run_trials
    from gcdformer.training.signals import StopRequest
    if any(not one.over for one in planned):
        args.out.mkdir(parents=True, exist_ok=True)
        with StopRequest() as stop:
            if args.asha:
                from gcdformer.sweeps.asha import run_with_asha
                board = board_for(planned, 1, quiet=args.quiet, as_json=args.json)
                run_with_asha(planned, board, stop, address=args.address, grace=args.asha_grace or 1,
                              reduction=args.asha_reduction or 4, retries=args.retries)
            else:
                with build_launcher(args, sweep) as launcher:
                    board = board_for(planned, launcher.at_once(sweep.needs), quiet=args.quiet, as_json=args.json)
                    run_trials(planned, launcher, board, stop, args.retries)
            interrupted = bool(stop)
    else:
        interrupted = False
    tell(args, planned, interrupted)
    return exit_code(planned, interrupted)


def build_launcher(args: argparse.Namespace, sweep: SweepFile) -> Launcher:
    if args.engine == "ray":
        from gcdformer.sweeps.on_ray import RayLauncher
        return RayLauncher(args.address)
    from gcdformer.sweeps.local import LocalLauncher
    return LocalLauncher(sweep.needs, args.jobs)


def tell(args: argparse.Namespace, planned: list[Planned], interrupted: bool) -> None:
    """Where each trial stands."""
    from gcdformer.sweeps.launcher import went_wrong
    rows = [row(one) for one in planned]
    if args.json:
        print_json({"out": str(args.out), "trials": rows})
        return
    counts: dict[str, int] = {}
    for one in planned:
        counts[one.status] = counts.get(one.status, 0) + 1
        if went_wrong(one, interrupted):
            print(one_line(f"{one.status} {one.name}: {one.reason}"), file=sys.stderr)
    if args.quiet:
        return
    print(f"{len(planned)} trials: " + ", ".join(f"{n} {status}" for status, n in sorted(counts.items())))
    print(f"look at them  {hint('runs', args.out)}")


def row(one: Planned) -> dict[str, Any]:
    lines, problem = one.lines()
    last = lines[-1] if lines else {}
    return {"name": one.name, "run": str(one.path), "status": one.status, "reason": problem or one.reason,
            **{key: last.get(key) for key in ("epoch", "accuracy", "n_correct", "seconds")}}
