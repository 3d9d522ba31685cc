"""When a run is over, and in how long: functions of its limits, its state and its metrics. Knows no model and no clock.

The loop asks it before each step; a sweep asks it from the files of a run, to know which trials are missing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gcdformer.config import Config, LimitsSection
from gcdformer.runs.metrics import Line

if TYPE_CHECKING:
    from gcdformer.runs.checkpoint import TrainingState


def limit_reached(limits: LimitsSection, state: TrainingState, lines: list[Line]) -> str | None:
    """The limit that ends a run here, in words; None if it continues."""
    between = state.loss_count == 0
    if limits.max_epochs is not None and state.evaluations >= limits.max_epochs:
        return f"max_epochs {limits.max_epochs} reached"
    if limits.max_minutes is not None:
        left = 60 * limits.max_minutes - state.seconds
        if left <= 0:
            return f"max_minutes {limits.max_minutes:g} reached" if lines else (
                f"no epoch fits into max_minutes {limits.max_minutes:g}, so nothing was evaluated")
        if between and epoch_seconds(lines) > left:
            return f"the next epoch would not fit into max_minutes {limits.max_minutes:g}"
    if limits.stop_at_correct is not None and between and lines:
        correct = lines[-1].get("n_correct", 0)
        if correct >= limits.stop_at_correct:
            return f"stop_at_correct {limits.stop_at_correct} reached"
    return None


def epoch_seconds(lines: list[Line]) -> float:
    """How long the last epoch took, its evaluation included; 0 before the first."""
    ends = [0.0, *(line["seconds"] for line in lines)]
    return ends[-1] - ends[-2] if len(ends) > 1 else 0.0


def seconds_left(config: Config, state: TrainingState, lines: list[Line]) -> float | None:
    """An estimate of the time until a limit ends the run; None if no limit says. Of `max_minutes` only whole epochs count,
    each as long as the last."""
    limits, training = config.limits, config.training
    if limit_reached(limits, state, lines):
        return 0.0
    guesses = []
    if limits.max_minutes is not None:
        end, epoch = 60 * limits.max_minutes, epoch_seconds(lines)
        if epoch > 0:
            last = lines[-1]["seconds"]
            end = last + (end - last) // epoch * epoch
        guesses.append(end - state.seconds)
    if limits.max_epochs is not None and state.step:
        total = limits.max_epochs * training.steps_per_epoch
        guesses.append((total - state.step) * state.seconds / state.step)
    return max(0.0, min(guesses)) if guesses else None
