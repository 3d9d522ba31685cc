"""What a page needs to run a run's model itself: its configuration, the decision prior, and the weights of a checkpoint, as
they are or in half precision. No torch."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.numpy import load, save
from typing_extensions import TypedDict

from gcdformer.data.problem import Problem
from gcdformer.errors import DamagedFile, UserError
from gcdformer.lab.catalogue import Catalogue, ListedRun, reading
from gcdformer.lab.priors import PriorView, decides_in_page, prior_view
from gcdformer.lab.schema import doc
from gcdformer.runs.files import read_checked, read_sums
from gcdformer.runs.folder import AVERAGE, FILES, checkpoint_path

LARGEST_IN_PAGE = 4_000_000
"""Bytes of float32 weights up to which a page asks the model itself."""
Weights = dict[str, npt.NDArray[np.float32]]


class ModelView(TypedDict):
    """A checkpoint's model, without its weights."""

    run: str
    epoch: int
    config: Annotated[dict[str, Any], doc("the sections [task] and [model] of config.toml")]
    bytes: Annotated[int, doc("size of the weights in float32")]
    in_page: Annotated[bool, doc("whether it is small enough for a page to run it")]
    prior: Annotated[PriorView | None, doc("null if it is not known what training showed")]


def model_view(catalogue: Catalogue, entry: ListedRun, epoch: int) -> ModelView:
    """The model of an epoch that has weights."""
    weights = model_weights(catalogue, entry, epoch)
    with reading(entry.path):
        size = sum(weight.nbytes for weight in weights.values())
        config = catalogue.config(entry)
        prior = prior_view(config, Problem.of(config), epoch * config.training.steps_per_epoch)
        return {"run": entry.id, "epoch": epoch, "config": config.model_dump(mode="json", include={"task", "model"}),
                "bytes": size, "in_page": size <= LARGEST_IN_PAGE and decides_in_page(config), "prior": prior}


def model_weights(catalogue: Catalogue, entry: ListedRun, epoch: int) -> Weights:
    with reading(entry.path):
        step = epoch * catalogue.config(entry).training.steps_per_epoch
        return checkpoint_weights(checkpoint_path(entry.path, step))


def checkpoint_weights(path: Path) -> Weights:
    """The float32 tensors that answer questions at the checkpoint in this folder, every byte checked."""
    sums, mark = read_sums(path, FILES), f"{AVERAGE}/"
    model, optimizer = (read_tensors(path / name, sums) for name in FILES[:2])
    averages = {name.removeprefix(mark): tensor for name, tensor in optimizer.items() if name.startswith(mark)}
    weights = averages or model
    for name, weight in weights.items():
        if weight.dtype != np.float32:
            raise DamagedFile(f"{path}: tensor '{name[:100]}' is {weight.dtype}, not float32")
    return weights


def read_tensors(path: Path, sums: dict[str, str]) -> Weights:
    data = read_checked(path, sums[path.name])
    try:
        return load(data)
    except (SafetensorError, KeyError, ValueError, TypeError) as error:
        raise DamagedFile(f"{path}: not a safetensors file: {str(error)[:100]}") from None


def full_file(weights: Weights) -> bytes:
    """A safetensors file of these weights as they are."""
    return save(weights)


def half_file(weights: Weights, where: Path) -> bytes:
    """The same in float16; a `UserError` names a tensor that does not fit, and `where` it is from."""
    halves = {}
    for name, weight in weights.items():
        with np.errstate(over="ignore"):
            halves[name] = weight.astype(np.float16)
        if not np.isfinite(halves[name]).all():
            raise UserError(f"{where}: tensor '{name[:100]}' has values that float16 cannot hold (beyond 65504, or NaN)")
    return save(halves)


def half_weights(path: Path) -> bytes:
    """A safetensors file with the float32 tensors of another one as float16; a `UserError` names one that does not fit."""
    try:
        tensors = load(path.read_bytes())
    except SafetensorError as error:
        raise UserError(f"{path}: not a safetensors file: {str(error)[:100]}") from None
    for name, weight in tensors.items():
        if weight.dtype != np.float32:
            raise UserError(f"{path}: tensor '{name[:100]}' is {weight.dtype}, not float32")
    return half_file(tensors, path)
