"""`gcdformer evaluate`: decode the test sets with a checkpoint's weights and print the scores."""

from __future__ import annotations

import argparse

from rich.console import Console
from rich.table import Table

from gcdformer.data.reading import read_examples
from gcdformer.data.testsets import test_sets
from gcdformer.display.progress import progress
from gcdformer.evaluation import Scores, score
from gcdformer.options import add_checkpoint, add_json, add_quiet, print_json, run_path, whole_number
from gcdformer.runs.explain import explain_evaluation
from gcdformer.runs.run import Run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_folder", type=run_path, metavar="DIR", help="run folder")
    parser.add_argument("--test-size", type=whole_number, metavar="N",
                        help="pairs in each test set (default: the run's)")
    parser.add_argument("--test-file", metavar="FILE", help="test on the rows of this file (default: as in training)")
    add_checkpoint(parser)
    parser.add_argument("--threads", type=whole_number, metavar="N", help="CPU threads (default: all cores)")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:N or mps")
    add_quiet(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    run = Run(args.run_folder)
    config = run.config.replace(device=args.device, threads=args.threads)
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
        from gcdformer.training.device import choose_device
        predictor = run.predictor(args.checkpoint, device=str(choose_device(config.machine)), beam=args.beam)
        epoch = run.epoch(args.checkpoint) if config.evaluation.fresh_tests and run.metrics else 1
        sets = test_sets(config, run.problem, epoch)
    with progress("measuring the loss", quiet=args.quiet):
        loss = predictor.loss(next(iter(sets.values())))
    if not run.problem.task.has_gcd:
        with progress("decoding the test set", len(sets["test"]), quiet=args.quiet) as predictor.on_batch:
            accuracy = predictor.accuracy(sets["test"])
        if args.json:
            print_json({"accuracy": accuracy, "loss": loss})
        else:
            print(f"accuracy {accuracy:.2f} %, loss {loss:.4f}")
        return 0
    tables = {}
    for name, questions in sets.items():
        with progress(f"decoding the {name} set", len(questions), quiet=args.quiet) as predictor.on_batch:
            tables[name] = predictor.table(questions)
    scores = score(tables["natural"], tables["stratified"], config.evaluation.threshold)
    learning = explain_evaluation(config, tables).being_learned
    if args.json:
        print_json({**scores.to_json(), "being_learned": learning, "loss": loss})
    else:
        show(scores, learning, loss)
    return 0


def show(scores: Scores, being_learned: list[int], loss: float) -> None:
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
        for one in rows[index::height]:
            style = "bold green" if one.k in scores.correct else "yellow" if one.k in being_learned else "default"
            value = "?" if one.prediction is None else str(one.prediction)
            cells += [f"[dim]{one.k}[/]", f"[{style}]{value}[/]", f"{100 * one.frequency:.1f}"]
        table.add_row(*cells)
    console.print(table)
    learning = f"; being learned: {', '.join(map(str, being_learned))}" if being_learned else ""
    console.print(f"accuracy {scores.accuracy:.2f} % natural, {scores.stratified_accuracy:.2f} % stratified; "
                  f"loss {loss:.4f} a token on natural pairs")
    console.print(f"{len(scores.correct)} correct GCD ({len(scores.modal)} with f(k) = k){learning}")
