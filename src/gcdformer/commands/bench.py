"""`gcdformer bench`: throughput of sampling, training and evaluation, beside this machine's matrix-multiply peak."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from gcdformer.display.progress import progress
from gcdformer.errors import UserError
from gcdformer.options import (
    add_config_flags,
    add_json,
    add_quiet,
    config_from,
    given,
    number,
    print_json,
    require_figure,
)
from gcdformer.presets import fast

if TYPE_CHECKING:
    from gcdformer.report.throughput import Curves

DEFAULTS = fast().derive(base=1000, operands="uniform", outcomes="natural", optimizer="adam", schedule="constant",
                         warmup=20)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seconds", type=number, default=20.0, metavar="N", help="how long to measure (default: 20)")
    parser.add_argument("--full", action="store_true", help="curves over width, depth, base and batch size (minutes)")
    parser.add_argument("--figure", type=Path, default=Path("bench.svg"), metavar="FILE",
                        help="where --full draws them, SVG or PNG (default: bench.svg)")
    add_quiet(parser)
    add_json(parser)
    add_config_flags(parser, defaults=DEFAULTS)


def run(args: argparse.Namespace) -> int:
    config = config_from(args, DEFAULTS)
    if config.training.schedule == "cosine" and config.training.horizon is None:
        config = config.replace(horizon=10**9)
    if args.full:
        return full(args)
    with progress("measuring", 1.0, quiet=args.quiet) as advance:
        from gcdformer.training.throughput import measure
        result = measure(config, args.seconds, advance)
    if args.json:
        print_json(result.to_json())
        return 0
    train = result.train
    print(f"matrix multiply     {result.gemm_gflops:8.1f} GFLOPS with {result.threads} threads")
    print(f"sample and encode   {result.sample.examples_per_s:10,.0f} examples/s on one core "
          "(log-uniform operands and outcomes)")
    print(f"train               {train.examples_per_s:10,.0f} examples/s, {train.gflops:.1f} GFLOPS, "
          f"{100 * train.utilisation:.1f} % of the peak")
    print(f"evaluate            {result.evaluate.examples_per_s:10,.0f} examples/s")
    return 0


def full(args: argparse.Namespace) -> int:
    """Measure and draw the curves. Of the model's flags only --threads and --backend have a meaning here."""
    require_figure(args.figure)
    if args.config_file is not None:
        raise UserError("--full measures bench's default model: leave --config out")
    settings = given(args)
    if others := set(settings) - {"threads", "backend"}:
        raise UserError(f"full: chooses widths, depths, bases and batch sizes itself; leave out {', '.join(sorted(others))}")
    flags = [word for name, value in settings.items() for word in (f"--{name}", str(value))]
    with progress("measuring", quiet=args.quiet) as advance:
        from gcdformer.report.throughput import draw_curves, measure_curves
        curves = measure_curves(args.seconds / 5, flags, advance)
        draw_curves(curves, args.figure)
    if args.json:
        print_json({name: [{"value": value, **point.to_json()} for value, point in points.items()]
                    for name, points in curves.items()} | {"figure": str(args.figure)})
    else:
        print_curves(curves)
        print(f"\nfigure  {args.figure}")
    return 0


def print_curves(curves: Curves) -> None:
    for curve, points in curves.items():
        print(f"\n{curve:20}{'train/s':>12}{'evaluate/s':>12}{'of the peak':>13}{'memory':>10}")
        for value, point in points.items():
            print(f"{value:<20,}{point.train.examples_per_s:>12,.0f}{point.evaluate.examples_per_s:>12,.0f}"
                  f"{100 * point.train.utilisation:>11.1f} %{point.memory_mb:>7,.0f} MB")
