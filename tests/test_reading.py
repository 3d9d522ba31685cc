"""Examples from files: what is written is read back, a bad line is named, order depends on the seed, resume is exact."""

from __future__ import annotations

import io
import json
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import tiny_config
from gcdformer import Config, Problem, Stream, UserError, load_run, train
from gcdformer.cli import main
from gcdformer.data import reading
from gcdformer.data.files import write_examples
from gcdformer.data.kinds import Kind, parse_kind
from gcdformer.data.parsing import BadLine, read_csv_line, read_int2int_line, scan_csv, scan_int2int
from gcdformer.data.problem import column_names
from gcdformer.data.reading import read_examples
from gcdformer.data.testsets import test_sets as make_test_sets

ENDINGS = {"int2int": "txt", "csv": "csv", "parquet": "parquet"}
GOOD = "V2 + 1 2 + 8\t+ 4\n"


def problem_of(**leaves: object) -> Problem:
    return Problem.of(Config().derive(**({"base": 10, "maximum": 1000} | leaves)))


def file_problem(types: str, **leaves: object) -> Problem:
    return problem_of(task="file", data_types=types, train_file="-", test_file="-", **leaves)


@pytest.mark.parametrize("task", ["gcd", "comparison", "addition", "simplification"])
@pytest.mark.parametrize("layout", ENDINGS)
def test_what_sample_writes_is_read_back(layout: str, task: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = Config().derive(task=task, base=30, maximum=10_000, operands="uniform", seed=3)
    problem = Problem.of(config)
    stream = Stream.of(config, problem)
    path = tmp_path / f"examples.{ENDINGS[layout]}"
    write_examples(stream, 3000, layout, path)
    monkeypatch.setattr(reading, "CHUNK", 1000)  # many chunks, cut anywhere
    monkeypatch.setattr(reading, "PARQUET_ROWS", 700)
    seen: list[tuple[int, int]] = []
    found = read_examples(str(path), problem, "train_file", lambda done, total: seen.append((done, total)))
    assert (found.rows == stream.examples(0, 3000)).all()
    assert len(seen) > 3 and seen == sorted(seen) and seen[-1][0] == seen[-1][1]


def test_columns_in_any_order_and_a_last_line_without_its_end(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"\xef\xbb\xbfgcd,b,a\n4,8,12\n3,9,6")
    assert read_examples(str(tmp_path / "a.csv"), problem_of(), "train_file").rows.tolist() == [[12, 8], [6, 9]]


# What is wrong, the text of an Int2Int file, the line it is in, and a word of the message.
BAD_TEXT = {
    "unknown token": (GOOD + "V2 + 1 x + 8\t+ 4\n", 2, "unknown token 'x'"),
    "digit of another base": (GOOD + "V2 + 12 + 8\t+ 4\n", 2, "unknown token '12'; in base 10"),
    "missing tab": (GOOD + GOOD + "V2 + 1 2 + 8 + 4\n", 3, "one tab"),
    "two tabs": (GOOD + "V2 + 1 2\t+ 8\t+ 4\n", 2, "one tab"),
    "CRLF": (GOOD + GOOD.replace("\n", "\r\n"), 2, "CRLF"),
    "not UTF-8": ((GOOD + "V2 + 1 2 + 8\t+ 4").encode() + b"\xff\n", 2, "not UTF-8"),
    "too few integers": (GOOD + "V2 + 1 2\t+ 4\n", 2, "holds 2 integers, got 1"),
    "too many answers": (GOOD + "V2 + 1 2 + 8\t+ 4 + 4\n", 2, "holds 1 integers, got 2"),
    "wrong prefix": (GOOD + "V3 + 1 2 + 8\t+ 4\n", 2, "starts with V2"),
    "no prefix": (GOOD + "+ 1 2 + 8\t+ 4\n", 2, "starts with V2"),
    "empty file": ("", 1, "empty"),
    "empty line": (GOOD + "\n" + GOOD, 2, "is empty"),
    "empty last line": (GOOD + "\n", 2, "is empty"),
    "two blanks": (GOOD + "V2  + 1 2 + 8\t+ 4\n", 2, "one blank"),
    "blank at the end": (GOOD + "V2 + 1 2 + 8\t+ 4 \n", 2, "one blank"),
    "no answer": (GOOD + "V2 + 1 2 + 8\t\n", 2, "answer is empty"),
    "sign without digits": (GOOD + "V2 + + 8\t+ 4\n", 2, "a digit after each sign"),
    "digit without sign": (GOOD + "V2 1 2 + 8\t+ 4\n", 2, "a sign before"),
    "leading zero": (GOOD + "V2 + 0 2 + 8\t+ 2\n", 2, "leading zeros"),
    "minus zero": (GOOD + "V2 - 0 + 8\t+ 2\n", 2, "leading zeros"),
    "too large": (GOOD + "V2 + 1 0 0 1 + 8\t+ 1\n", 2, "an operand in 1..1000"),
    "far too large": (GOOD + f"V2 + {'9 ' * 40}+ 8\t+ 1\n", 2, "2^62"),
    "negative": (GOOD + "V2 - 4 + 8\t+ 4\n", 2, "an operand in 1..1000"),
    "wrong answer": (GOOD + "V2 + 6 + 9\t+ 1\n", 2, "gcd(6, 9) is 3, the file says 1"),
    "NUL": (GOOD + "V2 + 1 2 + 8\0\t+ 4\n", 2, "unknown token"),
}
BAD_CSV = {
    "empty file": ("", 1, "empty"), "header alone": ("a,b,gcd\n", 1, "empty"),
    "no header": ("12,8,4\n", 1, "columns a,b,gcd"),
    "column missing": ("a,b\n12,8\n", 1, "columns a,b,gcd"), "a column twice": ("a,a,gcd\n12,8,4\n", 1, "columns"),
    "cell missing": ("a,b,gcd\n12,8,4\n12,8\n", 3, "3 cells"), "no integer": ("a,b,gcd\n12,8.0,4\n", 2, "'8.0'"),
    "no cell": ("a,b,gcd\n12,,4\n", 2, "''"), "CRLF": ("a,b,gcd\r\n12,8,4\r\n", 1, "CRLF"),
    "CRLF below": ("a,b,gcd\n12,8,4\r\n", 2, "CRLF"), "blank line": ("a,b,gcd\n12,8,4\n\n", 3, "is empty"),
    "not UTF-8": (b"a,b,gcd\n12,8,\xe9\n", 2, "not UTF-8"), "blank": ("a,b,gcd\n12, 8,4\n", 2, "' 8'"),
    "too large": (f"a,b,gcd\n12,{2**63},4\n", 2, "2^62"), "zero": ("a,b,gcd\n0,8,8\n", 2, "in 1..1000"),
    "wrong answer": ("a,b,gcd\n12,8,4\n12,8,2\n", 3, "is 4, the file says 2"), "sign": ("a,b,gcd\n12,+8,4\n", 2, "'+8'"),
}
CASES = [*((f"{name} in text", "a.txt", *case) for name, case in BAD_TEXT.items()),
         *((f"{name} in CSV", "a.csv", *case) for name, case in BAD_CSV.items())]


@pytest.mark.parametrize(("name", "text", "line", "says"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_a_bad_line_is_named(name: str, text: str | bytes, line: int, says: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(UserError) as caught:
        read_examples(str(tmp_path / name), problem_of(), "train_file")
    said = str(caught.value)
    assert said.startswith(f"train_file: {tmp_path / name} line {line}: ") and says in said and "\n" not in said


def test_the_line_is_right_beyond_the_first_chunk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "CHUNK", 100)
    (tmp_path / "a.txt").write_text(GOOD * 500 + "V2 + 1 2 + 8 + 4\n" + GOOD * 500)
    with pytest.raises(UserError, match=r"line 501: one tab"):
        read_examples(str(tmp_path / "a.txt"), problem_of(), "train_file")
    monkeypatch.setattr(reading, "LONGEST_LINE", 300)
    (tmp_path / "b.txt").write_text(GOOD * 20 + "+ 1 " * 1000)
    with pytest.raises(UserError, match=r"line 21: longer than 300 bytes"):
        read_examples(str(tmp_path / "b.txt"), problem_of(), "train_file")


@pytest.mark.parametrize(("columns", "says"), [
    ({"a": [1, None], "b": [3, 4], "gcd": [1, 2]}, r"row 2: column a has no value"),
    ({"a": [1.5], "b": [3], "gcd": [1]}, "column a: integers, got double"),
    ({"a": [1], "b": [3]}, "has the columns a,b, wanted a,b,gcd"),
    ({"a": [1, 6], "b": [3, 4], "gcd": [1, 4]}, r"row 2: gcd\(6, 4\) is 2"),
    ({"a": [1, -6], "b": [3, 4], "gcd": [1, 2]}, r"row 2: an operand in 1..1000"),
    ({"a": pyarrow.array([2**64 - 1], pyarrow.uint64()), "b": [3], "gcd": [1]}, "not sound Parquet"),
    ({"a": pyarrow.array([], pyarrow.int64()), "b": pyarrow.array([], pyarrow.int64()),
      "gcd": pyarrow.array([], pyarrow.int64())}, "row 1: no examples")])
def test_a_bad_row_of_parquet_is_named(columns: dict[str, object], says: str, tmp_path: Path) -> None:
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet")
    with pytest.raises(UserError, match=says):
        read_examples(str(tmp_path / "a.parquet"), problem_of(), "test_file")


@pytest.mark.parametrize(("text", "kind"), [
    ("int", Kind(1)), ("int[1]", Kind(1, array=True)), ("int[5]", Kind(5, array=True)), ("range(2)", Kind(1, low=0, high=1)),
    ("range(-3,4)", Kind(1, low=-3, high=3)), ("range(-3, 4)", Kind(1, low=-3, high=3))])
def test_types(text: str, kind: Kind) -> None:
    assert parse_kind(text) == kind


@pytest.mark.parametrize("text", ["int[0]", "int[1001]", "float", "range(4,4)", f"range({2**63})", "range(,3)", "", "int["])
def test_bad_types(text: str) -> None:
    with pytest.raises(UserError, match="data_types"):
        file_problem(f"{text}:int")


def test_int2int_examples_of_every_type(tmp_path: Path) -> None:
    """An elliptic curve's five coefficients and whether its rank is above 0; arrays of one; single integers."""
    for types, line, row, base in (("int[5]:range(2)", "V5 + 0 - 1 + 0 - 84 375 258 - 298 283 918 238\t1",
                                    [0, -1, 0, -84375258, -298283918238, 1], 1000),
                                   ("int[1]:int[2]", "V1 + 3\tV2 + 1 - 1", [3, 1, -1], 10),
                                   ("range(-9,9):int", "-7\t- 1 2", [-7, -12], 10)):
        (tmp_path / "a.txt").write_text(line + "\n")
        problem = file_problem(types, base=base, maximum=10**12)
        assert read_examples(str(tmp_path / "a.txt"), problem, "train_file").rows.tolist() == [row]
        names = column_names(problem)
        (tmp_path / "a.csv").write_text(f"{','.join(names)}\n{','.join(map(str, row))}\n")
        assert read_examples(str(tmp_path / "a.csv"), problem, "train_file").rows.tolist() == [row]
    (tmp_path / "a.txt").write_text("V2 + 1 + 2\t7\n")
    with pytest.raises(UserError, match=r"line 1: an answer in 0\.\.6 .*, got 7"):
        read_examples(str(tmp_path / "a.txt"), file_problem("int[2]:range(7)"), "train_file")


WORDS = st.lists(st.sampled_from(["+", "-", "0", "1", "9", "10", "12", "-3", "00", "07", "V1", "V2", "x", "",
                                   "9" * 19, "\r"]), max_size=9).map(" ".join)
LINES = st.lists(st.one_of(st.tuples(WORDS, WORDS).map("\t".join), WORDS, st.just("V2 + 1 2 - 9\t+ 4"),
                           st.just("V2 + 1 + 9\t-3"),
                           st.lists(st.sampled_from(["1", "-20", "0", "-0", "007", "", " 3", str(2**62), "x"]), min_size=3,
                                    max_size=3).map(",".join)), min_size=1, max_size=3)


@settings(max_examples=600, deadline=None, derandomize=True)
@given(LINES, st.sampled_from(["int[2]:int", "int:int", "int[1]:range(-9,9)", "range(0,99):int[2]"]),
       st.sampled_from([2, 10, 13]))
def test_the_fast_reader_agrees_with_the_plain_one(lines: list[str], types: str, base: int) -> None:
    """A chunk is either refused by both, or read alike; what the fast one does not take, the plain one decides."""
    kinds = tuple(map(parse_kind, types.split(":")))
    chunk = "".join(line + "\n" for line in lines).encode()
    for fast, plain in ((scan_int2int(chunk, kinds, base), lambda line: read_int2int_line(line, kinds, base)),
                        (scan_csv(chunk, [2, 0, 1]), lambda line: read_csv_line(line, [2, 0, 1]))):
        try:
            wanted = [plain(line.encode()) for line in lines]
        except BadLine:
            assert fast is None
        else:
            assert fast.tolist() == wanted if fast is not None else re.search(rb"\d{19}", chunk)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.integers(-10**15, 10**15), st.integers(-10**15, 10**15), st.integers(-50, 49)), min_size=1,
                max_size=9), st.sampled_from([2, 10, 1000, 19_999]))
