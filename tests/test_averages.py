"""Averaged weights: what they are, that they are evaluated and saved, and that a resumed run has them bit for bit."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from conftest import tiny_config
from gcdformer import Config, DamagedFile, Problem, load_exported, train
from gcdformer.data.testsets import test_sets as make_test_sets
from gcdformer.runs.checkpoint import Checkpoint, load_checkpoint
from gcdformer.runs.exported import export_run
from gcdformer.runs.folder import checkpoint_steps
from gcdformer.training.averages import Averages
from gcdformer.training.learner import Learner, new_model

CPU = torch.device("cpu")


def config_of(**leaves: object) -> Config:
    return tiny_config(**({"average": 0.9, "lr": 1e-2, "max_epochs": 2} | leaves))


@pytest.mark.parametrize("backend", ["auto", "autograd"])
def test_it_is_the_average(backend: str) -> None:
    config = config_of(backend=backend, average=0.8)
    problem = Problem.of(config)
    learner = Learner(config, problem, new_model(config, problem), CPU)
    wanted = {name: weight.detach().clone() for name, weight in learner.model.named_parameters()}
    assert learner.averages is not None
    for step in range(40):
        learner.learn(step)
        decay = min(0.8, (1 + step) / (10 + step))
        for name, weight in learner.model.named_parameters():
            wanted[name] = decay * wanted[name] + (1 - decay) * weight.detach()
    for name, value in learner.averages.named.items():
        torch.testing.assert_close(value, wanted[name], rtol=1e-4, atol=1e-6)
    own = {name: weight.detach().clone() for name, weight in learner.model.named_parameters()}
    with learner.averages.in_place():
        assert all(torch.equal(weight, learner.averages.named[name]) for name, weight in learner.model.named_parameters())
    assert all(torch.equal(weight, own[name]) for name, weight in learner.model.named_parameters())


def last_checkpoint(path: Path) -> Checkpoint:
    return load_checkpoint(path, checkpoint_steps(path)[-1])


@pytest.mark.parametrize("leaves", [{}, {"backend": "autograd"}, {"optimizer": "muon"}, {"family": "gru", "heads": 0}],
                         ids=["packed", "autograd", "muon", "gru"])
def test_a_resumed_run_has_the_same_bits(leaves: dict[str, object], tmp_path: Path) -> None:
    config = config_of(**leaves)
    train(config.replace(max_epochs=1), tmp_path / "parts")
    parts, whole = train(config, tmp_path / "parts"), train(config, tmp_path / "whole")
    assert parts.metrics[-1]["accuracy"] == whole.metrics[-1]["accuracy"]
    for kind in ("model", "optimizer"):
        got, wanted = (getattr(last_checkpoint(run.path), kind) for run in (parts, whole))
        assert got.keys() == wanted.keys() and all(torch.equal(got[name], wanted[name]) for name in wanted)
    assert last_checkpoint(whole.path).averages.keys() == last_checkpoint(whole.path).model.keys()


def test_the_average_is_what_is_evaluated_and_exported(tmp_path: Path) -> None:
    """The weights are trained as without it."""
    run, plain = train(config_of(), tmp_path / "run"), train(config_of(average=None), tmp_path / "plain")
    found, without = last_checkpoint(run.path), last_checkpoint(plain.path)
    assert all(torch.equal(found.model[name], without.model[name]) for name in found.model)
    assert not without.averages and without.evaluated is without.model
    assert run.metrics[-1]["test_loss"] != plain.metrics[-1]["test_loss"]
    sets = make_test_sets(run.config, run.problem, 1)
    assert run.predictor().loss(sets["natural"]) == pytest.approx(run.metrics[-1]["test_loss"], rel=1e-6)
    assert run.predictor(averaged=False).loss(sets["natural"]) == pytest.approx(plain.metrics[-1]["test_loss"], rel=1e-6)
    export_run(run, tmp_path / "exported")
    assert (load_exported(tmp_path / "exported").tokens(sets["natural"]) == run.predictor().tokens(sets["natural"])).all()


def test_another_models_average_is_refused() -> None:
    config = config_of()
    problem = Problem.of(config)
    learner = Learner(config, problem, new_model(config, problem), CPU)
    averages = Averages(learner.backend, 0.9)
    tensors = dict(averages.named)
    tensors.pop("output_bias")
    with pytest.raises(DamagedFile, match=r"optimizer\.safetensors"):
        averages.load(tensors)
