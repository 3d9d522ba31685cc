"""The test sets, drawn from counters that training never uses.

For gcd there are two distributions: `natural`, uniform pairs of 1..M; `stratified`, as many pairs for every GCD k
in 1..100, uniform on 1..(M div k). Other tasks have one set, drawn like their training examples.
"""

from __future__ import annotations

import numpy as np

from gcdformer.config import TESTED_GCDS, Config
from gcdformer.data.problem import Problem
from gcdformer.numbers.encoding import Integers
from gcdformer.numbers.laws import OPERAND_LAWS, NaturalPairs, coprime_pairs
from gcdformer.numbers.random import Purpose, block_generator

UNIFORM = OPERAND_LAWS["uniform"]


def natural_pairs(maximum: int, count: int, rng: np.random.Generator) -> Integers:
    """(count, 2) uniform pairs of 1..M."""
    return np.stack(NaturalPairs(UNIFORM, maximum).draw(rng, count), axis=1)


def stratified_pairs(maximum: int, count: int, rng: np.random.Generator) -> Integers:
    """(count, 2) pairs, equally many for every GCD k in 1..min(100, M); the first k get what is left over."""
    largest = min(TESTED_GCDS, maximum)
    k = np.sort(np.arange(count, dtype=np.int64) % largest + 1)
    a, b = coprime_pairs(rng, UNIFORM, maximum // k)
    return np.stack([a * k, b * k], axis=1)


def test_sets(config: Config, problem: Problem, epoch: int) -> dict[str, Integers]:
    """The test sets of an evaluation by name; the same at every epoch, unless `fresh_tests`."""
    seed, count = config.training.seed, config.evaluation.test_size
    turn = epoch if config.evaluation.fresh_tests else 0
    natural = block_generator(seed, Purpose.NATURAL_TEST, 0, turn)
    if not problem.task.has_gcd:
        return {"test": problem.draw(natural, count)}
    stratified = block_generator(seed, Purpose.STRATIFIED_TEST, 0, turn)
    return {"natural": natural_pairs(problem.maximum, count, natural),
            "stratified": stratified_pairs(problem.maximum, count, stratified)}