def test_what_is_well_formed_takes_the_fast_way(rows: list[tuple[int, int, int]], base: int) -> None:
    def word(n: int) -> str:
        digits = []
        rest = abs(n)
        while rest or not digits:
            digits.append(str(rest % base))
            rest //= base
        return " ".join(["-" if n < 0 else "+", *reversed(digits)])

    text = "".join(f"V2 {word(a)} {word(b)}\t{c}\n" for a, b, c in rows).encode()
    found = scan_int2int(text, (Kind(2, array=True), Kind(1, low=-50, high=49)), base)
    assert found is not None and found.tolist() == list(map(list, rows))
    found = scan_csv("".join(f"{a},{b},{c}\n" for a, b, c in rows).encode(), [0, 1, 2])
    assert found is not None and found.tolist() == list(map(list, rows))


def write_pairs(path: Path, count: int, seed: int = 1, **leaves: object) -> Path:
    config = tiny_config(seed=seed, **leaves)
    layout = {ending: layout for layout, ending in ENDINGS.items()}[path.suffix[1:]]
    write_examples(Stream.of(config, Problem.of(config)), count, layout, path)
    return path


def test_order_is_a_function_of_the_seed(tmp_path: Path) -> None:
    path = write_pairs(tmp_path / "a.csv", 5000)
    streams = [Stream.of(config, Problem.of(config)) for config in (
        tiny_config(train_file=str(path), seed=seed) for seed in (0, 0, 1))]
    whole = streams[0].examples(0, 15_000)
    rows = {tuple(row) for row in np.loadtxt(path, delimiter=",", skiprows=1, dtype=np.int64)[:, :2].tolist()}
    passes = [whole[turn * 5000:(turn + 1) * 5000] for turn in range(3)]
    for one in passes:
        assert {tuple(row) for row in one.tolist()} == rows
        assert (np.sort(one, axis=0) == np.sort(passes[0], axis=0)).all()
    assert (passes[0] != passes[1]).any() and (passes[1] != passes[2]).any()
    assert (streams[1].examples(7_321, 12_345) == whole[7_321:12_345]).all()
    assert (streams[2].examples(0, 5000) != passes[0]).any()


