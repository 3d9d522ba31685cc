"""The types in which the paper's tables are written down: experiment, measure, cell, table, note.

Facts only. A cell is a published value, what it measures, and the experiment whose run measures it again. This module
knows configurations and presets, not run folders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal

from gcdformer.config import Config
from gcdformer.errors import UserError
from gcdformer.presets import preset

Value = int | float | str | tuple[int, ...]
Leaves = tuple[tuple[str, Any], ...]
Json = dict[str, Any]
"""Plain data for scripts, made at the very end."""
Settings = dict[str, object]
"""Leaves of the schema by name."""
Kind = Literal[
    "correct",           # number of correct GCD
    "accuracy",          # percent of the natural test set
    "prediction",        # f(k)
    "frequency",         # percent of the pairs with GCD k that are predicted f(k)
    "share",             # percent of the pairs with GCD k that are predicted `value`
    "divisors",          # powers of the primes of B in D
    "epoch-learned",     # first epoch at which k was correct
    "new-prime-powers",  # prime powers in D that the natural run of the same base does not have
    "epochs",            # epoch at which the last of the correct GCD was learned
    "reached",           # first epoch with `value` correct GCD
    "parameters",        # millions of parameters; computed
    "theory",            # percent that the rule model gets right; computed
    "encoded-input", "encoded-output",  # tokens of 160, 120 and of their GCD; computed
]
COMPUTED = ("parameters", "theory", "encoded-input", "encoded-output")
PAPER_EPOCH = 300_000
Reason = Literal["pitfall", "fewer examples", "other recipe", "smaller model", "not comparable"]
REASONS: tuple[Reason, ...] = ("pitfall", "fewer examples", "other recipe", "smaller model", "not comparable")


@dataclass(frozen=True)
class Experiment:
    """What is trained, but for the seed: the same run may measure cells of several tables.

    `model` is given where the table varies the model; presets other than `paper` take `small` in its place. `two_set` is for
    tables about grokked primes: presets other than `paper` draw that share of the examples from that many repeated ones, or
    they do not grok.
    """

    base: int
    operands: str = "uniform"
    outcomes: str = "natural"
    max_gcd: int | None = None
    task: str = "gcd"
    maximum: int = 1_000_000
    batch_size: int | None = None
    model: Leaves = ()
    small: Leaves = ()
    two_set: tuple[float, int] | None = None

    @cached_property
    def name(self) -> str:
        """Distinguishes experiments; with the seed added it is also the name of the run folder."""
        words = [f"base-{self.base}"]
        if self.task != "gcd":
            words = [self.task, *words, f"max-{self.maximum}"]
        if self.operands != "uniform":
            words.append(f"{self.operands}-operands")
        if self.outcomes != "natural":
            words.append(f"{self.outcomes}-outcomes" + (f"-to-{self.max_gcd}" if self.max_gcd else ""))
        if self.batch_size:
            words.append(f"batch-{self.batch_size}")
        if self.two_set:
            words.append("two-set")
        words += [f"{name.replace('_', '-')}-{value}" for name, value in self.model if not name.endswith("heads")]
        return "_".join(words)

    def config(self, preset_name: str = "fast", seed: int = 0) -> Config:
        """The experiment in the recipe of a preset: `paper` as published, any other with its own model and optimiser.

        A model wider than the preset's own is trained at a rate that is lower by as much.
        """
        published = preset_name == "paper"
        start = preset("paper-rational" if published and self.task != "gcd" else preset_name)
        leaves = dict(self.model if published or not self.small else self.small)
        if not published:
            widths = [leaves.get(name, 0) for name in ("dim", "encoder_dim", "decoder_dim", "hidden_dim")]
            wider = max(widths) / start.model.decoder_dim
            if wider > 1:
                leaves["lr"] = start.training.lr / wider
        if leaves.get("family", "transformer") != "transformer":
            leaves["optimizer"] = "adam"
        if self.two_set and not published:
            leaves |= {"repeat_share": self.two_set[0], "repeat_size": self.two_set[1]}
        if self.batch_size:
            leaves["batch_size"] = self.batch_size
        return start.derive(task=self.task, base=self.base, maximum=self.maximum, operands=self.operands,
                            outcomes=self.outcomes, max_gcd=self.max_gcd, seed=seed, **leaves)

    @property
    def natural(self) -> Experiment:
        """The same with uniform operands and natural outcomes."""
        return Experiment(self.base)


@dataclass(frozen=True)
class Measure:
    """What a cell measures of a run; `k` is a GCD, `value` a prediction or a number, `epoch` one of the paper's epochs."""

    kind: Kind
    k: int = 0
    value: int = 0
    epoch: int = 0


@dataclass(frozen=True)
class Note:
    """Why a published value and ours, or two published values, need not agree."""

    reason: Reason
    text: str
    alone: bool = False
    """Whether it explains a difference whatever the budgets are: a misprint, a column that is of another distribution."""

    def to_json(self) -> dict[str, str]:
        return {"reason": self.reason, "text": self.text}


