"""Where checkpoints lie and which there are. Knows names only, no torch."""

from __future__ import annotations

from pathlib import Path


def checkpoint_path(folder: Path, step: int) -> Path:
    return folder / "checkpoints" / f"step-{step:09d}"


def checkpoint_steps(folder: Path) -> list[int]:
    """The steps that have a checkpoint, whole or damaged, in order."""
    found = [path.name.removeprefix("step-") for path in (folder / "checkpoints").glob("step-*")]
    return sorted(int(name) for name in found if name.isdecimal())
