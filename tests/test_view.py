"""The live page in a real pseudo-terminal, the plain lines without one, and what they say of what is learned and lost."""

from __future__ import annotations

import os
import re
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from conftest import tiny_config
from forked import ended, in_terminal, start
from gcdformer import train
from gcdformer.config import Config
from gcdformer.runs.checkpoint import TrainingState
from gcdformer.training import view as view_module
from gcdformer.training.events import STEADY_SECONDS, Announcer
from gcdformer.training.limits import limit_reached, seconds_left
from gcdformer.training.live import LiveView
from gcdformer.training.view import Ended, Evaluated, Event, PlainView, View
from sweeps import Gate
from test_training import StopAfter

pytestmark = pytest.mark.processes


def test_the_live_page_shows_what_is_learned(tmp_path: Path) -> None:
    code, drawn = in_terminal("train", "--out", tmp_path / "run", "--base", 10, "--max", 1000, "--dim", 16, "--heads", 2,
                              "--batch-size", 16, "--epoch-size", 640, "--test-size", 1000, "--max-epochs", 4, "--lr", 0.01,
                              "--threads", 1, "--schedule", "constant", "--operands", "uniform", "--prior", "natural",
                              "--average", 0.9)
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", drawn)
    assert code == 0 and "Traceback" not in text
    for word in ("gcd in base 10", "answers decided under the natural prior by averaged weights", "examples/s",
                 "correct GCD", "f(k), k = 1 …", "max_epochs 4 reached", "81 …", "one prediction f(k)", "report  "):
        assert word in text, word
    assert "\x1b[1;32m" in drawn  # a correct GCD in green
    lines = text.replace("\r", "\n").partition("gcd in base 10")[2].split("\n")
    wide = [line for line in lines if len(line) > 100]
    assert all(str(tmp_path) in line for line in wide), wide  # only a path or a command, which is to be pasted in one piece


def test_a_reader_that_goes_away_ends_nothing(tmp_path: Path) -> None:
    """As `gcdformer train … | head -n 1`, or a `tee` that dies. The training is held until the reader has gone."""
    gate = Gate(tmp_path)
    words = ["train", "--out", tmp_path / "run", "--base", 10, "--max", 1000, "--dim", 16, "--heads", 2, "--batch-size", 16,
             "--epoch-size", 1600, "--test-size", 1000, "--max-epochs", 4, "--threads", 1, "--operands", "uniform",
             "--task", gate.task]
    reader, writer = os.pipe()
    with (tmp_path / "errors").open("w+") as errors, Path(os.devnull).open() as nothing:
        process = start(tuple(words), nothing.fileno(), writer, errors.fileno())
        os.close(writer)
        with os.fdopen(reader) as output:
            assert output.readline()
        gate.open()
        code, said = ended(process), (tmp_path / "errors").read_text()
    assert code == 0 and said == "gcdformer: nobody reads the output any more; continuing without it\n"
    assert len((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()) == 4


def line(epoch: int, correct: list[int], close: list[int], seconds: float = 0.0) -> dict[str, Any]:
    return {"epoch": epoch, "seconds": seconds, "D": correct, "being_learned": close, "n_correct": len(correct), "loss": 1.0,
            "accuracy": 50.0, "throughput": None}


def said(epochs: str, seconds: float) -> list[str]:
    """What is said of 16 over epochs, each of so many seconds, in which it is in D (+) or not (-)."""
    announcer = Announcer()
    return [str(announcer.follow(line(n, [16] if mark == "+" else [], [], n * seconds))) for n, mark in enumerate(epochs)]


LEARNED, LOST, WAVERS = "learned 16", "lost 16", "wavering 16"


@pytest.mark.parametrize(("epochs", "seconds", "lines"), [
    ("-+++", 40, ["", LEARNED, "", ""]),
    ("+-+-+-+-", 40, [LEARNED, WAVERS, "", WAVERS, "", WAVERS, "", WAVERS]),
    ("+----", 40, [LEARNED, WAVERS, WAVERS, LOST, ""]),
    ("+---+++", 40, [LEARNED, WAVERS, WAVERS, LOST, WAVERS, WAVERS, LEARNED]),
    ("+-----", 20, [LEARNED, WAVERS, WAVERS, WAVERS, LOST, ""]),
    ("+---", 600, [LEARNED, WAVERS, WAVERS, LOST]),
])
def test_a_k_that_wavers_is_not_learned_and_lost_in_turn(epochs: str, seconds: float, lines: list[str]) -> None:
    assert said(epochs, seconds) == lines


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 100)), max_size=60))
def test_what_is_announced_is_d_but_for_what_wavers(epochs: list[tuple[bool, float]]) -> None:
    """And from one announcement of a k to the next it is a minute at least."""
    announcer, now, last = Announcer(), 0.0, -STEADY_SECONDS
    for n, (known, seconds) in enumerate(epochs):
        now += seconds
        announced = announcer.follow(line(n, [16] if known else [], [], now))
        assert announcer.known ^ set(announced.wavering) == ({16} if known else set())
        if announced.learned or announced.lost:
            assert now - last >= STEADY_SECONDS
            last = now


