"""`gcdformer sample`: training examples as a file, or questions to ask a language model."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from gcdformer.config import Config
from gcdformer.data import Problem, Stream
from gcdformer.data.files import (
    FORMATS,
    open_new,
    question_pairs,
    write_examples,
    write_prompts,
    write_questions,
    write_text,
)
from gcdformer.display.progress import progress
from gcdformer.errors import UserError
from gcdformer.options import add_config_flags, add_quiet, config_from, given, whole_number

LEAVES = ("task", "base", "maximum", "operands", "outcomes", "max_gcd", "alpha", "mixture_share", "weights_file", "budget",
          "repeat_share", "repeat_size", "seed")
OF_QUESTIONS = {"maximum", "operands", "seed"}
"""The settings that questions for a language model depend on."""
COUNT, PAIRS_PER_GCD = 1000, 30

DEFAULTS = Config().derive(operands="uniform", outcomes="natural")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--count", type=whole_number, metavar="N", help=f"examples (default: {COUNT})")
    parser.add_argument("--format", choices=FORMATS, help="csv (default), parquet, int2int text, or "
                        "datasets, a folder for Hugging Face's library (needs gcdformer[datasets])")
    parser.add_argument("--out", type=Path, metavar="FILE", help="where to (default: standard output)")
    parser.add_argument("--force", action="store_true", help="overwrite files that exist")
    parser.add_argument("--for-llm", action="store_true", help="questions for a language model instead: a CSV with an empty "
                        "column for its answers, to be explained by explain --predictions")
    parser.add_argument("--pairs-per-gcd", type=whole_number, metavar="N", help="questions of --for-llm for each GCD in "
                        f"1..100 (default: {PAIRS_PER_GCD}, the fewest that are judged)")
    parser.add_argument("--prompts", type=Path, metavar="FILE", help="also write the questions of --for-llm, one per line")
    add_quiet(parser)
    add_config_flags(parser, LEAVES, DEFAULTS)


def run(args: argparse.Namespace) -> int:
    config = config_from(args, DEFAULTS)
    for field, path in (("out", args.out), ("prompts", args.prompts)):
        if path is not None and path.exists() and not args.force and not path.is_dir():
            raise UserError(f"{field}: {path} exists; give --force to overwrite it, or another name")
    if args.for_llm:
        write_for_llm(args, config)
        return 0
    for flag in ("pairs_per_gcd", "prompts"):
        if getattr(args, flag) is not None:
            raise UserError(f"{flag.replace('_', '-')}: belongs to --for-llm")
    count, layout = COUNT if args.count is None else args.count, args.format or "csv"
    if count < 1:
        raise UserError(f"count: at least 1, got {count}")
    if args.out is None and layout in ("parquet", "datasets"):
        raise UserError(f"out: format '{layout}' needs a place, name one by --out")
    stream = Stream.of(config, Problem.of(config))
    stream.examples(0, 1)  # a bad file of weights is named before anything is written
    with progress("drawing examples", count, quiet=args.quiet) as advance:
        if args.out is None:
            write_text(stream, count, layout, sys.stdout, advance)
        else:
            write_examples(stream, count, layout, args.out, advance)
    return 0


def write_for_llm(args: argparse.Namespace, config: Config) -> None:
    """The CSV to fill in and, if they are asked for, the prompts."""
    others = ["count"] * (args.count is not None) + ["format"] * (args.format is not None)
    others += [name for name in given(args) if name not in OF_QUESTIONS]
    if others:
        raise UserError(f"{others[0]}: has no meaning with --for-llm")
    each = PAIRS_PER_GCD if args.pairs_per_gcd is None else args.pairs_per_gcd
    if not 1 <= each <= 10_000:
        raise UserError(f"pairs-per-gcd: 1..10000, got {each}")
    pairs = question_pairs(config.task.maximum, config.data.operands, each, config.training.seed)
    if args.out is None:
        write_questions(pairs, sys.stdout)
    else:
        with open_new(args.out, "out") as file:
            write_questions(pairs, file)
    if args.prompts is not None:
        with open_new(args.prompts, "prompts") as file:
            write_prompts(pairs, file)
