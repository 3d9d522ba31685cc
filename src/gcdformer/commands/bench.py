"""`gcdformer bench`: throughput of sampling, training and evaluation, beside this machine's matrix-multiply peak."""

from __future__ import annotations

import argparse
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import torch

from gcdformer.commands.describe import mean_tokens
from gcdformer.commands.options import add_config_flags, add_json, config_from, given, number, print_json
from gcdformer.config import Config
from gcdformer.data import Problem, Stream
from gcdformer.data.stream import BLOCK
from gcdformer.data.testsets import natural_pairs
from gcdformer.errors import UserError
from gcdformer.evaluation.predictor import Predictor
from gcdformer.experiments.presets import fast
from gcdformer.models import flops_per_example
from gcdformer.numbers.random import Purpose, block_generator
from gcdformer.training.device import choose_device, chosen_threads
from gcdformer.training.learner import Diverged, Learner
from gcdformer.training.session import start_model

ROUNDS = 5
WARM_STEPS = 200
DEFAULTS = fast().replace(base=1000, operands="uniform", outcomes="natural", optimizer="adam", schedule="constant",
                          warmup=20)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seconds", type=number, default=20.0, metavar="N", help="how long to measure (default: 20)")
    parser.add_argument("--full", action="store_true", help="curves over width, depth, base and batch size (minutes)")
    parser.add_argument("--figure", type=Path, default=Path("bench.svg"), metavar="FILE",
                        help="where --full draws them, SVG or PNG (default: bench.svg)")
    add_json(parser)
    add_config_flags(parser, defaults=DEFAULTS)


def run(args: argparse.Namespace) -> int:
    config = config_from(args, DEFAULTS)
    if config.training.schedule == "cosine" and config.training.horizon is None:
        config = config.replace(horizon=10**9)
    if args.full:
        return full(args)
    try:
        result = measure(config, args.seconds)
    except Diverged as error:
        raise UserError(f"lr: {error}; bench needs a rate at which the model learns") from None
    if args.json:
        print_json(result)
        return 0
    print(f"matrix multiply     {result['gemm_gflops']:8.1f} GFLOPS with {result['threads']} threads")
    print(f"sample and encode   {result['sample']['examples_per_s']:10,.0f} examples/s on one core "
          "(log-uniform operands and outcomes)")
    train = result["train"]
    print(f"train               {train['examples_per_s']:10,.0f} examples/s, {train['gflops']:.1f} GFLOPS, "
          f"{100 * train['utilisation']:.1f} % of the peak")
    print(f"evaluate            {result['evaluate']['examples_per_s']:10,.0f} examples/s")
    return 0


def full(args: argparse.Namespace) -> int:
    """Measure and draw the curves; of the flags of the model only the threads and the engine are passed on."""
    from gcdformer.commands.bench_curves import draw_curves, measure_curves, print_curves

    if args.figure.suffix not in (".svg", ".png"):
        raise UserError(f"figure: a file that ends in .svg or .png, got '{args.figure}'")
    leaves = given(args)
    if args.config_file is not None:
        raise UserError("--full measures bench's default model: leave --config out")
    if others := set(leaves) - {"threads", "engine"}:
        raise UserError(f"full: chooses widths, depths, bases and batch sizes itself; leave out {', '.join(sorted(others))}")
    flags = [part for name, value in leaves.items() for part in (f"--{name}", str(value))]
    curves = measure_curves(args.seconds / 5, flags)
    draw_curves(curves, args.figure)
    if args.json:
        print_json(curves | {"figure": str(args.figure)})
    else:
        print_curves(curves)
        print(f"\nfigure  {args.figure}")
    return 0


def rate(work: Callable[[], int], seconds: float) -> float:
    """Units of work a second, over at least so many seconds."""
    began, done = perf_counter(), 0
    while (spent := perf_counter() - began) < seconds or not done:
        done += work()
    return done / spent


