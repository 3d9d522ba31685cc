"""The cells that need no run: theoretical accuracy, parameter counts, tokens. Computed by the parts of the package."""

from __future__ import annotations

from functools import cache
from math import gcd

from gcdformer.data import Problem
from gcdformer.numbers import theory
from gcdformer.numbers.encoding import Vocabulary, encode_row
from gcdformer.paper.table import Cell, Experiment, Value

PAIR = (160, 120)


def compute(cell: Cell) -> Value:
    """Our value of a computed cell, rounded as the paper's."""
    base, kind = cell.experiment.base, cell.measure.kind
    if kind == "theory":
        return round(theory.base_limit_accuracy(base), 1)
    if kind == "parameters":
        return round(parameters(cell.experiment) / 1e6, 1)
    values = list(PAIR) if kind == "encoded-input" else [gcd(*PAIR)]
    return Vocabulary(base).words(encode_row(values, base))


@cache
def parameters(experiment: Experiment) -> int:
    """Parameters of the published model, its 4,096 positions on each side included."""
    from gcdformer.models import count_parameters
    config = experiment.config("paper")
    problem = Problem.of(config)
    return count_parameters(config, problem)
