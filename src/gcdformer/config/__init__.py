"""The configuration of a run: one typed, validated, frozen object, its TOML form, and its leaves as flags see them.

Leaf names are unique, so a flag needs no prefix. Unknown or clashing fields are errors that name the fields.
`Config.replace` changes the leaves it is given and nothing else; `Config.derive` also changes what follows from them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from typing import Any, Self, get_args

import tomli_w
from pydantic import ValidationError, model_validator
from pydantic.fields import FieldInfo

from gcdformer.config.prior import PRIORS, checked_prior, parse_prior, prior_in_words, prior_value
from gcdformer.config.sections import (
    DEFAULT_MAX_GCD,
    FILE_DISTRIBUTIONS,
    FILE_TASK,
    LARGEST_BASE,
    LARGEST_INTEGER,
    LEAST_PAIRS,
    OF_A_DISTRIBUTION,
    RENAMED,
    SHIFTS,
    TESTED_GCDS,
    WITH_HEADS,
    DataSection,
    EvaluationSection,
    Family,
    LimitsSection,
    MachineSection,
    ModelSection,
    OperandDistribution,
    OutcomeDistribution,
    Section,
    TaskSection,
    TrainingSection,
    Value,
)
from gcdformer.errors import UserError

__all__ = [
    "BOTH_SIDES", "DEFAULT_MAX_GCD", "FILE_DISTRIBUTIONS", "FILE_TASK", "LARGEST_BASE", "LARGEST_INTEGER", "LEAST_PAIRS",
    "OF_A_DISTRIBUTION", "RENAMED", "SECTION", "SHIFTS", "TESTED_GCDS", "Config", "DataSection", "EvaluationSection",
    "Family", "Leaf", "LimitsSection", "MachineSection", "ModelSection", "OperandDistribution", "OutcomeDistribution",
    "PRIORS", "Section", "TaskSection", "TrainingSection", "Value", "checked_prior", "config_leaves", "leaf_name",
    "parse_prior", "parse_toml", "prior_in_words", "prior_value", "unknown_field",
]
BOTH_SIDES = ("dim", "heads", "layers")
"""Words of `derive` that set a leaf of the encoder and one of the decoder."""


class Config(Section):
    """The full, resolved configuration of a run."""

    task: TaskSection = TaskSection()
    data: DataSection = DataSection()
    model: ModelSection = ModelSection()
    training: TrainingSection = TrainingSection()
    evaluation: EvaluationSection = EvaluationSection()
    limits: LimitsSection = LimitsSection()
    machine: MachineSection = MachineSection()

    @model_validator(mode="after")
    def sections_agree(self) -> Self:
        if self.data.max_gcd is not None and self.data.max_gcd > self.task.maximum:
            raise ValueError(f"max_gcd must be at most max ({self.task.maximum}): {self.data.max_gcd} is not")
        if self.training.optimizer == "muon" and self.model.family != "transformer":
            raise ValueError(f"optimizer 'muon' is for family 'transformer', not '{self.model.family}'")
        for name in SHIFTS:
            if getattr(self.data, name) is not None and self.training.schedule != "cosine":
                raise ValueError(f"{name} needs schedule 'cosine', not '{self.training.schedule}': its horizon says when")
        if (self.task.task == FILE_TASK) != (self.data.data_types is not None):
            raise ValueError("task 'file' and data_types go together: give both or neither")
        if self.task.task == FILE_TASK and None in (self.data.train_file, self.evaluation.test_file):
            raise ValueError("task 'file' needs train_file and test_file: nothing else knows its examples")
        return self

    @classmethod
    def parse(cls, tree: Mapping[str, Any]) -> Config:
        """A configuration from a nested mapping; a `UserError` names the field and what would be right."""
        try:
            return cls.model_validate(dict(tree))
        except ValidationError as error:
            raise UserError(describe_validation(error)) from None

    def replace(self, **leaves: Any) -> Config:
        """A copy with these leaves changed and nothing else: `config.replace(base=30, lr=1e-3)`.

        A `UserError` if the whole is then not valid, as when `outcomes` changes but the parameters of the old distribution
        stay; `derive` drops those.
        """
        tree = self.model_dump()
        set_leaves(tree, leaves)
        return Config.parse(tree)

    def derive(self, *changes: Mapping[str, Any], **leaves: Any) -> Config:
        """A copy with leaves changed and what follows from them: `config.derive(outcomes="natural", dim=96)`.

        `dim`, `heads` and `layers` set both sides. What no longer has a meaning is dropped unless it is given: the heads
        and Muon with a recurrent family, the outcome distribution and the prior with another task, the parameters of a
        distribution with another one, all distributions with a train_file, fresh tests with a test_file. Several sets of
        changes apply one after another; only the whole has to be valid.
        """
        tree = self.model_dump()
        for change in (*changes, leaves):
            set_leaves(tree, with_consequences(change, tree["task"]["task"]))
        return Config.parse(tree)

    def to_toml(self) -> str:
        return tomli_w.dumps(self.model_dump(exclude_none=True))

    def identity(self) -> dict[str, Value]:
        """The leaves that make two runs the same, flat."""
        tree = self.model_dump(exclude={"limits", "machine"})
        leaves = {name: value for section in tree.values() for name, value in section.items()}
        if leaves["prior"] == "training":
            leaves["prior"] = None  # as in runs from before there was a choice
        return leaves


def set_leaves(tree: Mapping[str, dict[str, Value]], leaves: Mapping[str, Value]) -> None:
    """Change leaves of a configuration's sections; a `UserError` names one that is none."""
    for name, value in leaves.items():
        if name in BOTH_SIDES:
            raise UserError(f"'{name}' is no field of its own: it sets encoder_{name} and decoder_{name}, by Config.derive")
        if name not in SECTION:
            raise UserError(unknown_field(name))
        tree[SECTION[name]][name] = value


