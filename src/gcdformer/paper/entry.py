"""One measured run, small enough to be committed: configuration, curve, events, last prediction tables, its experiments.

Made from a run folder once, by `record`, then read without it. The file is JSON with a checksum: a command writes it, never
a person. It has no example pairs, and everything else that the explanation reads.
"""

from __future__ import annotations

import base64
import json
import zlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, NotRequired, TypedDict

import numpy as np
from pydantic import TypeAdapter, ValidationError

from gcdformer.config import Config
from gcdformer.errors import DamagedFile
from gcdformer.evaluation import PredictionTable, Scores, score
from gcdformer.explanation import Explanation, explain_tables
from gcdformer.explanation.priors import UnderPrior
from gcdformer.paper.table import PAPER_EPOCH, Json, Note, Settings
from gcdformer.presets import VERSIONS, repeat_command
from gcdformer.runs.files import replace_file, sha256

FORMAT = 1
STALLED = 3
"""Times the median epoch: one that took longer has stalled. Its examples are no slower than the others'."""
EMPTY = np.zeros(0, dtype=np.int64)
UNDER_PRIORS = TypeAdapter(list[UnderPrior])


class Curve(TypedDict):
    """One value per evaluation; `n_correct` for tasks with a GCD."""

    epoch: list[int]
    examples: list[int]
    seconds: list[float]
    loss: list[float]
    test_loss: NotRequired[list[float]]
    accuracy: list[float]
    n_correct: NotRequired[list[int]]


class Event(NamedTuple):
    """The GCD that became correct at an epoch, and those that ceased to be."""

    epoch: int
    entered: list[int]
    left: list[int]


class Facts(TypedDict):
    """The file, but for its checksum."""

    format: int
    gcdformer: str
    preset: str
    preset_version: str
    changed: Settings
    experiments: list[str]
    config: Settings
    examples_per_s: int | None
    why: Json | None
    curve: Curve
    events: list[tuple[int, list[int], list[int]]]
    late: dict[str, list[tuple[int | None, float]]]
    """Epoch -> f(k) and its percentage, from k = 1 on."""
    classes: NotRequired[str]
    tables: str
    priors: NotRequired[str]
    """What the last weights answer under other priors, if that was asked."""


