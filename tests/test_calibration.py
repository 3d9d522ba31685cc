"""Calibration: bins and error of known confidences; confidences against a sum over all sequences."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from decisions import CPU, brute_force, call, setting
from gcdformer import Run, UserError
from gcdformer.data.testsets import test_sets as make_test_sets
from gcdformer.evaluation.predictor import Predictor
from gcdformer.evaluation.prior import decision_prior
from gcdformer.evaluation.scores import BINS, Calibration


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=60))
def test_every_answer_is_in_the_bin_of_its_confidence(cases: list[tuple[float, bool]]) -> None:
    confidences, right = (np.array(column) for column in zip(*cases, strict=True))
    found = Calibration.of(confidences, right)
    assert found.n == len(cases) and len(found.bins) == BINS and 0 <= found.ece <= 1
    for index, one in enumerate(found.bins):
        inside = [(p, r) for p, r in cases if one.low < p <= one.high or (index == 0 and p == 0)]
        assert one.n == len(inside)
        if inside:
            assert one.confidence == pytest.approx(np.mean([p for p, _ in inside]))
            assert one.accuracy == pytest.approx(np.mean([r for _, r in inside]))
    assert found.ece == pytest.approx(sum(one.n * abs(one.confidence - one.accuracy) for one in found.bins) / len(cases))


def test_a_calibrated_and_a_boastful_model() -> None:
    confidences = np.random.default_rng(0).random(20_000)
    right = np.random.default_rng(1).random(20_000) < confidences
    assert Calibration.of(confidences, right).ece < 0.02
    assert Calibration.of(np.ones(4), np.array([True, False, False, False])).ece == 0.75


@pytest.mark.parametrize("family", ["transformer", "gru"])
@pytest.mark.parametrize("base", [10, 101])
def test_confidences_are_shares_of_all_sequences(family: str, base: int) -> None:
    config, problem, model = setting(base, family)
    questions = np.stack([np.arange(1, 41), np.arange(101, 141)], axis=1)
    inputs = torch.from_numpy(problem.encode_questions(questions)[0])
    for name in ("natural", "training"):
        prior = decision_prior(config, problem, name, 1)
        predictor = Predictor(model, problem, CPU, prior=prior)
        tokens = predictor.tokens(questions)
        got = predictor.confidences(questions, tokens)
        reference = decision_prior(config, problem, "natural", 1)
        assert reference is not None
        tree = reference.tree(base)
        plain = np.exp(brute_force(model, inputs, tree, problem.longest_target)[0][:, :-1])
        listed = plain * np.exp(tree.offsets)
        known = tree.number_of(tokens)
        rows = np.flatnonzero(known >= 0)
        if prior is None:
            wanted = plain[rows, known[rows]]
        else:
            total = listed.sum(1) + (1 - plain.sum(1)) * np.exp(tree.least)
            wanted = listed[rows, known[rows]] / total[rows]
        np.testing.assert_allclose(got[rows], wanted, rtol=0.01, atol=1e-6)
        assert ((got >= 0) & (got <= 1)).all()
        assert len(rows) or prior is None


def test_the_natural_prior_calibrates_a_run_on_uniform_outcomes(uniform_run: Run) -> None:
    pairs = make_test_sets(uniform_run.config, uniform_run.problem, 1)["natural"]
    own, natural = (uniform_run.predictor(prior=name).calibration(pairs) for name in ("training", "natural"))
    assert own.n == natural.n == len(pairs) and natural.ece < 0.3


def test_the_command(uniform_run: Run, tmp_path: Path) -> None:
    figure = tmp_path / "reliability.svg"
    done = call("evaluate", uniform_run.path, "--prior", "natural", "--calibration", "--figure", figure, "--json")
    found = json.loads(done.stdout)["calibration"]
    pairs = make_test_sets(uniform_run.config, uniform_run.problem, 1)["natural"]
    assert found == uniform_run.predictor(prior="natural").calibration(pairs).to_json()
    assert set(found["bins"][0]) == {"low", "high", "n", "confidence", "accuracy"} and "<svg" in figure.read_text()
    assert "expected calibration error" in call("evaluate", uniform_run.path, "--calibration").stdout
    page = tmp_path / "page.html"
    explained = call("explain", uniform_run.path, "--prior", "natural", "--calibration", "--html", page, "--json")
    assert json.loads(explained.stdout)["calibration"] == found and "<h2>Calibration</h2>" in page.read_text()
    (tmp_path / "p.csv").write_text("a,b,prediction\n6,4,2\n")
    refused = call("explain", "--predictions", tmp_path / "p.csv", "--base", 10, "--calibration")
    assert refused.returncode == 2 and "calibration: needs a run" in refused.stderr
    assert call("evaluate", uniform_run.path, "--figure", figure).returncode == 2


def test_confidences_of_no_questions(uniform_run: Run) -> None:
    with pytest.raises(UserError, match="beam"):
        uniform_run.predictor(prior="uniform", beam=2)
    assert uniform_run.predictor(prior="natural").calibration(np.zeros((0, 2), dtype=np.int64)).n == 0
