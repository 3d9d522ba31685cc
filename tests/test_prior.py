"""Deciding under a prior: against a brute force over all listed answers, for every family, packed and plain."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import tiny_config
from decisions import CPU, FAMILIES, brute_force, call, check, inputs_of, setting
from gcdformer import PredictionTable, Problem, Run, Stream, UserError, explain, preset, train
from gcdformer.config import checked_prior, prior_value
from gcdformer.data.outcomes import training_outcomes
from gcdformer.data.testsets import test_sets as make_test_sets
from gcdformer.evaluation.predictor import Predictor
from gcdformer.evaluation.prior import DecisionPrior, decision_prior
from gcdformer.models.decide import generate_best
from gcdformer.models.packed import PackedRows
from gcdformer.models.packed.decide import PackedDecider
from gcdformer.models.packed.generate import PackedGenerator
from gcdformer.models.transformer import Transformer
from gcdformer.numbers.encoding import BEGIN, Integers
from gcdformer.presets import PRESETS
from gcdformer.training.learner import Learner
from gcdformer.training.throughput import measure_speed


@pytest.mark.parametrize("base", [2, 10, 30, 101, 1000])
@pytest.mark.parametrize("family", FAMILIES)
def test_answers_are_the_best_of_all(family: str, base: int) -> None:
    config, problem, model = setting(base, family)
    inputs, lengths = inputs_of(config, problem, 60)
    natural = decision_prior(config, problem, "natural", 1)
    assert natural is not None and list(natural.answers) == list(range(1, 61))
    longest, random = problem.longest_target, np.random.default_rng(base)
    logs, greedy = brute_force(model, torch.from_numpy(inputs), natural.tree(base), longest)
    seen: set[int] = set()
    for offsets in (natural.log_ratios, *(scale * random.standard_normal(60) for scale in (1, 3, 6, 10, 20, 40))):
        tree = replace(natural, log_ratios=offsets).tree(base)
        got = generate_best(model, torch.from_numpy(inputs), longest, tree)
        check(got, logs, greedy, tree)
        if isinstance(model, Transformer):
            check(PackedDecider(model, tree).generate(PackedRows.of(inputs, lengths), longest), logs, greedy, tree)
        seen |= set(tree.number_of(got).tolist())
    assert len(seen) > 3, "answers vary"


@pytest.mark.parametrize("base", [101, 1000])
def test_one_token_answers_are_proved_where_the_end_is_certain(base: int) -> None:
    """After some training END behind a digit is certain, and the compiled decoder proves its answers; before, it leaves them
    to the search."""
    config, problem, model = setting(base, steps=0)
    learner = Learner(config.derive(batch_size=64, lr=1e-2), problem, model, CPU)
    model = learner.model
    assert isinstance(model, Transformer)
    inputs, lengths = inputs_of(config, problem, 80)
    prior = decision_prior(config, problem, "natural", 1)
    assert prior is not None
    tree, longest, shares = prior.tree(base), problem.longest_target, []
    for steps in (range(0), range(250)):
        for step in steps:
            learner.learn(step)
        outputs, proved = PackedDecider(model, tree).choose(PackedRows.of(inputs, lengths), longest)
        logs, greedy = brute_force(model, torch.from_numpy(inputs), tree, longest)
        check(outputs[proved], logs[proved], greedy[proved], tree)
        check(PackedDecider(model, tree).generate(PackedRows.of(inputs, lengths), longest), logs, greedy, tree)
        shares.append(float(proved.mean()))
    assert shares[0] < 0.3 < shares[1]


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_a_tree_of_any_answers(data: st.DataObject) -> None:
    """The law of the search on any tree: no listed answer and no greedy sequence scores higher than what it gives."""
    config, problem, model = MODELS(data.draw(st.sampled_from([2, 10, 30])))
    answers = sorted(data.draw(st.sets(st.integers(1, 300), min_size=1, max_size=12)))
    offsets = np.array([data.draw(st.floats(-6, 6)) for _ in answers])
    tree = DecisionPrior("any", np.array(answers), offsets).tree(problem.base)
    inputs = torch.from_numpy(inputs_of(config, problem, 7)[0])
    logs, greedy = brute_force(model, inputs, tree, problem.longest_target)
    check(generate_best(model, inputs, problem.longest_target, tree), logs, greedy, tree)


MODELS = cache(setting)


def test_a_model_whose_numbers_are_gone_still_ends() -> None:
    config, problem, model = setting(10)
    with torch.no_grad():
        model.get_parameter("output_bias").fill_(torch.nan)
    prior = decision_prior(config, problem, "natural", 1)
    assert prior is not None
    inputs = torch.from_numpy(inputs_of(config, problem, 5)[0])
    assert generate_best(model, inputs, problem.longest_target, prior.tree(10)).shape == (5, problem.longest_target)


@pytest.mark.parametrize(("base", "threads"), [(10, 1), (10, 3), (1000, 2)])
def test_a_predictor_decides_the_same_packed_and_plain(base: int, threads: int) -> None:
    config, problem, model = setting(base, steps=100)
    prior = decision_prior(config, problem, "natural", 1)
    questions = Stream.of(config, problem).examples(0, 700)
    packed = Predictor(model, problem, CPU, prior=prior, threads=threads).tokens(questions)
    plain = np.concatenate([Predictor(model, problem, CPU, prior=prior).tokens(questions[start:start + 100])
                            for start in range(0, 700, 100)])
    own = Predictor(model, problem, CPU).tokens(questions)
    assert (packed == plain).all(1).mean() > 0.99, "but for ties"
    assert (packed != own).any(1).mean() > 0


def test_the_offsets_are_what_the_distributions_say(tmp_path: Path) -> None:
    config = tiny_config(outcomes="log-uniform", max_gcd=50)
    problem = Problem.of(config)
    assert decision_prior(config, problem, "training", 1) is None
    k = np.arange(1, 51)

    def offsets(prior: object) -> Integers:
        found = decision_prior(config, problem, prior, 1)
        assert found is not None
        return found.log_ratios - found.log_ratios[0]

    np.testing.assert_allclose(offsets("uniform"), np.log(k), atol=1e-12)
    np.testing.assert_allclose(offsets(1), 0 * k, atol=1e-12)
    np.testing.assert_allclose(offsets("2.5"), -1.5 * np.log(k), atol=1e-12)
    np.testing.assert_allclose(offsets("natural"), -np.log(k), atol=0.2)
    (tmp_path / "weights.csv").write_text("k,weight\n3,1\n7,2\n")
    weighted = tiny_config(outcomes="weights", weights_file=str(tmp_path / "weights.csv"))
    found = decision_prior(weighted, Problem.of(weighted), 0, 1)
    assert found is not None and list(found.answers) == [3, 7]
    np.testing.assert_allclose(np.diff(found.log_ratios), np.log(1 / 2))


def test_the_words_for_a_prior() -> None:
    same = {"1": ["1", 1, 1.0, "1.0", " 1 ", "1e0"], "0.5": ["0.50", 0.5], "natural": ["natural"], "uniform": ["uniform"]}
    for name, others in same.items():
        assert {checked_prior(other) for other in others} == {name}
        assert tiny_config(prior=others[-1]).evaluation.prior == name
    assert [prior_value(name) for name in ("natural", "1.5")] == ["natural", 1.5]
    for bad in ("", "x", "-1", "nan", "inf", "11", None, True, "1_0", [1]):
        with pytest.raises(UserError, match="prior: one of training, natural, uniform, or the exponent ALPHA"):
            checked_prior(bad)


def test_every_preset_reports_what_it_was_trained_for() -> None:
    papers = [name for name in PRESETS if name.startswith("paper")]
    assert papers and all(preset(name).evaluation.prior == "training" for name in papers)
    assert tiny_config().identity() != tiny_config(prior="natural").identity()
    assert tiny_config(prior="natural").derive(task="addition").evaluation.prior == "training"
    with pytest.raises(UserError, match="prior must be 'training' for task 'addition'"):
        Problem.of(tiny_config(task="addition").replace(prior="natural"))


def test_a_run_is_asked_under_a_prior(uniform_run: Run) -> None:
    run = uniform_run
    pairs = make_test_sets(run.config, run.problem, 1)["natural"]
    a, b = pairs[:, 0], pairs[:, 1]
    assert (run.predict(a, b) == run.predict(a, b, prior="training")).all()
    natural = run.predict(a, b, prior="natural")
    right = {name: (run.predict(a, b, prior=name) == np.gcd(a, b)).mean() for name in ("training", "natural")}
    assert right["natural"] > right["training"] + 0.2 and (natural == 1).mean() > 0.4
    assert (run.predictor(prior="natural").predict(a, b) == natural).all()
    assert run.predict(6, 4, prior=2) == run.predict(np.array([6]), np.array([4]), prior="2")[0]
    with pytest.raises(UserError, match="beam: under a prior"):
        run.predictor(prior="natural", beam=3)
    with pytest.raises(UserError, match="prior: one of"):
        run.predict(6, 4, prior="other")


def test_explaining_under_a_prior_is_explaining_those_answers(uniform_run: Run) -> None:
    run = uniform_run
    sets = make_test_sets(run.config, run.problem, 1)
    found = explain(run, prior="natural")
    table = PredictionTable.of(*sets["natural"].T, run.predict(*sets["natural"].T, prior="natural"))
    assert found.measured_accuracy == pytest.approx(100 * table.accuracy)
    assert explain(run, prior="training").to_json() == explain(run).to_json() != found.to_json()
    with pytest.raises(UserError, match="prior: only a run's model"):
        explain(table, base=10, prior="natural")


def test_training_reports_under_its_prior(uniform_run: Run, tmp_path: Path) -> None:
    """The same weights, another report; asking the run without a prior is asking under its own."""
    run = train(uniform_run.config.replace(prior="natural"), tmp_path / "natural")
    assert run.metrics[-1]["test_loss"] == uniform_run.metrics[-1]["test_loss"]
    assert run.metrics[-1]["accuracy"] > uniform_run.metrics[-1]["accuracy"] + 20
    same = ("D", "form", "f", "fidelity", "accuracy", "bands")  # what is being learned is judged by earlier epochs too
    for one, other in ((explain(run), explain(uniform_run, prior="natural")),
                       (explain(run, prior="training"), explain(uniform_run))):
        assert {key: one.to_json()[key] for key in same} == {key: other.to_json()[key] for key in same}
    with pytest.raises(UserError, match=r"another configuration: prior \(natural there"):
        train(uniform_run.config, tmp_path / "natural")


def test_a_shifting_distribution_counts_as_it_is_at_the_checkpoint(tmp_path: Path) -> None:
    config = tiny_config(outcomes="uniform", max_gcd=20, final_alpha=2.0, schedule="cosine", horizon=40, max_epochs=2,
                         epoch_size=4096, batch_size=128, keep_checkpoints=5)
    run = train(config, tmp_path / "run")
    for epoch in (1, 2):
        prior, step = run.predictor(epoch, prior="uniform").prior, run.checkpoint_step(str(epoch))
        assert prior is not None
        np.testing.assert_allclose(prior.log_ratios, -np.log(training_outcomes(config, run.problem, step)))
    first, last = (run.predictor(epoch, prior="uniform").prior for epoch in (1, 2))
    assert first is not None and last is not None and np.ptp(last.log_ratios) > np.ptp(first.log_ratios)


def test_the_commands(uniform_run: Run, tmp_path: Path) -> None:
    path = uniform_run.path
    own, natural = (json.loads(call("evaluate", path, "--json", *words).stdout) for words in ((), ("--prior", "natural")))
    assert own["prior"] == "training" and natural["prior"] == "natural"
    assert own["accuracy"] == uniform_run.metrics[-1]["accuracy"] < natural["accuracy"] - 20
    assert own["loss"] == natural["loss"]
    text = call("evaluate", path, "--prior", "1.5").stdout
    assert "decided under the prior k^-1.5" in text and "stratified" in text
    explained = json.loads(call("explain", path, "--prior", "1.5", "--json").stdout)
    assert explained["prior"] == 1.5 and json.loads(call("explain", path, "--json").stdout)["prior"] == "training"
    assert "decided under the natural prior" in call("explain", path, "--prior", "natural").stdout
    (row,) = json.loads(call("predict", path, 60, 84, "--prior", "natural", "--json").stdout)
    assert row["prediction"] == uniform_run.predict(60, 84, prior="natural") and row["rule"] is None
    (tmp_path / "p.csv").write_text("a,b,prediction\n6,4,2\n")
    for words, says in ((("explain", "--predictions", tmp_path / "p.csv", "--base", 10, "--prior", "natural"),
                         "prior: needs a run"),
                        (("evaluate", path, "--prior", "x"), "prior: one of training")):
        failed = call(*words)
        assert failed.returncode == 2 and says in failed.stderr and failed.stderr.count("\n") == 1


def test_other_tasks_have_no_prior(tmp_path: Path) -> None:
    run = train(tiny_config(task="addition", max_epochs=1), tmp_path / "run")
    with pytest.raises(UserError, match="prior: 'natural' is for tasks whose answer is a GCD, not for 'addition'"):
        run.predictor(prior="natural")


@pytest.mark.parametrize("base", [3, 27, 28, 59, 101])
def test_the_compiled_gap_is_between_the_two_largest_logits(base: int) -> None:
    """For vocabularies below, at and above a multiple of the kernel's lanes."""
    config, problem, model = setting(base, steps=0, max_gcd=2)
    assert isinstance(model, Transformer)
    inputs, lengths = inputs_of(config, problem, 50)
    natural = decision_prior(config, problem, "natural", 1)
    assert natural is not None
    generator = PackedGenerator(model, natural.tree(base))
    tokens = np.full(50, BEGIN)
    generator.run("close", PackedRows.of(inputs, lengths), tokens, 0, problem.longest_target)
    with torch.no_grad():
        state = model.encode(torch.from_numpy(inputs))
        logits = model.project(model.advance(state, torch.full((50, 1), BEGIN))[0][:, -1])
    two = logits.topk(2)
    np.testing.assert_array_equal(tokens, two.indices[:, 0].numpy())
    gap = generator.layers.program.values(generator.gap)[:, 0]
    np.testing.assert_allclose(gap, (two.values[:, 0] - two.values[:, 1]).numpy(), atol=1e-4, rtol=1e-3)


def test_the_speed_of_a_machine_is_measured_without_a_prior(monkeypatch: pytest.MonkeyPatch) -> None:
    """An untrained model leaves every answer to the full search: a horizon fixed by that was six times too short."""
    def searched(*_: object) -> None:
        raise AssertionError("measured under the prior")

    monkeypatch.setattr("gcdformer.models.packed.decide.PackedDecider.__init__", searched)
    monkeypatch.setattr("gcdformer.evaluation.predictor.generate_best", searched)
    config, problem, _ = setting(101, steps=0)
    step, tests = measure_speed(config.derive(prior="natural", test_size=400), problem, CPU, 0.01)
    assert step > 0 and tests > 0
