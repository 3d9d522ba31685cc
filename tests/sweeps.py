"""Shared by the tests of sweeps: a small sweep file, its driver as a process, and what must be equal in the end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from conftest import tiny_config
from gcdformer import Config, Run, load_run, train
from gcdformer.runs.checkpoint import checkpoint_steps, load_checkpoint

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
STARTED: list[subprocess.Popen[str]] = []
CLOCK = {"seconds", "throughput"}


def write_sweep(path: Path, *, rates: list[float], seeds: int, epochs: int = 3, epoch_size: int = 320) -> Path:
    path.write_text(f"seeds = {seeds}\n[fixed]{FIXED}epoch_size = {epoch_size}\n[grid]\nlr = {rates}\n"
                    f"[budget]\nmax_epochs = {epochs}\n")
    return path


def start_sweep(file: Path, out: Path, *words: object, here: Path | None = None) -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, "-m", "gcdformer", "sweep", str(file), "--out", str(out), *map(str, words)],
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=here)
    STARTED.append(process)
    return process


def stop_all() -> None:
    """End what a failed test left running."""
    while STARTED:
        process = STARTED.pop()
        if process.poll() is None:
            process.kill()
            process.wait()


def finish(process: subprocess.Popen[str], timeout: float = 600) -> tuple[int, str]:
    """Exit code and output; a sweep that hangs is killed."""
    try:
        output, _ = process.communicate(timeout=timeout)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    return process.returncode, output


def wait_for(condition: Callable[[], object], seconds: float = 400) -> object:
    """What the condition gives once it gives something."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if (found := condition()):
            return found
        time.sleep(0.02)
    raise AssertionError("waited too long")


def running(out: Path) -> dict[str, int]:
    """The process of each trial that trains and has a checkpoint, by name."""
    found = {}
    for path in out.glob("*/.progress.json"):
        try:
            facts = json.loads(path.read_text())
        except (OSError, ValueError):
            continue
        if checkpoint_steps(path.parent) and alive(facts["process"]):
            found[path.parent.name] = facts["process"]
    return found


def alive(process: int) -> bool:
    """Whether a process is there and has not ended; one that nobody has asked about yet has ended too."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{process}/stat")
    try:
        return not status.exists() or status.read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


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
                             epoch_size=run.config.training.epoch_size)
        assert config.identity() == run.config.identity()
        assert fingerprint(run) == uninterrupted(config, scratch / folder.name), folder
        assert not (folder / ".progress.json").exists()
    assert len(seen) == count
