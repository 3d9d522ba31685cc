"""metrics.jsonl: one line per evaluation, each with a checksum of its own, appended and synced."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated, NotRequired

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, with_config
from typing_extensions import TypedDict  # pydantic wants this one before Python 3.12

from gcdformer.config import TESTED_GCDS
from gcdformer.errors import DamagedFile
from gcdformer.runs.files import replace_file, sha256, writing

Number = Annotated[int, Field(ge=1)]
Gcds = Annotated[int, Field(ge=0, le=TESTED_GCDS)]


class Events(TypedDict):
    """The k that entered D and that left it since the evaluation before."""

    entered: list[int]
    left: list[int]


class Scored(TypedDict):
    """The scores of an evaluation; all but the accuracy only for tasks with a GCD."""

    accuracy: Annotated[float, Field(ge=0, le=100)]
    stratified_accuracy: NotRequired[float]
    n_correct: NotRequired[Gcds]
    n_modal: NotRequired[Gcds]
    correct: NotRequired[list[int]]
    D: NotRequired[list[int]]
    being_learned: NotRequired[list[int]]
    certified: NotRequired[bool]
    events: NotRequired[Events]
    predictions_sha256: NotRequired[str]


@with_config(ConfigDict(extra="allow", strict=True, allow_inf_nan=False))
class Line(Scored):
    """What readers rely on; a line may hold more. A checksum says that a line is as it was written, not by whom."""

    epoch: Number
    step: Number
    examples: Number
    seconds: Annotated[float, Field(ge=0)]
    loss: float
    throughput: float | None
    learning_rate: NotRequired[float]
    test_loss: NotRequired[float]


LINE = TypeAdapter(Line)


def to_text(line: Line) -> str:
    """JSON with full precision and the first 16 digits of its SHA-256 as the last key."""
    body = json.dumps(line, allow_nan=False)
    return body[:-1] + f', "sha256": "{sha256(body.encode())[:16]}"}}\n'


def from_text(text: str, where: str) -> Line:
    try:
        line = json.loads(text)
        digest = line.pop("sha256")
        good = digest == sha256(json.dumps(line).encode())[:16] and text == to_text(line).rstrip("\n")
    except (ValueError, AttributeError, KeyError, TypeError, RecursionError):
        good = False
    if not good:
        raise DamagedFile(f"{where}: does not match its checksum")
    return line  # type: ignore[no-any-return]


def is_whole(text: str) -> bool:
    try:
        from_text(text, "")
    except DamagedFile:
        return False
    return True


def check_lines(lines: list[Line], path: Path) -> list[Line]:
    """The lines, if each is one of ours and their epochs are 1, 2, ...; else `DamagedFile` names the first that is not."""
    for number, line in enumerate(lines, 1):
        try:
            LINE.validate_python(line)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            field = ".".join(map(str, first["loc"]))[:50]
            raise DamagedFile(f"{path} line {number}: not a line of metrics: {field}: {first['msg']}") from None
        if line["epoch"] != number:
            raise DamagedFile(f"{path} line {number}: epoch {number} expected, got {line['epoch']}")
    return lines


def read_metrics(path: Path) -> list[Line]:
    """All whole lines. A last line without its newline is one that is being written, or was cut off: left out."""
    try:
        text = path.read_bytes().decode("ascii")
    except FileNotFoundError:
        return []
    except OSError as error:
        raise DamagedFile(f"{path}: unreadable: {error.strerror}") from None
    except UnicodeDecodeError:
        raise DamagedFile(f"{path}: not text") from None
    *rows, rest = text.split("\n")
    if is_whole(rest[:-1]):  # more than a line that was cut off: its newline was changed
        raise DamagedFile(f"{path} line {len(rows) + 1}: does not end as it was written")
    return check_lines([from_text(row, f"{path} line {number}") for number, row in enumerate(rows, 1)], path)


def append_metrics(path: Path, line: Line) -> None:
    with writing(path), path.open("a", encoding="ascii") as file:
        file.write(to_text(line))
        file.flush()
        os.fsync(file.fileno())


def keep_metrics(path: Path, count: int) -> list[Line]:
    """Keep the first `count` lines, those that a checkpoint knows of; what came after it will be written again."""
    if not path.exists():
        if count:
            raise DamagedFile(f"{path}: missing, although {count} epochs were evaluated")
        return []
    text = path.read_bytes().decode("ascii", errors="replace")
    rows = text.split("\n")[:-1][:count]
    if len(rows) < count:
        raise DamagedFile(f"{path}: has {len(rows)} whole lines, although {count} epochs were evaluated")
    lines = check_lines([from_text(row, f"{path} line {number}") for number, row in enumerate(rows, 1)], path)
    wanted = "".join(map(to_text, lines))
    if wanted != text:
        replace_file(path, wanted.encode("ascii"))
    return lines
