"""`gcdformer runs`: the table follows the files, and filters, groups and SQL answer from it."""

from __future__ import annotations

import csv
import io
import json
import random
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from conftest import tiny_config
from gcdformer import train
from gcdformer.cli import main
from gcdformer.runs.files import replace_file
from gcdformer.runs.index import FORMAT, INDEX, read_index, runs_table, to_bytes
from gcdformer.runs.query import RunsDatabase, RunsQuery

Ask = Callable[..., list[dict[str, object]]]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two bases, two seeds each, at two depths; and a folder that is no run."""
    folder = tmp_path_factory.mktemp("many")
    for base in (10, 7):
        for seed in (0, 1):
            train(tiny_config(base=base, seed=seed, max_epochs=2 if base == 10 else 1), folder / f"b{base}" / f"s{seed}")
    (folder / "notes").mkdir()
    return folder


@pytest.fixture
def ask(root: Path, capsys: pytest.CaptureFixture[str]) -> Ask:
    def answer(*words: str) -> list[dict[str, object]]:
        assert main(["runs", str(root), *words, "--json"]) == 0
        return json.loads(capsys.readouterr().out)  # type: ignore[no-any-return]
    return answer


def test_every_run_is_a_row_with_settings_and_figures(ask: Ask, root: Path) -> None:
    rows = ask("--columns", "path,base,seed,lr,epoch,accuracy,D,best_n_correct", "--sort", "path")
    assert [row["path"] for row in rows] == ["b10/s0", "b10/s1", "b7/s0", "b7/s1"]
    last = json.loads((root / "b10/s0/metrics.jsonl").read_text().splitlines()[-1])
    assert rows[0] == {"path": "b10/s0", "base": 10, "seed": 0, "lr": 3e-3, "epoch": 2, "accuracy": last["accuracy"],
                       "D": last["D"], "best_n_correct": last["n_correct"]}
    assert set(ask()[0]) == {"path", "base", "seed", "epoch", "n_correct", "accuracy", "best_n_correct", "best_accuracy",
                             "seconds"}


def test_filter_sort_limit(ask: Ask) -> None:
    rows = ask("--where", "base = 7 AND seed >= 0", "--sort", "seed DESC", "--limit", "1")
    assert [(row["base"], row["seed"]) for row in rows] == [(7, 1)]


def test_best_of_seeds_and_groups(ask: Ask) -> None:
    every = ask("--columns", "base,seed,best_n_correct,best_accuracy")
    best = ask("--best-of-seeds")
    assert sorted(row["base"] for row in best) == [7, 10] and all(row["seeds"] == 2 for row in best)
    for row in best:
        same = [one for one in every if one["base"] == row["base"]]
        assert (row["best_n_correct"], row["best_accuracy"]) == max(
            (one["best_n_correct"], one["best_accuracy"]) for one in same)
    groups = ask("--group-by", "base")
    assert [(row["base"], row["runs"]) for row in groups] == [(7, 2), (10, 2)]
    for row in groups:
        same = [one["best_accuracy"] for one in every if one["base"] == row["base"]]
        assert row["best_accuracy"] == max(same) and row["mean_accuracy"] == pytest.approx(sum(same) / 2)


def test_sql_over_runs_and_metrics(ask: Ask) -> None:
    rows = ask("--sql", "SELECT base, count(*) AS n FROM runs JOIN metrics USING (path) GROUP BY base ORDER BY base")
    assert rows == [{"base": 7, "n": 2}, {"base": 10, "n": 4}]


def test_a_run_from_a_file_names_it_and_no_distribution(root: Path, tmp_path: Path,
                                                       capsys: pytest.CaptureFixture[str]) -> None:
    """Also where the index was written by a version that listed it as drawn."""
    folder = tmp_path / "runs"
    shutil.copytree(root / "b10" / "s0", folder / "drawn")
    examples = tmp_path / "pairs.csv"
    examples.write_text("a,b,gcd\n" + "".join(f"{n},{2 * n},{n}\n" for n in range(1, 301)))
    train(tiny_config(train_file=str(examples), max_epochs=1), folder / "filed")
    kept = runs_table(folder)
    old = kept.set_column(kept.schema.get_field_index("operands"), "operands", [["uniform"] * 2])
    stamps = [stamp.removeprefix(f"{FORMAT} ") for stamp in kept["stamp"].to_pylist()]
    old = old.set_column(kept.schema.get_field_index("stamp"), "stamp", [stamps])
    (folder / INDEX).write_bytes(to_bytes(old))
    assert main(["runs", str(folder), "--json"]) == 0
    rows = {row["path"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["filed"]["train_file"] == str(examples) and rows["drawn"]["train_file"] is None
    for column, drawn in (("operands", "uniform"), ("outcomes", "natural")):
        assert (rows["filed"][column], rows["drawn"][column]) == (None, drawn)


def test_table_and_csv(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs", str(root), "--sort", "path"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:3] == ["path", "base", "seed"] and lines[1].split()[:3] == ["b10/s0", "10", "0"]
    assert main(["runs", str(root), "--format", "csv", "--columns", "path,seed", "--sort", "path"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert rows[3] == {"path": "b7/s1", "seed": "1"}


@pytest.mark.parametrize("words", [["--where", "bsae = 1"], ["--columns", "colour"], ["--sql", "SELEKT"],
                                   ["--group-by", "x"], ["--sql", "SELECT 1", "--limit", "3"], ["--json", "--format", "csv"],
                                   ["--limit", "0"]], ids=" ".join)
def test_a_bad_question_is_one_line(words: list[str], root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs", str(root), *words]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and len(captured.err.splitlines()) == 1 and captured.err.startswith("gcdformer: ")


def test_the_index_follows_the_files(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(root, copy, ignore=shutil.ignore_patterns(INDEX))
    first = runs_table(copy)
    assert (copy / INDEX).exists() and runs_table(copy).equals(first)
    train(tiny_config(base=7, seed=1, max_epochs=2), copy / "b7/s1")
    shutil.rmtree(copy / "b7/s0")
    train(tiny_config(base=30, max_epochs=1), copy / "new")
    table = runs_table(copy)
    assert dict(zip(table["path"].to_pylist(), table["epoch"].to_pylist(), strict=True)) == {
        "b10/s0": 2, "b10/s1": 2, "b7/s1": 2, "new": 1}
    (copy / INDEX).write_bytes(b"not a table")
    assert runs_table(copy).equals(table)
    metrics = copy / "new/metrics.jsonl"
    metrics.write_text(metrics.read_text().replace('"epoch": 1', '"epoch": 9'))
    (copy / "b10/s0/config.toml").write_text("x")
    damaged = runs_table(copy)
    assert damaged["problem"].null_count == 2 and damaged["epoch"].null_count == 2
    assert main(["runs", str(copy), "--where", "problem IS NULL", "--json"]) == 0
    captured = capsys.readouterr()
    assert len(json.loads(captured.out)) == 2 and captured.err.count("does not match its checksum") == 2


def test_an_index_that_cannot_be_written_is_done_without(root: Path, tmp_path: Path,
                                                        capsys: pytest.CaptureFixture[str]) -> None:
    copy = shutil.copytree(root, tmp_path / "copy", ignore=shutil.ignore_patterns(INDEX))
    (copy / INDEX).mkdir()  # as in a folder one may only read: nobody, not even root, can put a file in its place
    assert len(runs_table(copy)) == 4 and not list(copy.glob("*.new")) and not list(copy.glob(".*.new"))
    assert main(["runs", str(copy), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 4


def test_two_may_ask_at_once(root: Path, tmp_path: Path) -> None:
    """Each writes a file of its own before it takes the index's place, so that the index is always whole."""
    copy = shutil.copytree(root, tmp_path / "copy", ignore=shutil.ignore_patterns(INDEX))
    data, torn = to_bytes(runs_table(copy)), []

    def write() -> None:
        for _ in range(50):
            replace_file(copy / INDEX, data, shared=True)

    def read() -> None:
        torn.extend(n for _ in range(100) if (n := len(read_index(copy))) != 4)

    with ThreadPoolExecutor(3) as pool:
        for done in [pool.submit(write), pool.submit(write), pool.submit(read)]:
            done.result()
    assert not torn and not list(copy.glob(".*.new"))


