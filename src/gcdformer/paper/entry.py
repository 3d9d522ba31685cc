"""One measured run, small enough to be committed: configuration, curve, events, last prediction tables, and what it serves.

Made from a run folder once, then read without it. The file is JSON with a checksum: it is written by a command, never by
hand. Example pairs are left out; all else that the explanation reads is kept.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from gcdformer.config import Config
from gcdformer.errors import DamagedFile, UserError
from gcdformer.evaluation import PredictionTable, Scores, score
from gcdformer.evaluation.scores import score_gcd
from gcdformer.explanation import Explanation, explain_tables
from gcdformer.explanation.certificate import shares_of
from gcdformer.explanation.classes import find_classes
from gcdformer.paper.table import REASONS, Note
from gcdformer.presets import repeat_command
from gcdformer.runs.files import replace_file, sha256
from gcdformer.runs.run import Run
from gcdformer.version import __version__

FORMAT = 1
CURVE = {"epoch": 0, "examples": 0, "seconds": 1, "loss": 5, "test_loss": 5, "accuracy": 3, "n_correct": 0}
"""What is kept of each evaluation, and its decimals."""
LATE_EPOCHS, LATE_GCDS = 7, 20
"""Under uniform outcomes f(k) of these last epochs and first k is kept too: it changes from epoch to epoch."""
STALLED = 3
"""Times the median epoch: one that took longer has stalled. Its examples are no slower than the others'."""
EMPTY = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class Entry:
    """A measured run."""

    name: str
    facts: dict[str, Any]

    @cached_property
    def config(self) -> Config:
        return Config.parse(self.facts["config"])

    @property
    def experiments(self) -> list[str]:
        """Names of the experiments that this run serves."""
        return list(self.facts["experiments"])

    @property
    def recipe(self) -> str:
        """The preset and its version, and what was changed in it."""
        changed = ", ".join(f"{name} {value}" for name, value in self.facts["changed"].items())
        return f"{self.facts['preset']}-{self.facts['preset_version']}" + (f" with {changed}" if changed else "")

    @cached_property
    def command(self) -> str:
        """The command that trains it again; the horizon is in it, so that the speed of the machine does not matter."""
        return repeat_command(self.config, self.name)

    @property
    def curve(self) -> dict[str, list[Any]]:
        return dict(self.facts["curve"])

    def last(self, key: str) -> Any:
        """The last value of a curve."""
        return self.facts["curve"][key][-1] if key in self.facts["curve"] else None

    @property
    def examples(self) -> int:
        return int(self.last("examples"))

    @property
    def minutes(self) -> float:
        """From start to end, with the evaluations and whatever else the machine did meanwhile."""
        return float(self.last("seconds")) / 60

    @property
    def stalled_minutes(self) -> float:
        """How much longer than the median epoch those took in which the machine must have slept or done other work."""
        took = np.diff(self.facts["curve"]["seconds"], prepend=0.0)
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
        return len(self.correct), float(self.last("accuracy"))

    @cached_property
    def class_history(self) -> dict[int, dict[int, int]]:
        """Under uniform outcomes: for every evaluation the label of each class and what is predicted for it."""
        kept = expand(self.facts.get("classes", ""), self.name) or {}
        return {int(epoch): dict(classes) for epoch, classes in kept.items()}

    def first_epoch(self, k: int) -> int | None:
        """The epoch at which k was first correct."""
        return next((epoch for epoch, entered, _ in self.facts["events"] if k in entered), None)

    def examples_at(self, epoch: int) -> int:
        curve = self.facts["curve"]
        return int(curve["examples"][curve["epoch"].index(epoch)])

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


def entry_of(run: Run, name: str, *, experiments: list[str], preset: str, version: str, changed: dict[str, Any],
             why: Note | None = None) -> Entry:
    """What is kept of a run folder."""
    lines = run.metrics
    if not lines:
        raise UserError(f"{run.path}: no epoch has been evaluated yet, so there is nothing to record")
    if why is not None and why.reason not in REASONS:
        raise UserError(f"why: one of {', '.join(REASONS)}, got '{why.reason}'")
    throughputs = [rate for line in lines if (rate := line["throughput"])]
    columns: Sequence[Mapping[str, Any]] = lines
    facts: dict[str, Any] = {
        "format": FORMAT, "gcdformer": run.made_by.get("version", __version__), "preset": preset, "preset_version": version,
        "changed": changed, "experiments": sorted(experiments), "config": run.config.model_dump(exclude_none=True),
        "examples_per_s": round(median(throughputs)) if throughputs else None,
        "why": {"reason": why.reason, "text": why.text} if why else None,
        "curve": {key: [short(line[key], decimals) for line in columns] for key, decimals in CURVE.items()
                  if key in lines[0]},
        "events": [[line["epoch"], line["events"]["entered"], line["events"]["left"]] for line in lines
                   if any(line.get("events", {}).values())],
        "late": late_predictions(run), "classes": class_history(run),
        "tables": pack(run.prediction_tables()) if run.problem.task.has_gcd else ""}
    return Entry(name, json.loads(json.dumps(facts)))


def short(value: float, decimals: int) -> float | int:
    return round(value, decimals) if decimals else round(value)


def late_predictions(run: Run) -> dict[str, list[list[Any]]]:
    """For uniform outcomes: [f(k), percent] of the first k at each of the last epochs."""
    if run.config.data.outcomes != "uniform" or not run.problem.task.has_gcd:
        return {}
    found = {}
    for line in run.metrics[-LATE_EPOCHS:]:
        table = run.prediction_tables(line["epoch"])["stratified"]
        scores = [score_gcd(table, k) for k in range(1, LATE_GCDS + 1) if k in set(table.tested())]
        found[str(line["epoch"])] = [[one.prediction, round(100 * one.frequency, 1)] for one in scores]
    return found


def class_history(run: Run) -> str:
    """For uniform outcomes: [label, prediction] of every class at each evaluation, compressed."""
    if run.config.data.outcomes != "uniform" or not run.problem.task.has_gcd:
        return ""
    history = {}
    for line in run.metrics:
        shares, _, _ = shares_of(run.prediction_tables(line["epoch"])["stratified"], least_pairs=1)
        history[line["epoch"]] = [[one.label, one.prediction] for one in find_classes(shares)]
    return compress(history)


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