def with_consequences(changes: Mapping[str, Value], task: str) -> dict[str, Value]:
    """Changes to a configuration of this task, with those that follow from them, as `Config.derive` says."""
    leaves = dict(changes)
    for both in BOTH_SIDES:
        if both in leaves:
            value = leaves.pop(both)
            leaves = {f"encoder_{both}": value, f"decoder_{both}": value, **leaves}
    if leaves.get("family", "transformer") not in WITH_HEADS:
        leaves = {"encoder_heads": 0, "decoder_heads": 0, "positions": None, "optimizer": "adam", **leaves}
    if leaves.get("task", task) != task:
        leaves = {"outcomes": "natural", "max_gcd": None, "prior": "training", **OF_A_DISTRIBUTION, **leaves}
    if leaves.get("train_file") is not None:
        leaves = {**FILE_DISTRIBUTIONS, **leaves}
    if leaves.get("test_file") is not None:
        leaves = {"fresh_tests": False, **leaves}
    if "outcomes" in leaves:
        leaves = {**OF_A_DISTRIBUTION, **leaves}
        if leaves["outcomes"] in ("natural", "weights"):
            leaves = {"max_gcd": None, **leaves}
    if leaves.get("schedule", "cosine") != "cosine":
        leaves = {**dict.fromkeys(SHIFTS), "focus_share": None, "horizon": None, "final_lr_share": None, **leaves}
    return leaves


class Leaf:
    """One field of the schema, as the command line sees it."""

    def __init__(self, section: str, name: str, info: FieldInfo) -> None:
        self.section, self.name, self.info = section, name, info
        extra = info.json_schema_extra
        flag = extra.get("flag", name) if isinstance(extra, dict) else name
        self.flag = "--" + str(flag).replace("_", "-")
        kinds = [k for k in get_args(info.annotation) if k is not type(None)]
        optional = type(None) in get_args(info.annotation)
        self.kind = kinds[0] if optional else info.annotation
        self.optional = optional
        self.choices = [k for k in get_args(self.kind) if isinstance(k, str)]


@cache
def config_leaves() -> tuple[Leaf, ...]:
    """Every leaf of the schema, in order."""
    leaves = []
    for section, info in Config.model_fields.items():
        kind = info.annotation
        assert isinstance(kind, type) and issubclass(kind, Section)
        leaves += [Leaf(section, name, leaf) for name, leaf in kind.model_fields.items()]
    return tuple(leaves)


SECTION = {leaf.name: leaf.section for leaf in config_leaves()}
"""The section that each leaf stands in."""
SPELLINGS = RENAMED | {leaf.flag.removeprefix("--").replace("-", "_"): leaf.name for leaf in config_leaves()}


def leaf_name(name: str) -> str:
    """`max`, `batch-size` and `batch_size` as the schema spells them."""
    plain = name.replace("-", "_")
    return SPELLINGS.get(plain, plain)


def unknown_field(name: str) -> str:
    return f"unknown field '{name}': the fields are {', '.join(sorted(SECTION))}"


def describe_validation(error: ValidationError) -> str:
    """The first problem of a validation, in one line."""
    first = error.errors(include_url=False)[0]
    path = ".".join(str(part) for part in first["loc"])
    flags = {f"{leaf.section}.{leaf.name}": leaf.flag for leaf in config_leaves()}
    message = first["msg"].removeprefix("Value error, ")
    if first["type"] == "extra_forbidden":
        return f"unknown field '{path}'"
    if first["type"] == "value_error":
        return message
    field = f"{path} ({flags[path]})" if path in flags else path
    got = repr(first["input"])
    return f"{field}: {message[0].lower()}{message[1:]}, got {got if len(got) <= 100 else got[:100] + '…'}"


def parse_toml(text: str, source: str) -> dict[str, Any]:
    """TOML text as a tree; a `UserError` names the source and the place."""
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # beside its own errors: integers too long, brackets too deep
        raise UserError(f"{source}: not TOML: {error}") from None
