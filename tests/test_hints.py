"""What the command line says to type: the run's folder, commands for this shell, questions, and what was meant by a typo."""

from __future__ import annotations

import re
import shlex
import sys
from importlib.resources import files
from math import gcd
from pathlib import Path

import pytest

from conftest import tiny_config
from gcdformer import Run, explain
from gcdformer.cli import main
from gcdformer.commands.train import default_folder, default_name
from gcdformer.runs.hints import hint, learned, questions, unlearned

TINY = ["--base", "10", "--max", "1000", "--operands", "uniform", "--outcomes", "natural", "--dim", "16", "--heads", "2",
        "--batch-size", "16", "--epoch-size", "160", "--test-size", "100", "--threads", "1", "--max-epochs", "1"]


@pytest.mark.parametrize(("leaves", "name"), [
    ({"base": 30}, "gcd-base30-uniform-natural"),
    ({"operands": "log-uniform", "outcomes": "inverse-sqrt"}, "gcd-base10-log-uniform-inverse-sqrt"),
    ({"task": "comparison"}, "comparison-base10-uniform"),
    ({"task": "some where/my tasks.py:Sum"}, "Sum-base10-uniform"),
    ({"train_file": "some where/my pairs.csv"}, "gcd-base10-from-my-pairs"),
])
def test_a_run_is_named_after_what_is_trained(leaves: dict[str, object], name: str) -> None:
    assert default_name(tiny_config(**leaves)) == name


def test_without_out_the_same_configuration_is_resumed_and_another_gets_a_folder(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GCDFORMER_RUNS", raising=False)
    first, second = Path("runs/gcd-base10-uniform-natural"), Path("runs/gcd-base10-uniform-natural-2")
    assert main(["train", *TINY, "--schedule", "cosine"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == f"run  {first}"
    assert main(["train", *TINY, "--schedule", "cosine", "--max-epochs", "2"]) == 0  # the horizon is the one it has
    assert "resumed at step 10" in capsys.readouterr().out and len(Run(first).metrics) == 2 and not second.exists()
    assert main(["train", *TINY, "--seed", "1", "--quiet"]) == 0
    assert Run(second).config.training.seed == 1 and capsys.readouterr() == ("", "")
    wanted = Run(second).config
    assert default_folder(wanted, Path("runs")) == second
    third = Path("runs/gcd-base10-uniform-natural-3")
    third.mkdir()
    (third / "notes.txt").write_text("mine")
    assert default_folder(wanted.replace(seed=2), Path("runs")).name.endswith("-4")
    (third / "notes.txt").rename(third / "lock")  # as a run that is just being started has it
    assert default_folder(wanted.replace(seed=2), Path("runs")) == third


def test_a_default_folder_is_in_the_folder_of_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                   capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("GCDFORMER_RUNS", str(tmp_path / "kept here"))
    assert main(["train", *TINY, "--json"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("{") and (tmp_path / "kept here" / "gcd-base10-uniform-natural" / "config.toml").exists()
    assert err.startswith("run  ")


def make_script(folder: Path) -> Path:
    folder.mkdir(parents=True)
    script = folder / "gcdformer"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    return script


def test_a_hint_can_be_pasted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    script = make_script(tmp_path / "my env" / "bin")
    monkeypatch.setattr(sys, "argv", [str(script), "demo"])
    monkeypatch.setenv("PATH", "/nowhere")
    assert hint("lab", "runs/a run") == "'my env/bin/gcdformer' lab 'runs/a run'"
    monkeypatch.setenv("PATH", str(script.parent))
    assert hint("lab", "runs/demo") == "gcdformer lab runs/demo"
    monkeypatch.setenv("PATH", str(make_script(tmp_path / "other").parent))  # another installation has that name
    assert shlex.split(hint("lab", "x"))[0] == "my env/bin/gcdformer"
    monkeypatch.chdir(script.parent)
    assert hint("lab", "x") == "./gcdformer lab x"


def test_a_hint_without_a_script_names_the_interpreter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "__main__.py")])
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.chdir(tmp_path)
    assert hint("runs") == "./python -m gcdformer runs"


def test_questions_show_the_sieve() -> None:
    run = Run(str(files("gcdformer") / "lab" / "example"))
    found = explain(run)
    a, b, c, d = questions(run, found)
    assert run.predict([a, c], [b, d]).tolist() == [found.answer(a, b), found.answer(c, d)]
    k, answer = gcd(a, b), found.answer(a, b)
    assert k not in found.correct and k > answer == max(e for e in found.correct if k % e == 0)
    assert found.answer(c, d) == gcd(c, d) > 1
    assert set(learned(found)) == set(found.correct) - {1} and not set(unlearned(found)) & set(found.correct)


def test_a_model_that_knows_nothing_is_asked_all_the_same(trained: Run) -> None:
    found = explain(trained)
    operands = questions(trained, found)
    assert len(operands) in (2, 4) and all(1 <= n <= trained.problem.maximum for n in operands)


def test_hints_after_training_are_commands_that_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                    capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("gcdformer.runs.hints.program", lambda: ["gcdformer"])
    assert main(["train", *TINY, "--task", "comparison", "--out", "a [b] run"]) == 0
    said = capsys.readouterr().out
    assert "report  a [b] run/report.html\n" in said and "look    gcdformer lab 'a [b] run'\n" in said
    question = re.search(r"^ask it  gcdformer (.*)$", said, re.MULTILINE)
    assert question and main(shlex.split(question[1])) == 0


@pytest.mark.parametrize(("words", "message"), [
    (["train", "--bse", "30"], "--bse; did you mean --base? (see gcdformer train --help)"),
    (["describe", "--max-epoch=3"], "--max-epoch=3; did you mean --max-epochs? (see gcdformer describe --help)"),
    (["encode", "--base", "10", "5", "--colour"], "--colour (see gcdformer encode --help)"),
    (["trian"], "unknown verb 'trian'; did you mean train? (gcdformer --help lists the verbs)"),
    (["xyzzy", "5"], "unknown verb 'xyzzy' (gcdformer --help lists the verbs)"),
    (["train", "fsat"], "did you mean fast?"),
])
def test_a_typo_is_met_with_what_was_meant(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    assert capsys.readouterr().err.endswith(message + "\n")
