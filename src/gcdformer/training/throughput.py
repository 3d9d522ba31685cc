"""How fast this machine samples, trains and evaluates, beside the rate of a matrix product; and how long an epoch takes.

Measures for a given time and returns numbers; it prints nothing and knows no run folder.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import count
from time import perf_counter
from typing import Any, TypeVar

import numpy as np
import torch

from gcdformer.config import Config
from gcdformer.data import Problem, Stream
from gcdformer.data.stream import BLOCK
from gcdformer.data.testsets import natural_pairs, test_sets
from gcdformer.errors import UserError
from gcdformer.evaluation.predictor import Predictor, Stopped
from gcdformer.models import flops_per_example
from gcdformer.numbers.random import Purpose, block_generator
from gcdformer.training.device import Ranks, choose_device, chosen_threads
from gcdformer.training.learner import Diverged, Learner, start_model

Result = TypeVar("Result")
ROUNDS = 5
WARM_STEPS = 200
LEAST = 0.5
"""Seconds below which a rate is measured in one round: a round of decoding takes a second, however short it should be."""


@dataclass(frozen=True)
class TrainingRate:
    """Examples per second, and what they amount to in arithmetic."""

    examples_per_s: float
    gflops: float
    utilisation: float
    flops_per_example: float


@dataclass(frozen=True)
class Rate:
    """Examples per second."""

    examples_per_s: float


@dataclass(frozen=True)
class Throughput:
    """The figures of `gcdformer bench`; their names are its JSON keys."""

    threads: int
    device: str
    gemm_gflops: float
    sample: Rate
    train: TrainingRate
    evaluate: Rate
    memory_mb: float

    def to_json(self) -> dict[str, object]:
        return asdict(self)

    @classmethod
    def from_json(cls, tree: dict[str, Any]) -> Throughput:
        return cls(**tree | {"sample": Rate(**tree["sample"]), "train": TrainingRate(**tree["train"]),
                             "evaluate": Rate(**tree["evaluate"])})


def rate(work: Callable[[], int], seconds: float) -> float:
    """Units of work per second, measured over at least that many seconds."""
    began, done = perf_counter(), 0
    while (spent := perf_counter() - began) < seconds or not done:
        done += work()
    return done / spent


def best_rate(work: Callable[[], int], seconds: float, on_round: Callable[[], None] = lambda: None) -> float:
    """The best of several rounds, or of one if there is no time for more."""
    work()
    rounds = ROUNDS if seconds >= LEAST else 1
    return max(in_rounds(lambda: rate(work, seconds / rounds), on_round, rounds))


def in_rounds(measured: Callable[[], Result], on_round: Callable[[], None], rounds: int = ROUNDS) -> list[Result]:
    """What each round measured; `on_round` is called after each."""
    results = []
    for _ in range(rounds):
        results.append(measured())
        on_round()
    return results


def rates_in_turn(work: Callable[[], int], yardstick: Callable[[], int], seconds: float,
                  on_round: Callable[[], None] = lambda: None) -> tuple[float, float]:
    """Rates of both, from the round with the median ratio. They are measured in turn, because the speed of a shared machine
    varies."""
    work(), yardstick()
    rounds = in_rounds(lambda: (rate(work, 0.75 * seconds / ROUNDS), rate(yardstick, 0.25 * seconds / ROUNDS)), on_round)
    return sorted(rounds, key=lambda pair: pair[0] / pair[1])[ROUNDS // 2]


def measure(config: Config, seconds: float, on_share: Callable[[float], None] = lambda share: None) -> Throughput:
    """All figures; `on_share` is called with the share of the work that is done."""
    rounds = count(1)

    def on_round() -> None:
        on_share(next(rounds) / (3 * ROUNDS))

    try:
        return all_figures(config, seconds, on_round)
    except Diverged as error:
        raise UserError(f"lr: {error}; bench needs a rate at which the model learns") from None


def all_figures(config: Config, seconds: float, on_round: Callable[[], None]) -> Throughput:
    """Training takes turns with the matrix product that it is compared with."""
    problem = Problem.of(config)
    device, threads = choose_device(config.machine), chosen_threads(config.machine)
    step, product = train_work(config, problem, device), matrix_multiply(device, threads)
    train, peak = rates_in_turn(step, product, 0.6 * seconds, on_round)
    evaluate = best_rate(evaluate_work(config, problem, device), 0.25 * seconds, on_round)
    sample = best_rate(sample_work(config), 0.15 * seconds, on_round)
    flops = flops_per_example(config.model, problem.vocabulary.size, *mean_tokens(config, problem))
    training = TrainingRate(train, train * flops / 1e9, train * flops / peak, flops)
    return Throughput(threads, str(device), peak / 1e9, Rate(sample), training, Rate(evaluate), peak_memory_mb())


def mean_tokens(config: Config, problem: Problem) -> tuple[float, float]:
    """Mean unpadded input and output tokens of the first 4,096 examples, END included."""
    batch = problem.encode_batch(Stream.of(config, problem).examples(0, 4096))
    return float(np.mean(batch.input_lengths)), float(np.mean(batch.target_lengths - 1))


def peak_memory_mb() -> float:
    """The most memory that this process has used."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 2**10


