"""`gcdformer lab`: the web page of runs, on this machine only unless `--host` says otherwise; or one run's page as files."""

from __future__ import annotations

import argparse
from pathlib import Path

from gcdformer.errors import MissingExtra, UserError
from gcdformer.options import parse_integer, run_path, runs_folder


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", nargs="?", type=run_path, metavar="RUNS",
                        help="a folder of runs, or one run (default: $GCDFORMER_RUNS, or runs; with no runs, two bundled "
                        "examples are shown)")
    parser.add_argument("--port", type=port_number, metavar="N", help="port (default: 8420, or a free one if that is taken)")
    parser.add_argument("--host", default="127.0.0.1", metavar="ADDRESS",
                        help="address to listen on (default: 127.0.0.1, this machine only; 0.0.0.0: anyone on the network "
                        "can read the runs)")
    parser.add_argument("--no-open", action="store_true", help="do not open a browser")
    parser.add_argument("--allow-training", action="store_true", help="let the page start and stop trainings")
    parser.add_argument("--export", type=Path, metavar="DIR",
                        help="instead of serving, write the run's page as files for any static host")


def run(args: argparse.Namespace) -> int:
    if args.runs is not None and not args.runs.exists():
        raise UserError(f"{args.runs}: there is no such folder; name a run or a folder of runs")
    root = args.runs or runs_folder()
    if root.exists() and not root.is_dir():
        raise UserError(f"{root}: not a folder of runs")
    if args.export is not None:
        from gcdformer.lab.export import export_run
        print(f"{export_run(root, args.export)}: for any web server, such as python -m http.server -d {args.export}")
        return 0
    try:
        from gcdformer.lab.server import serve
    except ModuleNotFoundError as error:
        raise MissingExtra(str(error.name), "lab") from None
    serve(root, host=args.host, port=args.port, open_browser=not args.no_open, allow_training=args.allow_training)
    return 0


def port_number(text: str) -> int:
    return parse_integer(text, "port", 0, 65_535)