@dataclass(frozen=True)
class Cell:
    """One published value; None where the paper has a dash."""

    row: str
    column: str
    published: Value | None
    measure: Measure
    experiment: Experiment
    note: Note | None = None

    @property
    def computed(self) -> bool:
        """Whether it needs no run."""
        return self.measure.kind in COMPUTED

    @property
    def needs(self) -> list[Experiment]:
        """The experiments whose runs measure it; where prime powers have to be new, also the natural one."""
        if self.computed:
            return []
        return [self.experiment, self.experiment.natural] if self.measure.kind == "new-prime-powers" else [self.experiment]


@dataclass(frozen=True)
class Table:
    """A table, or the readable facts of a figure. `number` is the paper's, which numbers tables and figures separately, also
    through the appendix; a figure's label begins with `fig:`. `epochs` and `best_of` are the paper's own budget, where it is
    stated; a figure shows all of its `best_of` seeds."""

    name: str
    label: str
    number: int
    title: str
    cells: tuple[Cell, ...]
    best_of: int = 1
    epochs: int | None = None
    note: Note | None = None
    curves: tuple[Experiment, ...] = ()
    """The experiments whose learning curves a figure shows."""
    similar: tuple[Experiment, ...] = ()
    """For a table of predictions: other experiments whose predictions are reported in its form once they have grokked."""
    epochs_of_columns: tuple[tuple[str, int], ...] = ()
    """The columns that have epochs of their own."""

    @property
    def is_figure(self) -> bool:
        return self.label.startswith("fig:")

    @property
    def in_paper(self) -> str:
        """What the paper calls it: Table 2, Figure 1."""
        return f"{'Figure' if self.is_figure else 'Table'} {self.number}"

    @property
    def heading(self) -> str:
        return f"{self.in_paper}: {self.name}"

    @property
    def rows(self) -> list[str]:
        return list(dict.fromkeys(cell.row for cell in self.cells))

    @property
    def columns(self) -> list[str]:
        return list(dict.fromkeys(cell.column for cell in self.cells))

    @property
    def published(self) -> list[Cell]:
        return [cell for cell in self.cells if cell.published is not None]

    @property
    def bases(self) -> list[int]:
        return sorted({cell.experiment.base for cell in self.cells} | {experiment.base for experiment in self.curves})

    def epochs_of(self, cell: Cell) -> int | None:
        """The epochs behind a published value, where they are stated; those to reach a number of GCD are the value."""
        if self.epochs is None and cell.measure.kind == "reached" and isinstance(cell.published, int):
            return cell.published
        return dict(self.epochs_of_columns).get(cell.column, self.epochs)

    def epochs_for(self, experiment: Experiment) -> int | None:
        """The epochs of an experiment's runs, where they are stated."""
        columns = {cell.column for cell in self.cells if cell.experiment == experiment}
        stated = {dict(self.epochs_of_columns).get(column, self.epochs) for column in columns}
        return stated.pop() if len(stated) == 1 else self.epochs

    def experiments(self, bases: Iterable[int] | None = None) -> list[Experiment]:
        """What has to be trained for this table, each once; the natural runs that others are compared with too."""
        wanted = None if bases is None else set(bases)
        needed = [*self.curves, *(experiment for cell in self.published for experiment in cell.needs)]
        return [experiment for experiment in dict.fromkeys(needed) if wanted is None or experiment.base in wanted]

    def named_experiments(self, words: Iterable[str], bases: Iterable[int] | None = None) -> list[Experiment]:
        """Those that have these names or, where none has, whose names contain the word."""
        listed, chosen = self.experiments(bases), list[Experiment]()
        for word in words:
            fitting = [run for run in listed if word == run.name] or [run for run in listed if word and word in run.name]
            if not fitting:
                example = f"; one is named {listed[0].name}" if listed else ""
                raise UserError(f"only: no experiment of {self.name} has '{word}' in its name{example}")
            chosen += fitting
        return list(dict.fromkeys(chosen))


def numbers(text: str) -> list[list[float]]:
    """Rows of numbers from text, one row per line."""
    return [[float(word) for word in line.split()] for line in text.strip().splitlines()]


def grid(text: str, columns: Iterable[tuple[str, Measure]], experiments: Callable[[int, int], Experiment],
         notes: Mapping[tuple[int, str], Note] = MappingProxyType({}), skip: int = 0) -> tuple[Cell, ...]:
    """Cells of a table whose rows are bases: `base value value …`, a dash where there is none.

    `experiments(base, column number)` names the run of a cell; `notes` are by base and column. Tables of the same bases may
    stand side by side in a text: `skip` is how many values are others'.
    """
    cells, named = [], list(columns)
    for line in text.strip().splitlines():
        base, *words = line.split()
        for place, ((column, measure), word) in enumerate(zip(named, words[skip:][:len(named)], strict=True)):
            cells.append(Cell(base, column, parse(word), measure, experiments(int(base), place),
                              notes.get((int(base), column))))
    return tuple(cells)


def parse(word: str) -> Value | None:
    """A dash as None, digits as an integer, else a decimal number."""
    if word == "-":
        return None
    return int(word) if word.lstrip("-").isdecimal() else float(word)
