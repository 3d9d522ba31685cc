"""Prediction tables and scores: every prediction is counted, f(k) is the mode, the table survives its file."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcdformer import UNREADABLE, DamagedFile, PredictionTable, Run
from gcdformer.data.testsets import test_sets as make_test_sets
from gcdformer.evaluation import score
from gcdformer.evaluation.table import tables_from_bytes, tables_to_bytes

rows = st.lists(st.tuples(st.integers(1, 60), st.integers(1, 60), st.sampled_from([1, 2, 3, 500, UNREADABLE, -4])),
                min_size=1, max_size=80)


def table_of(cases: list[tuple[int, int, int]]) -> PredictionTable:
    a, b, predictions = (np.array(column, dtype=np.int64) for column in zip(*cases, strict=True))
    return PredictionTable.of(a, b, predictions)


@given(rows)
def test_table_counts_every_pair(cases: list[tuple[int, int, int]]) -> None:
    table = table_of(cases)
    assert table.total == len(cases)
    for k in table.tested():
        expected: dict[int, int] = {}
        for a, b, p in cases:
            if np.gcd(a, b) == k:
                expected[p] = expected.get(p, 0) + 1
        counts = table.counts_of(k)
        assert counts == expected
        assert list(counts.values()) == sorted(counts.values(), reverse=True)
        for p in counts:
            examples = table.examples_of(k, p)
            assert 1 <= len(examples) == min(3, counts[p])
            assert all((a, b, p) in cases and np.gcd(a, b) == k for a, b in examples)
    assert table.accuracy == pytest.approx(np.mean([np.gcd(a, b) == p for a, b, p in cases]))


@given(rows)
def test_table_survives_its_file(cases: list[tuple[int, int, int]]) -> None:
    table = table_of(cases)
    data = tables_to_bytes({"natural": table, "stratified": table})
    back = tables_from_bytes(data, "x.npz")
    assert set(back) == {"natural", "stratified"}
    for name in table.__dataclass_fields__:
        assert np.array_equal(getattr(back["natural"], name), getattr(table, name))
    with pytest.raises(DamagedFile, match=r"x\.npz"):
        tables_from_bytes(data[:len(data) // 2], "x.npz")


def test_scores_of_a_known_table() -> None:
    def pairs(k: int, predictions: dict[int, int]) -> list[tuple[int, int, int]]:
        return [(k, k * (2 + i), p) for p, n in predictions.items() for i in range(n)]

    natural = table_of(pairs(1, {1: 3, 2: 1}))
    stratified = table_of(pairs(1, {1: 10}) + pairs(2, {2: 9, 1: 1}) + pairs(3, {3: 8, 1: 2}) + pairs(4, {2: 6, 4: 4})
                          + pairs(5, {UNREADABLE: 7, 5: 3}) + pairs(6, {600: 10}))
    scores = score(natural, stratified, 0.9)
    assert scores.accuracy == 75.0 and scores.correct == [1, 2] and scores.modal == [1, 2, 3]
    assert scores.modal_only == [3]
    assert [scores.by_gcd[k].prediction for k in range(1, 7)] == [1, 2, 3, 2, None, 600]
    assert [scores.by_gcd[k].frequency for k in range(1, 7)] == [1.0, 0.9, 0.8, 0.6, 0.7, 1.0]
    json = scores.to_json()
    assert json["n_correct"] == 2
    assert json["by_gcd"]["4"] == {"prediction": 2, "frequency": 0.6, "accuracy": 40.0, "pairs": 10}


def test_saved_tables_are_what_the_model_answers(trained: Run) -> None:
    tables = trained.prediction_tables()
    sets = make_test_sets(trained.config, trained.problem, 3)
    for name, pairs in sets.items():
        predictions = trained.predict(pairs[:, 0], pairs[:, 1])
        fresh = PredictionTable.of(pairs[:, 0], pairs[:, 1], predictions)
        assert tables[name].total == 200 and np.array_equal(fresh.count, tables[name].count)
        assert np.array_equal(fresh.prediction, tables[name].prediction)
    assert trained.scores().accuracy == trained.metrics[-1]["accuracy"]


def test_frames(trained: Run) -> None:
    frame = trained.prediction_tables()["stratified"].to_frame()
    assert frame["count"].sum() == 200 and list(frame.columns) == ["gcd", "prediction", "count"]
    assert list(trained.metrics_frame()["epoch"]) == [1, 2, 3]
    unreadable = table_of([(2, 4, UNREADABLE), (2, 6, 2)]).to_frame()
    assert unreadable["prediction"].isna().sum() == 1
