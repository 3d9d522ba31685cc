"""`gcdformer seen`: replay the stream and say whether, and when, a question was trained on."""

from __future__ import annotations

import argparse

import numpy as np

from gcdformer.config import LARGEST_INTEGER
from gcdformer.data.stream import BLOCK
from gcdformer.display.progress import progress
from gcdformer.errors import UserError
from gcdformer.options import CHECKPOINTS, add_json, add_quiet, parse_integer, print_json, run_path
from gcdformer.runs.run import Run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_folder", type=run_path, metavar="DIR", help="run folder")
    parser.add_argument("integers", nargs="+", metavar="A B", help="the operands")
    parser.add_argument("--checkpoint", default="last", metavar=CHECKPOINTS, help="up to where (default: last)")
    add_quiet(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    run = Run(args.run_folder)
    arity = run.problem.task.inputs
    if len(args.integers) != arity:
        raise UserError(f"integers: this task takes {arity}, got {len(args.integers)}")
    values = [parse_integer(word, "integers", -LARGEST_INTEGER, LARGEST_INTEGER) for word in args.integers]
    wanted = np.array(values, dtype=np.int64)
    size = run.config.training.batch_size
    places: list[int] = []
    swapped: list[int] = []
    with progress("replaying the stream", quiet=args.quiet) as advance:
        total = run.checkpoint_step(args.checkpoint) * size
        stream = run.stream
        for start in range(0, total, BLOCK):
            block = stream.examples(start, min(start + BLOCK, total))[:, :arity]
            places += (start + np.flatnonzero((block == wanted).all(1))).tolist()
            if arity == 2 and wanted[0] != wanted[1]:
                swapped += (start + np.flatnonzero((block == wanted[::-1]).all(1))).tolist()
            advance(start, total)
    epoch = run.config.training.steps_per_epoch * size
    result = {"question": wanted.tolist(), "examples": total, "seen": len(places), "swapped": len(swapped),
              "when": [{"example": n, "step": n // size, "epoch": n // epoch + 1} for n in places]}
    if args.json:
        print_json(result)
        return 0
    text = ", ".join(map(str, wanted.tolist()))
    if not places:
        print(f"({text}) is not among the {total:,} examples trained on")
    else:
        print(f"({text}) was trained on {len(places)} times in {total:,} examples:")
        for n in places[:10]:
            print(f"  example {n:,}, step {n // size:,}, epoch {n // epoch + 1}")
        if len(places) > 10:
            print(f"  … and {len(places) - 10} more (--json lists all)")
    if swapped:
        print(f"with the operands swapped: {len(swapped)} times")
    return 0
