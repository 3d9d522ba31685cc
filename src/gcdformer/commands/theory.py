"""`gcdformer theory`: the accuracy that a set D implies."""

from __future__ import annotations

import argparse

from gcdformer.config import LARGEST_BASE
from gcdformer.display.progress import progress
from gcdformer.errors import UserError
from gcdformer.explanation.sieve import products
from gcdformer.numbers import theory
from gcdformer.options import add_json, parse_integer, print_json

LARGEST_MAXIMUM = 10**10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--base", metavar="B", help="D is all products of the primes of B, unless --set is given")
    parser.add_argument("--set", dest="members", metavar="1,2,3", help="the set D, separated by commas")
    parser.add_argument("--max", default="1000000", metavar="M", help="largest operand (default: 1000000)")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    maximum = parse_integer(args.max, "max", 1, LARGEST_MAXIMUM)
    base = None if args.base is None else parse_integer(args.base, "base", 2, LARGEST_BASE)
    if args.members is not None:
        known = sorted({parse_integer(word.strip(), "set", 1, LARGEST_MAXIMUM) for word in args.members.split(",")})
        values = {"limit": theory.limit_accuracy(known), "exact": exact_accuracy(known, maximum),
                  "paper_formula": theory.paper_formula_for_set(known)}
        what = f"D = {', '.join(map(str, known))}"
    elif base is not None:
        known = sorted(products(dict.fromkeys(theory.prime_factors(base), maximum), maximum))
        values = {"limit": theory.base_limit_accuracy(base), "exact": exact_accuracy(known, maximum),
                  "paper_formula": theory.paper_formula(base)}
        primes = ", ".join(map(str, theory.prime_factors(base)))
        what = f"base {base}: D is all products of {primes}, {sum(k <= 100 for k in known)} of them up to 100"
    else:
        raise UserError("base: give --base B, or --set 1,2,3")
    if args.json:
        print_json({"base": base, "max": maximum, **values})
        return 0
    print(what)
    print(f"exact for M = {maximum:,}: {values['exact']:.4f} %")
    print(f"in the limit:       {values['limit']:.4f} %")
    print(f"paper's formula:    {values['paper_formula']:.4f} %  (right for one prime only)")
    return 0


def exact_accuracy(known: list[int], maximum: int) -> float:
    with progress("counting the pairs of each GCD"):
        return theory.exact_accuracy(known, maximum)
