"""Rows 6 and 7: a full disk, another file system, a temporary folder that cannot be written. Real mounts, so root only."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import Figures
from faults import OFTEN, TINY, Child, count, fingerprint, leftovers, one_line_error, rng_of, run_to_end
from gcdformer import load_run
from gcdformer.runs.checkpoint import load_checkpoint
from gcdformer.runs.folder import checkpoint_steps

WORDS: list[object] = ["train", *TINY, *OFTEN]
SIZE = 4 << 20


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A tmpfs of 4 MB."""
    place = tmp_path / "disk"
    place.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", place], capture_output=True, text=True,
                          check=False) if shutil.which("mount") else None
    if made is None or made.returncode:
        pytest.skip(f"a small tmpfs cannot be mounted here: {made.stderr.strip() if made else 'no mount'}")
    yield place
    subprocess.run(["umount", place], check=True)


def test_a_full_disk(small_disk: Path, tmp_path: Path, figures: Figures) -> None:
    """Fill the disk but for a random rest of about a checkpoint's size, train into it, make room, resume."""
    rng = rng_of("disk")
    run_to_end([*WORDS, "--max-epochs", 2, "--out", tmp_path / "whole"], tmp_path / "log")
    expected = fingerprint(tmp_path / "whole")
    wanted, good = count(2, 20), 0
    for number in range(wanted):
        path, ballast, log = small_disk / "run", small_disk / "ballast", tmp_path / f"log-{number}"
        words = [*WORDS, "--max-epochs", 2, "--out", path]
        run_to_end([*WORDS, "--max-epochs", 1, "--out", path], log)
        size = sum(p.stat().st_size for p in (path / "checkpoints" / "step-000000020").iterdir())
        free = os.statvfs(small_disk).f_bavail * os.statvfs(small_disk).f_frsize
        fill(ballast, max(0, free - rng.randrange(int(1.2 * size))))
        child = Child(words, tmp_path / f"full-{number}")
        assert child.wait() == 2, child.output()
        message = one_line_error(child)
        assert str(path) in message and "No space left on device" in message and "resumes" in message
        newest = checkpoint_steps(path)[-1]
        load_checkpoint(path, newest)
        assert newest >= 20 and len(load_run(path).metrics) >= 1
        ballast.unlink()
        run_to_end(words, log)
        good += fingerprint(path) == expected and not leftovers(path)
        shutil.rmtree(path)
    figures(6, "disk full while saving: checkpoint before intact, clear message, resumes, identical", f"{good} of {wanted}",
            f"{wanted} of {wanted}")
    assert good == wanted


def fill(path: Path, size: int) -> None:
    with path.open("wb") as file:
        file.write(b"x" * size)


def test_a_start_on_a_full_disk(small_disk: Path, tmp_path: Path) -> None:
    fill(small_disk / "ballast", os.statvfs(small_disk).f_bavail * os.statvfs(small_disk).f_frsize)
    child = Child([*WORDS, "--max-epochs", 1, "--out", small_disk / "run"], tmp_path / "log")
    assert child.wait() == 2 and "No space left on device" in one_line_error(child)
    (small_disk / "ballast").unlink()
    run_to_end([*WORDS, "--max-epochs", 1, "--out", small_disk / "run"], tmp_path / "log-2")


def test_another_file_system_and_a_read_only_temporary_folder(small_disk: Path, tmp_path: Path, figures: Figures) -> None:
    """In a mount namespace of its own every temporary folder is read-only; the run is on another file system."""
    words = [str(word) for word in [*WORDS, "--max-epochs", 2, "--out", small_disk / "run"] if word != "--json"]
    script = 'for t in "$@"; do mount --rbind "$t" "$t" && mount -o remount,bind,ro "$t" || exit 99; done'
    folders = [folder for folder in ("/tmp", "/var/tmp", "/dev/shm") if Path(folder).is_dir()]
    command = " ".join(f"'{word}'" for word in [sys.executable, "-m", "gcdformer", *words])
    result = subprocess.run(["unshare", "-m", "sh", "-c", f"{script}; touch /tmp/x 2>/dev/null && exit 98; exec {command}",
                             "sh", *folders], capture_output=True, text=True, check=False, cwd=small_disk)
    if result.returncode == 99:
        pytest.skip("a temporary folder cannot be made read-only here")
    assert result.returncode == 0, result.stderr
    run_to_end([*WORDS, "--max-epochs", 2, "--out", tmp_path / "whole"], tmp_path / "log")
    assert fingerprint(small_disk / "run") == fingerprint(tmp_path / "whole")
    figures(7, "run folder on another file system, temporary folders read-only: trains, identical", "works", "works")
