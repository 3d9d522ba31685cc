"""`gcdformer explain`: the certificate of a run, or of anyone's predictions, as a page in the terminal."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from gcdformer.config import LARGEST_BASE, prior_in_words, prior_value
from gcdformer.data.testsets import test_sets
from gcdformer.display.progress import progress
from gcdformer.display.terminal import (
    show_calibration,
    show_checks,
    show_comparison,
    show_explanation,
    show_priors,
    show_timeline,
)
from gcdformer.errors import UserError
from gcdformer.evaluation.scores import Calibration
from gcdformer.explanation import Explanation
from gcdformer.explanation.metamorphic import Check, metamorphic_checks
from gcdformer.explanation.timeline import Timeline, compare, timeline
from gcdformer.numbers.random import Purpose, block_generator
from gcdformer.options import (
    CHECKPOINTS,
    add_json,
    add_prior,
    add_quiet,
    chosen_prior,
    parse_integer,
    print_json,
    require_figure,
    run_path,
)
from gcdformer.runs.explain import (
    LARGEST_EXHAUSTIVE,
    LARGEST_IN_BOTH_ORDERS,
    add_run_bands,
    all_pairs_count,
    explain_all_of_run,
    explain_csv,
    explain_run,
    explain_under_prior,
    has_weights,
)
from gcdformer.runs.files import writing
from gcdformer.runs.hints import earlier_certificate
from gcdformer.runs.priors import SCANNED_PRIORS, scan_priors, write_scan
from gcdformer.runs.run import Run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_folders", nargs="*", type=run_path, metavar="DIR", help="run folder; several are compared")
    parser.add_argument("--epoch", metavar="N", help="the epoch to explain (default: the last)")
    parser.add_argument("--checkpoint", metavar=CHECKPOINTS, help="the same, by name; certified: the last "
                        "epoch whose tables give a certificate")
    parser.add_argument("--predictions", type=Path, metavar="FILE.csv",
                        help="explain these predictions instead: columns a, b and prediction (or answer) in any order")
    parser.add_argument("--base", metavar="B", help="base of --predictions")
    parser.add_argument("--checks", action="store_true", help="also ask the model: swapped, summed, scaled, other sizes")
    parser.add_argument("--no-bands", action="store_true", help="do not ask the model for pairs of other sizes and orders")
    parser.add_argument("--exhaustive", action="store_true", help="try all pairs of 1..M, so that nothing is sampled "
                        f"(M: the run's, or --max; at most {LARGEST_EXHAUSTIVE}; above {LARGEST_IN_BOTH_ORDERS}: a <= b)")
    parser.add_argument("--max", metavar="M", help="largest operand of --exhaustive (default: the run's)")
    add_prior(parser)
    parser.add_argument("--calibration", action="store_true", help="also compare the answers' probabilities with how often "
                        "they are right, on up to 10,000 natural pairs")
    parser.add_argument("--over-priors", action="store_true", help="ask the same weights under many priors instead: "
                        "accuracy, form, fidelity and D under each; kept with the run as priors.json")
    parser.add_argument("--figure", type=Path, metavar="FILE", help="draw --over-priors: .svg or .png")
    parser.add_argument("--html", type=Path, metavar="FILE", help="also write the explanation as a page")
    add_quiet(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    if (args.predictions is None) == (not args.run_folders):
        raise UserError("explain: give a run folder, or --predictions FILE.csv with --base B")
    if args.predictions is not None:
        return explain_predictions(args)
    for path in args.run_folders:
        if path.is_file():
            raise UserError(f"{path}: a file, not a run folder; to explain the predictions in it: "
                            f"gcdformer explain --predictions {path} --base B")
    if args.base is not None:
        raise UserError("base: belongs to --predictions; a run knows its own")
    if args.max is not None and not args.exhaustive:
        raise UserError("max: belongs to --exhaustive; a run's tables are up to its own")
    if args.figure is not None and not args.over_priors:
        raise UserError("figure: draws --over-priors; give that too")
    if args.epoch and args.checkpoint:
        raise UserError("epoch and checkpoint say the same thing: give one")
    runs = [Run(path) for path in args.run_folders]
    for listed in runs:
        listed.require_gcd()
    if args.over_priors:
        explain_over_priors(args, runs)
    else:
        explain_runs(args, runs)
    return 0


def explain_over_priors(args: argparse.Namespace, runs: list[Run]) -> None:
    """The same weights under many priors, run by run."""
    for flag in ("prior", "checks", "exhaustive", "calibration", "html"):
        if getattr(args, flag):
            raise UserError(f"{flag}: explains the answers under one prior, --over-priors compares many: give one of them")
    if args.figure is not None:
        require_figure(args.figure)
    scans = {}
    for run in runs:
        with progress(f"asking {run.path} under {len(SCANNED_PRIORS)} priors", quiet=args.quiet) as advance:
            scans[str(run.path)] = scan_priors(run, checkpoint=args.epoch or args.checkpoint or "last", on_step=advance)
        write_scan(run, scans[str(run.path)])
    if args.figure is not None:
        from gcdformer.display.figures import save
        from gcdformer.display.priors import over_priors
        with writing(args.figure):
            save(over_priors({"": {name: scan.under for name, scan in scans.items()}}), args.figure)
    if args.json:
        print_json({"runs": [{"run": name, **scan.to_json()} for name, scan in scans.items()]})
        return
    for name, scan in scans.items():
        show_priors(Console(highlight=False), scan.under, f"{name}, epoch {scan.epoch}")


def explain_runs(args: argparse.Namespace, runs: list[Run]) -> None:
    """The first run; the others are compared with it."""
    first, checkpoint = runs[0], args.epoch or args.checkpoint or "last"
    prior = chosen_prior(args, first.config)
    other = prior != first.config.evaluation.prior
    with progress("reading the prediction tables", quiet=args.quiet):
        epoch, lines = first.epoch(checkpoint), first.metrics
    notes: list[str] = []
    if args.exhaustive:
        explanation = explain_exhaustively(first, checkpoint, args, prior)
    elif other:
        with progress("decoding the test sets", quiet=args.quiet) as advance:
            explanation = explain_under_prior(first, checkpoint, prior, advance)
    else:
        with progress("reading the prediction tables", quiet=args.quiet) as advance:
            explanation = explain_run(first, epoch)
            if not explanation.certified:
                earlier = earlier_certificate(first, epoch, lambda done: advance(done, len(lines)))
                notes += [earlier] if earlier else []
    if other:
        notes.append(f"answers decided under {prior_in_words(prior)}, afresh: so are f(k) and the share of each k on the "
                     "stratified set; the timeline is the training's")
    wants_bands = not args.exhaustive and not args.no_bands
    if wants_bands and has_weights(first, epoch):
        with progress("asking for pairs of other sizes and orders", quiet=args.quiet):
            explanation = add_run_bands(explanation, first, epoch, prior)
    elif wants_bands:
        notes.append(f"sizes and orders were not judged: the weights of epoch {epoch} are not kept")
    history = timeline(line for line in lines if line["epoch"] <= epoch)
    checks = run_checks(first, checkpoint, explanation, prior, quiet=args.quiet) if args.checks else []
    calibration = measure_calibration(first, checkpoint, prior, quiet=args.quiet) if args.calibration else None
    others = {str(run.path): timeline(run.metrics) for run in runs} if len(runs) > 1 else {}
    show(args, explanation, f"{first.path}, epoch {epoch}", history, checks, others, notes, prior, calibration)


def explain_predictions(args: argparse.Namespace) -> int:
    if args.base is None:
        raise UserError("base: --predictions needs the base in which integers are written")
    if args.prior is not None:
        raise UserError("prior: needs a run, not --predictions: predictions have no probabilities to decide anew from")
    for flag in ("epoch", "checkpoint", "checks", "exhaustive", "max", "calibration", "over_priors", "figure"):
        if getattr(args, flag):
            raise UserError(f"{flag.replace('_', '-')}: needs a run, not --predictions")
    base = parse_integer(args.base, "base", 2, LARGEST_BASE)
    with progress(f"reading {args.predictions}", quiet=args.quiet):
        explanation = explain_csv(args.predictions, base, bands=not args.no_bands)
    show(args, explanation, str(args.predictions))
    return 0


def show(args: argparse.Namespace, explanation: Explanation, what: str, history: Timeline | None = None,
         checks: list[Check] | None = None, others: dict[str, Timeline] | None = None, notes: Sequence[str] = (),
         prior: str | None = None, calibration: Calibration | None = None) -> None:
    """As JSON, or as a page."""
    if args.html is not None:
        from gcdformer.report.page import write_explanation
        write_explanation(args.html, explanation, what, history, calibration)
    if args.json:
        values = explanation.to_json()
        if prior is not None:
            values["prior"] = prior_value(prior)
        if calibration is not None:
            values["calibration"] = calibration.to_json()
        if history is not None:
            values["timeline"] = history.to_json()
        if checks:
            values["checks"] = {check.name: check.to_json() for check in checks}
        if others:
            values["comparison"] = [row.to_json() for row in compare(others)]
        print_json(values)
        return
    console = Console(highlight=False)
    show_explanation(console, explanation, what, notes)
    show_calibration(console, calibration)
    if history is not None:
        show_timeline(console, history)
    if checks:
        show_checks(console, checks)
    if others:
        show_comparison(console, compare(others))
    if args.html is not None:
        console.print(f"\nwritten to {args.html}")


def explain_exhaustively(run: Run, checkpoint: str, args: argparse.Namespace, prior: str) -> Explanation:
    """The checkpoint's model on all pairs; its weights must be kept."""
    maximum = run.config.task.maximum if args.max is None else parse_integer(args.max, "max", 1, run.config.task.maximum)
    with progress(f"trying all pairs of 1..{maximum}", all_pairs_count(maximum), quiet=args.quiet) as advance:
        return explain_all_of_run(run, checkpoint, maximum, advance, prior)


def run_checks(run: Run, checkpoint: str, explanation: Explanation, prior: str, *, quiet: bool) -> list[Check]:
    rng = block_generator(run.config.training.seed, Purpose.CHECKS, 0)
    with progress("asking the model in other ways", quiet=quiet):
        predict = run.predictor(checkpoint, prior=prior).predict
        return metamorphic_checks(predict, explanation.model, run.config.task.maximum, rng)


def measure_calibration(run: Run, checkpoint: str, prior: str, *, quiet: bool) -> Calibration:
    with progress("asking the model how sure it is", quiet=quiet) as advance:
        run.require_same_file("test_file", run.config.evaluation.test_file)
        pairs = test_sets(run.config, run.problem, run.epoch(checkpoint))["natural"]
        predictor = run.predictor(checkpoint, prior=prior)
        predictor.on_batch = lambda done: advance(done, len(pairs))
        return predictor.calibration(pairs)