def limited(**limits: float) -> Config:
    return tiny_config(**({"max_epochs": None} | limits))


def test_time_left_is_that_of_the_epochs_that_fit() -> None:
    config, lines = limited(max_minutes=1.5), [line(1, [], [], 28.0)]
    assert seconds_left(config, TrainingState(step=20, evaluations=1, seconds=28.0), lines) == 56.0
    assert seconds_left(config, TrainingState(step=30, evaluations=1, seconds=40.0, loss_count=10), lines) == 44.0
    lines += [line(2, [], [], 56.0), line(3, [], [], 84.0)]
    last = TrainingState(step=60, evaluations=3, seconds=84.0)
    assert seconds_left(config, last, lines) == 0.0
    assert limit_reached(config.limits, last, lines) == "the next epoch would not fit into max_minutes 1.5"
    assert seconds_left(config, TrainingState(seconds=30.0), []) == 60.0
    assert seconds_left(limited(max_epochs=4, max_minutes=None), last, lines) == 28.0
    late = TrainingState(step=3, seconds=91.0, loss_count=3)
    assert limit_reached(config.limits, late, []) == "no epoch fits into max_minutes 1.5, so nothing was evaluated"
    assert limit_reached(config.limits, late, lines) == "max_minutes 1.5 reached"


def test_nothing_is_left_beside_stopped() -> None:
    file = StringIO()
    view = PlainView(file)
    view.config = limited(max_minutes=1.5)
    view.show(Evaluated(TrainingState(step=20, evaluations=1, seconds=30.0), line(1, [1], [], 30.0), None))
    view.show(Evaluated(TrainingState(step=40, evaluations=2, seconds=70.0), line(2, [1], [], 70.0), None))
    first, second = file.getvalue().splitlines()
    assert first.endswith("0:30, about 1:00 left: learned 1") and second.endswith("1:10")


def test_a_stop_in_the_first_epoch_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    class Both(View):
        views = (StopAfter(7), PlainView())

        def show(self, event: Event) -> None:
            for view in self.views:
                view.show(event)

    train(tiny_config(), tmp_path / "run", Both())
    assert "stopped in epoch 1: interrupted by SIGTERM, after 7 steps" in capsys.readouterr().out
    console = Console(file=StringIO(), width=100)
    view = LiveView(console)
    view.config = tiny_config()
    stops = {"epoch 1": TrainingState(step=7, loss_count=7), "epoch 3": TrainingState(step=60, evaluations=3)}
    for epoch, state in stops.items():
        view.show(Ended(state, "interrupted by SIGINT"))
        console.print(view.render())
        assert epoch in console.file.getvalue() and "epoch 0" not in console.file.getvalue()


def test_train_in_python_shows_progress(tmp_path: Path, capsys: pytest.CaptureFixture[str],
                                        monkeypatch: pytest.MonkeyPatch) -> None:
    train(tiny_config(max_epochs=1), tmp_path / "quiet", progress=False)
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(view_module, "EVERY", 0.0)
    train(tiny_config(max_epochs=2), tmp_path / "run")
    out, err = capsys.readouterr()
    assert out == "" and "epoch 1: loss" in err and "epoch 2: loss" in err and err.splitlines()[-1].startswith("stopped: ")
    assert "epoch 1: 50 % of the steps, loss " in err and "epoch 1: evaluating, " in err  # where an epoch takes long
