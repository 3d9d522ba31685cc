"""`gcdformer describe`: what a configuration means, without training it.

The time of an epoch is measured only if that takes a few seconds, or if `--measure` asks for it: the answer comes at once.
"""

from __future__ import annotations

import argparse
from time import perf_counter
from typing import TYPE_CHECKING, TypedDict

from gcdformer.config import Config
from gcdformer.data import Problem
from gcdformer.display.progress import progress
from gcdformer.errors import UserError
from gcdformer.options import add_config_flags, add_json, add_preset, add_quiet, config_from, print_json

if TYPE_CHECKING:
    import torch

PATIENCE = 2.5
"""Seconds that measuring may take unless it is asked for."""
STEPS = 4
"""Steps that have to fit into that time by a guess made beforehand, since a step cannot be stopped in its middle."""
USUAL_SHARE = 0.25
"""Of the matrix-multiply peak, what training reaches."""


class Facts(TypedDict):
    """What a configuration means; the names are the keys of the JSON output."""

    parameters: int
    vocabulary: int
    longest_input: int
    longest_output: int
    mean_input_tokens: float
    mean_output_tokens: float
    flops_per_example: float
    steps_per_epoch: int
    seconds_per_epoch: float | None


class Deadline:
    """True once its time is over."""

    def __init__(self, seconds: float) -> None:
        self.at = perf_counter() + seconds

    def __bool__(self) -> bool:
        return perf_counter() > self.at


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_preset(parser)
    timing = parser.add_mutually_exclusive_group()
    timing.add_argument("--measure", action="store_true",
                        help="measure the time of an epoch here, however long it takes (default: if it takes some seconds)")
    timing.add_argument("--no-timing", action="store_true", help="do not measure the speed of this machine")
    add_quiet(parser)
    add_json(parser)
    add_config_flags(parser)


def run(args: argparse.Namespace) -> int:
    config = config_from(args)
    problem = Problem.of(config)
    with progress("measuring the speed of this machine" if args.measure else "describing", quiet=args.quiet):
        facts = describe(config, problem)
        spent, why = 0.0, "--no-timing"
        if not args.no_timing:
            began = perf_counter()
            facts["seconds_per_epoch"], why = epoch_seconds(config, problem, facts, None if args.measure else PATIENCE)
            spent = perf_counter() - began
    if args.json:
        print_json(facts)
    else:
        show(config, facts, f"measured in {spent:.0f} s", why)
    return 0


def describe(config: Config, problem: Problem) -> Facts:
    """All that follows from the configuration alone."""
    from gcdformer.models import count_parameters, flops_per_example
    from gcdformer.training.throughput import mean_tokens
    vocabulary = problem.vocabulary.size
    input_tokens, output_tokens = mean_tokens(config, problem)
    return {
        "parameters": count_parameters(config, problem),
        "vocabulary": vocabulary,
        "longest_input": problem.longest_input,
        "longest_output": problem.longest_target,
        "mean_input_tokens": input_tokens,
        "mean_output_tokens": output_tokens,
        "flops_per_example": flops_per_example(config.model, vocabulary, input_tokens, output_tokens),
        "steps_per_epoch": config.training.steps_per_epoch,
        "seconds_per_epoch": None,
    }


def epoch_seconds(config: Config, problem: Problem, facts: Facts,
                  patience: float | None) -> tuple[float | None, str]:
    """Seconds of an epoch, tests included; None, and why, if measuring them would take longer than the patience."""
    from gcdformer.evaluation.predictor import Stopped
    from gcdformer.training.backends import has_to_compile
    from gcdformer.training.device import choose_device
    from gcdformer.training.learner import Diverged
    from gcdformer.training.throughput import measure_speed
    device = choose_device(config.machine)
    if patience is not None:
        if has_to_compile(config, device):
            return None, "the training step has yet to be compiled for this machine; --measure does it"
        step = config.training.batch_size * facts["flops_per_example"] / (USUAL_SHARE * peak_flops(device))
        if STEPS * step > patience:
            return None, "it would take longer than a few seconds; --measure does it"
    deadline = None if patience is None else Deadline(patience)
    try:
        step, test = measure_speed(config, problem, device, 2.0 if patience is None else patience / 3, deadline)
    except Stopped:
        return None, "it would take longer than a few seconds; --measure does it"
    except Diverged as error:
        raise UserError(f"lr: {error}; its speed cannot be measured, use --no-timing or a lower rate") from None
    return step * config.training.steps_per_epoch + test, ""


def peak_flops(device: torch.device) -> float:
    """FLOPs per second of a matrix product: a guess within a factor of two, in a tenth of a second."""
    import torch

    from gcdformer.training.throughput import best_rate, matrix_multiply
    return best_rate(matrix_multiply(device, torch.get_num_threads(), size=1024), seconds=0.1)


def show(config: Config, facts: Facts, measured: str, why_not: str) -> None:
    print(config.to_toml().strip() + "\n")
    print(f"parameters          {facts['parameters']:,}")
    print(f"vocabulary          {facts['vocabulary']:,} tokens")
    print(f"sequences           at most {facts['longest_input']} tokens in, {facts['longest_output']} out; "
          f"{facts['mean_input_tokens']:.1f} and {facts['mean_output_tokens']:.1f} on average")
    print(f"FLOPs per example   {facts['flops_per_example']:,.0f} in training")
    if facts["seconds_per_epoch"] is None:
        print(f"time per epoch      not measured ({why_not})")
    else:
        print(f"time per epoch      about {facts['seconds_per_epoch']:,.0f} s here, tests included ({measured})")
