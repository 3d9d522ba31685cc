"""When a run is over: a function of its limits, where it stands and its metrics. Knows no model and no clock.

The loop asks it before each step; a sweep asks it from the files of a run, to know which trials are missing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gcdformer.config import LimitsSection
from gcdformer.runs.metrics import Line

if TYPE_CHECKING:
    from gcdformer.runs.checkpoint import TrainingState


def limit_reached(limits: LimitsSection, state: TrainingState, lines: list[Line]) -> str | None:
    """The limit that ends a run here, in words; None if it goes on."""
    between = state.loss_count == 0
    if limits.max_epochs is not None and state.evaluations >= limits.max_epochs:
        return f"max_epochs {limits.max_epochs} reached"
    if limits.max_minutes is not None:
        left = 60 * limits.max_minutes - state.seconds
        if left <= 0 or (between and epoch_seconds(lines) > left):
            return f"max_minutes {limits.max_minutes:g} reached"
    if limits.stop_at_correct is not None and between and lines:
        correct = lines[-1].get("n_correct", 0)
        if correct >= limits.stop_at_correct:
            return f"stop_at_correct {limits.stop_at_correct} reached"
    return None


def epoch_seconds(lines: list[Line]) -> float:
    """How long the last epoch took, its evaluation included; 0 before the first."""
    ends = [0.0, *(line["seconds"] for line in lines)]
    return ends[-1] - ends[-2] if len(ends) > 1 else 0.0
