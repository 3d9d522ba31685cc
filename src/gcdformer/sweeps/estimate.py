"""How long the trials of a sweep will take here: a few shapes are measured, the others follow by their FLOPs.

A shape is what a step costs: task, base, model, batch. An estimate knows nothing of other machines or launchers.
"""

from __future__ import annotations

import math

from gcdformer.config import Config
from gcdformer.data import Problem
from gcdformer.models import count_parameters, flops_per_example
from gcdformer.sweeps.plan import Planned, newest_state
from gcdformer.training.device import choose_device
from gcdformer.training.throughput import mean_tokens, measure_speed

MOST_MEASURED = 4
LARGEST_MEASURED = 60_000_000  # parameters
SECONDS = 1.0


def estimate(planned: list[Planned]) -> dict[str, float | None]:
    """Seconds each trial still needs, by name; None where only stop_at_correct ends it or no shape could be measured."""
    speeds: dict[str, tuple[float, float, float]] = {}
    todo = [trial for trial in planned if not trial.over]
    for trial in todo:
        shape = shape_of(trial.config)
        if shape not in speeds and len(speeds) < MOST_MEASURED and needs_speed(trial.config) and small(trial.config):
            problem = Problem.of(trial.config)
            step, test = measure_speed(trial.config.replace(init_from=None), problem, choose_device(trial.config.machine),
                                       seconds=SECONDS)
            speeds[shape] = (step_flops(trial.config), step, test)
    return {trial.name: 0.0 if trial.over else trial_seconds(trial, speeds) for trial in planned}


def trial_seconds(trial: Planned, speeds: dict[str, tuple[float, float, float]]) -> float | None:
    limits, training = trial.config.limits, trial.config.training
    state = newest_state(trial.path)
    bounds = []
    if limits.max_minutes is not None:
        bounds.append(60 * limits.max_minutes - (state.seconds if state else 0))
    if limits.max_epochs is not None and speeds:
        flops = step_flops(trial.config)
        measured = speeds.get(shape_of(trial.config)) or min(
            speeds.values(), key=lambda speed: abs(math.log(speed[0] / flops)))
        step, test = (seconds * flops / measured[0] for seconds in measured[1:])
        done = state.step / training.steps_per_epoch if state else 0.0
        bounds.append((limits.max_epochs - done) * (step * training.steps_per_epoch + test))
    return max(0.0, min(bounds)) if bounds else None


def wall_seconds(seconds: list[float], slots: int) -> float:
    """The time of all trials with that many at once, longest first."""
    ends = [0.0] * slots
    for needed in sorted(seconds, reverse=True):
        ends[ends.index(min(ends))] += needed
    return max(ends)


def needs_speed(config: Config) -> bool:
    return config.limits.max_epochs is not None


def small(config: Config) -> bool:
    problem = Problem.of(config)
    size = count_parameters(config, problem)
    return size <= LARGEST_MEASURED


def shape_of(config: Config) -> str:
    return repr((config.task, config.model, config.training.batch_size, config.training.precision, config.machine))


def step_flops(config: Config) -> float:
    """FLOPs of a training step."""
    problem = Problem.of(config)
    example = flops_per_example(config.model, problem.vocabulary.size, *mean_tokens(config, problem))
    return config.training.batch_size * example
