"""One trial of a sweep: an ordinary training session, whose progress is left in a small file for whoever watches.

As a program (`python -m gcdformer.sweeps.trial`) it reads its orders as a line of JSON from standard input and
trains until it is done, until a signal, or until standard input ends: then whoever started it is gone, and it saves and
stops. Exit codes are those of `gcdformer train`, and 76 if another process writes the run.
"""

from __future__ import annotations

import json
import os
import platform
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from gcdformer.config import Config
from gcdformer.data import Problem
from gcdformer.errors import InUse, UserError
from gcdformer.evaluation import Scores
from gcdformer.models import Seq2Seq
from gcdformer.runs.checkpoint import TrainingState
from gcdformer.runs.metrics import Line
from gcdformer.training.learner import Diverged
from gcdformer.training.limits import seconds_left
from gcdformer.training.session import train_session
from gcdformer.training.signals import EXIT_INTERRUPTED
from gcdformer.training.view import View

DONE, BAD_INPUT, DIVERGED, IN_USE = 0, 2, 3, 76
PATIENCE = 120.0  # seconds to wait for a process that holds the run: one whose node was lost may take a while to end
PROGRESS = ".progress.json"


@dataclass(frozen=True)
class Ending:
    """How a trial ended: an exit code and a sentence."""

    code: int
    reason: str


class ProgressView(View):
    """Leaves a small file in the run folder, at most every `every` seconds; it is gone when the session is over.

    It is only a view: storage that refuses it for a moment is no reason to end a training. What the run itself writes is
    never left out like this.
    """

    def __init__(self, out: Path, every: float = 1.0, on_epoch: Callable[[Line], None] | None = None) -> None:
        self.path, self.every, self.on_epoch = out / PROGRESS, every, on_epoch
        self.written = 0.0
        self.lines: list[Line] = []

    def __enter__(self) -> ProgressView:
        self.write({"doing": "starting"})
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        with suppress(OSError):
            self.path.unlink()

    def started(self, config: Config, problem: Problem, model: Seq2Seq, state: TrainingState, lines: list[Line]) -> None:
        self.config, self.lines = config, list(lines)
        self.report(state, "training")

    def stepped(self, state: TrainingState, loss: float, rate: float) -> None:
        self.report(state, "training")

    def evaluating(self, state: TrainingState, share: float) -> None:
        self.report(state, "evaluating")

    def evaluated(self, state: TrainingState, line: Line, scores: Scores | None) -> None:
        self.lines.append(line)
        if self.on_epoch:
            self.on_epoch(line)

    def report(self, state: TrainingState, doing: str) -> None:
        if time.monotonic() - self.written < self.every:
            return
        last = self.lines[-1] if self.lines else {}
        self.write({"doing": doing, "step": state.step, "epoch": state.evaluations, "seconds": state.seconds,
                    "left": seconds_left(self.config, state, self.lines), "accuracy": last.get("accuracy"),
                    "n_correct": last.get("n_correct")})

    def write(self, facts: dict[str, Any]) -> None:
        self.written = time.monotonic()
        beside = self.path.with_name(PROGRESS + ".new")
        with suppress(OSError):
            beside.write_text(json.dumps({**facts, "process": os.getpid(), "host": platform.node()}))
            beside.replace(self.path)


def read_progress(out: Path) -> dict[str, Any] | None:
    """What a running trial last told; None if it does not run, or was lost before it could say so."""
    try:
        facts: dict[str, Any] = json.loads((out / PROGRESS).read_bytes())
    except (OSError, ValueError):
        return None
    return facts


def run_trial(config: Config, out: Path, *, every: float = 1.0, patience: float = PATIENCE,
              on_epoch: Callable[[Line], None] | None = None) -> Ending:
    """Train or resume a trial. Waits for a process that is still ending to let go of the run."""
    deadline = time.monotonic() + patience
    while True:
        try:
            outcome = train_session(config, out, ProgressView(out, every, on_epoch))
        except InUse as error:
            if time.monotonic() > deadline:
                return Ending(IN_USE, str(error))
            time.sleep(0.5)
            continue
        except Diverged as error:
            return Ending(DIVERGED, str(error))
        except UserError as error:
            return Ending(BAD_INPUT, str(error))
        return Ending(EXIT_INTERRUPTED if outcome.interrupted else DONE, outcome.reason)


def stop_when_input_ends() -> None:
    """Ask for a stop when whoever started this process is gone."""
    while os.read(0, 4096):  # not sys.stdin: a thread that holds its lock would abort the interpreter's end
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def main() -> int:
    orders = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=stop_when_input_ends, daemon=True).start()
    ending = run_trial(Config.parse(orders["config"]), Path(orders["out"]), patience=orders["patience"])
    print(json.dumps({"reason": ending.reason}), flush=True)
    return ending.code


if __name__ == "__main__":
    raise SystemExit(main())
