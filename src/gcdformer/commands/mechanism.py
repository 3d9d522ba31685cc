"""`gcdformer mechanism`: where in the network each learned prime is carried, with controls."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Console

from gcdformer.display.mechanism import show_mechanism
from gcdformer.display.progress import progress
from gcdformer.options import add_checkpoint, add_json, add_prior, add_quiet, parse_integer, print_json, run_path
from gcdformer.runs.mechanism import NAME, PAIRS, mechanism, write_mechanism
from gcdformer.runs.run import Run

MOST_PAIRS = 100_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_folder", type=run_path, metavar="DIR", help="run folder")
    add_checkpoint(parser)
    parser.add_argument("--pairs", default=str(PAIRS), metavar="N",
                        help=f"pairs for each prime, operand and direction (default: {PAIRS})")
    parser.add_argument("--seed", default="0", metavar="S", help="of the pairs and of the fresh weights (default: 0)")
    parser.add_argument("--through-training", action="store_true",
                        help="also when each place appeared, from the checkpoints that were kept (train --keep-checkpoints)")
    parser.add_argument("--out", type=Path, metavar="FILE", help=f"where to save it (default: {NAME} in the run's folder)")
    parser.add_argument("--html", type=Path, metavar="FILE", help="also write it as a page")
    add_prior(parser)
    add_quiet(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    pairs = parse_integer(args.pairs, "pairs", 40, MOST_PAIRS)
    seed = parse_integer(args.seed, "seed", 0, 2**31)
    source = Run(args.run_folder)
    with progress("exchanging values", quiet=args.quiet) as advance:
        result = mechanism(source, checkpoint=args.checkpoint, pairs=pairs, seed=seed,
                           through_training=args.through_training, prior=args.prior, on_step=advance)
    path = args.out or source.path / NAME
    write_mechanism(path, result)
    if args.html is not None:
        from gcdformer.report.page import write_mechanism_page
        write_mechanism_page(args.html, result, f"{source.path}, epoch {result.epoch}")
    if args.json:
        print_json(result.to_json())
        return 0
    console = Console(highlight=False)
    show_mechanism(console, result, f"{source.path}, epoch {result.epoch}")
    if not args.quiet:
        console.print(f"\nwritten to {path}" + (f" and {args.html}" if args.html is not None else ""))
    return 0
