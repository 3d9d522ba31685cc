"""`gcdformer import-reference`: a checkpoint of the paper's published code as a run folder."""

from __future__ import annotations

import argparse
from pathlib import Path

from gcdformer.display.progress import progress
from gcdformer.errors import UserError
from gcdformer.options import add_json, add_quiet, print_json, run_path, whole_number
from gcdformer.runs.hints import hint


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE.pth", help="checkpoint of the published code")
    parser.add_argument("--to", required=True, type=run_path, metavar="DIR", help="run folder, new")
    parser.add_argument("--test-size", type=whole_number, default=100_000, metavar="N",
                        help="pairs in each test set (default: 100000)")
    add_quiet(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    if not 100 <= args.test_size <= 100_000_000:
        raise UserError(f"test_size: 100 to 100000000, got {args.test_size}")
    with progress("reading and evaluating", 1.0, quiet=args.quiet) as advance:
        from gcdformer.runs.files import sha256
        from gcdformer.runs.reference import read_reference, to_config, to_weights
        from gcdformer.training.imported import save_imported
        reference = read_reference(args.file)
        config = to_config(reference, args.test_size)
        weights = to_weights(reference, config)
        origin = f"reference checkpoint, sha256 {sha256(args.file.read_bytes())}"
        made = save_imported(config, weights, args.file, origin, args.to, advance)
    line = made.metrics[-1]
    if args.json:
        print_json({"run": str(args.to), "last": line})
        return 0
    model = config.model
    print(f"{model.family} {model.encoder_layers}+{model.decoder_layers}, d={model.encoder_dim} and {model.decoder_dim}, "
          f"base {config.task.base}, {reference.iterations:,} steps of {config.training.batch_size}")
    print(f"accuracy {line['accuracy']:.2f} %, {line['n_correct']} correct GCD\nexplain it  {hint('explain', args.to)}")
    return 0
