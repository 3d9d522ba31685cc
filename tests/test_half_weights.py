"""Weights in half precision: the same tensors, rounded; what has no such form is refused by name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from safetensors.numpy import load, save

from gcdformer import UserError
from gcdformer.lab.weights import half_weights

VALUES = st.floats(-65_000, 65_000, width=32)
TENSORS = st.dictionaries(st.text("abc.", min_size=1),
                          arrays(np.float32, array_shapes(max_dims=2), elements=VALUES), min_size=1)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tensors=TENSORS)
def test_the_same_tensors_rounded(tensors: dict[str, np.ndarray], tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(save(tensors))
    halves = load(half_weights(path))
    assert halves.keys() == tensors.keys()
    for name, half in halves.items():
        assert half.dtype == np.float16 and half.shape == tensors[name].shape
        np.testing.assert_allclose(half.astype(np.float32), tensors[name], rtol=2**-11, atol=2**-25)


@pytest.mark.parametrize(("tensor", "words"), [
    (np.array([1.0, 65_600.0], np.float32), "tensor 'w' has values that float16 cannot hold"),
    (np.array([np.nan], np.float32), "tensor 'w' has values that float16 cannot hold"),
    (np.array([3], np.int64), "tensor 'w' is int64, not float32"),
])
def test_what_does_not_fit_is_refused(tensor: np.ndarray, words: str, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(save({"w": tensor}))
    with pytest.raises(UserError, match=words):
        half_weights(path)


def test_no_safetensors_file(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(b"x" * 100)
    with pytest.raises(UserError, match="model.safetensors: not a safetensors file"):
        half_weights(path)
