"""`gcdformer report`: one HTML file."""

from __future__ import annotations

import argparse
from pathlib import Path

from gcdformer.display.progress import progress
from gcdformer.options import CHECKPOINTS, add_json, add_quiet, print_json, run_path
from gcdformer.runs.run import Run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_folders", nargs="+", type=run_path, metavar="DIR", help="run folder; several are compared")
    parser.add_argument("--checkpoint", default="last", metavar=CHECKPOINTS,
                        help="the epoch to explain (default: last)")
    parser.add_argument("--out", type=Path, metavar="FILE",
                        help="where to (default: report.html in the run's folder, or here for several)")
    parser.add_argument("--figures", type=Path, metavar="DIR", help="also write the figures as SVG and PNG files")
    add_quiet(parser, "do not print what was written")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    runs = [Run(path) for path in args.run_folders]
    path = args.out or (runs[0].path / "report.html" if len(runs) == 1 else Path("report.html"))
    with progress("writing the report", quiet=args.quiet):
        from gcdformer.report.page import write_figures, write_report
        write_report(path, runs, args.checkpoint)
        written = [path]
        if args.figures is not None:
            written += write_figures(args.figures, runs, args.checkpoint)
    if args.json:
        print_json({"written": [str(path) for path in written]})
    elif not args.quiet:
        print("\n".join(map(str, written)))
    return 0
