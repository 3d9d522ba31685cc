"""`train` for notebooks and scripts."""

from __future__ import annotations

from pathlib import Path

from gcdformer.config import Config
from gcdformer.runs.run import Run
from gcdformer.training.session import train_session
from gcdformer.training.view import View


def train(config: Config, out: str | Path, view: View | None = None) -> Run:
    """Train a new run in `out`, or go on with the one that is there; the run, to be read and asked.

    Silent unless given a view (`gcdformer.training.view.PlainView()` prints a line an epoch).
    """
    return Run(train_session(config, Path(out), view or View()).path)
