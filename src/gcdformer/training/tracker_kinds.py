"""TensorBoard and Weights & Biases behind one interface: open, write an epoch, close. Their files are in RUN/trackers/NAME.

Knows lines of metrics and scores, not runs; imports the packages only when a tracker is opened.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from gcdformer.config import Config
from gcdformer.evaluation import Scores
from gcdformer.runs.metrics import Line

SCALARS = ("loss", "test_loss", "accuracy", "stratified_accuracy", "n_correct", "n_modal", "learning_rate", "throughput",
           "examples", "seconds")


def scalars(line: Line) -> dict[str, float]:
    """The numbers of a line, under the names they have there."""
    return {name: float(line[name]) for name in SCALARS if line.get(name) is not None}


def picture(scores: Scores) -> Any:
    """The grid of f(k) as an array; matplotlib is loaded by the first one, in the tracker's thread."""
    from gcdformer.display.figures import grid_picture
    return grid_picture(scores)


class Tracker(ABC):
    """Receives each epoch once, in order."""

    @abstractmethod
    def __init__(self, run: Path, config: Config, name: str) -> None:
        """Open it for a run that it knows by a name of its own."""

    @abstractmethod
    def write(self, line: Line, scores: Scores | None) -> None:
        """The numbers of an epoch, D and the picture of f(k), so that a reader can see them."""

    @abstractmethod
    def close(self) -> None:
        """Write what is left."""


class TensorBoard(Tracker):
    """Event files; the step is the epoch."""

    def __init__(self, run: Path, config: Config, name: str) -> None:
        from torch.utils.tensorboard import SummaryWriter
        folder = run / "trackers" / "tensorboard"
        fresh = not folder.exists()
        self.writer: Any = SummaryWriter(str(folder))
        if fresh:
            self.writer.add_text("config", "\n".join("    " + row for row in config.to_toml().splitlines()), 0)

    def write(self, line: Line, scores: Scores | None) -> None:
        for name, value in scalars(line).items():
            self.writer.add_scalar(name, value, line["epoch"])
        if scores is not None:
            self.writer.add_text("D", ", ".join(map(str, scores.correct)) or "empty", line["epoch"])
            self.writer.add_image("grid", picture(scores), line["epoch"], dataformats="HWC")
        self.writer.flush()

    def close(self) -> None:
        self.writer.close()


class WeightsAndBiases(Tracker):
    """One W&B run for all sessions of a run; the step is the epoch.

    Offline unless WANDB_MODE says otherwise: nothing leaves the machine until `wandb sync` is asked to send it.
    """

    def __init__(self, run: Path, config: Config, name: str) -> None:
        mode: Any = os.environ.get("WANDB_MODE", "offline")
        if mode == "offline":
            os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
        import wandb
        folder = run / "trackers" / "wandb"
        folder.mkdir(exist_ok=True)
        quiet = wandb.Settings(console="off", silent=True, disable_git=True, disable_code=True, save_code=False,
                               symlink=False, x_disable_stats=True, x_disable_machine_info=True, x_save_requirements=False,
                               login_timeout=10)
        self.image = wandb.Image
        self.run = wandb.init(project=os.environ.get("WANDB_PROJECT", "gcdformer"), id=name, name=run.resolve().name,
                              dir=str(folder), mode=mode, resume="allow", reinit="create_new",
                              config=config.model_dump(exclude_none=True), settings=quiet)

    def write(self, line: Line, scores: Scores | None) -> None:
        row: dict[str, Any] = dict(scalars(line))
        if scores is not None:
            row |= {"D": ", ".join(map(str, scores.correct)) or "empty", "grid": self.image(picture(scores))}
        self.run.log(row, step=line["epoch"])

    def close(self) -> None:
        self.run.finish()


KINDS: dict[str, type[Tracker]] = {"tensorboard": TensorBoard, "wandb": WeightsAndBiases}
"""Trackers by the name of the package they need."""
