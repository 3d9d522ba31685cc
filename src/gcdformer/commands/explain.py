"""`gcdformer explain`: the certificate of a run, or of anyone's predictions, as a page in the terminal."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from rich.console import Console

from gcdformer.commands.explain_page import show_checks, show_comparison, show_explanation, show_timeline
from gcdformer.commands.options import add_json, add_quiet, in_window, parse_integer, print_json, run_path
from gcdformer.config import LARGEST_BASE
from gcdformer.data.predictions import read_predictions
from gcdformer.errors import UserError
from gcdformer.evaluation import UNREADABLE, PredictionTable
from gcdformer.explanation import Explanation, explain_tables
from gcdformer.explanation.metamorphic import Check, metamorphic_checks
from gcdformer.explanation.timeline import Timeline, compare, timeline
from gcdformer.numbers.random import Purpose, block_generator
from gcdformer.runs.explain import explain_run
from gcdformer.runs.run import Run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_folders", nargs="*", type=run_path, metavar="DIR", help="run folder; several are compared")
    parser.add_argument("--epoch", metavar="N", help="the epoch to explain (default: the last)")
    parser.add_argument("--checkpoint", metavar="best|last|EPOCH", help="the same, by name")
    parser.add_argument("--predictions", type=Path, metavar="FILE.csv",
                        help="explain these predictions instead: columns a, b, prediction in any order")
    parser.add_argument("--base", metavar="B", help="base of --predictions")
    parser.add_argument("--checks", action="store_true", help="also ask the model: swapped, summed, scaled, other sizes")
    parser.add_argument("--exhaustive", action="store_true", help="try all pairs of 1..M (max up to 5000): a proof")
    parser.add_argument("--html", type=Path, metavar="FILE", help="also write the explanation as a page")
    add_quiet(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    if (args.predictions is None) == (not args.run_folders):
        raise UserError("explain: give a run folder, or --predictions FILE.csv with --base B")
    if args.predictions is not None:
        return explain_csv(args)
    if args.base is not None:
        raise UserError("base: belongs to --predictions; a run knows its own")
    runs = [Run(path) for path in args.run_folders]
    checkpoint = args.epoch or args.checkpoint or "last"
    first = runs[0]
    for one in runs:
        one.require_gcd()
    if args.epoch and args.checkpoint:
        raise UserError("epoch and checkpoint say the same thing: give one")
    found = explain_exhaustively(first, checkpoint, quiet=args.quiet) if args.exhaustive else explain_run(first, checkpoint)
    history = timeline(line for line in first.metrics if line["epoch"] <= first.epoch(checkpoint))
    checks = run_checks(first, checkpoint, found) if args.checks else []
    others = {str(one.path): timeline(one.metrics) for one in runs} if len(runs) > 1 else {}
    tell(args, found, f"{first.path}, epoch {first.epoch(checkpoint)}", history, checks, others)
    return 0


def explain_csv(args: argparse.Namespace) -> int:
    if args.base is None:
        raise UserError("base: --predictions needs the base in which integers are written")
    for flag in ("epoch", "checkpoint", "checks", "exhaustive"):
        if getattr(args, flag):
            raise UserError(f"{flag}: needs a run, not --predictions")
    base = parse_integer(args.base, "base", 2, LARGEST_BASE)
    table = PredictionTable.of(*read_predictions(args.predictions, UNREADABLE))
    tell(args, explain_tables({"pairs": table}, base=base, maximum=None, least_pairs=30), str(args.predictions))
    return 0


def tell(args: argparse.Namespace, found: Explanation, what: str, history: Timeline | None = None,
         checks: list[Check] | None = None, others: dict[str, Timeline] | None = None) -> None:
    """As JSON, or as a page."""
    if args.html is not None:
        from gcdformer.report.page import write_explanation
        write_explanation(args.html, found, what, history)
    if args.json:
        values: dict[str, Any] = found.to_json()
        if history is not None:
            values["timeline"] = history.to_json()
        if checks:
            values["checks"] = {check.name: check.to_json() for check in checks}
        if others:
            values["comparison"] = compare(others)
        print_json(values)
        return
    console = Console(highlight=False)
    show_explanation(console, found, what)
    if history is not None:
        show_timeline(console, history)
    if checks:
        show_checks(console, checks)
    if others:
        show_comparison(console, compare(others))
    if args.html is not None:
        console.print(f"\nwritten to {args.html}")


def explain_exhaustively(run: Run, checkpoint: str, *, quiet: bool = False) -> Explanation:
    from rich.progress import Progress
    maximum = run.config.task.maximum
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=quiet or not in_window(console)) as progress:
        bar = progress.add_task(f"trying all pairs of 1..{maximum}", total=maximum * maximum)
        return explain_run(run, checkpoint, exhaustive=True, on_chunk=lambda done: progress.update(bar, completed=done))


def run_checks(run: Run, checkpoint: str, found: Explanation) -> list[Check]:
    rng = block_generator(run.config.training.seed, Purpose.CHECKS, 0)
    return metamorphic_checks(run.predictor(checkpoint).predict, found.model, run.config.task.maximum, rng)
