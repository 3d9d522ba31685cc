"""`gcdformer demo`: the main job in a few minutes."""

from __future__ import annotations

import argparse

from gcdformer.commands.train import train_and_show
from gcdformer.options import add_config_flags, add_json, add_quiet, config_from, run_path, runs_folder
from gcdformer.presets import demo
from gcdformer.runs.folder import fresh_folder


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=run_path, default=None, metavar="DIR",
                        help="run folder (default: a new one in $GCDFORMER_RUNS, or in runs: demo, demo-2, ...)")
    add_quiet(parser, "print nothing while training")
    add_json(parser)
    add_config_flags(parser, defaults=demo())


def run(args: argparse.Namespace) -> int:
    config = config_from(args, demo())
    return train_and_show(config, args.out or fresh_folder(runs_folder(), "demo"), quiet=args.quiet, as_json=args.json)
