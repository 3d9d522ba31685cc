"""A sweep is a TOML file: a preset, fixed settings, a grid, lists of values, seeds, a budget and the needs of a trial.

    preset = "fast"
    seeds = 3                        # or a list: [0, 1, 2]

    [fixed]                          # settings of all trials
    operands = "uniform"

    [grid]                           # every combination
    base = [10, 30]

    [[list]]                         # each entry is combined with every point of the grid
    outcomes = "natural"
    [[list]]
    preset = "paper"                 # may start from a preset of its own
    batch_size = 64

    [budget]                         # of a trial: max_epochs, max_minutes, stop_at_correct
    max_epochs = 10

    [needs]                          # of a trial
    cpus = 1
    gpus = 0

This module turns a file into trials with names that say what they are. It runs nothing and reads no run folder.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from pydantic import Field, ValidationError, model_validator

from gcdformer.config import (
    BOTH_SIDES,
    SECTION,
    Config,
    LimitsSection,
    Section,
    leaf_name,
    parse_toml,
    unknown_field,
)
from gcdformer.data import Problem
from gcdformer.errors import UserError
from gcdformer.presets import preset

Value = bool | int | float | str
LONGEST_NAME = 120


class Needs(Section):
    """What a trial occupies while it runs."""

    cpus: int = Field(1, ge=1, le=1024, description="CPU cores, and threads, of a trial")
    gpus: float = Field(0, ge=0, le=64, description="GPUs of a trial; several trials may share one (0.25)")


class SweepFile(Section):
    """The file, validated."""

    preset: str = "fast"
    seeds: int | list[int] = Field(default=1, description="number of seeds, from 0, or a list of them")
    fixed: dict[str, Value] = {}
    grid: dict[str, list[Value]] = {}
    entries: list[dict[str, Value]] = Field(default=[], alias="list")
    budget: LimitsSection = LimitsSection()
    needs: Needs = Needs()

    @model_validator(mode="after")
    def has_trials(self) -> Self:
        seeds = self.seed_list
        if not seeds or min(seeds) < 0 or len(set(seeds)) < len(seeds):
            raise ValueError("seeds: a number above 0, or a list of different seeds from 0 on")
        for name, values in self.grid.items():
            if not values:
                raise ValueError(f"grid.{name}: a list of at least one value")
        for where, names in [("fixed", list(self.fixed)), ("grid", list(self.grid)),
                             *(("list", list(entry)) for entry in self.entries)]:
            for name in names:
                check_name(where, name)
        return self

    @property
    def seed_list(self) -> list[int]:
        return list(range(self.seeds)) if isinstance(self.seeds, int) else self.seeds


@dataclass(frozen=True)
class Trial:
    """One run of a sweep, not yet in a folder."""

    name: str
    config: Config
    needs: Needs

    @property
    def digest(self) -> str:
        return identity_digest(self.config)


def check_name(where: str, name: str) -> None:
    """A field that may stand there; a `ValueError` says where it belongs otherwise."""
    leaf = leaf_name(name)
    if leaf == "preset" and where == "list":
        return
    if leaf not in SECTION and leaf not in BOTH_SIDES:
        raise ValueError(unknown_field(f"{where}.{name}"))
    if leaf == "seed":
        raise ValueError(f"{where}.{name}: seeds have a line of their own: seeds = [0, 1, 2]")
    section = SECTION.get(leaf)
    if section == "limits":
        raise ValueError(f"{where}.{name}: limits of a trial stand under [budget]")
    if section == "machine" and where != "fixed" or leaf == "threads":
        raise ValueError(f"{where}.{name}: is no part of what a trial is; "
                         + ("give cpus under [needs]" if leaf == "threads" else "it may stand under [fixed]"))


def read_sweep(path: Path) -> SweepFile:
    """The file; a `UserError` names it and the field."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: not a readable sweep file: {getattr(error, 'strerror', None) or 'not UTF-8'}") from None
    tree = parse_toml(text, str(path))
    try:
        return SweepFile.model_validate(tree)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"] if not str(part).startswith(("list[", "int")))
        message = first["msg"].removeprefix("Value error, ")
        if first["type"] == "extra_forbidden":
            message = f"unknown field; a sweep file has {', '.join(known_fields())}"
        raise UserError(f"{path}: {place}: {message}" if place else f"{path}: {message}") from None


def known_fields() -> list[str]:
    return [info.alias or name for name, info in SweepFile.model_fields.items()]


def expand(sweep: SweepFile, source: str = "sweep") -> list[Trial]:
    """All trials of a sweep, in the order of the file, seeds innermost; equal ones once."""
    trials: dict[str, Trial] = {}
    points = [dict(zip(sweep.grid, values, strict=True)) for values in itertools.product(*sweep.grid.values())]
    for entry, point, seed in itertools.product(sweep.entries or [{}], points, sweep.seed_list):
        own = {leaf_name(name): value for name, value in {**point, **entry}.items()}
        name = str(own.pop("preset", sweep.preset))
        settings = {leaf_name(name): value for name, value in sweep.fixed.items()} | own
        try:
            config = preset(name).derive(**settings, seed=seed, threads=sweep.needs.cpus)
            config = with_budget(config, sweep.budget)
            Problem.of(config)
        except UserError as error:
            asked = ", ".join(f"{key} = {value}" for key, value in settings.items())
            raise UserError(f"{source}: {error}" + (f" (trial with {asked})" if asked else "")) from None
        trial = Trial(trial_name(name, own, seed), config, sweep.needs)
        trials.setdefault(trial.digest, trial)
    return with_distinct_names(list(trials.values()))


def with_budget(config: Config, budget: LimitsSection) -> Config:
    """The limits of the file in place of the preset's; a trial without any would never end."""
    given = budget.model_dump(exclude_none=True)
    if {"max_epochs", "max_minutes"} & set(given):
        given = {"max_epochs": None, "max_minutes": None} | given
    config = config.replace(**given)
    if not any(value is not None for value in config.limits.model_dump().values()):
        raise UserError("budget: give max_epochs, max_minutes or stop_at_correct")
    return config


def identity_digest(config: Config) -> str:
    """A digest of what makes two runs the same."""
    return hashlib.sha256(json.dumps(config.identity(), sort_keys=True).encode()).hexdigest()


def trial_name(preset_name: str, settings: dict[str, Value], seed: int) -> str:
    """The preset, what this trial has of the grid and the list, the seed: `fast_base-30_lr-0.001_seed-0`.

    What is fixed for all trials is not repeated in each name.
    """
    words = [preset_name, *(f"{name.replace('_', '-')}-{plain(value)}" for name, value in settings.items())]
    return "_".join(words)[:LONGEST_NAME] + f"_seed-{seed}"


def plain(value: Any) -> str:
    """A value as a part of a file name."""
    text = f"{value:g}" if isinstance(value, float) and float(f"{value:g}") == value else str(value)
    return re.sub(r"[^A-Za-z0-9.+-]+", "-", text.rsplit("/", 1)[-1]).strip(".-") or "x"


def with_distinct_names(trials: list[Trial]) -> list[Trial]:
    """Names that two trials share get a piece of the digest."""
    counts = Counter(trial.name for trial in trials)
    return [Trial(distinct(trial), trial.config, trial.needs) if counts[trial.name] > 1 else trial for trial in trials]


def distinct(trial: Trial) -> str:
    return f"{trial.name}_{trial.digest[:7]}"
