"""Shared by the tests of sweeps: a small sweep file, its driver as a process, and what must be equal in the end."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from conftest import tiny_config
from forked import Running
from gcdformer import Config, Run, load_run, train
from gcdformer.runs.checkpoint import load_checkpoint
from gcdformer.runs.folder import checkpoint_steps
from leftovers import is_running

FIXED = """
base = 10
max = 1000
operands = "uniform"
outcomes = "natural"
layers = 1
dim = 16
heads = 2
optimizer = "adam"
weight_decay = 0.0
schedule = "constant"
warmup = 5
batch-size = 16
test_size = 200
device = "cpu"
checkpoint_minutes = 1e-3
"""
CLOCK = {"seconds", "throughput"}


def write_sweep(path: Path, *, rates: list[float], seeds: int, epochs: int = 3, epoch_size: int = 320,
                gate: Gate | None = None) -> Path:
    """A sweep of tiny runs; with a gate, of its task, in epochs of 100 steps."""
    task = "" if gate is None else f"task = '{gate.task}'\n"
    epoch_size = epoch_size if gate is None else 1600
    path.write_text(f"seeds = {seeds}\n[fixed]{FIXED}{task}epoch_size = {epoch_size}\n[grid]\nlr = {rates}\n"
                    f"[budget]\nmax_epochs = {epochs}\n")
    return path


def start_sweep(file: Path, out: Path, *words: object, here: Path | None = None) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-m", "gcdformer", "sweep", str(file), "--out", str(out), *map(str, words)],
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=here)


def fork_sweep(file: Path, out: Path, *words: object) -> Running:
    """The same with a driver and trials that are forked."""
    return Running("sweep", file, "--out", out, *words, module="forked_sweep")


def finish(process: subprocess.Popen[str] | Running) -> tuple[int, str]:
    """Exit code and output; the test's own limit ends a process that hangs."""
    assert process.stdout is not None
    with process.stdout:
        output = process.stdout.read()
    return process.wait(), output


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait for what must come true, not for a moment that may pass; the test's own limit ends a wait in vain."""
    while not condition():
        time.sleep(0.02)


class Gate:
    """Holds every training of its task at the second block of examples that it draws, until it is opened."""

    def __init__(self, folder: Path) -> None:
        self.file, self.folder = folder / "held_task.py", folder / "gate"
        self.task = f"{self.file}:Held"
        shutil.copy(Path(__file__).parent / "held_task.py", self.file)
        self.folder.mkdir()

    def held(self, count: int) -> list[int]:
        """The processes that are held, once there are as many; each has evaluated and saved twice since its run began."""
        found: list[int] = []

        def enough() -> bool:
            found[:] = [process for path in self.folder.iterdir() if is_running(process := int(path.name))]
            return len(found) == count

        wait_for(enough)
        return sorted(found)

    def open(self) -> None:
        self.folder.rename(self.folder.with_name("opened"))


def left_running(out: Path) -> list[str]:
    """Trials that say of themselves that they run."""
    return [path.parent.name for path in out.glob("*/.progress.json")]


def fingerprint(run: Run) -> tuple[str, dict[str, bytes]]:
    """All that must be equal between two runs: metrics but the clock, weights and optimiser."""
    lines = [{key: value for key, value in line.items() if key not in CLOCK} for line in run.metrics]
    last = load_checkpoint(run.path, checkpoint_steps(run.path)[-1])
    return json.dumps(lines), {name: tensor.numpy().tobytes() for name, tensor in {**last.model, **last.optimizer}.items()}


def uninterrupted(config: Config, path: Path) -> tuple[str, dict[str, bytes]]:
    return fingerprint(train(config, path))


def same_as_uninterrupted(out: Path, scratch: Path, count: int, epochs: int) -> None:
    """Every trial is there once, each epoch in it once, and it equals the same run without any fault, bit for bit."""
    folders = sorted(path.parent for path in out.glob("*/config.toml"))
    assert len(folders) == count
    seen = set()
    for folder in folders:
        run = load_run(folder)
        seen.add((run.config.training.lr, run.config.training.seed))
        assert [line["epoch"] for line in run.metrics] == list(range(1, epochs + 1)), folder
        config = tiny_config(lr=run.config.training.lr, seed=run.config.training.seed, max_epochs=epochs,
                             epoch_size=run.config.training.epoch_size, task=run.config.task.task)
        assert config.identity() == run.config.identity()
        assert fingerprint(run) == uninterrupted(config, scratch / folder.name), folder
        assert not (folder / ".progress.json").exists()
    assert len(seen) == count
