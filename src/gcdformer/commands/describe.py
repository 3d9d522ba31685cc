"""`gcdformer describe`: what a configuration means, without training it."""

from __future__ import annotations

import argparse

import numpy as np

from gcdformer.commands.options import add_config_flags, add_json, add_preset, config_from, print_json
from gcdformer.config import Config
from gcdformer.data import Problem, Stream
from gcdformer.errors import UserError

TIMED_PARAMETERS = 60_000_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_preset(parser)
    parser.add_argument("--no-timing", action="store_true", help="do not measure the speed of this machine")
    add_json(parser)
    add_config_flags(parser)


def run(args: argparse.Namespace) -> int:
    config = config_from(args)
    problem = Problem.of(config)
    from gcdformer.models import count_parameters, flops_per_example
    vocabulary = problem.vocabulary.size
    parameters = count_parameters(config.model, vocabulary, problem.longest_input, problem.longest_target)
    input_tokens, output_tokens = mean_tokens(config, problem)
    facts: dict[str, float | int | None] = {
        "parameters": parameters,
        "vocabulary": vocabulary,
        "longest_input": problem.longest_input,
        "longest_output": problem.longest_target,
        "mean_input_tokens": input_tokens,
        "mean_output_tokens": output_tokens,
        "flops_per_example": flops_per_example(config.model, vocabulary, input_tokens, output_tokens),
        "steps_per_epoch": config.training.steps_per_epoch,
        "seconds_per_epoch": None,
    }
    if not args.no_timing and parameters <= TIMED_PARAMETERS:
        from gcdformer.training.device import choose_device
        from gcdformer.training.learner import Diverged
        from gcdformer.training.session import measure_speed
        try:
            step, test = measure_speed(config, problem, choose_device(config.machine), seconds=2.0)
        except Diverged as error:
            raise UserError(f"lr: {error}; its speed cannot be measured, use --no-timing or a lower rate") from None
        facts["seconds_per_epoch"] = step * config.training.steps_per_epoch + test
    if args.json:
        print_json(facts)
    else:
        tell(config, facts)
    return 0


def mean_tokens(config: Config, problem: Problem) -> tuple[float, float]:
    """Mean unpadded input and output tokens of the first 4,096 examples, END included."""
    batch = problem.encode_batch(Stream.of(config, problem).examples(0, 4096))
    return float(np.mean(batch.input_lengths)), float(np.mean(batch.target_lengths - 1))


def tell(config: Config, facts: dict[str, float | int | None]) -> None:
    print(config.to_toml().strip() + "\n")
    print(f"parameters          {facts['parameters']:,}")
    print(f"vocabulary          {facts['vocabulary']:,} tokens")
    print(f"sequences           at most {facts['longest_input']} tokens in, {facts['longest_output']} out; "
          f"{facts['mean_input_tokens']:.1f} and {facts['mean_output_tokens']:.1f} on average")
    print(f"FLOPs an example    {facts['flops_per_example']:,.0f} in training")
    if facts["seconds_per_epoch"] is None:
        print("time an epoch       not measured")
    else:
        print(f"time an epoch       about {facts['seconds_per_epoch']:,.0f} s here, tests included (measured over 2 s)")
