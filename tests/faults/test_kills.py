"""Rows 1 and 2: `kill -9` at any moment, then the same command: bit for bit the run that was never interrupted."""

from __future__ import annotations

import shutil
import signal
from math import gcd
from pathlib import Path

import pytest

from conftest import Figures
from faults import EPOCH_STEPS, OFTEN, TINY, Child, count, fingerprint, leftovers, rng_of, run_to_end
from gcdformer.runs.folder import checkpoint_steps

Whole = tuple[tuple[object, ...], int]
WORDS: list[object] = ["train", *TINY, *OFTEN, "--max-epochs", 3]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    """The fingerprint of an uninterrupted run, and its file operations."""
    folder = tmp_path_factory.mktemp("whole")
    child = Child([*WORDS, "--out", folder / "run"], folder / "log")
    assert child.wait() == 0, child.output()
    return fingerprint(folder / "run"), child.operations.value


def test_kills_at_random_moments(whole: Whole, tmp_path: Path, figures: Figures) -> None:
    """Every other kill comes from outside, some milliseconds after a random step; the others are at a random file
    operation, half of a file written."""
    expected, operations = whole
    rng = rng_of("kills")
    wanted, same, inside, killed = count(5, 50), 0, 0, 0
    for number in range(2 * wanted):
        words = [*WORDS, "--out", tmp_path / f"run-{number}"]
        if number % 2:
            child = Child(words, tmp_path / f"log-{number}", die_at=rng.randrange(1, operations))
        else:
            child = Child(words, tmp_path / f"log-{number}", hold=("training", rng.randrange(10, 3 * EPOCH_STEPS)))
            child.wait_held()
            child.let_go()
            child.process.join(rng.random() * 0.02)
            child.process.kill()
        if child.wait() != -9:
            continue  # it had ended before the kill came
        killed += 1
        inside += child.phase_name == "saving"
        run_to_end(words, tmp_path / f"log-{number}")
        same += fingerprint(tmp_path / f"run-{number}") == expected
        assert not leftovers(tmp_path / f"run-{number}")
        if killed == wanted:
            break
    figures(1, "kill -9 at random moments, then identical", f"{same} of {killed}", f"{wanted} of {wanted}")
    figures(1, "of them inside a checkpoint write", f"{inside} of {killed}", "at least 30 %")
    assert (same, killed) == (wanted, wanted) and inside >= 0.3 * wanted


def test_kills_of_a_run_that_trains_on_a_file(tmp_path: Path, figures: Figures) -> None:
    """Passes over a file of 100 rows; a kill falls into one of them."""
    pairs = [(a, b) for a in range(1, 11) for b in range(5, 15)]
    rows = "".join(f"{a},{b},{gcd(a, b)}\n" for a, b in pairs)
    (tmp_path / "train.csv").write_text("a,b,gcd\n" + rows)
    words = ["train", *TINY, "--max-epochs", 3, "--train-file", tmp_path / "train.csv"]
    run_to_end([*words, "--out", tmp_path / "whole"], tmp_path / "log")
    rng, wanted, same = rng_of("file kills"), count(1, 20), 0
    for number in range(wanted):
        out = ["--out", tmp_path / f"run-{number}"]
        last = rng.randrange(EPOCH_STEPS + 1, 2 * EPOCH_STEPS)
        child = Child([*words, *out], tmp_path / f"log-{number}", hold=("training", last))
        child.wait_held()
        child.process.kill()
        assert child.wait() == -9
        run_to_end([*words, *out], tmp_path / f"log-{number}")
        same += fingerprint(tmp_path / f"run-{number}") == fingerprint(tmp_path / "whole")
    figures(1, "kill -9 while training on a file, then identical", f"{same} of {wanted}", f"{wanted} of {wanted}")
    assert same == wanted


def test_three_kills_in_one_epoch(whole: Whole, tmp_path: Path, figures: Figures) -> None:
    rng = rng_of("three kills")
    wanted, same = count(1, 10), 0
    for number in range(wanted):
        words = [*WORDS, "--out", tmp_path / f"run-{number}"]
        steps = sorted(rng.sample(range(EPOCH_STEPS + 1, 2 * EPOCH_STEPS - 2), 3))
        for step in steps:
            child = Child(words, tmp_path / f"log-{number}", die_at=rng.randrange(1, 12), die_after_step=step)
            assert child.wait() == -9
            assert EPOCH_STEPS < child.step.value < 2 * EPOCH_STEPS
        run_to_end(words, tmp_path / f"log-{number}")
        same += fingerprint(tmp_path / f"run-{number}") == whole[0]
    figures(2, "three kills in one epoch, then identical", f"{same} of {wanted}", f"{wanted} of {wanted}")
    assert same == wanted


def test_a_kill_while_a_checkpoint_is_replaced_loses_nothing(tmp_path: Path) -> None:
    """A run stopped within its first evaluation saves that step again later; no moment of it leaves no checkpoint."""
    words = ["train", *TINY, "--max-epochs", 1, "--out"]
    child = Child([*words, tmp_path / "stopped"], tmp_path / "log", hold=("evaluation", EPOCH_STEPS))
    child.wait_held()
    child.send(signal.SIGTERM)
    assert child.wait() == 75 and checkpoint_steps(tmp_path / "stopped") == [EPOCH_STEPS]
    run_to_end([*words, Path(shutil.copytree(tmp_path / "stopped", tmp_path / "whole"))], tmp_path / "log")
    expected, saving = fingerprint(tmp_path / "whole"), 0
    for operation in range(1, 60):
        path = Path(shutil.copytree(tmp_path / "stopped", tmp_path / f"run-{operation}"))
        child = Child([*words, path], tmp_path / f"log-{operation}", die_at=operation)
        if child.wait() != -9:
            break
        saving += child.phase_name == "saving"
        said = run_to_end([*words, path], tmp_path / f"again-{operation}")
        assert f"resumed at step {EPOCH_STEPS}" in said, (operation, said)
        assert fingerprint(path) == expected and not leftovers(path)
    assert saving > 10 and operation < 59
