"""Runs the trials that are missing, on any launcher, until all are over or a signal comes; and the launcher for here.

A launcher starts trials and reports how they ended. What an ending means, and whether a trial is tried again, is decided
here, from its exit code and its files. The launcher for Ray is in `on_ray.py`.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections import Counter, deque
from typing import Self, final

from gcdformer.errors import UserError
from gcdformer.sweeps.board import Board
from gcdformer.sweeps.plan import HIDDEN, Planned, note_start, refresh, write_record
from gcdformer.sweeps.sweep import Needs
from gcdformer.sweeps.trial import BAD_INPUT, DIVERGED, DONE, IN_USE, Ending, Orders
from gcdformer.training.device import available_cores
from gcdformer.training.signals import EXIT_INTERRUPTED, StopRequest


class Launcher(ABC):
    """Where trials run. Entered before the first is started; on exit nothing it started is left."""

    slots: int  # how many may be started at a time

    def __enter__(self) -> Self:
        return self

    @abstractmethod
    def __exit__(self, *error: object) -> None: ...

    def at_once(self, needs: Needs) -> int:
        """How many trials run side by side."""
        return self.slots

    @abstractmethod
    def start(self, trial: Planned) -> None:
        """Start a trial, or queue it."""

    @abstractmethod
    def wait(self, seconds: float) -> list[tuple[Planned, Ending]]:
        """The trials that ended, after at most that many seconds."""

    @abstractmethod
    def ask_to_stop(self) -> None:
        """Let running trials save and stop; forget queued ones."""


def run_trials(planned: list[Planned], launcher: Launcher, board: Board, stop: StopRequest, retries: int = 3) -> None:
    """Run what is not over. Sets the status and reason of each trial."""
    waiting = deque(trial for trial in planned if not trial.over)
    tried: Counter[str] = Counter()
    running: dict[str, Planned] = {}
    asked = False
    with board:
        while running or (waiting and not asked):
            while waiting and len(running) < launcher.slots and not stop:
                trial = waiting.popleft()
                note_start(trial)
                launcher.start(trial)
                running[trial.name] = trial
                trial.status = "running"
                board.started(trial)
            if stop and not asked:
                asked = True
                board.note(f"{stop.received.name if stop.received else 'a signal'}: the trials save and stop")
                launcher.ask_to_stop()
            for trial, ending in launcher.wait(0.25):
                del running[trial.name]
                if asked and ending.code < 0:  # it was starting, or waited for its folder: it had nothing to save
                    ending = Ending(EXIT_INTERRUPTED, ending.reason)
                if was_killed(ending) and not asked and tried[trial.name] < retries:
                    tried[trial.name] += 1
                    trial.status = "begun"
                    board.note(f"{trial.name}: {ending.reason}; resumes from its last checkpoint")
                    waiting.appendleft(trial)
                    continue
                record_outcome(trial, ending)
                board.ended(trial)
            board.refresh()


def was_killed(ending: Ending) -> bool:
    """Whether a trial ended through no fault of its own: killed, or asked to stop by someone else than the sweep."""
    return ending.code == EXIT_INTERRUPTED or ending.code not in (DONE, 1, BAD_INPUT, DIVERGED, IN_USE)


def record_outcome(trial: Planned, ending: Ending) -> None:
    """Status and reason of a trial that ended."""
    if ending.code == DIVERGED:
        trial.status, trial.reason = "diverged", ending.reason
        write_record(trial, "diverged", ending.reason)
    elif ending.code == IN_USE:
        trial.status, trial.reason = "in use", ending.reason
    else:
        now = refresh(trial)
        trial.status, trial.reason = now.status, now.reason or ending.reason
        if not trial.over and ending.code != EXIT_INTERRUPTED:
            trial.status, trial.reason = "failed", ending.reason


def exit_code(planned: list[Planned], interrupted: bool) -> int:
    """75 stopped by a signal, 1 a trial is not over, 3 a trial diverged, 0 all are over."""
    if interrupted:
        return EXIT_INTERRUPTED
    if not all(trial.over for trial in planned):
        return 1
    return DIVERGED if any(trial.status == "diverged" for trial in planned) else 0


def went_wrong(trial: Planned, interrupted: bool) -> bool:
    """Whether a trial did not come to a good end; after a signal, those that were stopped by it are as they should be."""
    return trial.status in ("failed", "diverged", "in use") or not (trial.over or interrupted)


@final
class LocalLauncher(Launcher):
    """Processes. The driver holds the standard input of each; should it die, they save and stop."""

    def __init__(self, needs: Needs, jobs: int | None = None) -> None:
        self.needs = needs
        self.gpus = gpus_for(needs)
        self.slots = jobs or slots_here(needs)
        self.processes: dict[int, tuple[Planned, subprocess.Popen[bytes]]] = {}

    def __exit__(self, *error: object) -> None:
        for _, process in self.processes.values():
            process.kill()
        for _, process in self.processes.values():
            process.wait()

    def start(self, trial: Planned) -> None:
        slot = next(index for index in range(self.slots) if index not in self.processes)
        logs = trial.path.parent / HIDDEN
        logs.mkdir(parents=True, exist_ok=True)
        with (logs / f"{trial.name}.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "gcdformer.sweeps.trial"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=log, env=self.environment(slot), start_new_session=True)
        orders: Orders = {"config": trial.config.model_dump(), "out": str(trial.path)}
        assert process.stdin is not None
        process.stdin.write(json.dumps(orders).encode() + b"\n")
        process.stdin.flush()
        self.processes[slot] = (trial, process)

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
        trial, process = self.processes.pop(slot)
        assert process.stdin is not None and process.stdout is not None
        with process.stdin, process.stdout:
            said = process.stdout.read()
        code = process.returncode
        if code < 0:
            return trial, Ending(code, f"its process was ended by {signal.Signals(-code).name}")
        try:
            return trial, Ending(code, json.loads(said)["reason"])
        except (ValueError, KeyError):
            return trial, Ending(code, f"its process ended with {code}; {last_line(trial)}")

    def ask_to_stop(self) -> None:
        for _, process in self.processes.values():
            process.send_signal(signal.SIGTERM)


def last_line(trial: Planned) -> str:
    """The last line of a trial's log, for an error in one line."""
    path = trial.path.parent / HIDDEN / f"{trial.name}.log"
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
