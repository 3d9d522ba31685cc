"""A file of weights: how often each GCD is drawn, for `--outcomes weights`. Lines `k,weight`, for k in any order.

A header `k,weight` may come first. A k that is not listed is never drawn. A bad line is an error that names it. Knows text
and numbers, no distribution.
"""

from __future__ import annotations

import hashlib
from math import isfinite
from pathlib import Path

import numpy as np
import numpy.typing as npt

from gcdformer.errors import UserError

LARGEST_LISTED = 1_000_000
"""The largest k of a file: its weights are an array."""


def read_weights(name: str, maximum: int) -> tuple[npt.NDArray[np.float64], str]:
    """P(1), ..., P(K) for the largest k listed, and the SHA-256 of the file; k may not be above `maximum`."""
    where = f"weights_file: {name}"
    try:
        data = Path(name).read_bytes()
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UserError(f"{where} is not UTF-8 text") from None
    except (OSError, ValueError) as error:
        raise UserError(f"{where} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    weights: dict[int, float] = {}
    for number, line in enumerate(text.splitlines(), 1):
        cells = [cell.strip() for cell in line.split(",")]
        if cells == [""] or (number == 1 and cells == ["k", "weight"]):
            continue
        k, weight = read_line(cells, f"{where} line {number}", min(maximum, LARGEST_LISTED))
        if k in weights:
            raise UserError(f"{where} line {number}: {k} has a weight already")
        weights[k] = weight
    if not weights:
        raise UserError(f"{where}: no weights; each line is k,weight")
    probabilities = np.zeros(max(weights))
    probabilities[np.array(list(weights)) - 1] = np.array(list(weights.values())) / max(weights.values())
    return probabilities / probabilities.sum(), hashlib.sha256(data).hexdigest()


def read_line(cells: list[str], where: str, largest: int) -> tuple[int, float]:
    if len(cells) != 2:
        raise UserError(f"{where}: an integer k and its weight with a comma between, got {len(cells)} cells")
    digits, text = cells
    if not (digits.isascii() and digits.isdigit() and len(digits) < 20 and 1 <= int(digits) <= largest):
        raise UserError(f"{where}: k is an integer in 1..{largest}, got '{digits[:50]}'")
    try:
        weight = float(text)
    except ValueError:
        weight = float("nan")
    if not (isfinite(weight) and weight > 0):
        raise UserError(f"{where}: the weight is a positive number, got '{text[:50]}'")
    return int(digits), weight
