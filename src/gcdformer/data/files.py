"""Examples as files: CSV, Parquet, Int2Int text, a folder for Hugging Face's datasets. Written in chunks, so that any count
fits into memory.

Also questions for a model that is asked in words, a language model say: pairs for every GCD, and a CSV to fill in, which
`explain --predictions` reads. The pairs are a function of the seed, in random order; the file does not give answers away.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

import numpy as np

from gcdformer.config import TESTED_GCDS
from gcdformer.data.problem import column_names
from gcdformer.data.reading import int2int_answers
from gcdformer.data.stream import Stream
from gcdformer.data.testsets import stratified_pairs
from gcdformer.errors import MissingExtra, UserError
from gcdformer.numbers.distributions import OPERAND_DISTRIBUTIONS
from gcdformer.numbers.encoding import END, Integers
from gcdformer.numbers.random import Purpose, block_generator

CHUNK = 65_536
FORMATS = ("csv", "parquet", "int2int", "datasets")
QUESTION_COLUMNS = ("id", "a", "b", "question", "answer")


Done = Callable[[int], None]
"""Called with the number of examples written so far."""


def ignore(done: int) -> None:
    pass


def chunks(stream: Stream, count: int, on_chunk: Done) -> Iterator[Integers]:
    """Questions and answers side by side, a chunk at a time."""
    for start in range(0, count, CHUNK):
        questions = stream.examples(start, min(start + CHUNK, count))
        yield np.concatenate([questions, stream.problem.answer(questions)], axis=1)
        on_chunk(start + len(questions))


def write_text(stream: Stream, count: int, layout: str, file: IO[str], on_chunk: Done = ignore) -> None:
    """`count` examples as CSV or Int2Int text."""
    problem = stream.problem
    if layout == "csv":
        file.write(",".join(column_names(problem)) + "\n")
        for rows in chunks(stream, count, on_chunk):
            file.writelines(",".join(map(str, row)) + "\n" for row in rows.tolist())
        return
    symbols = [problem.vocabulary.symbol(token) for token in range(problem.vocabulary.size)]
    for rows in chunks(stream, count, on_chunk):
        batch = problem.encode_batch(rows[:, :problem.task.inputs])
        bare = int2int_answers(problem, rows[:, :problem.task.inputs])
        for index, (inputs, targets) in enumerate(zip(batch.inputs.tolist(), batch.targets.tolist(), strict=True)):
            left = " ".join(symbols[token] for token in inputs if token)
            right = " ".join(symbols[token] for token in targets if token > END) if bare is None else str(bare[index])
            file.write(f"{prefix(problem.task.inputs)}{left}\t{prefix(problem.task.outputs)}{right}\n")


def prefix(count: int) -> str:
    """Int2Int's mark of an array of integers; a single one has none."""
    return f"V{count} " if count > 1 else ""


def write_parquet(stream: Stream, count: int, path: Path, on_chunk: Done = ignore) -> None:
    """`count` examples as a Parquet file."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtra("pyarrow", "query") from None
    names = column_names(stream.problem)
    schema = pyarrow.schema([(name, pyarrow.int64()) for name in names])
    with pyarrow.parquet.ParquetWriter(path, schema) as writer:
        for rows in chunks(stream, count, on_chunk):
            writer.write_table(pyarrow.table(dict(zip(names, rows.T, strict=True)), schema=schema))


def write_datasets(stream: Stream, count: int, path: Path, on_chunk: Done = ignore) -> None:
    """`count` examples as a folder that `datasets.load_from_disk` reads."""
    if path.exists() or not path.parent.is_dir():
        raise UserError(f"out: {path} cannot be written: it must be a new folder in an existing one")
    try:
        import datasets
    except ImportError:
        raise MissingExtra("datasets", "datasets") from None
    datasets.disable_progress_bars()
    with TemporaryDirectory(dir=path.parent) as work:
        write_parquet(stream, count, Path(work) / "examples.parquet", on_chunk)
        examples = datasets.Dataset.from_parquet(str(Path(work) / "examples.parquet"), cache_dir=str(Path(work) / "cache"))
        examples.save_to_disk(str(path))


def write_examples(stream: Stream, count: int, layout: str, path: Path, on_chunk: Done = ignore) -> None:
    """`count` examples to a file in one of FORMATS."""
    if layout not in FORMATS:
        raise UserError(f"format: one of {', '.join(FORMATS)}, got '{layout}'")
    if layout == "datasets":
        write_datasets(stream, count, path, on_chunk)
    elif layout == "parquet":
        require_place(path, "out")
        write_parquet(stream, count, path, on_chunk)
    else:
        with open_new(path, "out") as file:
            write_text(stream, count, layout, file, on_chunk)


def require_place(path: Path, field: str) -> None:
    if path.is_dir() or not path.parent.is_dir():
        raise UserError(f"{field}: {path} cannot be written: it must be a file in an existing folder")


def open_new(path: Path, field: str) -> IO[str]:
    """A text file to write; a `UserError` names the field if it cannot be there."""
    require_place(path, field)
    return path.open("w", encoding="utf-8", newline="\n")


def question_pairs(maximum: int, operands: str, pairs_per_gcd: int, seed: int) -> Integers:
    """(n, 2): as many pairs for every GCD k in 1..min(100, M), shuffled."""
    rng, count = block_generator(seed, Purpose.QUESTIONS, 0), pairs_per_gcd * min(TESTED_GCDS, maximum)
    return np.asarray(rng.permutation(stratified_pairs(maximum, count, rng, OPERAND_DISTRIBUTIONS[operands])))


def question(a: int, b: int) -> str:
    return f"What is the greatest common divisor of {a} and {b}? Answer with the integer alone."


def write_questions(pairs: Integers, file: IO[str]) -> None:
    """The CSV, with an empty column for the answers."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(QUESTION_COLUMNS)
    writer.writerows((number, a, b, question(a, b), "") for number, (a, b) in enumerate(pairs.tolist(), 1))


def write_prompts(pairs: Integers, file: IO[str]) -> None:
    """One question per line, in the order of the CSV."""
    file.writelines(question(a, b) + "\n" for a, b in pairs.tolist())
