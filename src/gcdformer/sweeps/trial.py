"""One trial of a sweep: an ordinary training session, whose progress is left in a small file for those who watch.

As a program (`python -m gcdformer.sweeps.trial`) it reads its orders as a line of JSON from standard input and
trains until it is done, until a signal, or until standard input ends: then whoever started it is gone, and it saves and
stops. Exit codes are those of `gcdformer train`, and 76 if another process writes the run.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NotRequired, TypedDict, cast, final

from gcdformer.config import Config
from gcdformer.errors import InUse, UserError
from gcdformer.runs.checkpoint import TrainingState
from gcdformer.runs.metrics import Line
from gcdformer.training.learner import Diverged
from gcdformer.training.limits import seconds_left
from gcdformer.training.session import run_session
from gcdformer.training.signals import EXIT_INTERRUPTED
from gcdformer.training.view import Closed, Evaluated, Evaluating, Event, Note, Opened, Started, Stepped, View

DONE, BAD_INPUT, DIVERGED, IN_USE = 0, 2, 3, 76
PATIENCE = 120.0  # seconds to wait for a process that holds the run: one whose node was lost may take a while to end
PROGRESS = ".progress.json"
LOG = logging.getLogger("gcdformer")


@dataclass(frozen=True)
class Ending:
    """How a trial ended: an exit code and a sentence."""

    code: int
    reason: str


class Orders(TypedDict):
    """What a trial's process reads from standard input."""

    config: dict[str, object]
    out: str


class TrialProgress(TypedDict):
    """What a running trial reports; at its start only what it is doing."""

    doing: str
    epoch: NotRequired[int]
    seconds: NotRequired[float]
    left: NotRequired[float | None]
    accuracy: NotRequired[float | None]
    n_correct: NotRequired[int | None]


@final
class ProgressView(View):
    """Leaves a small file in the run folder, at most every `every` seconds; it is gone when the session is over.

    It is only a view: storage that refuses it for a moment is no reason to end a training. What the run itself writes is
    never left out like this.
    """

    def __init__(self, out: Path, every: float = 1.0, on_epoch: Callable[[Line], None] | None = None) -> None:
        self.path, self.every, self.on_epoch = out / PROGRESS, every, on_epoch
        self.config = Config()
        self.written = 0.0
        self.lines: list[Line] = []

    def show(self, event: Event) -> None:
        match event:
            case Opened():
                self.write({"doing": "starting"})
            case Note(message, warning=True):
                LOG.warning("gcdformer: %s", message)
            case Started(config, _, state, lines):
                self.config, self.lines = config, list(lines)
                self.report(state, "training")
            case Stepped(state):
                self.report(state, "training")
            case Evaluating(state):
                self.report(state, "evaluating")
            case Evaluated(_, line):
                self.lines.append(line)
                if self.on_epoch:
                    self.on_epoch(line)
            case Closed():
                with suppress(OSError):
                    self.path.unlink()

    def report(self, state: TrainingState, doing: str) -> None:
        if time.monotonic() - self.written < self.every:
            return
        last = self.lines[-1] if self.lines else None
        self.write({"doing": doing, "epoch": state.evaluations, "seconds": state.seconds,
                    "left": seconds_left(self.config, state, self.lines), "accuracy": last["accuracy"] if last else None,
                    "n_correct": last.get("n_correct") if last else None})

    def write(self, progress: TrialProgress) -> None:
        self.written = time.monotonic()
        temporary = self.path.with_name(PROGRESS + ".new")
        with suppress(OSError):
            temporary.write_text(json.dumps(progress))
            temporary.replace(self.path)


def read_progress(out: Path) -> TrialProgress | None:
    """What a running trial last reported; None if it does not run, or was lost before it could say so."""
    try:
        return cast(TrialProgress, json.loads((out / PROGRESS).read_bytes()))
    except (OSError, ValueError):
        return None


def run_trial(config: Config, out: Path, *, every: float = 1.0, patience: float = PATIENCE,
              on_epoch: Callable[[Line], None] | None = None) -> Ending:
    """Train or resume a trial. Waits for a process that is still ending to let go of the run."""
    deadline = time.monotonic() + patience
    while True:
        try:
            outcome = run_session(config, out, ProgressView(out, every, on_epoch))
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
    orders: Orders = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=stop_when_input_ends, daemon=True).start()
    ending = run_trial(Config.parse(orders["config"]), Path(orders["out"]))
    print(json.dumps({"reason": ending.reason}), flush=True)
    return ending.code


if __name__ == "__main__":
    raise SystemExit(main())
