"""Row 3: SIGTERM, SIGINT and SIGUSR1 in every phase save at the next step and exit with 75; the run then resumes, identical.

A start is tested with a real command line, from the moment its handlers are there (some hundredths of a second after
the interpreter's own start; before that, the system's default ends a process that has written nothing): the signal comes
while a module is imported. In the other phases the process is held where the phase begins until it has the signal.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conftest import Figures
from faults import OFTEN, TINY, Child, count, fingerprint, rng_of, run_to_end
from gcdformer.runs.folder import checkpoint_steps
from gcdformer.training.signals import StopRequest, ending_at_once

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)
PHASES = ("start", "warm-up", "training", "evaluation", "saving")
WORDS: list[object] = ["train", *TINY, *OFTEN, "--max-epochs", 2]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[object, ...]:
    folder = tmp_path_factory.mktemp("whole")
    run_to_end([*WORDS, "--out", folder / "run"], folder / "log")
    return fingerprint(folder / "run")


def cases() -> list[tuple[str, signal.Signals]]:
    every = [(phase, number) for phase in PHASES for number in SIGNALS]
    return (every * 3)[:count(6, 45)] if count(0, 1) else [(PHASES[i % 5], SIGNALS[i % 3]) for i in range(6)]


AT_IMPORT = """
import os, sys
number, wanted = int(sys.argv[1]), sys.argv[2]

class Sender:
    def find_spec(self, name, path=None, target=None):
        if name == wanted:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), number)

sys.meta_path.insert(0, Sender())
from gcdformer.cli import main
raise SystemExit(main(sys.argv[3:]))
"""
MOMENTS = ("numpy", "torch", "torch.nn", "gcdformer.training.loop")
"""Modules that a training imports while it starts, long before its first step; at their import the signal comes."""


def signal_at_start(words: list[object], number: signal.Signals, module: str) -> tuple[int, str]:
    """A real process that gets a signal while it imports a module; its exit code and what it said."""
    command = [sys.executable, "-c", AT_IMPORT, int(number), module, *words]
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return done.returncode, done.stdout


def test_signals_in_every_phase(whole: tuple[object, ...], tmp_path: Path, figures: Figures) -> None:
    rng = rng_of("signals")
    good, wanted = 0, len(cases())
    for index, (phase, number) in enumerate(cases()):
        words = [*WORDS, "--out", tmp_path / f"run-{index}"]
        log = tmp_path / f"log-{index}"
        if phase == "start":
            code, out = signal_at_start(words, number, rng.choice(MOMENTS))
        else:
            child = Child(words, log, hold=(phase, rng.randrange(12)))
            child.wait_held()
            before = child.step.value
            child.send(number)
            code, out = child.wait(), child.output()
            assert checkpoint_steps(tmp_path / f"run-{index}")[-1] <= before + 2
        assert code == 75 and "Traceback" not in out and number.name in out, (phase, number, code, out)
        run_to_end(words, log)
        good += fingerprint(tmp_path / f"run-{index}") == whole
    figures(3, f"signals in {', '.join(PHASES)}: saved, code 75, identical", f"{good} of {wanted}", f"{wanted} of {wanted}")
    assert good == wanted


@pytest.mark.parametrize("verb", ["sweep", "reproduce"])
def test_verbs_that_start_trainings_end_with_75_from_their_first_moment(verb: str, tmp_path: Path) -> None:
    file = tmp_path / "sweep.toml"
    file.write_text("[budget]\nmax_epochs = 1\n")
    words = [file] if verb == "sweep" else ["base_gcd", "--run", "--minutes", 5]
    code, said = signal_at_start([verb, *words, "--out", tmp_path / "out"], signal.SIGUSR1, "numpy")
    assert code == 75 and "Traceback" not in said and "SIGUSR1" in said, said


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_swallowed_by_a_finaliser_still_stops(number: signal.Signals) -> None:
    class Finalised:
        def __del__(self) -> None:
            os.kill(os.getpid(), number)
            time.sleep(0.05)  # the handler runs, and raises, within this call

    with ending_at_once():
        thing: object | None = Finalised()
        thing = None
        assert thing is None
        with StopRequest() as stop:
            assert stop.received == number


SWALLOWING = """
import sys, time
from gcdformer import cli
from gcdformer.commands import train

class Finalised:
    def __del__(self):
        print("ready", flush=True)
        time.sleep(60)  # the handler runs, and raises, within this call

def run(args):
    Finalised()
    time.sleep(60)  # the start of a training that takes its time

train.run = run
sys.exit(cli.main(["train", "--out", "nowhere"]))
"""


@pytest.mark.parametrize("number", SIGNALS)
def test_a_swallowed_signal_ends_a_start_that_takes_its_time(number: signal.Signals) -> None:
    process = subprocess.Popen([sys.executable, "-c", SWALLOWING], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        process.send_signal(number)
        _, said = process.communicate()
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 75
    assert said.endswith(f"interrupted by {number.name} while nothing was being trained; the same command resumes\n")
