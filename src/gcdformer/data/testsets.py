"""The test sets, drawn from counters that training never uses.

For gcd there are two distributions: `natural`, uniform pairs of 1..M; `stratified`, as many pairs for every GCD k
in 1..100, uniform on 1..(M div k). Other tasks have one set, drawn like their training examples. A test file replaces
them: for gcd `natural` is then all its pairs, `stratified` those whose GCD is in 1..100 and occurs often enough.
"""

from __future__ import annotations

import numpy as np

from gcdformer.config import LEAST_PAIRS, TESTED_GCDS, Config
from gcdformer.data.problem import Problem
from gcdformer.data.reading import read_examples
from gcdformer.errors import UserError
from gcdformer.numbers.distributions import OPERAND_DISTRIBUTIONS, NaturalPairs, OperandDistribution, coprime_pairs
from gcdformer.numbers.encoding import Integers
from gcdformer.numbers.random import Purpose, block_generator

UNIFORM = OPERAND_DISTRIBUTIONS["uniform"]


def natural_pairs(maximum: int, count: int, rng: np.random.Generator) -> Integers:
    """(count, 2) uniform pairs of 1..M."""
    return np.stack(NaturalPairs(UNIFORM, maximum).draw(rng, count), axis=1)


def stratified_pairs(maximum: int, count: int, rng: np.random.Generator,
                     operands: OperandDistribution = UNIFORM) -> Integers:
    """(count, 2) pairs, equally many for every GCD k in 1..min(100, M); the first k get what is left over."""
    largest = min(TESTED_GCDS, maximum)
    k = np.sort(np.arange(count, dtype=np.int64) % largest + 1)
    a, b = coprime_pairs(rng, operands, maximum // k)
    return np.stack([a * k, b * k], axis=1)


def test_sets(config: Config, problem: Problem, epoch: int) -> dict[str, Integers]:
    """The test sets of an evaluation by name; the same at every epoch, unless `fresh_tests`."""
    seed, count = config.training.seed, config.evaluation.test_size
    if config.evaluation.test_file is not None:
        return file_sets(read_examples(config.evaluation.test_file, problem, "test_file").rows, problem)
    turn = epoch if config.evaluation.fresh_tests else 0
    natural = block_generator(seed, Purpose.NATURAL_TEST, 0, turn)
    if not problem.task.has_gcd:
        return {"test": problem.draw(natural, count)}
    stratified = block_generator(seed, Purpose.STRATIFIED_TEST, 0, turn)
    return {"natural": natural_pairs(problem.maximum, count, natural),
            "stratified": stratified_pairs(problem.maximum, count, stratified)}


def file_sets(rows: Integers, problem: Problem) -> dict[str, Integers]:
    """The test sets that the rows of a file make up."""
    if not problem.task.has_gcd:
        return {"test": rows}
    k = np.gcd(rows[:, 0], rows[:, 1])
    small = np.where(k <= TESTED_GCDS, k, 0)
    often = np.bincount(small, minlength=TESTED_GCDS + 1) >= LEAST_PAIRS
    often[0] = False
    if not often.any():
        raise UserError(f"test_file: no GCD of 1..{TESTED_GCDS} has {LEAST_PAIRS} pairs in it, so that none can be judged")
    return {"natural": rows, "stratified": rows[often[small]]}
