"""A checkpoint's weights for pages that run the model themselves, as they are or in half precision. Knows tensors, not
models; no torch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.numpy import load, save

from gcdformer.errors import DamagedFile, UserError
from gcdformer.runs.files import read_checked, read_sums

CHECKPOINT_FILES = ["model.safetensors", "optimizer.safetensors", "state.json"]
"""As `runs/checkpoint.py` writes them, which needs torch."""
AVERAGE = "average/"
"""How the names of averaged weights begin among the optimiser's tensors; if there are any, they answer questions."""
Weights = dict[str, npt.NDArray[np.float32]]


def checkpoint_weights(path: Path) -> Weights:
    """The float32 tensors that answer questions at the checkpoint in this folder, every byte checked."""
    sums = read_sums(path, CHECKPOINT_FILES)
    model = read_tensors(path / CHECKPOINT_FILES[0], sums)
    averages = {name.removeprefix(AVERAGE): tensor for name, tensor in read_tensors(path / CHECKPOINT_FILES[1], sums).items()
                if name.startswith(AVERAGE)}
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
