"""`gcdformer sample`: training examples as a file."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from gcdformer.commands.options import add_config_flags, config_from, whole_number
from gcdformer.config import Config
from gcdformer.data import Problem, Stream
from gcdformer.data.files import FORMATS, write_examples, write_text
from gcdformer.errors import UserError

LEAVES = ("task", "base", "maximum", "operands", "outcomes", "max_gcd", "alpha", "mixture_share", "budget",
          "repeat_share", "repeat_size", "seed")

DEFAULTS = Config().replace(operands="uniform", outcomes="natural")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--count", type=whole_number, default=1000, metavar="N", help="examples (default: 1000)")
    parser.add_argument("--format", choices=FORMATS, default="csv", help="csv (default), parquet, int2int text, or "
                        "datasets, a folder for Hugging Face's library (needs gcdformer[datasets])")
    parser.add_argument("--out", type=Path, metavar="FILE", help="where to (default: standard output)")
    add_config_flags(parser, LEAVES, DEFAULTS)


def run(args: argparse.Namespace) -> int:
    config = config_from(args, DEFAULTS)
    if args.count < 1:
        raise UserError(f"count: at least 1, got {args.count}")
    stream = Stream.of(config, Problem.of(config))
    if args.out is not None:
        write_examples(stream, args.count, args.format, args.out)
    elif args.format in ("parquet", "datasets"):
        raise UserError(f"out: format '{args.format}' needs a place, name one by --out")
    else:
        write_text(stream, args.count, args.format, sys.stdout)
    return 0
