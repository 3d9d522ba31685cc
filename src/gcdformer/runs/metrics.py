"""metrics.jsonl: one line an evaluation, each with a checksum of its own, appended and synced."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from gcdformer.errors import DamagedFile
from gcdformer.runs.files import replace_file, sha256

Line = dict[str, Any]


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


def read_metrics(path: Path) -> list[Line]:
    """All whole lines. A last line without its newline is one that is being written, or was cut off: left out."""
    if not path.exists():
        return []
    try:
        text = path.read_bytes().decode("ascii")
    except UnicodeDecodeError:
        raise DamagedFile(f"{path}: not text") from None
    rows = text.split("\n")
    return [from_text(row, f"{path} line {number}") for number, row in enumerate(rows[:-1], 1)]


def append_metrics(path: Path, line: Line) -> None:
    with path.open("a", encoding="ascii") as file:
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
    kept = [from_text(row, f"{path} line {number}") for number, row in enumerate(rows, 1)]
    wanted = "".join(map(to_text, kept))
    if wanted != text:
        replace_file(path, wanted.encode("ascii"))
    return kept
