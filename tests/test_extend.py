"""The code of docs/extend.md works: a task, a distribution, a model, an optimiser, a tracker, a form of rules, a verb and a
figure.

Each is put where the page says that it goes, under a name that the configuration knows already.
"""

from __future__ import annotations

import argparse
import json
import re
import textwrap
from io import StringIO
from math import gcd
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch
from rich.console import Console

from conftest import ROOT, tiny_config
from gcdformer import Problem, Stream, explain, run_with_cache, train
from gcdformer.config import Family, OperandDistribution
from gcdformer.config.sections import TRACKERS as TRACKER_NAMES
from gcdformer.config.sections import Optimizer
from gcdformer.display import figures
from gcdformer.display.reasons import reason
from gcdformer.display.terminal import show_explanation
from gcdformer.evaluation import PredictionTable
from gcdformer.explanation import forms
from gcdformer.explanation.forms import FORMS
from gcdformer.lab.views import epoch_details
from gcdformer.models import build_model, count_parameters, flops_per_example, generate
from gcdformer.models.build import FAMILIES
from gcdformer.numbers.distributions import OPERAND_DISTRIBUTIONS
from gcdformer.numbers.encoding import BEGIN, END
from gcdformer.runs.checkpoint import load_checkpoint
from gcdformer.runs.folder import checkpoint_steps
from gcdformer.runs.run import Run
from gcdformer.training.optimizer import OPTIMIZERS
from gcdformer.training.trackers import TRACKERS

PAGE = (ROOT / "docs" / "extend.md").read_text()
BLOCKS = [textwrap.dedent(body) for body in re.findall(r"^ *```python\n(.*?)^ *```$", PAGE, re.DOTALL | re.MULTILINE)]


def source_of(name: str) -> str:
    """The block of the page that defines a name."""
    (block,) = (block for block in BLOCKS if re.search(rf"^(class {name}\b|{name} = )", block, re.MULTILINE))
    return block


def defined(*names: str) -> dict[str, Any]:
    """What the blocks that define these names define, run one after another in a module of their own."""
    module: dict[str, Any] = {"__name__": "extend"}
    for name in names:
        exec(compile(source_of(name), f"docs/extend.md {name}", "exec", dont_inherit=True), module)
    return module


def test_names_of_settings_and_tables_are_the_same() -> None:
    assert set(get_args(Family)) == set(FAMILIES)
    assert set(get_args(Optimizer)) == set(OPTIMIZERS)
    assert set(get_args(OperandDistribution)) == set(OPERAND_DISTRIBUTIONS)
    assert set(TRACKER_NAMES) == set(TRACKERS)


