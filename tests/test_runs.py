"""The run folder: any damage to any of its files is noticed and named; refusals are one line."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from gcdformer import DamagedFile, Run, UserError, load_run
from gcdformer.runs.files import replace_file, replace_folder
from gcdformer.runs.metrics import append_metrics, from_text, keep_metrics, read_metrics, to_text


@pytest.fixture
def copy(trained: Run, tmp_path: Path) -> Path:
    return Path(shutil.copytree(trained.path, tmp_path / "copy"))


def read_everything(path: Path) -> None:
    run = load_run(path)
    for line in run.metrics:
        run.prediction_tables(line["epoch"])
    run.predictor("2")
    run.predictor("3")


@pytest.mark.parametrize("pattern", ["config.toml", "metrics.jsonl", "predictions/*.npz", "checkpoints/*/*"])
def test_a_flipped_bit_is_noticed(copy: Path, pattern: str) -> None:
    rng = random.Random(pattern)
    files = [path for path in sorted(copy.glob(pattern)) if "step-000000020" not in str(path)]
    assert files
    for _ in range(25):
        victim = rng.choice(files)
        whole = victim.read_bytes()
        place = rng.randrange(len(whole))
        victim.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << rng.randrange(8)]) + whole[place + 1:])
        with pytest.raises(UserError) as caught:
            read_everything(copy)
        assert victim.name in str(caught.value) or victim.parent.name in str(caught.value)
        victim.write_bytes(whole)
    read_everything(copy)


def test_a_line_that_is_being_written_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    lines = [{"epoch": epoch, "step": 10 * epoch, "examples": 160 * epoch, "loss": 0.1 + 0.2, "accuracy": 50.0,
              "seconds": 1.0 * epoch, "throughput": None} for epoch in (1, 2, 3)]
    for line in lines:
        append_metrics(path, line)
    with path.open("a") as file:
        file.write(to_text({"step": 40})[:9])
    assert [line["step"] for line in read_metrics(path)] == [10, 20, 30]
    assert read_metrics(path)[0]["loss"] == 0.1 + 0.2
    assert [line["step"] for line in keep_metrics(path, 2)] == [10, 20]
    with pytest.raises(DamagedFile, match="2 whole lines"):
        keep_metrics(path, 3)
    assert path.read_text() == to_text(lines[0]) + to_text(lines[1])


@pytest.mark.parametrize("text", ["", "{}", "[]", "3", '{"sha256": 5}', "[" * 5000, '{"a": 1, "sha256": "0"}'])
def test_nonsense_is_no_metrics_line(text: str) -> None:
    with pytest.raises(DamagedFile):
        from_text(text, "here")


def test_replacing_leaves_nothing_behind(tmp_path: Path) -> None:
    replace_file(tmp_path / "a", b"1")
    replace_file(tmp_path / "a", b"2")
    replace_folder(tmp_path / "b", {"x": b"1"})
    replace_folder(tmp_path / "b", {"x": b"2"})
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "b"]
    assert (tmp_path / "a").read_bytes() == b"2" and (tmp_path / "b" / "x").read_bytes() == b"2"


def test_what_is_no_run(tmp_path: Path, trained: Run) -> None:
    with pytest.raises(UserError, match="no such run folder"):
        load_run(tmp_path / "nowhere")
    with pytest.raises(UserError, match=r"no config\.toml"):
        load_run(tmp_path)
    with pytest.raises(UserError, match=r"its epochs are 1\.\.3"):
        trained.prediction_tables(9)
    with pytest.raises(UserError, match="epochs with weights: "):
        trained.predictor("9")
    with pytest.raises(UserError, match="'best', 'last', 'certified' or"):
        trained.predictor("worst")
    with pytest.raises(UserError, match=r"1\.\.1000 for this run: 0 does not"):
        trained.predict([0], [5])