@dataclass(frozen=True)
class Entry:
    """A measured run."""

    name: str
    facts: Facts

    @cached_property
    def config(self) -> Config:
        return Config.parse(self.facts["config"])

    @property
    def seed(self) -> int:
        return self.config.training.seed

    @property
    def experiments(self) -> list[str]:
        """Names of the experiments that this is a run of."""
        return list(self.facts["experiments"])

    @property
    def preset(self) -> str:
        return self.facts["preset"]

    @property
    def version(self) -> str:
        """Of the preset."""
        return self.facts["preset_version"]

    @property
    def changed(self) -> Settings:
        """What was changed in the preset."""
        return self.facts["changed"]

    @property
    def recipe(self) -> str:
        """The preset and its version, and what was changed in it."""
        changed = ", ".join(f"{name} {value}" for name, value in self.changed.items())
        return f"{self.preset}-{self.version}" + (f" with {changed}" if changed else "")

    @property
    def is_current(self) -> bool:
        """Whether it is of the preset's newest version."""
        return VERSIONS.get(self.preset) == self.version

    @cached_property
    def command(self) -> str:
        """The command that trains it again; the horizon is in it, so that the speed of the machine does not matter."""
        return repeat_command(self.config, self.name)

    @property
    def curve(self) -> Curve:
        return self.facts["curve"]

    @cached_property
    def events(self) -> list[Event]:
        return [Event(*event) for event in self.facts["events"]]

    @property
    def accuracy(self) -> float:
        return self.curve["accuracy"][-1]

    @property
    def examples(self) -> int:
        return self.curve["examples"][-1]

    @property
    def minutes(self) -> float:
        """From start to end, with the evaluations and whatever else the machine did meanwhile."""
        return self.curve["seconds"][-1] / 60

    @property
    def stalled_minutes(self) -> float:
        """How much longer than the median epoch those took in which the machine must have slept or done other work."""
        took = np.diff(self.curve["seconds"], prepend=0.0)
        usual = float(np.median(took))
        return float(took[took > STALLED * usual].sum() - usual * (took > STALLED * usual).sum()) / 60

    @property
    def note(self) -> Note | None:
        """Why it differs from the paper, if that was said when it was recorded."""
        return Note(**self.facts["why"]) if self.facts["why"] else None

    @cached_property
    def tables(self) -> dict[str, PredictionTable]:
        return unpack(self.facts["tables"], self.name)

    @cached_property
    def scores(self) -> Scores | None:
        """The scores of the last epoch; None for tasks without GCD."""
        if not self.tables:
            return None
        return score(self.tables["natural"], self.tables["stratified"], self.config.evaluation.threshold)

    @cached_property
    def explanation(self) -> Explanation | None:
        if not self.tables:
            return None
        return explain_tables(self.tables, base=self.config.task.base, maximum=self.config.task.maximum,
                              threshold=self.config.evaluation.threshold)

    @property
    def correct(self) -> list[int]:
        return self.scores.correct if self.scores else []

    @property
    def rank(self) -> tuple[int, float]:
        """Better is larger: correct GCD, then accuracy."""
        return len(self.correct), self.accuracy

    @cached_property
    def class_history(self) -> dict[int, dict[int, int]]:
        """Under uniform outcomes: for every evaluation the label of each class and what is predicted for it."""
        stored = expand(self.facts.get("classes", ""), self.name) or {}
        return {int(epoch): dict(classes) for epoch, classes in stored.items()}

    @property
    def late(self) -> list[list[tuple[int | None, float]]]:
        """Under uniform outcomes, for each of the last epochs: f(k) and its percentage, from k = 1 on."""
        return [self.facts["late"][epoch] for epoch in sorted(self.facts["late"], key=int)]

    @cached_property
    def under_priors(self) -> dict[str, UnderPrior]:
        """What the last weights answer under each prior that they were asked under."""
        stored = expand(self.facts.get("priors", ""), self.name) or []
        try:
            return {figures.prior: figures for figures in UNDER_PRIORS.validate_python(stored)}
        except ValidationError:
            raise DamagedFile(f"{self.name}: its figures under other priors are not readable") from None

    @property
    def metrics(self) -> list[Json]:
        """The curve as lines of metrics, with D from the events where there is a GCD."""
        known, lines = set[int](), list[Json]()
        columns: Json = {**self.curve}
        events = {event.epoch: event for event in self.events}
        for values in zip(*columns.values(), strict=True):
            line = dict(zip(columns, values, strict=True))
            if event := events.get(line["epoch"]):
                known = (known | set(event.entered)) - set(event.left)
            lines.append(line | ({"D": sorted(known)} if self.tables else {}))
        return lines

    def first_epoch(self, k: int) -> int | None:
        """The epoch at which k was first correct."""
        return next((event.epoch for event in self.events if k in event.entered), None)

    def examples_at(self, epoch: int) -> int:
        return self.curve["examples"][self.curve["epoch"].index(epoch)]

    def paper_epoch(self, epoch: int) -> float:
        """One of our epochs as a number of the paper's."""
        return round(self.examples_at(epoch) / PAPER_EPOCH, 1)

    def to_json(self) -> Json:
        """What was trained, how long, what it learned, whether the rules hold."""
        facts = {"run": self.name, "recipe": self.recipe, "seed": self.seed, "command": self.command,
                 "minutes": round(self.minutes, 1), "stalled_minutes": round(self.stalled_minutes, 1),
                 "examples": self.examples, "epochs": self.curve["epoch"][-1],
                 "examples_per_s": self.facts["examples_per_s"], "accuracy": self.accuracy}
        explanation = self.explanation
        if explanation is None:
            return facts | {"n_correct": None, "D": None, "form": None, "verdict": None, "fidelity": None,
                            "being_learned": [], "broken": {}, "classes": None}
        return facts | {
            "n_correct": len(self.correct), "D": self.correct, "form": explanation.form.letter,
            "verdict": explanation.verdict, "fidelity": round(100 * explanation.fidelity["stratified"].value, 2),
            "being_learned": explanation.being_learned,
            "broken": {name: [breach.to_json() for breach in rule.exceptions] for name, rule in explanation.rules.items()
                       if not rule.holds},
            "classes": list(explanation.model.labels) if explanation.form.has_classes else None}

    def to_text(self) -> str:
        """The file's text, its checksum last."""
        body = json.dumps(self.facts, indent=None, separators=(",", ":"))
        return "{\n" + ",\n".join(json.dumps(key) + ": " + json.dumps(value, separators=(",", ":"))
                                  for key, value in {**self.facts, "sha256": sha256(body.encode())}.items()) + "\n}\n"

    def write(self, folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.name}.json"
        replace_file(path, self.to_text().encode())
        return path


def read_entry(name: str, text: str, source: str) -> Entry:
    """An entry from its file; `DamagedFile` if it was changed by hand or is of another format."""
    try:
        facts = json.loads(text)
        digest = facts.pop("sha256")
    except (ValueError, KeyError, AttributeError):
        raise DamagedFile(f"{source}: not a measured run") from None
    if facts.get("format") != FORMAT or digest != sha256(json.dumps(facts, separators=(",", ":")).encode()):
        raise DamagedFile(f"{source}: does not match its checksum; record the run again, do not edit the file")
    return Entry(name, facts)


def compress(value: Any) -> str:
    """Plain data as short text."""
    return base64.b85encode(zlib.compress(json.dumps(value, separators=(",", ":")).encode(), 9)).decode()


def expand(text: str, source: str) -> Any:
    """What was compressed; None for an empty text."""
    if not text:
        return None
    try:
        return json.loads(zlib.decompress(base64.b85decode(text)))
    except (ValueError, zlib.error):
        raise DamagedFile(f"{source}: its compressed part is not readable") from None


def pack(tables: dict[str, PredictionTable]) -> str:
    """The counts of some tables as text: columns of differences, compressed."""
    flat = {name: [np.diff(column, prepend=0).tolist() for column in (table.gcd, table.prediction, table.count)]
            for name, table in tables.items()}
    return compress(flat)


def unpack(text: str, source: str) -> dict[str, PredictionTable]:
    flat = expand(text, source)
    if flat is None:
        return {}
    try:
        columns = {name: [np.cumsum(np.array(column, dtype=np.int64)) for column in three] for name, three in flat.items()}
    except (ValueError, AttributeError, TypeError, OverflowError):
        raise DamagedFile(f"{source}: its prediction tables are not readable") from None
    return {name: PredictionTable(gcd, prediction, count, EMPTY, EMPTY, EMPTY)
            for name, (gcd, prediction, count) in columns.items()}