def test_a_gcd_task_of_ones_own_is_explained(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(source_of("EvenGcd"))
    config = tiny_config(max_epochs=1).derive(task=f"{tmp_path / 'own.py'}:EvenGcd", outcomes="log-uniform")
    run = train(config, tmp_path / "run", progress=False)
    questions = run.stream.examples(0, 100)
    assert (questions % 2 == 0).all()
    assert run.problem.answer(questions)[:, 0].tolist() == [gcd(a, b) for a, b in questions.tolist()]
    assert "n_correct" in run.metrics[-1] and explain(run).form in FORMS
    assert "EvenGcd in base 10" in repr(run) and "log-uniform outcomes" in run._repr_html_()


@pytest.mark.parametrize("limit", [1, 7, 1000])
def test_a_distribution(limit: int) -> None:
    square = defined("SquareOperands")["SquareOperands"]()
    drawn = square.draw(np.random.default_rng(0), np.full(100_000, limit), 100_000)
    expected = square.probabilities(limit)
    assert drawn.min() >= 1 and drawn.max() <= limit and expected.sum() == pytest.approx(1)
    shares = np.bincount(drawn, minlength=limit + 1)[1:] / len(drawn)
    assert np.abs(np.cumsum(shares) - np.cumsum(expected)).max() < 0.01


def test_a_model_family(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FAMILIES, "gru", defined("Bag", "BAG")["BAG"])
    config = tiny_config(family="gru", heads=0, max_epochs=1, optimizer="adam")
    problem = Problem.of(config)
    model = build_model(config, problem, seed=0).eval()
    assert count_parameters(config, problem) == sum(weight.numel() for weight in model.parameters())
    assert flops_per_example(config.model, problem.vocabulary.size, 6, 3) > 0
    batch = problem.encode_batch(Stream(problem, 0).examples(0, 20))
    inputs = torch.from_numpy(batch.inputs)
    tokens = torch.as_tensor(generate(model, inputs, 6))
    with torch.no_grad():
        forced = torch.cat([torch.full((20, 1), BEGIN), tokens], dim=1)
        logits, cache = run_with_cache(model, inputs, forced[:, :-1])
    assert set(cache) == set(model.points())
    chosen = logits.argmax(-1)
    for row, want in zip(tokens.tolist(), chosen.tolist(), strict=True):
        length = row.index(END) + 1 if END in row else len(row)
        assert row[:length] == want[:length], "greedy decoding is teacher forcing"
    run = train(config, tmp_path / "run", progress=False)
    assert run.metrics[-1]["loss"] > 0 and run.predict([6], [4]).shape == (1,)


def tensors(run: Run) -> dict[str, bytes]:
    last = load_checkpoint(run.path, checkpoint_steps(run.path)[-1])
    return {name: tensor.numpy().tobytes() for part in (last.model, last.optimizer) for name, tensor in part.items()}


@pytest.mark.parametrize("backend", ["auto", "autograd"])
def test_an_optimiser_is_resumed_bit_for_bit(backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(OPTIMIZERS, "adam", defined("Lion")["LION"])
    config = tiny_config(optimizer="adam", backend=backend, max_epochs=2)
    whole = train(config, tmp_path / "whole", progress=False)
    train(config.replace(max_epochs=1), tmp_path / "parts", progress=False)
    parts = train(config, tmp_path / "parts", progress=False)
    assert tensors(parts) == tensors(whole)
    assert {name.partition("/")[0] for name in load_checkpoint(whole.path, checkpoint_steps(whole.path)[-1]).optimizer} == {
        "momentum"}


def test_a_tracker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TRACKERS, "tensorboard", defined("CsvTracker")["CsvTracker"])
    train(tiny_config(max_epochs=2, trackers="tensorboard"), tmp_path / "run", progress=False)
    rows = (tmp_path / "run" / "trackers" / "csv" / "metrics.csv").read_text().splitlines()
    assert [row.split(",")[0] for row in rows] == ["1", "2"]


def test_a_form_of_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    k = np.repeat(np.arange(1, 101), 40)
    constant = PredictionTable.of(k, k, np.full(len(k), 6))
    assert explain(constant, 10).form is forms.NONE
    monkeypatch.setattr(forms, "FORMS", (defined("Constant")["Constant"](), *FORMS))
    found = explain(constant, 10)
    assert found.to_json()["form"] == "C" and found.rules["constant"].holds and found.answer(35, 77) == 6
    console = Console(file=StringIO(), width=120)
    show_explanation(console, found, "constant")
    for text in (console.file.getvalue(), found._repr_html_()):
        assert "one answer whatever the GCD" in text and "the usual answer is the same for every k" in text
    assert reason(found, 35, 70, 6) == ("The GCD 35 lies in the class of 1, the largest label in E that divides a and b, "
                                        "and pairs of that class get 6; the true GCD is 35.")
    assert "against its own rules" in reason(found, 35, 70, 7) and reason(found, 6, 12, 6).endswith("get 6.")
    assert found.to_json()["E"] == epoch_details(1, "training", {"stratified": constant}, found)["E"] == [1]
    mostly = explain(PredictionTable.of(k, k, np.where(k % 25, 6, 25)), 10)
    assert mostly.form.letter == "C" and [breach.k for breach in mostly.rules["constant"].exceptions] == [25, 50, 75, 100]
    assert explain(PredictionTable.of(k, k, np.where(k % 2, 1, 2)), 10).form is forms.R, "other tables keep their form"


def test_a_verb(capsys: pytest.CaptureFixture[str]) -> None:
    module: dict[str, Any] = {}
    (block,) = (block for block in BLOCKS if "def add_arguments" in block)
    exec(compile(block, "docs/extend.md verb", "exec", dont_inherit=True), module)
    parser = argparse.ArgumentParser()
    module["add_arguments"](parser)
    assert module["run"](parser.parse_args(["12", "--json"])) == 0
    assert json.loads(capsys.readouterr().out) == {"divisors": [1, 2, 3, 4, 6, 12]}


def test_a_figure() -> None:
    (block,) = (block for block in BLOCKS if "-> Figure" in block)
    module = dict(vars(figures))
    exec(compile(block, "docs/extend.md figure", "exec", dont_inherit=False), module)
    svg = figures.to_svg(module["losses"]([{"epoch": 1, "loss": 2.0}, {"epoch": 2, "loss": 1.0}]), "Loss")
    assert svg.startswith("<svg") and "Loss" in svg


def test_the_page_names_every_method_that_a_model_needs() -> None:
    from gcdformer.models import Seq2Seq
    section = PAGE.partition("## A model family")[2].partition("\n## ")[0]
    assert all(f"`{name}`" in section for name in Seq2Seq.__abstractmethods__)