def test_test_sets_from_a_file(tmp_path: Path) -> None:
    path = write_pairs(tmp_path / "a.txt", 3000)
    config = tiny_config(test_file=str(path))
    sets = make_test_sets(config, Problem.of(config), 1)
    k = np.gcd(*sets["stratified"].T)
    assert len(sets["natural"]) == 3000 > len(sets["stratified"]) and np.unique(k, return_counts=True)[1].min() >= 30
    write_pairs(path, 20)
    with pytest.raises(UserError, match="test_file: no GCD"):
        make_test_sets(config, Problem.of(config), 1)


def test_a_run_from_files_its_resume_and_its_readers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train_file, test_file = write_pairs(tmp_path / "a.txt", 700), write_pairs(tmp_path / "b.parquet", 900, 2)
    config = tiny_config(train_file=str(train_file), test_file=str(test_file), max_epochs=2)
    run = train(config, tmp_path / "run")
    assert [run.prediction_tables()[name].total for name in ("natural", "stratified")] == [
        900, len(make_test_sets(config, run.problem, 1)["stratified"])]
    assert main(["seen", str(run.path), *map(str, run.stream.examples(3, 4)[0].tolist()), "--json"]) == 0
    assert 3 in [place["example"] for place in json.loads(capsys.readouterr().out)["when"]]
    assert main(["evaluate", str(run.path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["accuracy"] == run.metrics[-1]["accuracy"]
    assert main(["evaluate", str(run.path), "--test-file", str(train_file), "--json"]) == 0
    of_training = json.loads(capsys.readouterr().out)
    assert sum(one["pairs"] for one in of_training["by_gcd"].values()) < 700
    assert main(["explain", str(run.path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    rows = read_examples(str(test_file), run.problem, "test_file").rows
    assert found["fidelity"]["natural"]["n"] == (np.gcd(rows[:, 0], rows[:, 1]) <= 100).sum() < 900

    moved = Path(shutil.copy(train_file, tmp_path / "elsewhere.txt"))
    train(config.replace(train_file=str(moved), max_epochs=3), run.path)  # the same content in another place
    train_file.unlink()
    moved.write_text(moved.read_text() + GOOD)
    with pytest.raises(UserError, match=r"another configuration: train_file \(it holds something else\)"):
        train(load_run(run.path).config.replace(max_epochs=4), run.path)
    with pytest.raises(UserError, match="train_file: .* has changed since"):
        _ = load_run(run.path).stream
    assert load_run(run.path).predict([12], [8]).shape == (1,)  # asking needs no file
    with pytest.raises(UserError, match=r"train_file \(it holds something else\)"):
        train(tiny_config(test_file=str(test_file)), run.path)


def test_any_task_from_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers that no task of ours gives are learned, scored and predicted."""
    rng = np.random.default_rng(0)
    pairs = rng.integers(-50, 50, (300, 2))
    path = tmp_path / "a.csv"
    path.write_text("a,b,answer\n" + "".join(f"{a},{b},{int(a < b)}\n" for a, b in pairs.tolist()))
    config = tiny_config(task="file", data_types="int[2]:range(2)", train_file=str(path), test_file=str(path), lr=1e-2,
                         epoch_size=3200, max_epochs=2)
    run = train(config, tmp_path / "run")
    assert run.metrics[-1]["accuracy"] > 75
    monkeypatch.setattr(sys, "stdin", io.StringIO("-40,40\n40,-40\n"))
    assert main(["predict", str(run.path), "-"]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == ["-40,40,1,,", "40,-40,0,,"]
    assert main(["seen", str(run.path), "1", "2"]) == main(["evaluate", str(run.path)]) == 0
    assert main(["sample", "--task", "file"]) == 2


CLASHES = [({"train_file": "x", "operands": "log-uniform"}, "operands"),
           ({"train_file": "x", "outcomes": "uniform"}, "outcomes"),
           ({"train_file": "x", "budget": 5}, "budget"), ({"train_file": "x", "repeat_share": 0.5}, "repeat_share"),
           ({"test_file": "x", "fresh_tests": True}, "fresh_tests"), ({"task": "file"}, "data_types"),
           ({"data_types": "int:int"}, "task 'file'"),
           ({"task": "file", "data_types": "int:int"}, "train_file and test_file")]


@pytest.mark.parametrize(("leaves", "says"), CLASHES, ids=[str(case[0]) for case in CLASHES])
def test_clashes_are_named(leaves: dict[str, object], says: str) -> None:
    with pytest.raises(UserError, match=says):
        Config().derive(**leaves)


def test_a_bad_file_leaves_no_run(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("V2 + 1\n")
    for name in ("a.txt", "missing.csv", "."):
        with pytest.raises(UserError, match="^train_file: "):
            train(tiny_config(train_file=str(tmp_path / name)), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_packed_and_autograd_take_the_same_examples(tmp_path: Path) -> None:
    path = write_pairs(tmp_path / "a.csv", 100)
    losses = [train(tiny_config(train_file=str(path), max_epochs=1, backend=backend), tmp_path / backend).metrics[0]["loss"]
              for backend in ("auto", "autograd")]
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)
