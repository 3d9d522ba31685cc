"""The command line: what each verb prints, and one line with exit code 2 for anything it cannot do."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from conftest import gcdformer
from gcdformer import Run, __version__, explain
from gcdformer.cli import VERBS, main

Command = Callable[..., subprocess.CompletedProcess[str]]


FLAGS = """base operands outcomes task max-epochs max-minutes seed encoder-layers decoder-layers encoder-dim decoder-dim dim
    encoder-heads decoder-heads heads max max-gcd alpha mixture-share epoch-size test-size lr batch-size threads device"""


def in_process(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    """Run a command in this process: faster where torch is loaded already."""
    try:
        code = main([str(word) for word in words])
    except SystemExit as end:  # argparse, for --help and --version
        code = int(end.code or 0)
    out, err = capsys.readouterr()
    return code, out, err


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = in_process(capsys, "--help")
    assert code == 0 and all(verb in out for verb in VERBS)
    assert in_process(capsys, "--version") == (0, f"gcdformer {__version__}\n", "")
    for verb in VERBS:
        code, out, _ = in_process(capsys, verb, "--help")
        assert code == 0 and f"gcdformer {verb}" in out


def test_help_shows_the_flags_scripts_rely_on(capsys: pytest.CaptureFixture[str]) -> None:
    for verb in ("train", "describe"):
        _, out, _ = in_process(capsys, verb, "--help")
        for flag in FLAGS.split():
            assert f"--{flag} " in out, (verb, flag)


@pytest.mark.parametrize(("base", "tokens"), [(2, "+ 1 0 1 0 0 0 0 0 + 1 1 1 1 0 0 0"), (6, "+ 4 2 4 + 3 2 0"),
                                              (10, "+ 1 6 0 + 1 2 0"), (30, "+ 5 10 + 4 0")])
def test_encode(base: int, tokens: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert in_process(capsys, "encode", "--base", base, 160, 120) == (0, tokens + "\n", "")
    _, out, _ = in_process(capsys, "encode", "--base", base, 160, 120, "--json")
    assert json.loads(out)["tokens"] == tokens.split()


def test_theory(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = in_process(capsys, "theory", "--base", 15, "--json")
    values = json.loads(out)
    assert (round(values["limit"], 1), round(values["paper_formula"], 1)) == (71.2, 80.9)
    assert values["exact"] == pytest.approx(values["limit"], abs=0.01)
    _, out, _ = in_process(capsys, "theory", "--set", "1,2,4", "--max", 1000, "--json")
    exact = sum(1 for a in range(1, 1001) for b in range(1, 1001) if _gcd(a, b) in (1, 2, 4)) / 1e4
    assert json.loads(out)["exact"] == pytest.approx(exact, abs=1e-9)


def _gcd(a: int, b: int) -> int:
    while b:
        a, b = b, a % b
    return a


def test_sample(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    _, out, _ = in_process(capsys, "sample", "--count", 500, "--outcomes", "uniform", "--max-gcd", 7, "--seed", 3)
    rows = list(csv.DictReader(io.StringIO(out)))
    assert len(rows) == 500 and list(rows[0]) == ["a", "b", "gcd"]
    assert all(_gcd(int(r["a"]), int(r["b"])) == int(r["gcd"]) <= 7 for r in rows)
    for layout in ("csv", "parquet", "int2int"):
        assert in_process(capsys, "sample", "--format", layout, "--out", tmp_path / layout)[0] == 0
        assert (tmp_path / layout).stat().st_size > 1000
    _, out, _ = in_process(capsys, "sample", "--base", 1000, "--format", "int2int", "--count", 5)
    assert all(line.startswith("V2 + ") and "\t+ " in line for line in out.splitlines())


def test_describe(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = in_process(capsys, "describe", "paper", "--encoder-layers", 24, "--decoder-layers", 24, "--dim", 1024,
                           "--heads", 16, "--json")
    facts = json.loads(out)
    assert round(facts["parameters"] / 1e6, 1) == pytest.approx(713.8, abs=0.11)
    assert facts["seconds_per_epoch"] is None
    code, out, _ = in_process(capsys, "describe", "--test-size", 1000, "--measure")
    assert code == 0 and "FLOPs per example" in out and "time per epoch      about" in out


def test_describe_measures_nothing_that_takes_long_unless_asked(capsys: pytest.CaptureFixture[str],
                                                                monkeypatch: pytest.MonkeyPatch) -> None:
    from gcdformer.commands import describe

    _, out, _ = in_process(capsys, "describe", "paper")  # 380 GFLOP per step
    assert "not measured" in out and "--measure does it" in out
    monkeypatch.setattr(describe, "PATIENCE", 0.0)
    small = ["describe", "--dim", 16, "--heads", 2]
    _, out, _ = in_process(capsys, *small)
    assert "not measured" in out and "--measure does it" in out
    monkeypatch.setattr(describe, "peak_flops", lambda device: 1e30)  # the guess is too good: the deadline stops it
    monkeypatch.setattr("gcdformer.training.backends.has_to_compile", lambda config, device: False)
    _, out, _ = in_process(capsys, *small)
    assert "it would take longer" in out
    _, out, _ = in_process(capsys, *small, "--no-timing")
    assert "not measured (--no-timing)" in out


@pytest.mark.processes
def test_evaluate_and_predict(trained: Run, capsys: pytest.CaptureFixture[str], command: Command) -> None:
    _, out, _ = in_process(capsys, "evaluate", trained.path, "--json")
    values = json.loads(out)
    assert values["accuracy"] == trained.metrics[-1]["accuracy"] and values["n_correct"] == len(values["correct"])
    assert values["loss"] == pytest.approx(trained.metrics[-1]["test_loss"])
    assert set(values["by_gcd"]) == {str(k) for k in range(1, 101)}
    assert set(values["by_gcd"]["1"]) >= {"prediction", "frequency", "accuracy"}
    code, out, _ = in_process(capsys, "evaluate", trained.path, "--checkpoint", "best", "--test-size", 100, "--beam", 2)
    assert code == 0 and "correct GCD" in out
    _, out, _ = in_process(capsys, "predict", trained.path, 160, 120, 7, 21, "--json")
    first, second = json.loads(out)
    assert (first["question"], first["truth"], first["input_tokens"]) == ([160, 120], 40, "+ 1 6 0 + 1 2 0")
    assert first["rule"] == explain(trained).answer(160, 120)
    assert second["truth"] == 7 and first["prediction"] == trained.predict([160], [120])[0]
    code, out, _ = in_process(capsys, "predict", trained.path, 160, 120)
    assert "gcd(160, 120) = " in out and "the rules say" in out and "tokens + 1 6 0 + 1 2 0" in out
    result = command("predict", trained.path, "-", stdin="a,b\n160,120\n5,15\n")
    assert result.stdout.splitlines()[0] == "a,b,prediction,truth,rule"
    assert result.stdout.splitlines()[2].split(",")[3] == "5"


def test_seen(trained: Run, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = trained.stream.examples(517, 518)[0]
    _, out, _ = in_process(capsys, "seen", trained.path, a, b, "--json")
    found = json.loads(out)
    assert found["examples"] == 960 and {"example": 517, "step": 32, "epoch": 2} in found["when"]
    _, out, _ = in_process(capsys, "seen", trained.path, b, a, "--json")
    assert json.loads(out)["swapped"] >= 1
    code, out, _ = in_process(capsys, "seen", trained.path, 997, 991)
    assert code == 0 and ("is not among the 960 examples" in out or "was trained on" in out)


def test_train_goes_on_and_prints_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["train", "--out", tmp_path / "run", "--base", 10, "--max", 1000, "--dim", 16, "--heads", 2, "--batch-size", 16,
             "--epoch-size", 160, "--test-size", 100, "--threads", 1, "--schedule", "constant"]
    code, out, _ = in_process(capsys, *words, "--max-epochs", 1)
    assert code == 0 and "epoch 1: loss" in out and "gcdformer predict" in out
    code, out, err = in_process(capsys, *words, "--max-epochs", 2, "--json")
    assert code == 0 and json.loads(out)["last"]["epoch"] == 2 and "resumed at step 10" in err
    code, out, _ = in_process(capsys, "train", "--out", tmp_path / "run", "--max-epochs", 3)
    assert code == 0 and "epoch 3" in out
    code, _, err = in_process(capsys, *words, "--max-epochs", 3, "--base", 7)
    assert code == 2 and "base (10 there, 7 here)" in err
    assert in_process(capsys, "train", "--out", tmp_path / "run", "--max-epochs", 4, "--quiet") == (0, "", "")


def test_a_task_of_ones_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    task = f"{Path(__file__).parent / 'example_tasks.py'}:ModularAddition"
    words = ["train", "--task", task, "--base", 10, "--max", 1000, "--dim", 16, "--heads", 2,
             "--batch-size", 16, "--epoch-size", 160, "--test-size", 100, "--threads", 1, "--max-epochs", 1]
    code, out, _ = in_process(capsys, *words, "--out", tmp_path / "run")
    assert code == 0 and "accuracy" in out
    code, out, _ = in_process(capsys, "predict", tmp_path / "run", 12, 30)
    assert code == 0 and out.startswith("ModularAddition(12, 30) = ")
    code, out, _ = in_process(capsys, "evaluate", tmp_path / "run", "--json")
    assert set(json.loads(out)) == {"accuracy", "loss"}


def test_bench(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = in_process(capsys, "bench", "--json", "--seconds", 2, "--dim", 16, "--heads", 2, "--threads", 1)
    values = json.loads(out)
    assert values["gemm_gflops"] > 0 and values["train"]["utilisation"] > 0 and values["memory_mb"] > 50
    assert values["train"]["gflops"] == pytest.approx(values["train"]["utilisation"] * values["gemm_gflops"])
    assert values["sample"]["examples_per_s"] > 0 and values["evaluate"]["examples_per_s"] > 0


def test_the_peak_has_all_threads_whatever_the_backend_took(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    from gcdformer.training.throughput import matrix_multiply

    before, seen, real = torch.get_num_threads(), [], torch.mm
    monkeypatch.setattr(torch, "mm", lambda *a, **options: (seen.append(torch.get_num_threads()), real(*a, **options)))
    try:
        torch.set_num_threads(1)
        assert matrix_multiply(torch.device("cpu"), threads=2, size=8)() == 2 * 8**3
        assert seen == [2] and torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(before)


def test_a_share_is_of_the_round_in_the_middle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work and yardstick take turns; the round with the median ratio counts, not the best of each."""
    from gcdformer.training import throughput

    rates = iter([8.0, 10.0, 9.0, 10.0, 1.0, 10.0, 5.0, 10.0, 3.0, 20.0])
    monkeypatch.setattr(throughput, "rate", lambda work, seconds: next(rates))
    assert throughput.rates_in_turn(lambda: 1, lambda: 1, 1.0) == (5.0, 10.0)


