"""The local launcher: each trial a process of its own on this machine, as many at a time as the cores and GPUs allow."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType

from gcdformer.errors import UserError
from gcdformer.sweeps.launcher import Launcher
from gcdformer.sweeps.plan import HIDDEN, Planned
from gcdformer.sweeps.sweep import Needs
from gcdformer.sweeps.trial import PATIENCE, Ending
from gcdformer.training.device import available_cores


class LocalLauncher(Launcher):
    """Processes. The driver holds the standard input of each; should it die, they save and stop."""

    def __init__(self, needs: Needs, jobs: int | None = None, patience: float = PATIENCE) -> None:
        self.needs, self.patience = needs, patience
        self.gpus = gpus_for(needs)
        self.slots = jobs or slots_here(needs)
        self.processes: dict[int, tuple[Planned, subprocess.Popen[bytes]]] = {}

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        for _, process in self.processes.values():
            process.kill()
        for _, process in self.processes.values():
            process.wait()

    def start(self, one: Planned) -> None:
        slot = next(index for index in range(self.slots) if index not in self.processes)
        logs = one.path.parent / HIDDEN
        logs.mkdir(parents=True, exist_ok=True)
        with (logs / f"{one.name}.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "gcdformer.sweeps.trial"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=log, env=self.environment(slot), start_new_session=True)
        orders = {"config": one.config.model_dump(), "out": str(one.path), "patience": self.patience}
        assert process.stdin is not None
        process.stdin.write(json.dumps(orders).encode() + b"\n")
        process.stdin.flush()
        self.processes[slot] = (one, process)

    def environment(self, slot: int) -> dict[str, str]:
        """Threads of a trial from the start, and its share of the GPUs; more jobs than GPUs (`--jobs`) share them."""
        extra = {"OMP_NUM_THREADS": str(self.needs.cpus), "MKL_NUM_THREADS": str(self.needs.cpus)}
        if self.gpus:
            first = int(slot * self.needs.gpus)
            mine = (self.gpus[place % len(self.gpus)] for place in range(first, first + max(1, int(self.needs.gpus))))
            extra["CUDA_VISIBLE_DEVICES"] = ",".join(mine)
        return {**os.environ, **extra}

    def wait(self, seconds: float) -> list[tuple[Planned, Ending]]:
        deadline = time.monotonic() + seconds
        while True:
            over = [slot for slot, (_, process) in self.processes.items() if process.poll() is not None]
            if over or time.monotonic() >= deadline:
                return [self.collect(slot) for slot in over]
            time.sleep(0.05)

    def collect(self, slot: int) -> tuple[Planned, Ending]:
        one, process = self.processes.pop(slot)
        assert process.stdin is not None and process.stdout is not None
        with process.stdin, process.stdout:
            said = process.stdout.read()
        code = process.returncode
        if code < 0:
            return one, Ending(code, f"its process was ended by {signal.Signals(-code).name}")
        try:
            return one, Ending(code, json.loads(said)["reason"])
        except (ValueError, KeyError):
            return one, Ending(code, f"its process ended with {code}; {last_line(one)}")

    def ask_to_stop(self) -> None:
        for _, process in self.processes.values():
            process.send_signal(signal.SIGTERM)


def last_line(one: Planned) -> str:
    """The last line of a trial's log, for an error in one line."""
    path: Path = one.path.parent / HIDDEN / f"{one.name}.log"
    lines = path.read_text(errors="replace").split("\n") if path.exists() else []
    text = next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")
    return f"{text} ({path})"


def gpus_for(needs: Needs) -> list[str]:
    """The GPUs of this machine as CUDA names them, if a trial needs any: of those that a scheduler gave us, no others."""
    if not needs.gpus:
        return []
    import torch
    there = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if there < needs.gpus:
        raise UserError(f"needs.gpus: a trial asks for {needs.gpus:g} GPUs, this machine has {there}")
    given = os.environ.get("CUDA_VISIBLE_DEVICES")
    names = list(map(str, range(there))) if given is None else [name.strip() for name in given.split(",")]
    return names[:there]


def slots_here(needs: Needs) -> int:
    """How many trials fit on this machine at a time."""
    slots = max(1, available_cores() // needs.cpus)
    return min(slots, int(len(gpus_for(needs)) / needs.gpus)) if needs.gpus else slots
