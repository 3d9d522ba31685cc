"""Training: schedules, limits, resume bit for bit, refusals, divergence, and a tiny model that really learns."""

from __future__ import annotations

import itertools
import json
import math
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from conftest import tiny_config
from forked import Running, ended, fork
from gcdformer import Config, Run, UserError, load_run, preset, train
from gcdformer.runs.checkpoint import load_checkpoint
from gcdformer.runs.folder import checkpoint_path, checkpoint_steps
from gcdformer.training.optimizer import learning_rate
from gcdformer.training.session import run_session
from gcdformer.training.view import Evaluating, Event, Note, Stepped, View

CLOCK = {"seconds", "throughput"}


def fingerprint(run: Run) -> tuple[object, ...]:
    """All that must be equal between two runs: metrics but the clock, tables, weights and optimiser."""
    lines = [{key: value for key, value in line.items() if key not in CLOCK} for line in run.metrics]
    last = load_checkpoint(run.path, checkpoint_steps(run.path)[-1])
    tensors = {**last.model, **last.optimizer}
    return json.dumps(lines), {name: tensor.numpy().tobytes() for name, tensor in tensors.items()}


class StopAfter(View):
    """Sends this process a signal after some steps, or within an evaluation."""

    def __init__(self, steps: int, *, while_evaluating: bool = False) -> None:
        self.steps, self.while_evaluating = steps, while_evaluating

    def show(self, event: Event) -> None:
        if isinstance(event, Stepped) and event.state.step == self.steps and not self.while_evaluating:
            os.kill(os.getpid(), signal.SIGTERM)
        if isinstance(event, Evaluating) and event.state.step >= self.steps and self.while_evaluating:
            os.kill(os.getpid(), signal.SIGINT)


def test_schedules_are_functions_of_the_step() -> None:
    constant = Config().derive(lr=1.0, schedule="constant", warmup=10).training
    assert [learning_rate(constant, s) for s in (0, 4, 9, 10, 10**6)] == [0.1, 0.5, 1.0, 1.0, 1.0]
    root = Config().derive(lr=1.0, schedule="inverse-sqrt", warmup=100).training
    assert learning_rate(root, 49) == 0.5 and learning_rate(root, 99) == 1.0
    assert learning_rate(root, 399) == pytest.approx(0.5) and learning_rate(root, 9999) == pytest.approx(0.1)
    cosine = Config().derive(lr=1.0, schedule="cosine", warmup=10, horizon=110, final_lr_share=0.1).training
    assert learning_rate(cosine, 60) == pytest.approx(0.55)
    assert learning_rate(cosine, 110) == pytest.approx(0.1) and learning_rate(cosine, 10**6) == pytest.approx(0.1)
    assert all(learning_rate(cosine, s) >= learning_rate(cosine, s + 1) for s in range(10, 200))


def test_a_run_folder_has_what_the_design_says(trained: Run) -> None:
    names = {str(p.relative_to(trained.path)) for p in trained.path.rglob("*")}
    assert {"config.toml", "metrics.jsonl", "predictions/epoch-00001.npz", "predictions/epoch-00003.npz",
            "checkpoints/step-000000060/model.safetensors", "checkpoints/step-000000060/optimizer.safetensors",
            "checkpoints/step-000000060/state.json", "checkpoints/step-000000060/SHA256SUMS"} <= names
    line = trained.metrics[-1]
    assert {"epoch", "step", "examples", "seconds", "loss", "accuracy", "correct", "D", "events", "throughput"} <= set(line)
    assert (line["epoch"], line["step"], line["examples"]) == (3, 60, 960)
    assert not [name for name in names if ".new" in name or ".old" in name]


@pytest.mark.parametrize("leaves", [{}, {"family": "lstm", "heads": 0}, {"family": "gru", "heads": 0},
                                    {"task": "comparison"},
                                    {"outcomes": "mixture", "budget": 700, "repeat_share": 0.3, "repeat_size": 50},
                                    {"weight_decay": 0.1, "fresh_tests": True}, {"precision": "bf16"}],
                         ids=lambda leaves: ",".join(leaves) or "default")
