"""The runs that come with the lab: real, whole and small, and what the script that makes them says they are."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

from conftest import ROOT
from gcdformer import load_run
from gcdformer.lab.catalogue import EXAMPLE, EXAMPLES, GROKKING
from gcdformer.lab.places import mechanism_view
from gcdformer.runs.explain import explain_run
from lab_process import Lab

LARGEST = {EXAMPLE: 2_000_000, GROKKING: 1_000_000}


@pytest.mark.parametrize("path", LARGEST, ids=lambda path: path.name)
def test_an_example_is_small_real_and_whole(path: Path) -> None:
    run = load_run(path)
    assert sum(file.stat().st_size for file in path.rglob("*") if file.is_file()) < LARGEST[path]
    assert [file.stat().st_size < 100 for file in path.rglob("optimizer.safetensors")] == [True]
    for line in run.metrics:
        assert run.scores(line["epoch"]).correct == line["D"]
    a, b = run.prediction_tables()["stratified"].examples_of(1, 1)[0]
    assert run.predict([a], [b]).tolist() == [1]
    mechanism = mechanism_view(EXAMPLES[path.name])
    assert mechanism["mechanism"] is not None and mechanism["missing"] is None, "it is of these weights"


def test_the_script_says_what_was_trained() -> None:
    recipes = runpy.run_path(str(ROOT / "scripts" / "example_run.py"))["recipes"]()
    assert set(recipes) == set(EXAMPLES)
    for name, config in recipes.items():
        run = load_run(EXAMPLES[name].path)
        assert run.config.identity() == config.identity() and len(run.metrics) == config.limits.max_epochs


def test_the_first_example_grows_step_by_step() -> None:
    run = load_run(EXAMPLE)
    assert len(run.metrics) >= 30 and run.metrics[-1]["n_correct"] >= 12
    counts = [0, *(line["n_correct"] for line in run.metrics)]
    assert max(np.diff(counts)) <= counts[-1] / 3 and len(set(counts)) >= 8


def test_the_second_example_groks_a_prime_after_a_plateau() -> None:
    """For ten epochs accuracy stays within half a point and D within the powers of 2; then 3 comes, and its products."""
    run = load_run(GROKKING)
    first = next(line["epoch"] for line in run.metrics if 3 in line["D"])
    plateau = [line for line in run.metrics if first - 12 <= line["epoch"] <= first - 3]
    assert len(plateau) == 10 and max(line["accuracy"] for line in plateau) - min(line["accuracy"] for line in plateau) < 0.5
    assert all(64 % k == 0 for line in plateau for k in line["D"])
    assert run.metrics[-1]["accuracy"] > plateau[-1]["accuracy"] + 5
    found = explain_run(run)
    assert found.certified and found.grokked == [3] and {3, 6, 12, 24, 48} <= set(found.correct)


def test_without_runs_both_are_shown_and_can_be_asked(tmp_path: Path) -> None:
    with Lab(tmp_path / "nowhere") as lab:
        listed = lab.get("/api/runs")["runs"]
        assert {run["id"] for run in listed} == set(EXAMPLES) and all(run["example"] for run in listed)
        for _ in range(5):
            pair = lab.get("/api/runs/example/surprise")
            found = lab.get(f"/api/runs/example/ask?a={pair['a']}&b={pair['b']}")
            assert found["prediction"] != found["rule"] and "the rules say" in found["reason"]
        assert lab.get("/api/runs/example-grokking/ask?a=39&b=300")["epoch"] == 26
