"""What a page needs to run a run's model itself: its configuration, its weights, the decision prior. No torch."""

from __future__ import annotations

from typing import Annotated, Any

from typing_extensions import TypedDict

from gcdformer.data.problem import Problem
from gcdformer.lab.catalogue import Catalogue, Entry, reading
from gcdformer.lab.priors import PriorView, decides_in_page, prior_view
from gcdformer.lab.schema import doc
from gcdformer.lab.weights import Weights, checkpoint_weights
from gcdformer.runs.folder import checkpoint_path

LARGEST_IN_PAGE = 4_000_000
"""Bytes of float32 weights up to which a page asks the model itself."""


class ModelView(TypedDict):
    """A checkpoint's model, without its weights."""

    run: str
    epoch: int
    config: Annotated[dict[str, Any], doc("the sections [task] and [model] of config.toml")]
    bytes: Annotated[int, doc("size of the weights in float32")]
    in_page: Annotated[bool, doc("whether it is small enough for a page to run it")]
    prior: Annotated[PriorView | None, doc("null if it is not known what training showed")]


def model_view(catalogue: Catalogue, entry: Entry, epoch: int) -> ModelView:
    """The model of an epoch that has weights."""
    weights = model_weights(catalogue, entry, epoch)
    with reading(entry.path):
        size = sum(weight.nbytes for weight in weights.values())
        config = catalogue.config(entry)
        prior = prior_view(config, Problem.of(config), epoch * config.training.steps_per_epoch)
        return {"run": entry.id, "epoch": epoch, "config": config.model_dump(mode="json", include={"task", "model"}),
                "bytes": size, "in_page": size <= LARGEST_IN_PAGE and decides_in_page(config), "prior": prior}


def model_weights(catalogue: Catalogue, entry: Entry, epoch: int) -> Weights:
    with reading(entry.path):
        step = epoch * catalogue.config(entry).training.steps_per_epoch
        return checkpoint_weights(checkpoint_path(entry.path, step))
