"""`gcdformer evaluate`: decode the test sets with a checkpoint's weights and print the scores."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Console
from rich.table import Table

from gcdformer.config import prior_in_words, prior_value
from gcdformer.data.reading import read_examples
from gcdformer.data.testsets import test_sets
from gcdformer.display.progress import progress
from gcdformer.display.terminal import show_calibration
from gcdformer.errors import UserError
from gcdformer.evaluation import Scores
from gcdformer.options import (
    add_beam,
    add_checkpoint,
    add_json,
    add_prior,
    add_quiet,
    chosen_prior,
    print_json,
    require_figure,
    run_path,
    whole_number,
)
from gcdformer.runs.explain import explain_evaluation
from gcdformer.runs.files import writing
from gcdformer.runs.run import Run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_folder", type=run_path, metavar="DIR", help="run folder")
    parser.add_argument("--test-size", type=whole_number, metavar="N",
                        help="pairs in each test set (default: the run's)")
    parser.add_argument("--test-file", metavar="FILE", help="test on the rows of this file (default: as in training)")
    add_checkpoint(parser)
    add_beam(parser)
    add_prior(parser)
    parser.add_argument("--calibration", action="store_true", help="also compare the answers' probabilities with how often "
                        "they are right, on up to 10,000 pairs")
    parser.add_argument("--figure", type=Path, metavar="FILE", help="draw that: .svg or .png")
    parser.add_argument("--threads", type=whole_number, metavar="N", help="CPU threads (default: all cores)")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:N or mps")
    add_quiet(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    run = Run(args.run_folder)
    if args.figure is not None:
        check_figure(args.figure, calibration=args.calibration)
    config, prior = run.config.replace(device=args.device, threads=args.threads), chosen_prior(args, run.config)
    if args.test_size is not None:
        config = config.replace(test_size=args.test_size)
    if args.test_file is not None:
        config = config.derive(test_file=args.test_file)
    if config.evaluation.test_file is not None:
        with progress(f"reading {config.evaluation.test_file}", quiet=args.quiet) as advance:
            read_examples(config.evaluation.test_file, run.problem, "test_file", advance)
        if args.test_file is None:
            run.require_same_file("test_file", config.evaluation.test_file)
    with progress("loading the model", quiet=args.quiet):
        from gcdformer.evaluation.evaluate import evaluate
        from gcdformer.training.device import choose_device
        predictor = run.predictor(args.checkpoint, device=str(choose_device(config.machine)), beam=args.beam, prior=prior)
        epoch = run.epoch(args.checkpoint) if config.evaluation.fresh_tests and run.metrics else 1
        sets = test_sets(config, run.problem, epoch)
    with progress("decoding the test sets", sum(map(len, sets.values())), quiet=args.quiet) as advance:
        evaluation = evaluate(predictor, sets, config.evaluation.threshold, advance, calibrate=args.calibration)
    if evaluation.calibration is not None and args.figure is not None:
        from gcdformer.display.figures import reliability, save
        with writing(args.figure):
            save(reliability(evaluation.calibration), args.figure)
    calibration = {"calibration": evaluation.calibration.to_json()} if evaluation.calibration else {}
    if evaluation.scores is None:
        if args.json:
            print_json({"accuracy": evaluation.accuracy, "loss": evaluation.loss, **calibration})
        else:
            print(f"accuracy {evaluation.accuracy:.2f} %, loss {evaluation.loss:.4f}")
            show_calibration(Console(highlight=False), evaluation.calibration)
        return 0
    learning = explain_evaluation(config, evaluation.tables).being_learned
    if args.json:
        print_json({**evaluation.scores.to_json(), "being_learned": learning, "loss": evaluation.loss,
                    "prior": prior_value(prior), **calibration})
    else:
        show(evaluation.scores, learning, evaluation.loss, prior)
        show_calibration(Console(highlight=False), evaluation.calibration)
    return 0


def show(scores: Scores, being_learned: list[int], loss: float, prior: str) -> None:
    """The scores as a table of four columns of 25 k."""
    console = Console(highlight=False)
    table = Table(box=None, padding=(0, 1), header_style="dim")
    quarters = 4
    for _ in range(quarters):
        for title in ("k", "f(k)", "%"):
            table.add_column(title, justify="right")
    rows = list(scores.by_gcd.values())
    height = -(-len(rows) // quarters)
    for index in range(height):
        cells: list[str] = []
        for score in rows[index::height]:
            style = "bold green" if score.k in scores.correct else "yellow" if score.k in being_learned else "default"
            value = "?" if score.prediction is None else str(score.prediction)
            cells += [f"[dim]{score.k}[/]", f"[{style}]{value}[/]", f"{100 * score.frequency:.1f}"]
        table.add_row(*cells)
    console.print(table)
    learning = f"; being learned: {', '.join(map(str, being_learned))}" if being_learned else ""
    console.print(f"accuracy {scores.accuracy:.2f} % natural, {scores.stratified_accuracy:.2f} % stratified; "
                  f"loss {loss:.4f} a token on natural pairs")
    console.print(f"{len(scores.correct)} correct GCD ({len(scores.modal)} with f(k) = k){learning}")
    if prior != "training":
        console.print(f"answers decided under {prior_in_words(prior)}: so are f(k) and the accuracy of each k on the "
                      "stratified set, whose own distribution is another")


def check_figure(path: Path, *, calibration: bool) -> None:
    """A `UserError` unless there is something to draw and a place for it."""
    if not calibration:
        raise UserError("figure: needs --calibration, which it draws")
    require_figure(path)
