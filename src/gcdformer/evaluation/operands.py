"""Operands as a person gives them to predict(a, b): two integers, or two arrays of integers of one length.

Nothing is rounded, cut off or stretched: what is no integer, too large or of another shape is a `UserError`. Knows no model.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gcdformer.errors import UserError
from gcdformer.numbers.encoding import Integers

WANTED = "predict takes two integers, or two lists or arrays of integers of one length"


def integer_array(name: str, operand: Any) -> Integers:
    """An integer (no axis) or a list of them (one axis) as int64."""
    try:
        array = np.asarray(operand)
    except (ValueError, TypeError):  # lists of unequal length
        raise UserError(f"{name}: {WANTED}") from None
    if array.ndim > 1:
        raise UserError(f"{name}: {WANTED}, got an array of {array.ndim} axes")
    if not array.size and array.ndim:
        return np.empty(0, dtype=np.int64)
    if array.dtype.kind not in "iuO":
        raise UserError(f"{name}: {WANTED}, got {example(array)}")
    values: list[Any] = array.ravel().tolist() if array.dtype.kind != "i" else []
    for value in values:
        if isinstance(value, bool) or not isinstance(value, int | np.integer):
            raise UserError(f"{name}: {WANTED}, got {value!r}")
        if abs(int(value)) >= 2**63:
            raise UserError(f"{name}: integers must fit 64 bits, {value} does not")
    return array.astype(np.int64)


def example(array: np.ndarray[Any, Any]) -> str:
    """A value that is no integer, as an example of what was given."""
    values = array.ravel().tolist()
    bad = next((value for value in values if not (isinstance(value, float) and value.is_integer())), values[0])
    return f"{bad!r}"


def operand_arrays(a: Any, b: Any) -> tuple[Integers, Integers]:
    """Both operands, of one shape: () or (n,)."""
    first, second = integer_array("a", a), integer_array("b", b)
    if first.shape != second.shape:
        shapes = " and ".join("one integer" if array.ndim == 0 else f"{len(array)} integers" for array in (first, second))
        raise UserError(f"a and b: {WANTED}, got {shapes}")
    return first, second
