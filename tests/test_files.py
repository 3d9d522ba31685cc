"""Examples as files: CSV, Int2Int text and Parquet, read back by other means and equal to the stream."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest

from gcdformer import Config, Problem, Stream, UserError
from gcdformer.data.files import CHUNK, write_examples, write_text
from gcdformer.data.problem import column_names
from gcdformer.data.reading import read_examples

# A task and the columns of its files.
CASES = {
    "gcd": ["a", "b", "gcd"],
    "comparison": ["a", "b", "c", "d", "comparison"],
    "division": ["a", "b", "division"],
    "addition": ["a", "b", "c", "d", "addition_1", "addition_2"],
    "simplification": ["a", "b", "simplification_1", "simplification_2"],
}
COUNT = 3000
BASE = 1000
all_cases = pytest.mark.parametrize("task", CASES)


def stream_of(task: str = "gcd", **leaves: object) -> Stream:
    config = Config().derive(task=task, **({"base": BASE, "operands": "uniform", "seed": 9} | leaves))
    return Stream.of(config, Problem.of(config))


def rows_of(stream: Stream, count: int = COUNT) -> list[list[int]]:
    """Questions and answers, side by side."""
    questions = stream.examples(0, count)
    return np.concatenate([questions, stream.problem.answer(questions)], axis=1).tolist()


def written(stream: Stream, layout: str, path: Path, count: int = COUNT) -> Path:
    write_examples(stream, count, layout, path)
    return path


def integers_of(words: list[str], base: int) -> list[int]:
    """Int2Int's integers: a sign, then digits in the base, most significant first."""
    values: list[int] = []
    signs: list[int] = []
    for word in words:
        if word in ("+", "-"):
            signs.append(1 if word == "+" else -1)
            values.append(0)
        else:
            assert 0 <= int(word) < base
            values[-1] = values[-1] * base + int(word)
    return [sign * value for sign, value in zip(signs, values, strict=True)]


