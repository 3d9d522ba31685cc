"""Flags from the schema: every leaf of the configuration is a flag, and flags given make a configuration."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gcdformer.config import Config, Leaf, config_leaves
from gcdformer.errors import UserError
from gcdformer.presets import PRESETS, preset
from gcdformer.tasks.trust import require_trusted, trust_task

if TYPE_CHECKING:
    from rich.console import Console

CHECKPOINTS = "best|last|certified|EPOCH"
BOTH_SIDES = {"layers": "layers", "dim": "width", "heads": "attention heads"}


def add_config_flags(parser: argparse.ArgumentParser, only: Iterable[str] | None = None,
                     defaults: Config | None = None, *, config_file: bool = True) -> None:
    """A flag for each leaf of the schema (or for some of them), grouped by section, and `--config` for a file of them.

    `defaults` are shown in the help.
    """
    shown = (defaults or preset("fast")).model_dump()
    wanted = None if only is None else set(only)
    groups: dict[str, Any] = {}
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
        for name, meaning in BOTH_SIDES.items():
            groups["model"].add_argument(f"--{name}", dest=f"config.{name}", type=int, metavar="N",
                                         default=argparse.SUPPRESS,
                                         help=f"{meaning} of encoder and decoder")


def add_flag(group: Any, leaf: Leaf, shown: Any) -> None:
    text = (leaf.info.description or "") + ("" if shown is None else f" (default: {shown})")
    common = {"dest": f"config.{leaf.name}", "default": argparse.SUPPRESS, "help": text.replace("%", "%%")}
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


def given(args: argparse.Namespace) -> dict[str, Any]:
    """The leaves that were given as flags."""
    return {name.removeprefix("config."): value for name, value in vars(args).items() if name.startswith("config.")}


def config_from(args: argparse.Namespace, start: Config | None = None) -> Config:
    """The preset (or `start`) with the file of `--config`, then the flags applied."""
    leaves = given(args)
    if "task" in leaves:
        trust_task(leaves["task"])
    if "init_from" in leaves:
        leaves["init_from"] = str(run_path(leaves["init_from"]))
    start = start or preset(getattr(args, "preset", None) or "fast")
    if getattr(args, "config_file", None) is None:
        return start.overlay(with_limits(leaves))
    from gcdformer.commands.config_file import read_config_file
    found = with_limits(read_config_file(args.config_file))
    if isinstance(found.get("task"), str) and "task" not in leaves:
        require_trusted(found["task"], args.config_file)
    try:
        return start.overlay(found, with_limits(leaves))
    except UserError as error:
        if is_valid(start, found):
            raise
        raise UserError(f"{args.config_file}: {error}") from None


def is_valid(start: Config, leaves: dict[str, Any]) -> bool:
    try:
        start.overlay(leaves)
    except UserError:
        return False
    return True


def with_limits(leaves: dict[str, Any]) -> dict[str, Any]:
    """A limit of epochs or minutes replaces one that was there before."""
    return {"max_epochs": None, "max_minutes": None} | leaves if {"max_epochs", "max_minutes"} & set(leaves) else leaves


def runs_folder() -> Path:
    """Where runs are kept: $GCDFORMER_RUNS, or `runs` here."""
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


def in_window(console: Console) -> bool:
    """Whether a person watches: a real terminal that can redraw, not a file or pipe, whatever FORCE_COLOR says."""
    return console.file.isatty() and not console.is_dumb_terminal


def add_preset(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("preset", nargs="?", metavar="PRESET", help=f"one of {', '.join(PRESETS)} (default: fast)")


def add_checkpoint(parser: argparse.ArgumentParser) -> None:
    """Which weights, and how they are decoded."""
    parser.add_argument("--checkpoint", default="last", metavar=CHECKPOINTS, help="whose weights (default: last)")
    parser.add_argument("--beam", type=beam_width, default=1, metavar="N", help="beam width (default: 1, greedy)")


def beam_width(text: str) -> int:
    return parse_integer(text, "beam", 1, 100)


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
