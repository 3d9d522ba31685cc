"""`gcdformer train`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path

from gcdformer.config import Config, config_leaves
from gcdformer.display.progress import progress
from gcdformer.errors import UserError
from gcdformer.options import (
    add_config_flags,
    add_json,
    add_preset,
    add_quiet,
    config_from,
    given,
    run_path,
    runs_folder,
)
from gcdformer.runs.folder import RunFolder
from gcdformer.sweeps.sweep import plain


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_preset(parser)
    parser.add_argument("--out", type=run_path, metavar="DIR",
                        help="run folder, new or to resume (default: named after what is trained, as "
                        "runs/gcd-base30-uniform-natural, with -2, -3 … for other configurations)")
    add_quiet(parser, "print nothing while training")
    add_json(parser)
    add_config_flags(parser)


def run(args: argparse.Namespace) -> int:
    config = config_from(args, stored_config(args))
    out = args.out or default_folder(config, runs_folder())
    return load_training(args)(config, out, quiet=args.quiet, as_json=args.json)


def load_training(args: argparse.Namespace) -> Callable[..., int]:
    """`train_and_tell`, which needs torch: seconds, where that has not been loaded for a while. Of several ranks the first
    says so."""
    quiet = args.quiet or os.environ.get("RANK", "0") != "0"
    with progress("getting ready", quiet=quiet, file=sys.stderr if args.json else sys.stdout):
        from gcdformer.commands.training import train_and_tell
    return train_and_tell


def stored_config(args: argparse.Namespace) -> Config | None:
    """The run's own configuration, if it is to be resumed and nothing else was asked for than limits."""
    free = {leaf.name for leaf in config_leaves() if leaf.section in ("limits", "machine")}
    if args.out is None or args.preset is not None or args.config_file is not None or set(given(args)) - free:
        return None
    folder = RunFolder(args.out)
    return folder.read_config()[0] if folder.exists() else None


def default_folder(config: Config, parent: Path) -> Path:
    """The folder named after what is trained that holds this configuration, or the first that holds none."""
    name, number = default_name(config), 1
    while True:
        path = parent / (name if number == 1 else f"{name}-{number}")
        if is_free(path) or holds(path, config):
            return path
        number += 1


def default_name(config: Config) -> str:
    """Task, base and distributions: `gcd-base30-uniform-natural`; or the file that the examples are from."""
    task, data = config.task, config.data
    words = [plain(task.task.rpartition(":")[2]), f"base{task.base}"]
    if data.train_file is not None:
        words.append(f"from-{plain(Path(data.train_file).stem)}")
    else:
        words += [data.operands, *([data.outcomes] if task.task == "gcd" else [])]
    return "-".join(words)


def is_free(path: Path) -> bool:
    """Whether a new run may be made there: nothing is, or what a run that has just been started leaves."""
    return not path.exists() or path.is_dir() and all(p.name == "lock" or p.name.startswith(".") for p in path.iterdir())


def holds(path: Path, config: Config) -> bool:
    """Whether the run there has this configuration; the horizon that a cosine was given at its start is its own."""
    try:
        stored = RunFolder(path).read_config()[0]
    except UserError:
        return False
    have, want = stored.identity(), config.identity()
    return have == want | ({"horizon": have["horizon"]} if want["horizon"] is None else {})
