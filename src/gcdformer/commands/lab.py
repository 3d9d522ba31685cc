"""`gcdformer lab`: the web page of runs, on this machine only unless `--host` says so; or that page without a server."""

from __future__ import annotations

import argparse
from pathlib import Path

from gcdformer.errors import MissingExtra, UserError
from gcdformer.options import bounded, run_path, runs_folder


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", nargs="*", type=run_path, metavar="RUNS",
                        help="a folder of runs, or one run (default: $GCDFORMER_RUNS, or runs; with no runs, two bundled "
                        "examples are shown); with --export one or several runs")
    parser.add_argument("--port", type=bounded("port", 0, 65_535), metavar="N",
                        help="port (default: 8420, or a free one if that is taken)")
    parser.add_argument("--host", default="127.0.0.1", metavar="ADDRESS",
                        help="address to listen on (default: 127.0.0.1, this machine only; 0.0.0.0: anyone on the network "
                        "can read the runs)")
    parser.add_argument("--no-open", action="store_true", help="do not open a browser")
    parser.add_argument("--allow-training", action="store_true", help="let the page start and stop trainings")
    parser.add_argument("--export", type=Path, metavar="DIR",
                        help="instead of serving, write the runs' page with their models as files for any static host")
    parser.add_argument("--single-file", action="store_true",
                        help="with --export: write one HTML file, which DIR then names; it opens without a host")


def run(args: argparse.Namespace) -> int:
    for path in args.runs:
        if not path.exists():
            raise UserError(f"{path}: there is no such folder; name a run or a folder of runs")
    roots = args.runs or [runs_folder()]
    for root in roots:
        if root.exists() and not root.is_dir():
            raise UserError(f"{root}: not a folder of runs")
    if args.single_file and args.export is None:
        raise UserError("--single-file: needs --export with the HTML file to write")
    if args.export is not None:
        return export(roots, args.export, args.single_file)
    if len(roots) > 1:
        raise UserError("RUNS: name one folder to serve; several runs only with --export")
    try:
        from gcdformer.lab.server import serve
    except ModuleNotFoundError as error:
        raise MissingExtra(str(error.name), "lab") from None
    serve(roots[0], host=args.host, port=args.port, open_browser=not args.no_open, allow_training=args.allow_training)
    return 0


def export(roots: list[Path], target: Path, single: bool) -> int:
    from gcdformer.lab.export import export_runs, export_single_file
    if single:
        path = export_single_file(roots, target)
        print(f"{path}: {path.stat().st_size / 1e6:.1f} MB, opens in a browser as it is")
    else:
        print(f"{export_runs(roots, target)}: for any web server, such as python -m http.server -d {target}")
    return 0
