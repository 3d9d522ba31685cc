"""Row 14, full form only: hours of training, evaluating, saving and resuming; memory, file handles and disk use stay flat.

FAULTS_SOAK_MINUTES sets how long (120 if not given, 0 leaves it out).
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import pytest

from conftest import Figures
from faults import FULL, TINY, Child

MINUTES = float(os.environ.get("FAULTS_SOAK_MINUTES", "120"))
SAMPLES = 200


def resident(pid: int) -> float:
    """Resident megabytes."""
    fields = Path(f"/proc/{pid}/statm").read_text().split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def handles(pid: int) -> float:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def disk(path: Path) -> float:
    """Kilobytes of checkpoints: the part of a run that must not grow."""
    total = 0
    for file in path.rglob("*"):
        try:
            total += file.stat().st_size
        except FileNotFoundError:
            continue  # pruned in between
    return total / 1024


def trend(times: list[float], values: list[float]) -> tuple[float, float]:
    """Growth over the whole time by a straight line, and twice the spread around it: what may pass for noise."""
    x, y = np.array(times), np.array(values)
    slope, start = np.polyfit(x, y, 1)
    return float(slope * (x[-1] - x[0])), 2 * float(np.std(y - (slope * x + start)))


@pytest.mark.skipif(not FULL or MINUTES <= 0, reason="full form only: FAULTS=full and FAULTS_SOAK_MINUTES above 0")
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
def test_memory_handles_and_disk_stay_flat(tmp_path: Path, figures: Figures) -> None:
    path = tmp_path / "run"
    child = Child(["train", *TINY, "--checkpoint-minutes", 0.01, "--epoch-size", 3200, "--max-minutes", MINUTES,
                   "--out", path], tmp_path / "log")
    pid, seconds = child.process.pid, 60 * MINUTES
    assert pid is not None
    series: dict[str, list[float]] = {"memory, MB": [], "file handles": [], "checkpoints, KB": []}
    times: list[float] = []
    began = time.monotonic()
    while child.process.is_alive() and time.monotonic() - began < seconds + 120:
        elapsed = time.monotonic() - began
        if seconds * 0.1 < elapsed < seconds * 0.95:
            times.append(elapsed)
            series["memory, MB"].append(resident(pid))
            series["file handles"].append(handles(pid))
            series["checkpoints, KB"].append(disk(path / "checkpoints"))
        child.process.join(seconds / SAMPLES)
    assert child.wait() == 0, child.output()
    growth = {name: trend(times, values) for name, values in series.items()}
    for name, (grown, noise) in growth.items():
        figures(14, f"soak of {MINUTES:g} minutes: growth of {name} (mean {np.mean(series[name]):.1f})", f"{grown:+.2f}",
                f"within {max(noise, 1):.2f}")
    assert len(times) > 50 and all(abs(grown) <= max(noise, 1) for grown, noise in growth.values()), growth
