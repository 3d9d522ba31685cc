"""Learning rates as functions of the step, never of the clock."""

from __future__ import annotations

from math import cos, pi, sqrt

from gcdformer.config import TrainingSection

DEFAULT_FINAL_SHARE = 0.02


def learning_rate(training: TrainingSection, step: int) -> float:
    """The rate of step 0, 1, 2, ...: a linear rise over the warm-up, then the schedule."""
    if step < training.warmup:
        return training.lr * (step + 1) / training.warmup
    if training.schedule == "constant":
        return training.lr
    if training.schedule == "inverse-sqrt":
        return training.lr * sqrt(training.warmup / (step + 1))
    assert training.horizon is not None, "a session fixes the horizon before it trains"
    final = DEFAULT_FINAL_SHARE if training.final_lr_share is None else training.final_lr_share
    done = min(1.0, (step - training.warmup) / max(1, training.horizon - training.warmup))
    return training.lr * (final + (1 - final) * (1 + cos(pi * done)) / 2)
