"""The decision priors that the lab offers: on the Ask page from the training's to another one, in steps, where a share of
the way scales the offsets; on a run's page a choice of a few.

Runs that were trained from a file have none here: it lies outside the run's folder.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import numpy as np
from typing_extensions import TypedDict

from gcdformer.config import Config, checked_prior, prior_in_words
from gcdformer.data.problem import Problem
from gcdformer.errors import UserError
from gcdformer.evaluation.prior import DecisionPrior, decision_prior
from gcdformer.lab.schema import Priors, doc

MOST_PAIRS = 1_000_000
"""Pairs in a test set up to which a model answers it again for a page."""


class PriorView(TypedDict):
    """The prior at the far end of the slider; at its near end is the training's."""

    name: Annotated[str, doc("natural, or the run's own if that is neither natural nor the training's")]
    says: str
    own: Annotated[float, doc("share of the way at which the run itself decides: 0 or 1")]
    offsets: Annotated[list[float | None], doc("item k - 1 is ln P(k) - ln P_train(k); null if training never shows k")]


def trained_from_file(config: Config) -> bool:
    return config.data.train_file is not None or config.data.weights_file is not None


def decides_in_page(config: Config) -> bool:
    """Whether a page can decide as the run does: not under a prior of its own if the training's is not known here."""
    return config.evaluation.prior == "training" or not trained_from_file(config)


def far_prior(config: Config) -> str:
    return "natural" if config.evaluation.prior == "training" else config.evaluation.prior


def offered_priors(config: Config) -> Priors:
    """The priors under which a run's epochs can be shown, as far as the configuration tells."""
    own, data = config.evaluation.prior, config.data
    as_natural = data.outcomes == "natural" and data.operands == "uniform" and not data.shifts
    refusal = None
    if trained_from_file(config):
        refusal = "This run was trained from a file, so it is not known here how often each GCD came up in training."
    elif config.evaluation.test_file is not None:
        refusal = "This run was tested on a file, which lies outside its folder, so it cannot be asked again here."
    elif config.evaluation.test_size > MOST_PAIRS:
        refusal = "Its test sets are too large to be asked again here; gcdformer explain --prior does it."
    elif as_natural and own in ("training", "natural"):
        refusal = "In training each GCD came up as often as among random pairs, so the natural prior is the training's."
    names = [own] if refusal else list(dict.fromkeys(["training", *([] if as_natural else ["natural"]), own]))
    return {"own": own, "offered": [{"name": name, "says": prior_in_words(name)} for name in names], "refusal": refusal}


def offered_prior(config: Config, problem: Problem, step: int) -> DecisionPrior | None:
    """The prior at the far end, for weights of a step of training; None if there is none to offer."""
    if trained_from_file(config):
        return None
    try:
        return decision_prior(config, problem, far_prior(config), step)
    except UserError:  # training shows no GCD that could be an answer
        return None


def chosen_prior(config: Config, problem: Problem, step: int, name: str, share: float) -> DecisionPrior | None:
    """The prior of this name, a share of the way from the training's; None for the training's own."""
    if checked_prior(name) == "training" or share == 0:
        return None
    if trained_from_file(config):
        raise UserError("prior: this run was trained from a file, so that its training prior is not known here")
    prior = decision_prior(config, problem, name, step)
    return None if prior is None else scaled(prior, share)


def scaled(prior: DecisionPrior, share: float) -> DecisionPrior:
    return replace(prior, log_ratios=prior.log_ratios * share)


def prior_view(config: Config, problem: Problem, step: int) -> PriorView | None:
    prior = offered_prior(config, problem, step)
    if prior is None:
        return None
    offsets: list[float | None] = [None] * int(prior.answers[-1])
    for k, offset in zip(prior.answers.tolist(), prior.log_ratios.tolist(), strict=True):
        offsets[k - 1] = round(offset, 9) if np.isfinite(offset) else None
    return {"name": prior.name, "says": prior_in_words(prior.name), "own": float(config.evaluation.prior != "training"),
            "offsets": offsets}
