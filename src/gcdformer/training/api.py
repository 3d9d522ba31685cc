"""`train` for notebooks and scripts."""

from __future__ import annotations

import sys
from pathlib import Path

from gcdformer.config import Config
from gcdformer.runs.run import Run
from gcdformer.training.session import train_session
from gcdformer.training.view import PlainView, View


def train(config: Config, out: str | Path, view: View | None = None, *, progress: bool = True) -> Run:
    """Train a new run in `out`, or resume the one that is there; the run, to be read and asked.

    Prints a line per epoch, and some within long ones, on standard error; nothing with `progress=False`. A `view` of one's
    own shows something else.
    """
    return Run(train_session(config, Path(out), view or (PlainView(sys.stderr) if progress else View())).path)
