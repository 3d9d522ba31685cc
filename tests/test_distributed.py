"""One run on several ranks, and batches in parts: the same mathematics as in one process."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from conftest import tiny_config
from gcdformer import Problem, UserError, load_run, train
from gcdformer.runs.folder import checkpoint_steps
from gcdformer.training.device import cuts
from gcdformer.training.learner import Learner, new_model
from rank_steps import steps
from sweeps import Gate, finish

pytestmark = pytest.mark.processes

HERE = Path(__file__).parent
STEPS = 50


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def torchrun(*words: object, ranks: int = 2) -> subprocess.Popen[str]:
    command = [sys.executable, HERE / "torchrun_here.py", "--nproc-per-node", ranks, "--master-addr", "127.0.0.1",
               "--master-port", free_port(), *words]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo" if sys.platform == "linux" else "lo0"}
    return subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            env=environment)


@given(count=st.integers(1, 500), size=st.integers(1, 40))
def test_ranks_divide_a_batch(count: int, size: int) -> None:
    parts = [list(range(count))[first:last] for first, last in cuts(count, size)]
    assert sum(parts, []) == list(range(count))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


ACCUMULATED = [{}, {"backend": "autograd"}, {"family": "lstm", "heads": 0}, {"outcomes": "uniform", "base": 2}]


@pytest.mark.parametrize("leaves", ACCUMULATED,
                         ids=lambda leaves: ",".join(leaves) or "default")
def test_accumulated_gradients_are_those_of_the_whole_batch(leaves: dict[str, object]) -> None:
    whole, parts = steps(leaves, STEPS), steps({**leaves, "accumulate": 5}, STEPS)
    assert parts["losses"] == pytest.approx(whole["losses"], abs=1e-5)
    assert parts["first_gradient"] == pytest.approx(whole["first_gradient"], abs=1e-4)
    assert parts["losses"][0] != parts["losses"][-1]


def test_accumulation_needs_smaller_batches() -> None:
    config = tiny_config(accumulate=4, backend="autograd")
    problem, cpu, sizes = Problem.of(config), torch.device("cpu"), []
    learner = Learner(config, problem, new_model(config, problem), cpu)
    learner.model.register_forward_pre_hook(lambda module, inputs: sizes.append(len(inputs[0])))
    learner.learn(0)
    assert sizes == [4, 4, 4, 4]
    with pytest.raises(UserError, match="batch_size: at least 20"):
        Learner(tiny_config(accumulate=20), problem, new_model(config, problem), cpu)


@pytest.mark.parametrize("backend", ["auto", "autograd"])
def test_two_ranks_take_the_steps_of_one(backend: str, tmp_path: Path) -> None:
    """A batch of 17 in two unequal parts, each in three: equal losses, and equal gradients on both ranks."""
    leaves = {"batch_size": 17, "accumulate": 3, "backend": backend}
    code, output = finish(torchrun(HERE / "rank_steps.py", json.dumps(leaves), STEPS, tmp_path))
    assert code == 0, output
    first, second = (json.loads((tmp_path / f"rank-{rank}.json").read_text()) for rank in (0, 1))
    assert (first["size"], second["rank"]) == (2, 1)
    for key in ("losses", "gradients", "weights"):
        assert first[key] == second[key]
    alone = steps({"batch_size": 17, "backend": backend}, STEPS)
    assert first["losses"] == pytest.approx(alone["losses"], abs=1e-5)
    assert first["first_gradient"] == pytest.approx(alone["first_gradient"], abs=1e-4)


FLAGS = ["--base", 10, "--max", 1000, "--operands", "uniform", "--outcomes", "natural", "--dim", 16, "--heads", 2,
         "--lr", 3e-3, "--warmup", 5, "--batch-size", 17, "--epoch-size", 3400, "--test-size", 200, "--schedule", "constant",
         "--optimizer", "adam", "--weight-decay", 0, "--threads", 1, "--device", "cpu", "--checkpoint-minutes", 0.001]


def test_a_run_goes_on_with_another_number_of_ranks(tmp_path: Path) -> None:
    """Two ranks until a signal to one of them, then one process: the data of one run, its figures but for rounding."""
    out, gate = tmp_path / "run", Gate(tmp_path)
    process = torchrun("-m", "--", "gcdformer", "train", "--task", gate.task, "--out", out, *FLAGS, "--max-epochs", 2)
    ranks = gate.held(2)
    owner = int((out / "lock").read_text().split()[1])
    assert owner in ranks
    os.kill(owner, signal.SIGUSR1)
    gate.open()
    _, output = finish(process)
    assert "interrupted by SIGUSR1" in output and output.count("interrupted by") == 1, output
    stopped = checkpoint_steps(out)[-1]
    assert 200 < stopped < 400
    config = tiny_config(task=gate.task, batch_size=17, epoch_size=3400, max_epochs=2)
    assert config.identity() == load_run(out).config.identity()
    rest = train(config, out)
    whole = train(config, tmp_path / "whole")
    for have, want in zip(rest.metrics, whole.metrics, strict=True):
        assert (have["epoch"], have["step"], have["examples"]) == (want["epoch"], want["step"], want["examples"])
        assert have["loss"] == pytest.approx(want["loss"], abs=1e-4)
        assert have["test_loss"] == pytest.approx(want["test_loss"], abs=1e-3)


@pytest.mark.scale
def test_ranks_agree_on_horizon_limits_and_refusals(tmp_path: Path) -> None:
    out = tmp_path / "run"
    cosine = [*FLAGS, "--schedule", "cosine", "--max-minutes", 0.1]
    code, output = finish(torchrun("-m", "--", "gcdformer", "train", "--out", out, *cosine))
    assert code == 0 and "stopped: " in output and "max_minutes 0.1" in output, output
    horizon = load_run(out).config.training.horizon
    assert horizon is not None and horizon > 5
    code, output = finish(torchrun("-m", "--", "gcdformer", "train", "--out", out, *cosine, "--base", 7, ranks=3))
    assert code != 0 and "base (10 there, 7 here)" in output
    assert "gcdformer/cli.py" not in output  # torchrun shows a traceback of its own, the ranks none