def test_stopped_and_resumed_is_bit_equal(leaves: dict[str, object], tmp_path: Path) -> None:
    config = tiny_config(**leaves)
    whole = train(config, tmp_path / "whole")
    train(config, tmp_path / "parts", StopAfter(7))
    assert checkpoint_steps(tmp_path / "parts")[-1] == 7
    train(config, tmp_path / "parts", StopAfter(20, while_evaluating=True))
    assert checkpoint_steps(tmp_path / "parts")[-1] == 20 and not load_run(tmp_path / "parts").metrics
    train(config, tmp_path / "parts", StopAfter(33))
    parts = train(config, tmp_path / "parts")
    assert fingerprint(parts) == fingerprint(whole)


def test_seeds_differ(tmp_path: Path, trained: Run) -> None:
    assert fingerprint(train(tiny_config(seed=1), tmp_path / "other")) != fingerprint(trained)


def train_until_killed(config: Config, out: Path, step: int) -> None:
    """In a process of its own, which kills itself after this step."""
    class Kill(View):
        def show(self, event: Event) -> None:
            if isinstance(event, Stepped) and event.state.step == step:
                os.kill(os.getpid(), signal.SIGKILL)

    train(config, out, Kill())


@pytest.mark.processes
def test_killed_and_resumed_is_bit_equal(tmp_path: Path) -> None:
    """Killed in the first epoch and in the second; tests/faults kills at every file operation."""
    config = tiny_config(checkpoint_minutes=1e-9, epoch_size=1600, max_epochs=2)
    for step in (30, 130):
        assert ended(fork(train_until_killed, config, tmp_path / "parts", step)) == -signal.SIGKILL
        assert checkpoint_steps(tmp_path / "parts")[-1] == step - 1
    assert fingerprint(train(config, tmp_path / "parts")) == fingerprint(train(config, tmp_path / "whole"))


@pytest.mark.processes
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1])
def test_signals_save_and_exit_with_75(number: signal.Signals, tmp_path: Path) -> None:
    words = ["train", "--out", tmp_path / "run", "--max-epochs", 10**6, "--dim", 16, "--heads", 2, "--base", 10,
             "--batch-size", 16, "--epoch-size", 1000, "--test-size", 100, "--max", 1000, "--threads", 1]
    with Running(*words) as process:
        for line in process.stdout:
            if line.startswith("epoch 1"):
                break
        process.send_signal(number)
        rest = process.stdout.read()
        assert process.wait() == 75
    assert f"interrupted by {number.name}" in rest
    run = load_run(tmp_path / "run")
    assert run.checkpoint_step() % run.config.training.steps_per_epoch or run.metrics


def test_a_signal_while_the_speed_is_measured_leaves_nothing(tmp_path: Path) -> None:
    class StopAtOnce(View):
        def show(self, event: Event) -> None:
            if isinstance(event, Note):
                os.kill(os.getpid(), signal.SIGTERM)

    outcome = run_session(tiny_config(schedule="cosine", max_epochs=None, max_minutes=1.0), tmp_path / "run", StopAtOnce())
    assert outcome.interrupted and "nothing is saved" in outcome.reason
    assert not (tmp_path / "run" / "config.toml").exists()


def test_raising_a_limit_extends_a_finished_run(tmp_path: Path) -> None:
    path = tmp_path / "run"
    train(tiny_config(max_epochs=1), path)
    longer = train(tiny_config(max_epochs=3), path)
    assert fingerprint(longer) == fingerprint(train(tiny_config(max_epochs=3), tmp_path / "whole"))
    assert longer.config.limits.max_epochs == 3


