"""gcdformer: train small models on integer arithmetic, above all the GCD, and explain every prediction they make.

In a notebook:

    import gcdformer
    config = gcdformer.preset("fast").replace(base=30, max_minutes=5)
    run = gcdformer.train(config, "runs/base-30")
    run.predict([160], [120])
    run.scores().correct

Names are loaded when they are first used, so that importing the package does not import torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gcdformer import mechanism as _folder
from gcdformer.version import __version__

del _folder, mechanism  # noqa: F821  # a folder has this name too; loaded, it stays out of the way

if TYPE_CHECKING:
    from gcdformer.config import Config
    from gcdformer.data import Problem, Stream
    from gcdformer.errors import DamagedFile, UserError
    from gcdformer.evaluation import UNREADABLE, PredictionTable, Scores
    from gcdformer.explanation import Explanation
    from gcdformer.models.hooks import patched, run_with_cache
    from gcdformer.paper.comparison import reproduction_tables
    from gcdformer.presets import preset
    from gcdformer.runs.explain import explain
    from gcdformer.runs.exported import load_exported
    from gcdformer.runs.mechanism import mechanism
    from gcdformer.runs.run import Run, load_run
    from gcdformer.tasks import Task
    from gcdformer.training.session import train

_HOMES = {
    "Config": "gcdformer.config",
    "DamagedFile": "gcdformer.errors",
    "Explanation": "gcdformer.explanation",
    "PredictionTable": "gcdformer.evaluation",
    "Problem": "gcdformer.data",
    "Run": "gcdformer.runs.run",
    "Scores": "gcdformer.evaluation",
    "Stream": "gcdformer.data",
    "Task": "gcdformer.tasks",
    "UNREADABLE": "gcdformer.evaluation",
    "UserError": "gcdformer.errors",
    "explain": "gcdformer.runs.explain",
    "load_exported": "gcdformer.runs.exported",
    "load_run": "gcdformer.runs.run",
    "mechanism": "gcdformer.runs.mechanism",
    "patched": "gcdformer.models.hooks",
    "preset": "gcdformer.presets",
    "reproduction_tables": "gcdformer.paper.comparison",
    "run_with_cache": "gcdformer.models.hooks",
    "train": "gcdformer.training.session",
}

__all__ = [
    "UNREADABLE", "Config", "DamagedFile", "Explanation", "PredictionTable", "Problem", "Run", "Scores", "Stream", "Task",
    "UserError", "__version__", "explain", "load_exported", "load_run", "mechanism", "patched", "preset",
    "reproduction_tables", "run_with_cache", "train",
]


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'gcdformer' has no attribute '{name}'")
    import importlib
    return getattr(importlib.import_module(_HOMES[name]), name)
