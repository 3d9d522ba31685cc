"""The decision prior: the outcome distribution P under which answers are decided, with the weights as they are.

A model that was trained with outcomes P_train has learned P_train(k | digits). By Bayes' rule P(k | digits) is that times
P(k) / P_train(k), up to a factor, so the answer is the k with the largest ln p(k | x) + ln P(k) - ln P_train(k). Knows
distributions of the GCD; how answers are searched for is in `models/decide.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gcdformer.config import Config, checked_prior
from gcdformer.data.outcomes import training_outcomes
from gcdformer.data.problem import Problem
from gcdformer.errors import UserError
from gcdformer.numbers.distributions import OPERAND_DISTRIBUTIONS, Probabilities
from gcdformer.numbers.encoding import END, Integers, encode_row
from gcdformer.numbers.theory import natural_outcomes

if TYPE_CHECKING:
    from gcdformer.models.answer_tree import AnswerTree, LogScores


@dataclass(frozen=True)
class DecisionPrior:
    """A prior other than the training's, on the k up to K that training has shown."""

    name: str
    answers: Integers
    """The listed k, in order."""
    log_ratios: LogScores
    """ln P(k) - ln P_train(k) of each, up to a constant that they share."""

    def tree(self, base: int) -> AnswerTree:
        """The listed k as the tree that the decoder searches."""
        from gcdformer.models.answer_tree import answer_tree  # models import torch, which the ratios do not need
        return answer_tree([[*encode_row([k], base), END] for k in self.answers.tolist()], self.log_ratios)


def decision_prior(config: Config, problem: Problem, prior: object, step: int) -> DecisionPrior | None:
    """The prior by its name or exponent, for weights of a step of training; None for the training's own."""
    name = checked_prior(prior)
    if name == "training":
        return None
    if not problem.task.has_gcd:
        raise UserError(f"prior: '{name}' is for tasks whose answer is a GCD, not for '{problem.task.name}'")
    trained = training_outcomes(config, problem, step)
    listed = np.flatnonzero(trained > 0)
    if not len(listed):
        raise UserError(f"prior: training shows no GCD up to {len(trained)}, so that there is nothing to decide between")
    wanted = prior_probabilities(name, problem.maximum, len(trained))
    return DecisionPrior(name, listed + 1, np.log(wanted[listed]) - np.log(trained[listed]))


def prior_probabilities(name: str, maximum: int, largest: int) -> Probabilities:
    """P(1), ..., P(K) up to a factor; `natural` is that of uniform pairs of 1..M, the natural test set."""
    if name == "natural":
        return natural_outcomes(OPERAND_DISTRIBUTIONS["uniform"], maximum, largest)
    exponent = 0.0 if name == "uniform" else float(name)
    return np.asarray(np.arange(1, largest + 1, dtype=np.float64) ** -exponent)