@pytest.fixture
def steady_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look at the clock finds it a hundredth of a second later, however fast this machine is."""
    ticks = itertools.count()
    for module in ("loop", "throughput"):
        monkeypatch.setattr(f"gcdformer.training.{module}.perf_counter", lambda: next(ticks) / 100)


@pytest.mark.usefixtures("steady_clock")
def test_stop_at_correct_and_minutes(tmp_path: Path) -> None:
    run = train(tiny_config(stop_at_correct=1, max_epochs=None, epoch_size=1600, lr=1e-2), tmp_path / "one")
    assert run.metrics[-1]["n_correct"] >= 1 and all(line["n_correct"] < 1 for line in run.metrics[:-1])
    run = train(tiny_config(max_minutes=0.02, max_epochs=None), tmp_path / "two")
    assert len(run.metrics) == 2 and run.metrics[-1]["seconds"] < 1.2


@pytest.mark.usefixtures("steady_clock")
def test_cosine_from_minutes_fixes_its_horizon_once(tmp_path: Path) -> None:
    config = tiny_config(schedule="cosine", max_epochs=None, max_minutes=0.05)
    horizon = train(config, tmp_path / "run").config.training.horizon
    assert horizon == 13 * 20  # 20 steps and a test take 0.21 s, and 97 % of 3 s are for them
    again = train(config.replace(max_minutes=0.08), tmp_path / "run")
    assert again.config.training.horizon == horizon
    epochs = train(tiny_config(schedule="cosine", max_epochs=2), tmp_path / "epochs")
    assert epochs.config.training.horizon == 40
    with pytest.raises(UserError, match="horizon"):
        train(tiny_config(schedule="cosine", max_epochs=None), tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_another_configuration_is_refused_by_name(tmp_path: Path) -> None:
    train(tiny_config(max_epochs=1), tmp_path / "run")
    with pytest.raises(UserError, match=r"base \(10 there, 30 here\), lr \(0.003 there, 0.5 here\)"):
        train(tiny_config(max_epochs=1, base=30, lr=0.5), tmp_path / "run")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("x")
    with pytest.raises(UserError, match=r"thesis\.tex"):
        train(tiny_config(), tmp_path / "full")


@pytest.mark.processes
def test_two_processes_on_one_folder(tmp_path: Path, command: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    run = train(tiny_config(max_epochs=1), tmp_path / "run")
    with run.folder.locked():
        second = command("train", "--out", run.path, "--max-epochs", 2)
    assert second.returncode == 2 and f"in use by process {os.getpid()}" in second.stderr
    assert len(second.stderr.splitlines()) == 1
    assert command("train", "--out", run.path, "--max-epochs", 2).returncode == 0


@pytest.mark.processes
def test_a_loss_that_is_no_number_stops_the_run(
        tmp_path: Path, command: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    run = train(tiny_config(max_epochs=2), tmp_path / "run")
    poison(run.path, 40)
    result = command("train", "--out", run.path, "--max-epochs", 3)
    assert result.returncode == 3
    assert "the loss is nan" in result.stderr and "Traceback" not in result.stderr
    assert checkpoint_steps(run.path) == [20, 40] and len(load_run(run.path).metrics) == 2
    train(tiny_config(), tmp_path / "pending", StopAfter(20, while_evaluating=True))
    poison(tmp_path / "pending", 20)
    pending = command("train", "--out", tmp_path / "pending")
    assert pending.returncode == 3 and "the test loss is nan" in pending.stderr and "Traceback" not in pending.stderr
    wild = command("train", "--out", tmp_path / "wild", "--lr", 10, "--clip", 0, "--warmup", 0, "--schedule", "constant",
                   "--max-epochs", 50, "--dim", 16, "--heads", 2, "--base", 10, "--batch-size", 16, "--epoch-size", 64,
                   "--layers", 6, "--test-size", 100, "--epsilon", "1e-30", "--beta2", 0, "--beta1", 0.99, "--threads", 1)
    assert wild.returncode == 3 and len(wild.stderr.splitlines()) == 1


def poison(path: Path, step: int) -> None:
    """Make a checkpoint's weights infinite, with checksums to match."""
    from gcdformer.runs.checkpoint import Checkpoint, save_checkpoint
    found = load_checkpoint(path, step)
    weights = {name: tensor * math.inf for name, tensor in found.model.items()}
    save_checkpoint(path, Checkpoint(weights, found.optimizer, found.state))


