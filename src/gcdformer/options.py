"""What the verbs' command lines share: flags made from the schema, a configuration made from flags and a file, run folders.

Every leaf of the schema is a flag. No verb is known here.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from gcdformer.config import (
    BOTH_SIDES,
    SECTION,
    Config,
    Leaf,
    checked_prior,
    config_leaves,
    leaf_name,
    parse_toml,
    unknown_field,
)
from gcdformer.data.files import require_place
from gcdformer.errors import UserError
from gcdformer.presets import PRESETS, preset
from gcdformer.tasks.registry import require_trusted, trust_task

CHECKPOINTS = "best|last|certified|EPOCH"
Settings = dict[str, object]
"""Leaves of the schema by name, with values that are not checked yet."""
SIDES = {"layers": "layers", "dim": "width", "heads": "attention heads"}


def add_config_flags(parser: argparse.ArgumentParser, only: Iterable[str] | None = None,
                     defaults: Config | None = None, *, config_file: bool = True) -> None:
    """A flag for each leaf of the schema (or for some of them), grouped by section, and `--config` for a file of them.

    `defaults` are shown in the help.
    """
    shown = (defaults or preset("fast")).model_dump()
    wanted = None if only is None else set(only)
    groups: dict[str, argparse._ArgumentGroup] = {}
    if config_file:
        parser.add_argument("--config", dest="config_file", type=Path, metavar="FILE.toml",
                            help="settings from a file, over the preset's and under the flags': a run's own config.toml, "
                            "or a few fields by name")
    for leaf in config_leaves():
        if wanted is not None and leaf.name not in wanted:
            continue
        if leaf.section not in groups:
            groups[leaf.section] = parser.add_argument_group(leaf.section)
        add_flag(groups[leaf.section], leaf, shown[leaf.section][leaf.name])
    if wanted is None:
        for name, meaning in SIDES.items():
            groups["model"].add_argument(f"--{name}", dest=f"config.{name}", type=int, metavar="N",
                                         default=argparse.SUPPRESS,
                                         help=f"{meaning} of encoder and decoder")


def add_flag(group: argparse._ArgumentGroup, leaf: Leaf, shown: Any) -> None:
    text = (leaf.info.description or "") + ("" if shown is None else f" (default: {shown})")
    common: dict[str, Any] = {"dest": f"config.{leaf.name}", "default": argparse.SUPPRESS, "help": text.replace("%", "%%")}
    if leaf.kind is bool:
        group.add_argument(leaf.flag, action=argparse.BooleanOptionalAction, **common)
    elif leaf.choices:
        group.add_argument(leaf.flag, choices=leaf.choices, **common)
    else:
        kind = whole_number if leaf.kind is int else number if leaf.kind is float else str
        group.add_argument(leaf.flag, type=kind, metavar="TEXT" if kind is str else "N", **common)


def whole_number(text: str) -> int:
    """An integer; 1e6 and 1_000_000 are ones too."""
    try:
        return int(text)
    except ValueError:
        value = number(text)
        if value != int(value):
            raise argparse.ArgumentTypeError(f"a whole number, got '{text}'") from None
        return int(value)


def number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"a number, got '{text}'") from None
    if value != value or value in (float("inf"), float("-inf")):
        raise argparse.ArgumentTypeError(f"a finite number, got '{text}'")
    return value


def given(args: argparse.Namespace) -> Settings:
    """The leaves that were given as flags."""
    return {name.removeprefix("config."): value for name, value in vars(args).items() if name.startswith("config.")}


def config_from(args: argparse.Namespace, start: Config | None = None) -> Config:
    """The preset (or `start`) with the file of `--config`, then the flags applied."""
    leaves = given(args)
    if "task" in leaves:
        trust_task(str(leaves["task"]))
    if "init_from" in leaves:
        leaves["init_from"] = str(run_path(str(leaves["init_from"])))
    start = start or preset(getattr(args, "preset", None) or "fast")
    if getattr(args, "config_file", None) is None:
        return start.derive(with_limits(leaves))
    from_file = with_limits(read_config_file(args.config_file))
    task = from_file.get("task")
    if isinstance(task, str) and "task" not in leaves:
        require_trusted(task, args.config_file)
    try:
        return start.derive(from_file, with_limits(leaves))
    except UserError as error:
        if is_valid(start, from_file):
            raise
        raise UserError(f"{args.config_file}: {error}") from None


def is_valid(start: Config, leaves: Settings) -> bool:
    try:
        start.derive(leaves)
    except UserError:
        return False
    return True


def with_limits(leaves: Settings) -> Settings:
    """A limit of epochs or minutes replaces one that was there before."""
    return {"max_epochs": None, "max_minutes": None} | leaves if {"max_epochs", "max_minutes"} & set(leaves) else leaves


def read_config_file(path: Path) -> Settings:
    """The settings in the file of `--config`: TOML, in sections like a run's own config.toml or as bare fields.

        base = 30                 # fields are named like the flags: max = 1000, batch-size = 64, dim = 32

        [training]                # or stand in their section
        lr = 1e-3

    A run's own config.toml is complete, so whatever it does not contain is unset, even if the preset sets it. Names are
    checked here, values with the whole configuration.
    """
    from gcdformer.runs.folder import HEADER, checksum_line
    try:
        text = path.read_bytes().decode()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"config: {path} cannot be read: {getattr(error, 'strerror', None) or 'not UTF-8'}") from None
    first, _, body = text.partition("\n")
    if first.startswith(HEADER) and first != checksum_line(body):
        raise UserError(f"{path}: does not match the checksum in its first line; if you changed it, remove that line")
    tree = parse_toml(text, str(path))
    made_by = tree.pop("gcdformer", None)
    leaves: Settings = {leaf.name: None for leaf in config_leaves() if leaf.optional} if made_by is not None else {}
    for name, value in tree.items():
        if isinstance(value, dict):
            leaves |= section_leaves(path, name, value)
        else:
            leaves |= {known_leaf(path, name): value}
    return leaves


def section_leaves(path: Path, section: str, fields: Settings) -> Settings:
    if section not in Config.model_fields:
        raise UserError(f"{path}: unknown section '{section}': the sections are {', '.join(Config.model_fields)}")
    leaves: Settings = {}
    for name, value in fields.items():
        leaf = known_leaf(path, name, f"{section}.")
        home = SECTION.get(leaf, "model")
        if home != section:
            raise UserError(f"{path}: unknown field '{section}.{name}': it belongs under [{home}]")
        leaves[leaf] = value
    return leaves


def known_leaf(path: Path, name: str, where: str = "") -> str:
    leaf = leaf_name(name)
    if leaf not in SECTION and leaf not in BOTH_SIDES:
        raise UserError(f"{path}: {unknown_field(where + name)}")
    return leaf


def runs_folder() -> Path:
    """Where runs are: $GCDFORMER_RUNS, or `runs` here."""
    home = os.environ.get("GCDFORMER_RUNS")
    return Path(home).absolute() if home else Path("runs")


def run_path(text: str) -> Path:
    """A run folder, or a folder of runs, as it was typed: a relative name is in $GCDFORMER_RUNS if that is set.

    Names that begin with `./` or `../` are relative to the current folder all the same. With the variable set the path is
    absolute, so that it means the same in commands that are printed and in processes that are started.
    """
    if not os.environ.get("GCDFORMER_RUNS"):
        return Path(text)
    return (Path(text) if text.split("/")[0] in (".", "..") else runs_folder() / text).absolute()


def add_quiet(parser: argparse.ArgumentParser, meaning: str = "print no progress") -> None:
    parser.add_argument("--quiet", action="store_true", help=meaning)


def add_preset(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("preset", nargs="?", metavar="PRESET", help=f"one of {', '.join(PRESETS)} (default: fast)")


def add_checkpoint(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--checkpoint", default="last", metavar=CHECKPOINTS, help="whose weights (default: last)")


def add_beam(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--beam", type=bounded("beam", 1, 100), default=1, metavar="N",
                        help="beam width (default: 1, greedy)")


def add_prior(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--prior", metavar="training|natural|uniform|ALPHA", help="distribution of the GCD under which "
                        "answers are decided; a number is the exponent of k^-ALPHA (default: the run's own, training unless "
                        "it was started with another)")


def chosen_prior(args: argparse.Namespace, config: Config) -> str:
    """The prior that was given, or the run's."""
    return config.evaluation.prior if args.prior is None else checked_prior(args.prior)


def require_figure(path: Path) -> None:
    """A `UserError` unless a figure can be written there."""
    if path.suffix not in (".svg", ".png"):
        raise UserError(f"figure: a file that ends in .svg or .png, got '{path}'")
    require_place(path, "figure")


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def print_json(value: Any) -> None:
    print(json.dumps(value, indent=1, allow_nan=False))


def parse_integer(text: str, what: str, low: int, high: int) -> int:
    """An integer within bounds; a `UserError` names the field."""
    try:
        value = int(text)
    except ValueError:
        raise UserError(f"{what}: an integer, got '{text}'") from None
    if not low <= value <= high:
        raise UserError(f"{what}: an integer in {low}..{high}, got {value}")
    return value


def bounded(name: str, low: int, high: int) -> Callable[[str], int]:
    """The type of a flag that takes an integer within bounds."""
    return lambda text: parse_integer(text, name, low, high)