def test_a_damaged_index_is_never_believed(root: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(root, tmp_path / "copy", ignore=shutil.ignore_patterns(INDEX))
    good = runs_table(copy)
    data = (copy / INDEX).read_bytes()
    for place in random.Random(5).sample(range(len(data)), 200):
        (copy / INDEX).write_bytes(data[:place] + bytes([data[place] ^ 1 << place % 8]) + data[place + 1:])
        assert len(read_index(copy)) == 0
    assert runs_table(copy).equals(good) and (copy / INDEX).read_bytes() == data


def test_a_last_line_whose_end_has_changed_is_damage(root: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(root, tmp_path / "copy")
    metrics = copy / "b10/s0/metrics.jsonl"
    metrics.write_bytes(metrics.read_bytes()[:-1] + b"\x0b")
    assert [text for text in runs_table(copy)["problem"].to_pylist() if text] == [
        f"{metrics} line 2: does not end as it was written"]


def test_metrics_have_the_columns_of_all_runs(root: Path, tmp_path: Path) -> None:
    """Whichever run comes first: a task without GCD has no D."""
    copy = shutil.copytree(root, tmp_path / "copy")
    train(tiny_config(task="comparison", max_epochs=1), copy / "a-task-without-gcd")
    answer = RunsDatabase(copy).ask(RunsQuery(sql="SELECT path, n_correct, D FROM metrics WHERE epoch = 1 ORDER BY path"))
    assert answer.rows[0] == ("a-task-without-gcd", None, None)
    assert len(answer.rows) == 5 and all(isinstance(row[1], int) and isinstance(row[2], list) for row in answer.rows[1:])


def test_names_are_shown_as_they_are_and_obeyed_by_no_terminal(root: Path, tmp_path: Path,
                                                               capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(root / "b10/s0", tmp_path / "a[" / "b]")  # read as markup, it closes what nobody opened
    shutil.copytree(root / "b10/s1", tmp_path / "red \x1b[31m")
    bad = shutil.copytree(root / "b10/s1", tmp_path / "bad \x1b]0;title\x07")
    (bad / "config.toml").write_text("x")
    assert main(["runs", str(tmp_path), "--columns", "path", "--sort", "path"]) == 0
    captured = capsys.readouterr()
    assert "\x1b" not in captured.out + captured.err and "\x07" not in captured.err
    assert [line.strip() for line in captured.out.splitlines()[1:]] == [
        "a[/b]", "bad \\x1b]0;title\\x07", "red \\x1b[31m"]
    assert "bad \\x1b]0;title\\x07" in captured.err
