"""`gcdformer encode`: tokens of integers."""

from __future__ import annotations

import argparse

from gcdformer.config import LARGEST_BASE, LARGEST_INTEGER
from gcdformer.numbers.encoding import Vocabulary, encode_row
from gcdformer.options import add_json, parse_integer, print_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--base", required=True, metavar="B", help="base, 2..20000")
    parser.add_argument("integers", nargs="+", metavar="N", help="integers, encoded one after another")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    base = parse_integer(args.base, "base", 2, LARGEST_BASE)
    values = [parse_integer(word, "integers", -LARGEST_INTEGER, LARGEST_INTEGER) for word in args.integers]
    tokens = Vocabulary(base).text(encode_row(values, base))
    print_json({"base": base, "integers": values, "tokens": tokens.split()}) if args.json else print(tokens)
    return 0
