"""Examples from a file: CSV, Parquet or Int2Int text, read in chunks, every row checked, its SHA-256 taken on the way.

A bad row is an error that names its line; none is dropped. Rows are the integers of the question, and of the answer too
where only the file knows it. Int2Int asks comparison as a/b > c/d and answers by a bare 0 or 1; ours is a/b < c/d, and its
answer an integer with a sign. Its files are in its own sense, and converted exactly. Knows problems and files, no model.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from gcdformer.data.kinds import Kind
from gcdformer.data.parsing import BadLine, read_csv_line, read_int2int_line, scan_csv, scan_int2int, text_of
from gcdformer.data.problem import Problem, column_names
from gcdformer.errors import MissingExtra, UserError
from gcdformer.numbers.encoding import Integers
from gcdformer.tasks.rational import Comparison

CHUNK = 1 << 22
LONGEST_LINE = 1 << 20
PARQUET_ROWS = 65_536
CACHED_FILES = 4

Progress = Callable[[int, int], None]
"""Called with the bytes read so far and the size of the file."""
OTHER_FRACTION_FIRST = [2, 3, 0, 1]
BARE_BIT = Kind(1, low=0, high=1)


@dataclass(frozen=True)
class FileRows:
    """The rows of a file, (n, width), and the SHA-256 of its bytes."""

    rows: Integers
    sha256: str


def read_examples(name: str, problem: Problem, field: str, on_read: Progress = lambda done, total: None) -> FileRows:
    """The examples of a file for this problem; cached, so that reading it again costs nothing while it does not change."""
    path = Path(name)
    try:
        status = path.stat()
    except (OSError, ValueError) as error:
        raise UserError(f"{field}: {name} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if not path.is_file():
        raise UserError(f"{field}: {name} is not a file")
    key = (path, field, status.st_mtime_ns, status.st_size, status.st_ino)
    for cached_key, cached_problem, cached in _cache:
        if cached_key == key and cached_problem is problem:
            return cached
    rows = read_whole(path, problem, field, on_read)
    _cache.append((key, problem, rows))
    return rows


_cache: deque[tuple[tuple[object, ...], Problem, FileRows]] = deque(maxlen=CACHED_FILES)


def read_whole(path: Path, problem: Problem, field: str, on_read: Progress) -> FileRows:
    digest = hashlib.sha256()
    parts = []
    place, number = "row" if path.suffix == ".parquet" else "line", 0
    try:
        for first, rows in rows_of(path, problem, digest, on_read):
            number = first
            parts.append(checked(rows, problem, f"{field}: {path} {place} ", first))
    except OSError as error:
        raise UserError(f"{field}: {path} cannot be read: {error.strerror or error}") from None
    except BadLine as error:
        raise UserError(f"{field}: {path} {error}") from None
    if not sum(map(len, parts)):
        raise UserError(f"{field}: {path} {place} {number or 1}: no examples; the file is empty")
    joined = np.concatenate(parts)
    joined.setflags(write=False)
    return FileRows(joined, digest.hexdigest())


def rows_of(path: Path, problem: Problem, digest: Any, on_read: Progress) -> Iterator[tuple[int, Integers]]:
    """Pieces of a file: the number of the first line, and question and answer of this and the next ones."""
    if path.suffix == ".parquet":
        return parquet_rows(path, problem, digest, on_read)
    reader = csv_rows if path.suffix == ".csv" else int2int_rows
    return reader(path, problem, digest, on_read)


def chunks_of(path: Path, digest: Any, on_read: Progress) -> Iterator[tuple[int, bytes]]:
    """Whole lines, some megabytes at a time, each with the number of its first line; the last line may lack its end."""
    size, done, line, rest = path.stat().st_size, 0, 1, b""
    with path.open("rb") as file:
        while data := file.read(CHUNK):
            digest.update(data)
            done += len(data)
            whole, newline, rest = (rest + data).rpartition(b"\n")
            if newline:
                yield line, whole + newline
                line += whole.count(b"\n") + 1
            if len(rest) > LONGEST_LINE:
                raise BadLine(f"line {line}: longer than {LONGEST_LINE} bytes")
            on_read(done, size)
    if rest:
        yield line, rest + b"\n"


def by_line(chunk: bytes, first: int, width: int, read: Callable[[bytes], list[int]]) -> Integers:
    """The rows of a chunk, one line after another; the first bad one is named."""
    rows = []
    for number, line in enumerate(chunk[:-1].split(b"\n"), first):
        try:
            rows.append(read(line))
        except BadLine as error:
            raise BadLine(f"line {number}: {error}") from None
    return np.array(rows, dtype=np.int64).reshape(-1, width)


def int2int_rows(path: Path, problem: Problem, digest: Any, on_read: Progress) -> Iterator[tuple[int, Integers]]:
    kinds, base = int2int_kinds(problem), problem.base
    width = kinds[0].count + kinds[1].count
    for first, chunk in chunks_of(path, digest, on_read):
        rows = scan_int2int(chunk, kinds, base)
        if rows is None:
            rows = by_line(chunk, first, width, lambda line: read_int2int_line(line, kinds, base))
        yield first, from_int2int(problem, rows)


def csv_rows(path: Path, problem: Problem, digest: Any, on_read: Progress) -> Iterator[tuple[int, Integers]]:
    """Columns as `sample` names them, in any order."""
    order: list[int] | None = None
    for first, chunk in chunks_of(path, digest, on_read):
        if order is None:
            header, _, chunk = chunk.partition(b"\n")
            order = find_order(header, column_names(problem))
            first += 1
        if chunk:
            rows = scan_csv(chunk, order)
            yield first, by_line(chunk, first, len(order), partial(read_csv_line, order=order)) if rows is None else rows


def find_order(header: bytes, names: list[str]) -> list[int]:
    try:
        cells = [cell.strip() for cell in text_of(header.removeprefix(b"\xef\xbb\xbf")).split(",")]
    except BadLine as error:
        raise BadLine(f"line 1: {error}") from None
    if sorted(cells) != sorted(names):
        raise BadLine(f"line 1: names the columns {','.join(names)} in any order, got '{','.join(cells)[:100]}'")
    return [cells.index(name) for name in names]


def parquet_rows(path: Path, problem: Problem, digest: Any, on_read: Progress) -> Iterator[tuple[int, Integers]]:
    """Columns as `sample` names them, of integers; other columns are an error too."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtra("pyarrow", "query") from None
    names = column_names(problem)
    with path.open("rb") as file:
        while data := file.read(CHUNK):
            digest.update(data)
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            schema, total, first = file.schema_arrow, file.metadata.num_rows, 1
            if sorted(schema.names) != sorted(names):
                raise BadLine(f"has the columns {','.join(schema.names)[:100]}, wanted {','.join(names)}")
            for name in names:
                if not pyarrow.types.is_integer(schema.field(name).type):
                    raise BadLine(f"column {name}: integers, got {schema.field(name).type}")
            for batch in file.iter_batches(PARQUET_ROWS, columns=names):
                yield first, np.stack([whole_column(batch.column(name), name, first) for name in names], axis=1)
                first += len(batch)
                on_read(first - 1, total)
    except (pyarrow.ArrowException, OSError, ValueError, OverflowError) as error:
        raise BadLine(f"is not sound Parquet: {' '.join(str(error).split())[:200]}") from None


