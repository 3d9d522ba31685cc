"""P_train: how likely each GCD is among a run's training examples at a step of its training.

Exact for every distribution, also one that shifts; counted for examples from a file. Budgets and repeated sets bring back
examples of an earlier distribution, and count with it. Knows configurations, no model.
"""

from __future__ import annotations

import numpy as np

from gcdformer.config import TESTED_GCDS, Config
from gcdformer.data.problem import Problem
from gcdformer.data.reading import read_examples
from gcdformer.data.stream import BLOCK, DEFAULT_REPEAT_SIZE
from gcdformer.numbers.distributions import Probabilities, pair_distribution, read_weights
from gcdformer.numbers.encoding import Integers, digit_counts
from gcdformer.numbers.theory import outcome_probabilities

MOST_LISTED = 1000
"""The largest K: decoding under a prior scores answers one by one."""
MOST_BLOCKS = 64
"""Blocks of the stream at which a shifting distribution is looked up, where examples of all of them come again."""


def largest_listed(config: Config) -> int:
    """K: the largest GCD that a prior speaks of, up to MOST_LISTED.

    Where the GCD is drawn first it is the largest one drawn. Otherwise every GCD occurs, and K is the largest integer with
    as many digits as 100: all tested GCD and those that a model can write as easily. In bases 10 and 1000 it is 999, which
    leaves out 0.06 % of uniform pairs; in base 101, where it is 100, 0.6 %.
    """
    data, maximum = config.data, config.task.maximum
    if data.weights_file is not None:
        return min(len(read_weights(data.weights_file, maximum)[0]), MOST_LISTED)
    if data.train_file is None and data.outcomes not in ("natural", "mixture"):
        return min(data.largest_gcd(maximum), MOST_LISTED)
    digits = int(digit_counts(np.array([TESTED_GCDS]), config.task.base)[0])
    return min(maximum, int(config.task.base**digits) - 1, MOST_LISTED)


def training_outcomes(config: Config, problem: Problem, step: int) -> Probabilities:
    """P_train(1), ..., P_train(K) of the examples that the step before `step` was taken on."""
    largest, data, training = largest_listed(config), config.data, config.training
    if data.train_file is not None:
        rows = read_examples(data.train_file, problem, "train_file").rows
        k = np.gcd(rows[:, 0], rows[:, 1])
        return np.asarray(np.bincount(k[k <= largest], minlength=largest + 1)[1:] / len(rows))
    if not data.shifts or training.horizon is None:
        return outcome_probabilities(problem.pairs, largest)
    last = training.horizon * training.batch_size

    def mean(blocks: Integers) -> Probabilities:
        """Of the distributions with which these blocks of the stream are drawn."""
        at_blocks = [pair_distribution(data, problem.maximum, int(block) * BLOCK / last) for block in blocks]
        return np.asarray(np.mean([outcome_probabilities(pairs, largest) for pairs in at_blocks], axis=0))

    example = max(0, step * training.batch_size - 1)
    comes_again = data.budget is not None and example >= data.budget
    fresh = mean(some_blocks(data.budget) if comes_again and data.budget else np.array([example // BLOCK]))
    if not data.repeat_share:
        return fresh
    repeated = mean(some_blocks(data.repeat_size or DEFAULT_REPEAT_SIZE))
    return np.asarray((1 - data.repeat_share) * fresh + data.repeat_share * repeated)


def some_blocks(examples: int) -> Integers:
    """The blocks that the first examples of a stream fill; evenly spaced ones if they are many."""
    blocks = -(-examples // BLOCK)
    return np.unique(np.linspace(0, blocks - 1, min(blocks, MOST_BLOCKS)).astype(np.int64))
