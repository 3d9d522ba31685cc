"""What the fault tests share: how many cases, tiny runs, children that can be killed at any moment, fingerprints.

A child is the command line in a process of its own, forked from the server of forked.py (so that hundreds of kills are
affordable). It reports its phase and its step through shared memory, can be held
where it enters a phase until the test lets it go, and can be asked to kill itself at a given file operation. The product
knows nothing of this.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from forked import SERVER, fork
from gcdformer import load_run
from gcdformer.runs.folder import checkpoint_path, checkpoint_steps

FULL = os.environ.get("FAULTS") == "full"
CLOCK = {"seconds", "throughput"}
PHASES = ("start", "warm-up", "training", "evaluation", "saving", "ended")
TINY = ["--base", 10, "--max", 1000, "--operands", "uniform", "--outcomes", "natural", "--layers", 1, "--dim", 16,
        "--heads", 2, "--lr", 3e-3, "--schedule", "constant", "--warmup", 10, "--batch-size", 16, "--epoch-size", 320,
        "--test-size", 200, "--threads", 1, "--device", "cpu", "--json"]
"""With --json no report is written, which would cost more than the training."""
EPOCH_STEPS = 20
OFTEN = ["--checkpoint-minutes", 1e-9]
"""A checkpoint after every step: more than half of a run is then spent in writing checkpoints."""



def count(short: int, full: int) -> int:
    """How many cases: the short form in `make test`, the full form in `make faults`."""
    return full if FULL else short


def rng_of(name: str) -> random.Random:
    """The same cases every time, unless FAULTS_SEED is set."""
    return random.Random(f"{name} {os.environ.get('FAULTS_SEED', '0')}")


class Child:
    """A command in a process of its own, its output in a file, its phase in shared memory.

    With `hold` it stays where it first enters that phase at that step or after it, until it is let go or killed.
    """

    def __init__(self, words: list[object], log: Path, *, die_at: int | None = None, die_after_step: int = -1,
                 barrier: Any = None, hold: tuple[str, int] | None = None) -> None:
        self.log = log
        self.phase, self.step, self.operations, self.held, self.free = (SERVER.Value("q", 0, lock=False) for _ in range(5))
        texts = [str(word) for word in words]
        self.process = fork(run_child, texts, str(log), (self.phase, self.step, self.operations), die_at, die_after_step,
                            barrier, (hold, self.held, self.free))

    def wait(self) -> int:
        """The exit code; the test's own limit ends a child that does not end."""
        self.process.join()
        code = self.process.exitcode
        assert code is not None
        return code

    def wait_held(self) -> None:
        """Wait until the child is held."""
        while not self.held.value:
            assert self.process.is_alive(), self.output()
            time.sleep(0.001)

    def let_go(self) -> None:
        self.free.value = 1  # no Event: setting one would wait for a waiter that was killed

    def send(self, number: signal.Signals) -> None:
        """Send a signal, and let the child go if it is held: it then has the signal already."""
        assert self.process.pid is not None
        os.kill(self.process.pid, number)
        self.let_go()

    @property
    def phase_name(self) -> str:
        return PHASES[self.phase.value]

    def output(self) -> str:
        return self.log.read_text(errors="replace") if self.log.exists() else ""


def run_child(words: list[str], log: str, shared: tuple[Any, Any, Any], die_at: int | None, die_after_step: int,
              barrier: Any, hold: tuple[tuple[str, int] | None, Any, Any]) -> None:
    """In the child: output to the file, phases reported, then the command line as it is."""
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(handle, 1)
    os.dup2(handle, 2)
    sys.stdout, sys.stderr = os.fdopen(1, "w", buffering=1), os.fdopen(2, "w", buffering=1)
    report_phases(shared, die_at, die_after_step, hold)
    from gcdformer.cli import main
    if barrier is not None:
        barrier.wait()
    code = main(words)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def report_phases(shared: tuple[Any, Any, Any], die_at: int | None, die_after_step: int,
                  hold: tuple[tuple[str, int] | None, Any, Any]) -> None:
    """Wrap the loop's parts to note the phase and to stay in it, and the file operations to count them and to die at one."""
    from gcdformer.runs import files
    from gcdformer.training import loop
    phase, step, operations = shared
    counted = [0]
    (held_phase, held_step), held, free = hold[0] or ("", 0), *hold[1:]

    def note(method: Callable[..., Any], name: str) -> Callable[..., Any]:
        def noted(self: Any, *args: Any) -> Any:
            before = phase.value
            in_warmup = name == "training" and self.state.step < self.config.training.warmup
            now = "warm-up" if in_warmup else name
            phase.value, step.value = PHASES.index(now), self.state.step
            if now == held_phase and self.state.step >= held_step and not held.value:
                held.value = 1
                while not free.value:
                    time.sleep(0.001)
            try:
                return method(self, *args)
            finally:
                step.value = self.state.step
                phase.value = before
        return noted

    def moment() -> bool:
        """Counts an operation; whether this is the one to die at."""
        operations.value += 1
        if step.value < die_after_step:
            return False
        counted[0] += 1
        return counted[0] == die_at

    def counting(function: Callable[..., Any]) -> Callable[..., Any]:
        def counted_call(*args: Any, **options: Any) -> Any:
            if moment():
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*args, **options)
        return counted_call

    whole_write = files.write_synced

    def write_synced(path: Path, data: bytes) -> None:
        if moment():
            path.write_bytes(data[:len(data) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
        whole_write(path, data)

    loop.TrainingLoop.train_step = note(loop.TrainingLoop.train_step, "training")
    loop.TrainingLoop.evaluate = note(loop.TrainingLoop.evaluate, "evaluation")
    loop.TrainingLoop.save = note(loop.TrainingLoop.save, "saving")
    files.write_synced = write_synced
    files.os.fsync = counting(os.fsync)
    files.shutil.rmtree = counting(shutil.rmtree)
    files.Path.replace = counting(Path.replace)


def run_to_end(words: list[object], log: Path) -> str:
    """Run a child that must end well; what it said."""
    child = Child(words, log)
    code = child.wait()
    assert code == 0, child.output()
    return child.output()


def fingerprint(path: Path) -> tuple[object, ...]:
    """What "identical" means: the hash of weights and optimiser, and the metrics at full precision but for the clock.

    The metrics hold the hash of each prediction table.
    """
    run = load_run(path)
    lines = [{key: value for key, value in line.items() if key not in CLOCK} for line in run.metrics]
    for line in lines:
        run.prediction_tables(line["epoch"])
    last = checkpoint_path(path, checkpoint_steps(path)[-1])
    files = [last / "model.safetensors", last / "optimizer.safetensors"]
    hashes = [hashlib.sha256(file.read_bytes()).hexdigest() for file in files]
    return json.dumps(lines), *hashes


def leftovers(path: Path) -> list[str]:
    return [str(p.relative_to(path)) for p in path.rglob(".*")]


def one_line_error(child: Child) -> str:
    """The error of a command that failed: one line, no traceback."""
    text = child.output()
    assert "Traceback" not in text, text
    errors = [line for line in text.splitlines() if line.startswith("gcdformer: ")]
    assert len(errors) == 1, text
    return errors[0]