def matrix_multiply(device: torch.device, threads: int, size: int = 2048) -> Callable[[], int]:
    """One square product on that many threads, into memory that is already allocated; returns its FLOPs."""
    a, product = torch.ones(size, size, device=device), torch.empty(size, size, device=device)

    def work() -> int:
        before = torch.get_num_threads()  # the packed backend has threads of its own and takes torch's away
        torch.set_num_threads(threads)
        torch.mm(a, a, out=product)
        torch.set_num_threads(before)
        if device.type != "cpu":
            float(product[0, 0])
        return 2 * size**3

    return work


def sample_work(config: Config) -> Callable[[], int]:
    """Draw, answer and encode a block of GCD pairs, log-uniform operands and outcomes."""
    config = config.derive(task="gcd", operands="log-uniform", outcomes="log-uniform")
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
        learner.new_losses()
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
    size = 20_000 if config.model.decoder_dim <= 128 else 1000
    gcd = problem.task.has_gcd
    questions = natural_pairs(problem.maximum, size, rng) if gcd else problem.draw(rng, size)

    def work() -> int:
        predictor.answers(questions)
        return len(questions)

    return work


def measure_speed(config: Config, problem: Problem, device: torch.device, seconds: float = 3.0,
                  stop: object = None, ranks: Ranks | None = None) -> tuple[float, float]:
    """Seconds of a training step and of one evaluation, from a few steps of a throw-away model; `Stopped` as soon as `stop`
    is true: a signal, a deadline.

    Ranks measure together and agree on the result.
    """
    ranks = ranks or Ranks()

    def check(done: int = 0) -> None:
        if stop:
            raise Stopped

    config = config.replace(horizon=10**9) if config.training.schedule == "cosine" else config
    learner = Learner(config, problem, start_model(config, problem), device, ranks)

    def timed_step(index: int) -> float:
        began = perf_counter()
        learner.learn(index)
        learner.new_losses(wait=True)
        elapsed, stopping = ranks.largest(perf_counter() - began, float(bool(stop)))
        if stopping:
            raise Stopped
        return elapsed

    def timed_tests() -> float:
        began = perf_counter()
        for questions in sets.values():
            predictor.tokens(questions)
        return perf_counter() - began

    first, second = timed_step(0), timed_step(1)  # the first may have to compile
    count = max(1, min(2000, int(seconds / max(min(first, second), 1e-4))))
    times = sorted(timed_step(2 + index) for index in range(count))
    usual = times[:max(1, len(times) * 3 // 4)]
    size = min(config.evaluation.test_size, max(100, 40 * config.training.batch_size))
    sets = test_sets(config.replace(test_size=size), problem, 1)
    # Greedy whatever the prior: a trained model is hardly slower under one, an untrained one leaves all to the full search.
    predictor = Predictor(learner.model, problem, device, on_batch=check, threads=chosen_threads(config.machine))
    share = size / config.evaluation.test_size
    if config.evaluation.test_file is not None:
        whole = sum(map(len, sets.values()))
        sets = {name: rows[:size] for name, rows in sets.items()}
        share = sum(map(len, sets.values())) / whole
    return sum(usual) / len(usual), ranks.by_first(timed_tests) / share
