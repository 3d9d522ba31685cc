"""`gcdformer runs`: the table follows the files, and filters, groups and SQL answer from it."""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import tiny_config
from gcdformer import train
from gcdformer.cli import main
from gcdformer.runs.index import INDEX, runs_table

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


def test_a_folder_one_may_only_read(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / INDEX).unlink(missing_ok=True)

    def refuse(path: Path, data: bytes) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("gcdformer.runs.index.replace_file", refuse)
    assert len(runs_table(root)) == 4 and not (root / INDEX).exists()
