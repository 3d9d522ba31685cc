"""A checkpoint's weights in half precision, for pages that run the model themselves. Knows tensors, not models; no torch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from gcdformer.errors import UserError


def half_weights(path: Path) -> bytes:
    """A safetensors file with the float32 tensors of another one as float16; a `UserError` names one that does not fit."""
    try:
        tensors = load(path.read_bytes())
    except SafetensorError as error:
        raise UserError(f"{path}: not a safetensors file: {str(error)[:100]}") from None
    halves = {}
    for name, weight in tensors.items():
        if weight.dtype != np.float32:
            raise UserError(f"{path}: tensor '{name[:100]}' is {weight.dtype}, not float32")
        with np.errstate(over="ignore"):
            halves[name] = weight.astype(np.float16)
        if not np.isfinite(halves[name]).all():
            raise UserError(f"{path}: tensor '{name[:100]}' has values that float16 cannot hold (beyond 65504, or NaN)")
    return save(halves)
