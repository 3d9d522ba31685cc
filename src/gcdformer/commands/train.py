"""`gcdformer train`."""

from __future__ import annotations

import argparse

from gcdformer.commands.options import add_config_flags, add_json, add_preset, add_quiet, config_from, given, run_path
from gcdformer.config import Config, config_leaves
from gcdformer.runs.folder import RunFolder


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_preset(parser)
    parser.add_argument("--out", required=True, type=run_path, metavar="DIR", help="run folder, new or to go on with")
    add_quiet(parser, "print nothing while training")
    add_json(parser)
    add_config_flags(parser)


def run(args: argparse.Namespace) -> int:
    config = config_from(args, stored_config(args))
    from gcdformer.commands.training import train_and_tell
    return train_and_tell(config, args.out, quiet=args.quiet, as_json=args.json)


def stored_config(args: argparse.Namespace) -> Config | None:
    """The run's own configuration, if it is to be gone on with and nothing else was asked for than limits."""
    free = {leaf.name for leaf in config_leaves() if leaf.section in ("limits", "machine")}
    folder = RunFolder(args.out)
    if args.preset is not None or args.config_file is not None or set(given(args)) - free or not folder.exists():
        return None
    return folder.read_config()[0]
