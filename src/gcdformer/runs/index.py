"""Many runs as one table: a row per run, with its configuration, its last and its best evaluation.

The rows are derived from config.toml and metrics.jsonl and stored in `.runs.parquet` beside the runs, a Parquet table and
its SHA-256; a row is made again when one of the two files has changed, all are if the index is damaged. Remove it at
any time: the files are the truth. Knows no SQL and no model.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import Any

from gcdformer.config import FILE_DISTRIBUTIONS, Config, config_leaves
from gcdformer.errors import MissingExtra, UserError
from gcdformer.runs.files import replace_file, sha256
from gcdformer.runs.folder import RunFolder, best_line, checksum_line
from gcdformer.runs.metrics import Line

try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ImportError:
    raise MissingExtra("pyarrow", "query") from None

Row = dict[str, object]
"""Plain values by column."""
Sections = dict[str, dict[str, object]]
"""The tables of a config.toml."""
INDEX = ".runs.parquet"
DIGEST = 64  # hexadecimal digits of a SHA-256
MANY = 500  # rows to make that are worth a second process
FORMAT = "2"  # of a row; part of its stamp, so that rows of an older format are made again
TYPES: dict[Any, Any] = {int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
LEAVES = {leaf.name: TYPES.get(leaf.kind, pa.string()) for leaf in config_leaves()}
SECTIONS = list(Config.model_fields)
LAST = {"epoch": pa.int64(), "step": pa.int64(), "examples": pa.int64(), "seconds": pa.float64(), "loss": pa.float64(),
        "test_loss": pa.float64(), "accuracy": pa.float64(), "stratified_accuracy": pa.float64(),
        "n_correct": pa.int64(), "n_modal": pa.int64(), "throughput": pa.float64(), "D": pa.list_(pa.int64())}
BEST = ("epoch", "n_correct", "accuracy")
SCHEMA = pa.schema([
    ("name", pa.string()), ("path", pa.string()), *LEAVES.items(), *LAST.items(),
    *((f"best_{key}", LAST[key]) for key in BEST), ("version", pa.string()), ("problem", pa.string()),
    ("stamp", pa.string())])


def runs_table(root: Path) -> pa.Table:
    """A row for each run under `root`, from the index where it is up to date."""
    if not root.is_dir():
        raise UserError(f"{root}: there is no such folder")
    stamps = dict(find_runs(root))
    index = read_index(root)
    paths, known = index["path"].to_pylist(), index["stamp"].to_pylist()
    good = [stamps.get(path) == stamp for path, stamp in zip(paths, known, strict=True)]
    fresh = {path for path, is_good in zip(paths, good, strict=True) if is_good}
    missing = [path for path in stamps if path not in fresh]
    if missing or not all(good):
        rows = pa.Table.from_pylist(make_rows(root, [(path, stamps[path]) for path in missing]), schema=SCHEMA)
        index = pa.concat_tables([index.filter(pa.array(good, pa.bool_())), rows]).sort_by("path")
        with suppress(UserError):  # a folder one may only read has no index
            replace_file(root / INDEX, to_bytes(index), shared=True)
    return index


def find_runs(root: Path) -> Iterator[tuple[str, str]]:
    """The path of each run under `root`, relative to it, and a stamp that changes with its files."""
    def stamp(folder: str) -> str | None:
        try:
            config = os.stat(f"{folder}/config.toml")  # noqa: PTH116, a Path a file is slow for 10,000
        except OSError:
            return None
        try:
            metrics = os.stat(f"{folder}/metrics.jsonl")  # noqa: PTH116
        except OSError:
            return f"{FORMAT} {config.st_mtime_ns} {config.st_size}"
        return f"{FORMAT} {config.st_mtime_ns} {config.st_size} {metrics.st_mtime_ns} {metrics.st_size}"

    def walk(folder: str, name: str) -> Iterator[tuple[str, str]]:
        mark = stamp(folder)
        if mark is not None:
            yield name or ".", mark
            return
        with os.scandir(folder) as entries:
            below = [entry.name for entry in entries if not entry.name.startswith(".") and entry.is_dir()]
        for inner in below:
            yield from walk(f"{folder}/{inner}", f"{name}/{inner}" if name else inner)

    return walk(str(root), "")


def read_index(root: Path) -> pa.Table:
    """The index as it was written last; empty if there is none of this form, or it is not as it was written."""
    try:
        data = (root / INDEX).read_bytes()
        if not data.endswith(sha256(data[:-DIGEST]).encode()):
            return SCHEMA.empty_table()
        table = pq.read_table(BytesIO(data[:-DIGEST]))
    except (OSError, pa.ArrowException):
        return SCHEMA.empty_table()
    return table if table.schema.equals(SCHEMA) else SCHEMA.empty_table()


def to_bytes(table: pa.Table) -> bytes:
    sink = BytesIO()
    pq.write_table(table, sink)
    data = sink.getvalue()
    return data + sha256(data).encode()


def make_rows(root: Path, wanted: list[tuple[str, str]]) -> list[Row]:
    """Rows from the files; with several processes if there are many."""
    orders = [(str(root), path, stamp) for path, stamp in wanted]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if len(orders) < MANY or cores < 2:
        return list(map(make_row, orders))
    with ProcessPoolExecutor(min(cores, 8)) as pool:
        return list(pool.map(make_row, orders, chunksize=100))


def make_row(order: tuple[str, str, str]) -> Row:
    """The row of one run; a damaged run has its problem in words instead."""
    root, path, stamp = order
    folder = RunFolder(Path(root) / path)
    row: Row = {"name": (Path(root).absolute() / path).name, "path": path, "stamp": stamp}
    try:
        sections = quick_config(folder) or slow_config(folder)
        lines = quick_lines(folder)
        if lines is None:
            lines = folder.metrics()
    except UserError as error:
        return {**row, "problem": str(error)}
    row["version"] = sections.get("gcdformer", {}).get("version")
    for name in SECTIONS:
        row |= sections.get(name, {})
    if row.get("train_file") is not None:
        row |= dict.fromkeys(FILE_DISTRIBUTIONS)  # the file says which examples there are, no distribution does
    best = best_line(lines)
    if best is not None:
        row |= {key: lines[-1].get(key) for key in LAST}
        row |= {f"best_{key}": best.get(key) for key in BEST}
    return row


parse_section = lru_cache(4096)(tomllib.loads)  # runs of a sweep have most sections in common


def quick_config(folder: RunFolder) -> Sections | None:
    """The tables of config.toml if its checksum is right, without validating what was valid when it was written."""
    try:
        first, _, body = folder.config_path.read_bytes().decode().partition("\n")
        if first != checksum_line(body):
            return None
        return {name: value for part in body.split("\n\n") for name, value in parse_section(part).items()}
    except (OSError, ValueError):
        return None


def slow_config(folder: RunFolder) -> Sections:
    """The same with every check; an error says what is wrong."""
    config, made_by = folder.read_config()
    return {**config.model_dump(), "gcdformer": dict(made_by)}


def quick_lines(folder: RunFolder) -> list[Line] | None:
    """The lines of metrics.jsonl if their checksums are right; None asks for the reader that says what is wrong."""
    try:
        *rows, rest = folder.metrics_path.read_bytes().split(b"\n")
        if rest:
            return None
        lines = []
        for row in rows:
            body, _, digest = row.rpartition(b', "sha256": "')
            if sha256(body + b"}")[:16].encode() + b'"}' != digest:
                return None
            lines.append(json.loads(row))
        return lines
    except (OSError, ValueError):
        return None
