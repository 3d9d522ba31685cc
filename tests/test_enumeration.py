"""All pairs tried: a proof if none contradicts the rules, the exact share otherwise; counted in chunks as in one table."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from gcdformer import PredictionTable, UserError, explain
from gcdformer.display.terminal import show_explanation
from gcdformer.evaluation.table import is_sound
from gcdformer.explanation import Explanation
from gcdformer.runs import explain as runs_explain
from test_explain import sieve


def terminal(found: Explanation) -> str:
    out = io.StringIO()
    show_explanation(Console(file=out, width=140, highlight=False), found, "this")
    return out.getvalue()


def test_all_pairs_are_a_proof() -> None:
    found = explain(sieve, 10, maximum=120, exhaustive=True)
    judged = 120**2 - 20  # the pairs (k, k) with k = 101..120 have a GCD that is not judged
    assert found.exhaustive and found.certified and found.is_proof and found.fidelity["natural"].n == judged
    assert found.verdict == "certified on all pairs of 1..120 with a GCD up to 100"
    assert found.measured_accuracy == pytest.approx(found.predicted_accuracy, abs=1e-9)
    assert "a proof by enumeration" in terminal(found) and found.to_json()["proof"] and found.power is None

    def broken(a: int, b: int) -> int:
        return 1 if (a, b) == (99, 66) else sieve(a, b) if (a, b) != (12, 18) else 7

    found = explain(broken, 10, maximum=120, exhaustive=True)
    assert found.fidelity["natural"].agree == judged - 1 and found.fidelity["natural"].interval == (1 - 1 / judged,) * 2
    assert not found.is_proof and not found.to_json()["proof"] and found.certified
    said = " ".join(terminal(found).split())
    assert "proof" not in said and "the rules predict exactly 14,379 of 14,380 answers, 99.9930 %" in said
    with pytest.raises(UserError, match="exhaustive"):
        explain(sieve, 10, maximum=10**6, exhaustive=True)


def test_many_pairs_are_counted_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in one table; above a maximum only a <= b, every such pair once, and the domain says so."""
    whole = explain(sieve, 10, maximum=120, exhaustive=True)
    monkeypatch.setattr(runs_explain, "CHUNK", 1000)
    assert explain(sieve, 10, maximum=120, exhaustive=True) == whole
    monkeypatch.setattr(runs_explain, "LARGEST_IN_BOTH_ORDERS", 100)
    pairs = [pair for a, b in runs_explain.all_pairs(120) for pair in zip(a.tolist(), b.tolist(), strict=True)]
    assert sorted(pairs) == [(a, b) for a in range(1, 121) for b in range(a, 121)]
    assert len(pairs) == runs_explain.all_pairs_count(120)
    found = explain(sieve, 10, maximum=120, exhaustive=True)
    assert found.is_proof and found.domain == "all pairs a <= b of 1..120 with a GCD up to 100"
    assert found.fidelity["natural"].n == len(pairs) - 20
    assert found.measured_accuracy == pytest.approx(found.predicted_accuracy, abs=1e-9)


ROWS = st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30), st.integers(1, 5)), min_size=1)


@given(st.lists(ROWS, min_size=2, max_size=4))
def test_tables_are_joined_as_if_they_were_one(parts: list[list[tuple[int, int, int]]]) -> None:
    tables = [PredictionTable.of(*np.array(part, dtype=np.int64).T) for part in parts]
    joined = tables[0]
    for table in tables[1:]:
        joined = joined.joined(table)
    rows = np.array([row for part in parts for row in part], dtype=np.int64)
    whole = PredictionTable.of(*rows.T)
    assert is_sound(joined)
    for name in ("gcd", "prediction", "count", "example_row"):
        assert np.array_equal(getattr(joined, name), getattr(whole, name)), name
    pairs = {tuple(row[:2]) for row in rows.tolist()}
    assert set(zip(joined.example_a.tolist(), joined.example_b.tolist(), strict=True)) <= pairs
