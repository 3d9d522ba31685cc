"""The Python interface as a person meets it: completion, short reprs, operands that are integers or refused."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gcdformer
from gcdformer import UNREADABLE, Run, UserError, explain
from gcdformer.evaluation.operands import operand_arrays


@pytest.mark.processes
def test_completion_finds_the_names_without_loading_torch() -> None:
    assert set(gcdformer.__all__) <= set(dir(gcdformer))
    code = "import sys, gcdformer; print(*dir(gcdformer)); sys.exit('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {"train", "explain", "load_run", "run_with_cache"} <= set(done.stdout.split())


def test_reprs_are_one_short_line(trained: Run) -> None:
    table = trained.prediction_tables()["stratified"]
    shown = {"Run": repr(trained), "Scores": repr(trained.scores()), "PredictionTable": repr(table),
             "Explanation": repr(explain(trained))}
    for name, text in shown.items():
        assert text.startswith(f"{name}(") and len(text) < 250 and "\n" not in text, text
    assert "gcd in base 10" in shown["Run"] and "3 epochs" in shown["Run"]
    assert "200 pairs" in shown["PredictionTable"] and "not certified" in shown["Explanation"]


def test_two_integers_give_an_integer_and_arrays_an_array(trained: Run) -> None:
    many = trained.predict([160, 12], [120, 18])
    assert many.shape == (2,) and many.dtype == np.int64
    for a, b in ((160, 120), (np.int32(160), np.uint64(120)), (np.array(160), 120)):
        alone = trained.predict(a, b)
        assert type(alone) is int and alone == many[0]
    assert np.array_equal(trained.predict((160, 12), np.array([120, 18], dtype=np.uint16)), many)
    assert np.array_equal(trained.predictor().predict([160, 12], [120, 18]), many)
    assert trained.predict([], []).shape == (0,)
    assert isinstance(trained.predictor().predict(1, 1), int) and UNREADABLE < 0


BAD: list[tuple[Any, Any, str]] = [
    ([12.9], [18.9], "12.9"), (12.0, 18, "12.0"), ("12", "18", "'12'"), ([True], [True], "True"), (None, 3, "None"),
    ([1, 2], [3], "2 integers and 1 integers"), (1, [1], "one integer and 1 integers"), ([[1]], [[1]], "2 axes"),
    ([[1], [1, 2]], [1, 2], "one length"), (0, 5, "0 does not"), ([-4], [5], "-4 does not"), (1001, 5, "1001 does not"),
    (2**63, 5, "64 bits"), ([2**70], [1], "64 bits"), ([np.uint64(2**63)], [1], "64 bits"), ([1, None], [1, 2], "None"),
]


@pytest.mark.parametrize(("a", "b", "word"), BAD, ids=[repr(one[:2]) for one in BAD])
def test_what_is_no_pair_of_integers_is_refused(a: Any, b: Any, word: str, trained: Run) -> None:
    for predict in (trained.predict, trained.predictor().predict):
        with pytest.raises(UserError) as caught:
            predict(a, b)
        assert word in str(caught.value) and "\n" not in str(caught.value)


@given(st.lists(st.tuples(st.integers(-2**63, 2**63 - 1), st.integers(-2**63, 2**63 - 1)), max_size=20))
def test_integers_arrive_as_they_are(pairs: list[tuple[int, int]]) -> None:
    a, b = [a for a, _ in pairs], [b for _, b in pairs]
    first, second = operand_arrays(a, b)
    assert first.tolist() == a and second.tolist() == b and first.dtype == np.int64
