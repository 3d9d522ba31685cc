"""Trainings started from the page: each a `gcdformer train` in a process of its own, and an ordinary run folder."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Annotated

from pydantic import Field
from typing_extensions import TypedDict

from gcdformer.config import LARGEST_BASE, OperandDistribution, OutcomeDistribution, Section
from gcdformer.errors import UserError
from gcdformer.lab.schema import doc
from gcdformer.presets import demo
from gcdformer.runs.folder import fresh_folder
from gcdformer.training.signals import EXIT_INTERRUPTED

LONGEST_MINUTES = 60
CORES = os.cpu_count() or 1
GRACE_SECONDS = 30


class TrainingOrder(Section):
    """What may be chosen on the page; the rest is as in `gcdformer demo`."""

    base: int = Field(420, ge=2, le=LARGEST_BASE, description="base B in which integers are written", strict=True)
    operands: OperandDistribution = Field("log-uniform", description="distribution of the operands")
    outcomes: OutcomeDistribution = Field("log-uniform", description="distribution of the GCD")
    minutes: float = Field(3, gt=0, le=LONGEST_MINUTES, description="when to stop", strict=True)
    epoch_size: int = Field(50_000, ge=1_000, le=1_000_000, description="examples between two evaluations", strict=True)
    test_size: int = Field(20_000, ge=1_000, le=100_000, description="pairs in each test set", strict=True)
    threads: int = Field(CORES, ge=1, le=1024, description="CPU threads", strict=True)


class StartedTraining(TypedDict):
    """A training started here: what was ordered, and its status."""

    base: int
    operands: OperandDistribution
    outcomes: OutcomeDistribution
    minutes: float
    epoch_size: int
    test_size: int
    threads: int
    id: str
    running: bool
    exit_code: int | None
    stopped: Annotated[bool, doc("stopped from here, and saved")]
    error: str | None


class TrainingList(TypedDict):
    trainings: list[StartedTraining]


@dataclass
class Training:
    """A training and its process."""

    id: str
    order: TrainingOrder
    process: subprocess.Popen[bytes]
    errors: IO[bytes]

    def report(self) -> StartedTraining:
        order, code = self.order, self.process.poll()
        return {"base": order.base, "operands": order.operands, "outcomes": order.outcomes, "minutes": order.minutes,
                "epoch_size": order.epoch_size, "test_size": order.test_size, "threads": order.threads, "id": self.id,
                "running": code is None, "exit_code": code, "stopped": code == EXIT_INTERRUPTED,
                "error": None if code in (None, 0, EXIT_INTERRUPTED) else self.last_error()}

    def terminate(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()

    def last_error(self) -> str:
        """The last line that the process wrote to its standard error."""
        self.errors.seek(0)
        lines = self.errors.read()[-2000:].decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else f"ended with code {self.process.returncode}"


class Trainings:
    """Starts, lists and stops trainings, one at a time; all are stopped, and saved, when the lab closes."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._lock = threading.Lock()
        self._trainings: dict[str, Training] = {}

    def start(self, order: TrainingOrder) -> StartedTraining:
        if order.outcomes == "power":
            raise UserError("outcomes: 'power' needs an exponent and is for the command line")
        demo().derive(base=order.base, operands=order.operands, outcomes=order.outcomes)
        with self._lock:
            if any(training.process.poll() is None for training in self._trainings.values()):
                raise Busy("training: one is running already; stop it first")
            path = fresh_folder(self.root, f"lab-base-{order.base}", self._trainings)
            errors = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the training
            process = subprocess.Popen(command(order, path), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                       stderr=errors)
            training = Training(path.name, order, process, errors)
            self._trainings[training.id] = training
            return training.report()

    def reports(self) -> list[StartedTraining]:
        """Newest first."""
        with self._lock:
            return [training.report() for training in reversed(self._trainings.values())]

    def stop(self, key: str) -> StartedTraining:
        with self._lock:
            training = self._trainings.get(key)
            if training is None:
                raise UnknownTraining(f"training: none called '{key[:100]}' was started here")
            training.terminate()
            return training.report()

    def close(self) -> None:
        """Stop what is running; it saves itself. What does not end in time is killed."""
        with self._lock:
            for training in self._trainings.values():
                training.terminate()
            for training in self._trainings.values():
                try:
                    training.process.wait(GRACE_SECONDS)
                except subprocess.TimeoutExpired:
                    training.process.kill()
                    training.process.wait()
                training.errors.close()


class Busy(UserError):
    """One training at a time."""


class UnknownTraining(UserError):
    """No training of that name was started here."""


def command(order: TrainingOrder, path: Path) -> list[str]:
    """The command line that trains as ordered."""
    return [sys.executable, "-m", "gcdformer", "train", "demo", "--quiet", "--out", str(path), "--base", str(order.base),
            "--operands", order.operands, "--outcomes", order.outcomes, "--max-minutes", str(order.minutes),
            "--epoch-size", str(order.epoch_size), "--test-size", str(order.test_size),
            "--threads", str(order.threads)]
