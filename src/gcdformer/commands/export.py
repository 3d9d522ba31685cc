"""`gcdformer export`: a run's model as a Hugging Face style folder."""

from __future__ import annotations

import argparse
from pathlib import Path

from gcdformer.display.progress import progress
from gcdformer.options import add_checkpoint, add_json, add_quiet, print_json, run_path
from gcdformer.runs.run import Run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_folder", type=run_path, metavar="DIR", help="run folder")
    parser.add_argument("--to", required=True, type=Path, metavar="DIR2", help="folder to write, new or empty")
    add_checkpoint(parser)
    parser.add_argument("--onnx", action="store_true", help="also model.onnx, tried with onnxruntime "
                        "(needs gcdformer[onnx])")
    parser.add_argument("--parquet", action="store_true",
                        help="also predictions.parquet, the prediction tables of every epoch (needs gcdformer[query])")
    add_quiet(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    run = Run(args.run_folder)
    if args.parquet:
        run.require_gcd()
    with progress("exporting", quiet=args.quiet):
        from gcdformer.runs.exported import export_run
        files = export_run(run, args.to, args.checkpoint, parquet=args.parquet, onnx=args.onnx)
    if args.json:
        print_json({"folder": str(args.to), "files": files})
    else:
        print(f"{', '.join(files)} written to {args.to}\nload it  gcdformer.load_exported({str(args.to)!r})")
    return 0