@pytest.mark.processes
def test_damaged_checkpoint_is_passed_over_by_name(
        tmp_path: Path, command: Callable[..., subprocess.CompletedProcess[str]], trained: Run) -> None:
    path = tmp_path / "run"
    train(tiny_config(), path)
    victim = checkpoint_path(path, 60) / "model.safetensors"
    victim.write_bytes(victim.read_bytes()[:-10])
    result = command("train", "--out", path)
    assert result.returncode == 0 and str(victim) in result.stdout and "resuming from step 40" in result.stdout
    assert fingerprint(load_run(path)) == fingerprint(trained)
    for step in checkpoint_steps(path):
        (checkpoint_path(path, step) / "state.json").unlink()
    result = command("train", "--out", path)
    assert result.returncode == 2 and "state.json" in result.stderr and "no checkpoint" in result.stderr


def test_a_line_written_just_before_a_kill_is_not_written_twice(tmp_path: Path, trained: Run) -> None:
    path = tmp_path / "run"
    train(tiny_config(), path, StopAfter(20, while_evaluating=True))
    first = trained.folder.metrics_path.read_text().splitlines(keepends=True)[0]
    (path / "metrics.jsonl").write_text(first)  # as if killed between this line and its checkpoint
    again = train(tiny_config(), path)
    assert [line["epoch"] for line in again.metrics] == [1, 2, 3] and fingerprint(again) == fingerprint(trained)


def test_a_damaged_checkpoint_does_not_push_out_a_whole_one(tmp_path: Path) -> None:
    run = train(tiny_config(max_epochs=2), tmp_path / "run")
    (checkpoint_path(run.path, 40) / "state.json").write_text("x")
    train(tiny_config(keep_checkpoints=1, max_epochs=2), run.path, StopAfter(30))
    assert 30 in checkpoint_steps(run.path) and 40 not in checkpoint_steps(run.path)
    assert not list((run.path / "checkpoints").glob(".*"))


def test_last_two_and_best_are_kept(tmp_path: Path) -> None:
    run = train(tiny_config(max_epochs=12, epoch_size=800, lr=1e-2), tmp_path / "run")
    lines = run.metrics
    best = max(lines, key=lambda line: (line["n_correct"], line["accuracy"], -line["epoch"]))
    expected = {best["step"], lines[-1]["step"], lines[-2]["step"]}
    assert set(checkpoint_steps(run.path)) == expected
    assert run.epoch("best") == best["epoch"] and run.checkpoint_step("best") == best["step"]
    every = train(tiny_config(max_epochs=5, keep_checkpoints=9), tmp_path / "every")
    assert len(checkpoint_steps(every.path)) == 5


def test_init_from_starts_with_the_other_weights(tmp_path: Path, trained: Run) -> None:
    other = train(tiny_config(init_from=str(trained.path), max_epochs=1, lr=1e-12, warmup=0), tmp_path / "run")
    source = load_checkpoint(trained.path, 60).model
    for name, tensor in load_checkpoint(other.path, 20).model.items():
        torch.testing.assert_close(tensor, source[name], atol=1e-6, rtol=1e-5)
    gone = tmp_path / "gone"
    train(tiny_config(max_epochs=1, seed=3), gone)
    config = tiny_config(init_from=str(gone), max_epochs=1)
    train(config, tmp_path / "heir")
    gone.rename(tmp_path / "elsewhere")
    assert len(train(config.replace(max_epochs=2), tmp_path / "heir").metrics) == 2
    with pytest.raises(UserError, match="does not fit"):
        train(tiny_config(init_from=str(trained.path), dim=8), tmp_path / "misfit")


def test_a_small_model_learns_the_divisors_of_its_base(tmp_path: Path) -> None:
    config = preset("fast").derive(base=10, maximum=100_000, operands="uniform", outcomes="log-uniform", max_gcd=10, dim=32,
                                   lr=3e-3, batch_size=64, epoch_size=32_000, test_size=10_000, max_epochs=3, threads=1)
    run = train(config, tmp_path / "run")
    scores = run.scores()
    assert {1, 2, 5, 10} <= set(scores.correct)
    for k, one in scores.by_gcd.items():
        largest = max(d for d in scores.correct if k % d == 0)
        assert one.prediction == largest or one.frequency < 0.9, (k, one)
    assert run.predict([77_770, 88_881], [55_510, 33_332]).tolist() == [10, 1]