def best_rate(work: Callable[[], int], seconds: float) -> float:
    """The best of several rounds."""
    work()
    return max(rate(work, seconds / ROUNDS) for _ in range(ROUNDS))


def rates_in_turn(work: Callable[[], int], yardstick: Callable[[], int], seconds: float) -> tuple[float, float]:
    """Rates of both from the round whose ratio is the median: a machine that is shared is faster at one time than at
    another, so the two are measured in turn."""
    work(), yardstick()
    rounds = [(rate(work, 0.75 * seconds / ROUNDS), rate(yardstick, 0.25 * seconds / ROUNDS)) for _ in range(ROUNDS)]
    return sorted(rounds, key=lambda pair: pair[0] / pair[1])[ROUNDS // 2]


def measure(config: Config, seconds: float) -> dict[str, Any]:
    """All figures, the peak measured in turn with training."""
    problem = Problem.of(config)
    device, threads = choose_device(config.machine), chosen_threads(config.machine)
    train, peak = rates_in_turn(train_work(config, problem, device), matrix_multiply(device, threads), 0.6 * seconds)
    gemm = peak / 1e9
    evaluate = best_rate(evaluate_work(config, problem, device), 0.25 * seconds)
    sample = best_rate(sample_work(config), 0.15 * seconds)
    flops = flops_per_example(config.model, problem.vocabulary.size, *mean_tokens(config, problem))
    return {
        "threads": threads,
        "device": str(device),
        "gemm_gflops": gemm,
        "sample": {"examples_per_s": sample},
        "train": {"examples_per_s": train, "gflops": train * flops / 1e9, "utilisation": train * flops / 1e9 / gemm,
                  "flops_per_example": flops},
        "evaluate": {"examples_per_s": evaluate},
        "memory_mb": peak_memory_mb(),
    }


def peak_memory_mb() -> float:
    """The most memory that this process has held."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 2**10


def matrix_multiply(device: torch.device, threads: int, size: int = 2048) -> Callable[[], int]:
    """One square product on so many threads, into memory that is there already; its FLOPs."""
    a, product = torch.ones(size, size, device=device), torch.empty(size, size, device=device)

    def work() -> int:
        before = torch.get_num_threads()  # the packed engine has threads of its own and takes torch's away
        torch.set_num_threads(threads)
        torch.mm(a, a, out=product)
        torch.set_num_threads(before)
        if device.type != "cpu":
            float(product[0, 0])
        return 2 * size**3

    return work


def sample_work(config: Config) -> Callable[[], int]:
    """Draw, answer and encode a block of GCD pairs, log-uniform operands and outcomes."""
    config = config.replace(task="gcd", operands="log-uniform", outcomes="log-uniform")
    problem = Problem.of(config)
    stream, position = Stream.of(config, problem), 0

    def work() -> int:
        nonlocal position
        problem.encode_batch(stream.examples(position, position + BLOCK))
        position += BLOCK
        return BLOCK

    return work


def train_work(config: Config, problem: Problem, device: torch.device) -> Callable[[], int]:
    """A training step, data included."""
    learner, step = Learner(config, problem, start_model(config, problem), device), 0

    def work() -> int:
        nonlocal step
        learner.learn(step)
        step += 1
        return config.training.batch_size

    return work


def evaluate_work(config: Config, problem: Problem, device: torch.device) -> Callable[[], int]:
    """Decode natural pairs with a model that has been trained a little, so that its answers end."""
    learner = Learner(config, problem, start_model(config, problem), device)
    for step in range(WARM_STEPS if config.model.decoder_dim <= 128 else 30):
        learner.learn(step)
    predictor = Predictor(learner.model, problem, device, threads=chosen_threads(config.machine))
    rng = block_generator(0, Purpose.CHECKS, 0)
    count = 20_000 if config.model.decoder_dim <= 128 else 1000
    gcd = problem.task.has_gcd
    questions = natural_pairs(problem.maximum, count, rng) if gcd else problem.draw(rng, count)

    def work() -> int:
        predictor.answers(questions)
        return len(questions)

    return work
