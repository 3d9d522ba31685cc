"""Trackers: copies of the JSONL that agree with it, each epoch once, and that cannot hurt a run whatever they do."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import tiny_config
from gcdformer import Run, UserError, train
from gcdformer.cli import main
from gcdformer.display.figures import CELL_COLOURS, grid_picture
from gcdformer.runs.checkpoint import load_checkpoint
from gcdformer.runs.folder import checkpoint_steps
from gcdformer.training import trackers
from gcdformer.training.trackers import SCALARS, TRACKERS, Tracker
from gcdformer.training.view import Event, Note, View

pytest.importorskip("tensorboard", reason="pip install 'gcdformer[track]'")
pytest.importorskip("wandb", reason="pip install 'gcdformer[track]'")
pytestmark = pytest.mark.processes  # W&B starts a service of its own
BLOCK = 32768
SMALL = ["--base", "10", "--max", "1000", "--dim", "16", "--epoch-size", "320", "--batch-size", "16", "--test-size", "200",
         "--threads", "1", "--backend", "autograd", "--schedule", "constant"]


@pytest.fixture(autouse=True)
def offline_and_patient(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("WANDB_MODE", raising=False)
    monkeypatch.setattr(trackers, "PATIENCE", 300.0)  # a busy machine is no failure
    monkeypatch.setenv("WANDB_CACHE_DIR", str(tmp_path / "cache"))


class Listener(View):
    """Keeps the warnings."""

    def __init__(self) -> None:
        self.warnings: list[str] = []

    def show(self, event: Event) -> None:
        if isinstance(event, Note) and event.warning:
            self.warnings.append(event.message)


def board(run: Path) -> Any:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    found = EventAccumulator(str(run / "trackers" / "tensorboard"), size_guidance={"images": 0, "tensors": 0, "scalars": 0})
    found.Reload()
    return found


def records(path: Path) -> Iterator[bytes]:
    """The records of a .wandb file: blocks of 32 KB, in chunks with checksum, length and kind."""
    data, place, parts = path.read_bytes(), 7, b""
    assert data[:4] == b":W&B"
    while place + 7 <= len(data):
        if BLOCK - place % BLOCK < 7:
            place += BLOCK - place % BLOCK
            continue
        length, kind = int.from_bytes(data[place + 4:place + 6], "little"), data[place + 6]
        parts += data[place + 7:place + 7 + length]
        place += 7 + length
        if kind in (1, 4):
            yield parts
            parts = b""


def history(run: Path) -> tuple[set[str], list[dict[str, Any]]]:
    """The names that W&B knows the run by, and its rows over all sessions."""
    from wandb.proto import wandb_internal_pb2
    names, rows = set(), []
    for path in sorted((run / "trackers" / "wandb").rglob("*.wandb")):
        for data in records(path):
            record = wandb_internal_pb2.Record()
            record.ParseFromString(data)
            if record.WhichOneof("record_type") == "run":
                names.add(record.run.run_id)
            if record.WhichOneof("record_type") == "history":
                items = {item.key or ".".join(item.nested_key): json.loads(item.value_json) for item in record.history.item}
                rows.append({"step": record.history.step.num} | items)
    return names, rows


def test_both_hold_what_the_jsonl_holds_and_each_epoch_once(tmp_path: Path) -> None:
    """A run without trackers, resumed, with both: they get the epochs they missed, then each new one once."""
    view = Listener()
    plain = train(tiny_config(max_epochs=4), tmp_path / "plain")
    assert not (plain.path / "trackers").exists()
    train(tiny_config(max_epochs=1), tmp_path / "run")
    for epochs in (3, 4, 4):
        run = train(tiny_config(max_epochs=epochs, trackers="wandb,tensorboard"), tmp_path / "run", view)
    assert view.warnings == []
    lines = run.metrics
    found = board(run.path)
    for name in SCALARS:
        events = found.Scalars(name)
        assert [event.step for event in events] == [1, 2, 3, 4]
        assert [np.float32(event.value) for event in events] == [np.float32(line[name]) for line in lines], name
    texts = [event.tensor_proto.string_val[0].decode() for event in found.Tensors("D/text_summary")]
    assert texts == [", ".join(map(str, line["D"])) for line in lines]
    assert [image.step for image in found.Images("grid")] == [1, 2, 3, 4]
    assert found.Images("grid")[0].encoded_image_string.startswith(b"\x89PNG")
    names, rows = history(run.path)
    assert len(names) == 1 and [row["step"] for row in rows] == [1, 2, 3, 4]
    assert len(list((run.path / "trackers" / "wandb").rglob("offline-run-*"))) == 2
    for row, line in zip(rows, lines, strict=True):
        assert {name: row[name] for name in SCALARS} == {name: line[name] for name in SCALARS}
        assert row["D"] == ", ".join(map(str, line["D"])) and row["grid._type" if "grid._type" in row else "grid"]
    assert len(list((run.path / "trackers" / "wandb").rglob("*.png"))) == 4
    last = checkpoint_steps(run.path)[-1]
    weights, same = load_checkpoint(run.path, last).model, load_checkpoint(plain.path, last).model
    assert all(weights[name].equal(same[name]) for name in same), "trackers changed a bit of the run"


def test_other_tasks_have_no_grid(tmp_path: Path) -> None:
    run = train(tiny_config(task="addition", max_epochs=1, trackers="tensorboard"), tmp_path / "run")
    tags = board(run.path).Tags()
    assert "accuracy" in tags["scalars"] and "n_correct" not in tags["scalars"] and not tags["images"]


def test_the_picture_shows_what_is_known(trained: Run) -> None:
    scores = trained.scores()
    picture = grid_picture(scores)
    assert picture.dtype == np.uint8 and picture.shape[2] == 3
    green = tuple(int(CELL_COLOURS["correct"][0][i:i + 2], 16) for i in (1, 3, 5))
    share = float((picture == green).all(-1).mean())
    assert scores.correct and abs(share - len(scores.correct) / 100) < 0.5 * len(scores.correct) / 100
    assert (picture == grid_picture(scores)).all()


class Broken(Tracker):
    """Fails where it is told to."""

    where = "open"
    stuck = threading.Event()

    def __init__(self, run: Path, config: object, name: str) -> None:
        self.fail("open")

    def write(self, line: object, scores: object) -> None:
        self.fail("write")

    def close(self) -> None:
        self.fail("close")

    def fail(self, here: str) -> None:
        if self.where == "stuck" and here == "write":
            self.stuck.wait(60)
        if self.where == here:
            raise {"open": ImportError, "write": OSError, "close": ValueError}[here](f"broken\nin {here}")


@pytest.mark.parametrize("where", ["open", "write", "close", "stuck"])
def test_a_tracker_that_fails_is_said_once_and_stops_nothing(where: str, tmp_path: Path,
                                                            monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TRACKERS, "tensorboard", Broken)
    monkeypatch.setattr(Broken, "where", where)
    if where == "stuck":
        monkeypatch.setattr(trackers, "PATIENCE", 0.3)
    Broken.stuck.clear()
    view = Listener()
    try:
        run = train(tiny_config(max_epochs=2, trackers="tensorboard"), tmp_path / "run", view)
    finally:
        Broken.stuck.set()
    assert len(run.metrics) == 2 and len(view.warnings) == 1
    said = view.warnings[0]
    assert said.startswith("tracker tensorboard failed, the run continues without it: ") and "\n" not in said
    assert ("did not finish in time" in said) if where == "stuck" else (f"broken in {where}" in said)


def test_a_disk_that_refuses(tmp_path: Path) -> None:
    """Real trackers whose folders cannot be written: a file is in their place."""
    train(tiny_config(max_epochs=1), tmp_path / "run")
    (tmp_path / "run" / "trackers").mkdir()
    for name in TRACKERS:
        (tmp_path / "run" / "trackers" / name).write_text("in the way")
    view = Listener()
    run = train(tiny_config(max_epochs=2, trackers="tensorboard,wandb"), tmp_path / "run", view)
    assert len(run.metrics) == 2
    assert sorted(said.split()[1] for said in view.warnings) == ["tensorboard", "wandb"]


def test_a_missing_extra_is_bad_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trackers, "find_spec", lambda name: None if name == "wandb" else object())
    with pytest.raises(UserError, match=r"wandb is not installed: pip install 'gcdformer\[track\]'"):
        train(tiny_config(trackers="tensorboard,wandb"), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_by_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Without the package one line and exit 2; asked for once, a run keeps it; turning it off is no other run."""
    out = tmp_path / "run"
    words = ["train", "--out", str(out), *SMALL, "--quiet", "--max-epochs"]
    assert main([*words, "1", "--trackers", "mlflow"]) == 2
    said = capsys.readouterr().err
    assert "--trackers" in said and "tensorboard|wandb" in said and said.count("\n") == 1
    with monkeypatch.context() as missing:
        missing.setattr(trackers, "find_spec", lambda name: None)
        assert main([*words, "1", "--trackers", "tensorboard"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "gcdformer[track]" in said and not out.exists()
    assert main([*words, "1", "--trackers", "tensorboard"]) == 0
    assert main(["train", "--out", str(out), "--quiet", "--max-epochs", "2"]) == 0
    assert main(["train", "--out", str(out), "--quiet", "--max-epochs", "3", "--trackers", "none"]) == 0
    assert len(Run(out).metrics) == 3 and [event.step for event in board(out).Scalars("loss")] == [1, 2]


LEFT_ALONE = """
import atexit, os, threading
from gcdformer import cli
from gcdformer.training.trackers import THREAD_NAME

def run(arguments=None):
    threading.Thread(target=threading.Event().wait, name=f"{THREAD_NAME}stuck", daemon=True).start()
    return 75

cli.main = run
atexit.register(os.abort)  # what a library may do at Python's end while a thread is within it
cli.run_process()
"""


def test_a_tracker_that_is_left_alone_does_not_abort_the_end() -> None:
    assert subprocess.run([sys.executable, "-c", LEFT_ALONE], check=False).returncode == 75


def test_a_signal_still_saves(tmp_path: Path) -> None:
    """With both trackers at work a SIGTERM is answered with 75; when the run is resumed, no epoch is in them twice. The
    process has a service of W&B's to itself, as a user's has: in a service shared with this process, its run would stay open
    if it ended before W&B had finished."""
    alone = {name: value for name, value in os.environ.items() if name != "WANDB_SERVICE"}
    words = ["train", "--out", str(tmp_path / "run"), *SMALL, "--max-epochs", "100000", "--trackers", "tensorboard,wandb"]
    process = subprocess.Popen([sys.executable, "-m", "gcdformer", *words], stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, env=alone)
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("epoch 3"):
                break
        process.send_signal(signal.SIGTERM)
        rest, _ = process.communicate()
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 75, rest
    epochs = len(Run(tmp_path / "run").metrics)
    assert epochs >= 3
    assert main(["train", "--out", str(tmp_path / "run"), "--quiet", "--max-epochs", str(epochs + 1)]) == 0
    for steps in ([event.step for event in board(tmp_path / "run").Scalars("loss")],
                  [row["step"] for row in history(tmp_path / "run")[1]]):
        assert steps == sorted(set(steps)) and steps[-1] == epochs + 1