def forked_run(command: list[str], **options: object) -> subprocess.CompletedProcess[str]:
    """`subprocess.run` of `gcdformer bench`, for a small model."""
    assert command[:4] == [sys.executable, "-m", "gcdformer", "bench"] and options["capture_output"]
    return gcdformer(*command[3:], "--dim", 16, "--heads", 2)


@pytest.mark.processes
def test_bench_draws_its_curves(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    points = {"batch size": ("--batch-size", [16, 64]), "base": ("--base", [10])}
    monkeypatch.setattr("gcdformer.report.throughput.VARIED", points)
    monkeypatch.setattr("gcdformer.report.throughput.subprocess", SimpleNamespace(run=forked_run))
    figure = tmp_path / "curves.svg"
    code, out, _ = in_process(capsys, "bench", "--full", "--json", "--seconds", 0.5, "--threads", 1, "--figure", figure)
    curves = json.loads(out)
    assert code == 0 and [point["value"] for point in curves["batch size"]] == [16, 64]
    assert all(point["train"]["examples_per_s"] > 0 for point in curves["base"])
    assert "batch size" in figure.read_text()


RUN = "RUN"
BAD = [
    [], ["fly"], ["train", "fsat", "--out", "x"], ["train", "--out", "x", "--base", 1], ["encode", "--base", 10],
    ["train", "--out", "x", "--max", 1], ["train", "--out", "x", "--heads", 3], ["train", "--out", "x", "--colour", 3],
    ["train", "--out", "x", "--outcomes", "uniform", "--max-gcd", 2_000_000], ["train", "--out", "x", "--outcomes", "fair"],
    ["train", "--out", "x", "--lr", "nan"], ["train", "--out", "x", "--batch-size", 1.5], ["train", "--out", "x", "--ba", 9],
    ["train", "--out", "x", "--task", "lcm"], ["train", "--out", "x", "--task", "no.py:Task"], ["predict", RUN, 5],
    ["train", "--out", "x", "--task", "addition", "--outcomes", "uniform"],
    ["predict", RUN, 5, "x"], ["predict", RUN, 0, 4], ["predict", RUN, -5, 4],
    ["predict", RUN, 5, 10**30], ["predict", RUN, 5, 1001], ["predict", RUN, 2.5, 3], ["predict", "nowhere", 5, 4],
    ["predict", RUN, 1, 1, "--beam", 0], ["predict", RUN, 1, 1, "--checkpoint", "77"], ["evaluate", RUN, "--device", "tpu"],
    ["evaluate", "nowhere"], ["evaluate", RUN, "--test-size", 3], ["theory"], ["theory", "--base", "ten"], ["seen", RUN, 1],
    ["bench", "--full", "--base", 7], ["bench", "--full", "--figure", "curves.gif"],
    ["theory", "--set", "1,,2"], ["theory", "--set", "0"], ["encode", "--base", 10, "x"], ["encode", "--base", 1, 5],
    ["encode", "--base", 10, 2**62 + 1], ["sample", "--count", 0], ["sample", "--format", "parquet"],
    ["sample", "--out", "/nowhere/at/all.csv"], ["sample", "--outcomes", "power"], ["describe", "papre"],
    ["sample", "--out", "/proc/x.csv"], ["report", RUN, "--out", "/proc/x.html"],
    ["report", RUN, "--figures", "pyproject.toml"],
    ["train", "--out", "/proc/x", "--max-epochs", 1], ["predict", RUN, 1, 1, "--checkpoint", "\u00b2"],
    ["train", "--out", "pyproject.toml", "--max-epochs", 1], ["train", "--out", "x", "--threads", 0],
    ["train", "--out", "x", "--max-epochs", 1, "--base", 10, "--positions", 3], ["describe", "--base", 10, "--positions", 3],
    ["bench", "--schedule", "cosine", "--warmup", 9, "--horizon", 3], ["encode", "--base", 10, "5\0"],
    ["train", "--out", "x", "--max-minutes", -1], ["train", "--out", "x", "--init-from", "nowhere", "--max-epochs", 1],
]


@pytest.mark.parametrize("words", BAD, ids=lambda words: " ".join(map(str, words)) or "nothing")
def test_bad_input_is_one_line_and_exit_code_2(
        words: list[object], trained: Run, capsys: pytest.CaptureFixture[str], tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text("")
    code, out, err = in_process(capsys, *(trained.path if word == RUN else word for word in words))
    assert code == 2 and out == ""
    assert err.startswith("gcdformer: ") and len(err.splitlines()) == 1
    assert [p.name for p in tmp_path.iterdir()] == ["pyproject.toml"]