@all_cases
def test_csv(task: str, tmp_path: Path) -> None:
    stream = stream_of(task)
    with written(stream, "csv", tmp_path / "examples.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    assert header == CASES[task] == column_names(stream.problem)
    assert [[int(cell) for cell in row] for row in rows] == rows_of(stream)


@all_cases
def test_parquet(task: str, tmp_path: Path) -> None:
    stream = stream_of(task)
    table = pyarrow.parquet.read_table(written(stream, "parquet", tmp_path / "examples.parquet"))
    assert table.column_names == CASES[task]
    assert {str(column.type) for column in table.columns} == {"int64"}
    assert np.stack([column.to_numpy() for column in table.columns], axis=1).tolist() == rows_of(stream)


@pytest.mark.parametrize("base", [2, 10, BASE])
@all_cases
def test_int2int(task: str, base: int, tmp_path: Path) -> None:
    """An array of n integers is `Vn` and the integers, a single one has no prefix; a tab between the two sides."""
    stream = stream_of(task, base=base)
    inputs, outputs = stream.problem.task.inputs, stream.problem.task.outputs
    lines = written(stream, "int2int", tmp_path / "examples.txt").read_text().splitlines()
    rows = []
    for line in lines:
        question, answer = (side.split(" ") for side in line.split("\t"))
        assert question.pop(0) == f"V{inputs}"
        if outputs > 1:
            assert answer.pop(0) == f"V{outputs}"
        rows.append(integers_of(question, base) + ([int(bit) for bit in answer] if task == "comparison"
                                                   else integers_of(answer, base)))
    if task == "comparison":
        assert rows == [[a, b, c, d, int(a * d > c * b)] for a, b, c, d, _ in rows_of(stream)], "Int2Int asks a/b > c/d"
    else:
        assert rows == rows_of(stream)


def test_comparison_as_int2int_writes_it(tmp_path: Path) -> None:
    """A bare 0 or 1 in the sense a/b > c/d; read back it is ours, equal fractions too, and a wrong one is found."""
    config = Config().derive(task="comparison", base=10, operands="uniform")
    problem = Problem.of(config)
    path = tmp_path / "comparison.txt"
    cases = [((1, 2, 1, 3), 1), ((1, 3, 1, 2), 0), ((1, 2, 2, 4), 0), ((3, 1, 10, 4), 1)]

    def line(question: tuple[int, ...], bit: int) -> str:
        return "V4 " + " ".join("+ " + " ".join(str(n)) for n in question) + f"\t{bit}\n"

    path.write_text("".join(line(question, bit) for question, bit in cases))
    rows = read_examples(str(path), problem, "train_file").rows
    assert [tuple(row) for row in rows.tolist()] == [question for question, _ in cases]
    assert problem.answer(rows)[:, 0].tolist() == [0, 1, 0, 0], "ours is a/b < c/d"
    for question, bit in cases:
        path.write_text(line(question, 1 - bit))
        with pytest.raises(UserError, match="the file says"):
            read_examples(str(path), problem, "train_file")
    path.write_text(line((1, 2, 1, 3), 1).replace("\t", "\t+ "))
    with pytest.raises(UserError, match="one decimal word"):
        read_examples(str(path), problem, "train_file")


def test_int2int_to_the_letter(tmp_path: Path) -> None:
    """As Int2Int's own example: GCD(1024, 16) = 16 is `V2 + 1 24 + 16`, a tab, `+ 16` in base 1000."""
    stream = stream_of(maximum=5000, outcomes="log-uniform")
    lines = written(stream, "int2int", tmp_path / "examples.txt").read_text().split("\n")
    expected = []
    for row in rows_of(stream):
        a, b, k = (f"+ {n // 1000} {n % 1000}" if n >= 1000 else f"+ {n}" for n in row)
        expected.append(f"V2 {a} {b}\t{k}")
    assert lines == [*expected, ""]


@pytest.mark.parametrize("layout", ["csv", "int2int", "parquet"])
def test_more_examples_than_a_chunk(layout: str, tmp_path: Path) -> None:
    stream, count = stream_of(), CHUNK + 1000
    path = written(stream, layout, tmp_path / "examples", count)
    if layout == "parquet":
        table = pyarrow.parquet.read_table(path)
        rows = np.stack([column.to_numpy() for column in table.columns], axis=1).tolist()
    elif layout == "csv":
        rows = np.loadtxt(path, delimiter=",", skiprows=1, dtype=np.int64).tolist()
    else:
        rows = [integers_of(line.split()[1:], BASE) for line in path.read_text().splitlines()]
    assert rows == rows_of(stream, count)


@pytest.mark.parametrize("layout", ["csv", "int2int"])
def test_text_to_an_open_file_is_the_same(layout: str, tmp_path: Path) -> None:
    buffer = io.StringIO()
    write_text(stream_of(), COUNT, layout, buffer)
    assert buffer.getvalue().encode() == written(stream_of(), layout, tmp_path / "file").read_bytes()


def test_files_follow_the_laws_and_the_seed(tmp_path: Path) -> None:
    texts = {written(stream_of(**leaves), "csv", tmp_path / "file.csv", 100).read_text()
             for leaves in ({}, {"seed": 10}, {"operands": "log-uniform"}, {"outcomes": "uniform"}, {"maximum": 999})}
    assert len(texts) == 5


@pytest.mark.parametrize("layout", ["csv", "int2int", "parquet"])
def test_a_place_that_cannot_be_written_is_named(layout: str, tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing" / "file.csv"):
        with pytest.raises(UserError, match="out") as caught:
            write_examples(stream_of(), 10, layout, path)
        assert str(path) in str(caught.value) and "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_layout_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="xml"):
        write_examples(stream_of(), 10, "xml", tmp_path / "file.xml")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_for_datasets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hugging Face's own library reads it back; nothing of it asks the network, or stays beside it."""
    import datasets

    def refuse(*args: object) -> None:
        raise AssertionError(f"a connection: {args}")

    monkeypatch.setattr("socket.socket.connect", refuse)
    stream = stream_of("simplification")
    found = datasets.load_from_disk(str(written(stream, "datasets", tmp_path / "folder")))
    assert found.column_names == CASES["simplification"]
    assert [list(row.values()) for row in found] == rows_of(stream)
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]
    with pytest.raises(UserError, match="new folder"):
        write_examples(stream, 10, "datasets", tmp_path / "folder")
