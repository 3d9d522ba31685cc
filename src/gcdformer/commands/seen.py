"""`gcdformer seen`: replay the stream and say whether, and when, a question was trained on.

A run that started from another's weights asks that one too; what imported weights were trained on is not known, and said so.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from gcdformer.config import LARGEST_INTEGER
from gcdformer.data.stream import BLOCK
from gcdformer.display.progress import Advance, progress
from gcdformer.errors import UserError
from gcdformer.options import CHECKPOINTS, add_json, add_quiet, parse_integer, print_json, run_path
from gcdformer.runs.run import Run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_folder", type=run_path, metavar="DIR", help="run folder")
    parser.add_argument("integers", nargs="+", metavar="A B", help="the operands")
    parser.add_argument("--checkpoint", default="last", metavar=CHECKPOINTS, help="up to where (default: last)")
    add_quiet(parser)
    add_json(parser)


@dataclass(frozen=True)
class Sightings:
    """Where a question is in what one run was trained on; `unknown` says why that is not known."""

    path: Path
    examples: int | None
    places: list[int] = field(default_factory=list)
    swapped: int = 0
    batch: int = 1
    epoch: int = 1
    unknown: str | None = None

    def to_json(self) -> dict[str, Any]:
        return {"examples": self.examples, "seen": None if self.unknown else len(self.places),
                "swapped": None if self.unknown else self.swapped, "unknown": self.unknown,
                "when": [{"example": n, "step": n // self.batch, "epoch": n // self.epoch + 1} for n in self.places]}


def run(args: argparse.Namespace) -> int:
    run = Run(args.run_folder)
    arity = run.problem.task.inputs
    if len(args.integers) != arity:
        raise UserError(f"integers: this task takes {arity}, got {len(args.integers)}")
    values = [parse_integer(word, "integers", -LARGEST_INTEGER, LARGEST_INTEGER) for word in args.integers]
    with progress("replaying the stream", quiet=args.quiet) as advance:
        own = replay(run, run.checkpoint_step(args.checkpoint), values, advance)
        parents = replay_parents(run, values, advance)
    if args.json:
        print_json({"question": values, **own.to_json(),
                    "parents": [{"run": str(parent.path), **parent.to_json()} for parent in parents]})
        return 0
    question = ", ".join(map(str, values))
    print_sightings(own, question)
    for parent in parents:
        print(f"its first weights are from {parent.path}:")
        print_sightings(parent, question)
    return 0


def replay(run: Run, step: int, values: list[int], advance: Advance) -> Sightings:
    """Look for a question in the examples of a run up to a step."""
    if "imported_from" in run.made_by:
        origin = run.made_by["imported_from"]
        return Sightings(run.path, None, unknown=f"the weights were imported ({origin}), not what they were trained on")
    wanted, size = np.array(values, dtype=np.int64), run.config.training.batch_size
    places: list[int] = []
    swapped, total, stream = 0, step * size, run.stream
    for start in range(0, total, BLOCK):
        block = stream.examples(start, min(start + BLOCK, total))[:, :len(values)]
        places += (start + np.flatnonzero((block == wanted).all(1))).tolist()
        if len(values) == 2 and wanted[0] != wanted[1]:
            swapped += int((block == wanted[::-1]).all(1).sum())
        advance(start, total)
    return Sightings(run.path, total, places, swapped, size, run.config.training.steps_per_epoch * size)


def replay_parents(run: Run, values: list[int], advance: Advance) -> list[Sightings]:
    """The same for the run that the first weights are from, and for that one's, and so on."""
    sightings: list[Sightings] = []
    while run.config.training.init_from is not None:
        path, step = Path(run.config.training.init_from), run.made_by.get("init_from_step")
        try:
            parent = Run(path)
            if parent.problem.task.inputs != len(values):
                raise UserError(f"{path}: its task takes {parent.problem.task.inputs} integers")
            if step is None:
                raise UserError(f"{path}: how far it was trained then was not recorded")
            sightings.append(replay(parent, int(step), values, advance))
        except UserError as error:
            return [*sightings, Sightings(path, None, unknown=f"that run cannot be asked: {error}")]
        run = parent
    return sightings


def print_sightings(sightings: Sightings, question: str) -> None:
    if sightings.unknown is not None:
        print(f"({question}) cannot be looked for: {sightings.unknown}")
        return
    places, total = sightings.places, f"{sightings.examples:,}"
    if not places:
        print(f"({question}) is not among the {total} examples trained on")
    else:
        print(f"({question}) was trained on {len(places)} times in {total} examples:")
        for n in places[:10]:
            print(f"  example {n:,}, step {n // sightings.batch:,}, epoch {n // sightings.epoch + 1}")
        if len(places) > 10:
            print(f"  … and {len(places) - 10} more (--json lists all)")
    if sightings.swapped:
        print(f"with the operands swapped: {sightings.swapped} times")