def whole_column(column: Any, name: str, first: int) -> Integers:
    """A column of a batch as int64; a null names its row."""
    import pyarrow
    if column.null_count:
        row = first + int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
        raise BadLine(f"row {row}: column {name} has no value")
    values: Integers = column.cast(pyarrow.int64()).to_numpy()
    return values


def checked(rows: Integers, problem: Problem, where: str, first: int) -> Integers:
    """The rows if their integers are within bounds and the answers the task's; else the first bad one is named.

    Answers stay in the rows where only the file knows them.
    """
    inputs = problem.task.inputs
    questions, answers = rows[:, :inputs], rows[:, inputs:]
    low, high = problem.question_bounds
    require((questions >= low) & (questions <= high), questions, where, first, f"an operand in {low}..{high}")
    if problem.knows_answers:
        wanted = problem.answer(questions)
        wrong = np.flatnonzero((answers != wanted).any(1))
        if len(wrong):
            row = int(wrong[0])
            have, want = (" ".join(map(str, values[row].tolist())) for values in (answers, wanted))
            asked = ", ".join(map(str, questions[row].tolist()))
            raise UserError(f"{where}{first + row}: {problem.task.name}({asked}) is {want}, the file says {have}; answers "
                            "of its own need --task file")
        return np.ascontiguousarray(questions)
    low, high = problem.kinds[1].bounds(problem.maximum)
    require((answers >= low) & (answers <= high), answers, where, first, f"an answer in {low}..{high}")
    return rows


def require(good: Any, values: Integers, where: str, first: int, what: str) -> None:
    if not good.all():
        row = int(np.flatnonzero(~good.all(1))[0])
        bad = int(values[row][~good[row]][0])
        raise UserError(f"{where}{first + row}: {what} (bounded by --max), got {bad}")


def int2int_kinds(problem: Problem) -> tuple[Kind, Kind]:
    """The types of question and answer in Int2Int text."""
    question, answer = problem.kinds
    return (question, BARE_BIT) if isinstance(problem.task, Comparison) else (question, answer)


def int2int_answers(problem: Problem, questions: Integers) -> Integers | None:
    """The bare answers that Int2Int gives, (n,); None where they are written as ours."""
    if not isinstance(problem.task, Comparison):
        return None
    return np.asarray(problem.task.answer(questions[:, OTHER_FRACTION_FIRST])[:, 0])


def from_int2int(problem: Problem, rows: Integers) -> Integers:
    """Questions and answers in our sense; an answer that is wrong in Int2Int's is wrong in ours."""
    questions = rows[:, :problem.task.inputs]
    theirs = int2int_answers(problem, questions)
    if theirs is None:
        return rows
    ours = problem.answer(questions)
    wrong = rows[:, -1:] != theirs[:, None]
    return np.concatenate([questions, np.where(wrong, 1 - ours, ours)], axis=1)
