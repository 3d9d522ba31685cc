"""The last certified epoch: found from the tables, named by `explain`, taken by every verb that reads a run, kept."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from conftest import tiny_config
from gcdformer import PredictionTable, Run, UserError, load_run, train
from gcdformer.cli import main
from gcdformer.commands.train import show_learned
from gcdformer.evaluation import score
from gcdformer.explanation.sieve import largest_divisor, products
from gcdformer.runs import hints
from gcdformer.runs.explain import certified_epoch, explain_evaluation, explain_run
from gcdformer.runs.folder import RunFolder, checkpoint_steps
from gcdformer.runs.metrics import read_metrics, to_text
from gcdformer.training.loop import score_line
from test_excused import COMING, EIGHTY
from test_explanation import table_with

SIEVE = products({2: 4, 5: 5}, 100)


def answers(known: set[int], spoiled: bool) -> PredictionTable:
    k = np.repeat(np.arange(1, 101), 30)
    told = np.array([largest_divisor(known, int(x)) for x in k])
    if spoiled:
        told[k == 20] = 7
    return PredictionTable.of(k, k * 3, told, k)


def made_run(path: Path, *spoiled: bool, old: bool = False) -> Run:
    """A run folder of real files, made without training: an epoch for each flag, certified where it is False."""
    folder, config = RunFolder(path), tiny_config()
    path.mkdir()
    folder.write_config(config)
    before: list[int] = []
    for epoch, spoil in enumerate(spoiled, 1):
        table = answers(SIEVE, spoil)
        tables = {"natural": table, "stratified": table}
        line = {"epoch": epoch, "step": epoch * 20, "examples": epoch * 320, "loss": 1.0, "test_loss": 1.0,
                **score_line(score(table, table, 0.9), explain_evaluation(config, tables), before),
                "seconds": float(epoch), "throughput": 320.0,
                "predictions_sha256": folder.write_predictions(epoch, tables)}
        if old:
            del line["certified"]
        before = line["D"]
        folder.append_metrics(line)
    return load_run(path)


def run_cli(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    code = main([str(word) for word in words])
    out, err = capsys.readouterr()
    return code, out, err


@pytest.mark.parametrize("old", [False, True], ids=["with the key", "lines of before"])
def test_the_last_certified_epoch_is_found(tmp_path: Path, old: bool) -> None:
    run = made_run(tmp_path / "run", True, False, False, True, True, old=old)
    assert run.epoch("certified") == 3 and certified_epoch(run, 3) == 2 and certified_epoch(run, 2) is None
    assert [line.get("certified") for line in run.metrics] == ([None] * 5 if old else [False, True, True, False, False])
    with pytest.raises(UserError, match="no epoch of .* is certified"):
        made_run(tmp_path / "none", True, old=old).epoch("certified")


def test_a_training_ends_by_naming_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hints, "questions", lambda run, found: [4, 6])  # there is no model to ask
    for name, spoiled, named in (("run", (True, False, True), True), ("never", (True, True), False)):
        console = Console(file=io.StringIO(), width=300)
        show_learned(made_run(tmp_path / name, *spoiled), console, live=False, interrupted=False)
        assert ("\nnote    epoch 2, with 6 correct GCD, was certified: " in console.file.getvalue()) == named


def test_explain_names_it_and_shows_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = made_run(tmp_path / "run", True, False, True)
    code, out, _ = run_cli(capsys, "explain", run.path)
    told = " ".join(out.split())
    assert code == 0 and "not certified" in out and "epoch 2, with 6 correct GCD, was certified: " in told
    assert "--checkpoint certified" in told
    code, out, _ = run_cli(capsys, "explain", run.path, "--checkpoint", "certified")
    assert code == 0 and "epoch 2" in out and "was certified" not in out and "not certified" not in out
    code, out, _ = run_cli(capsys, "explain", run.path, "--checkpoint", "certified", "--json")
    assert json.loads(out)["certified"] is True
    code, out, _ = run_cli(capsys, "explain", run.path, "--epoch", 1)
    assert code == 0 and "was certified" not in out, "a later epoch is no earlier one"


def test_every_verb_that_reads_a_run_takes_it(tmp_path: Path, trained: Run, capsys: pytest.CaptureFixture[str]) -> None:
    uncertified = [["evaluate"], ["predict", "4", "6"], ["explain"], ["report"], ["seen", "4", "6"],
                   ["export", "--to", tmp_path / "out"]]
    for verb, *rest in uncertified:
        code, out, err = run_cli(capsys, verb, trained.path, *rest, "--checkpoint", "certified")
        assert code == 2 and out == "" and "is certified; take best, last or an epoch" in err, verb
    made = made_run(tmp_path / "made", False, True, True)
    shutil.copytree(trained.path / "checkpoints", made.path / "checkpoints")
    shutil.rmtree(made.path / "checkpoints" / "step-000000020", ignore_errors=True)
    code, out, err = run_cli(capsys, "predict", made.path, 4, 6, "--checkpoint", "certified")
    kept = ", ".join(str(step // 20) for step in checkpoint_steps(made.path))
    assert code == 2 and f"certified (epoch 1): its weights are not kept; epochs with weights: {kept}" in err


def test_training_keeps_the_last_certified_checkpoint(tmp_path: Path) -> None:
    """The first epoch is marked as certified and as the worst, so that nothing else keeps it."""
    path = train(tiny_config(max_epochs=1), tmp_path / "run").path
    (line,) = read_metrics(path / "metrics.jsonl")
    line |= {"certified": True, "accuracy": 0.0, "n_correct": 0}
    (path / "metrics.jsonl").write_text(to_text(line))
    train(tiny_config(max_epochs=4, keep_checkpoints=1), path)
    assert 20 in checkpoint_steps(path) and 40 not in set(checkpoint_steps(path)) - {best_step(path)}


def best_step(path: Path) -> int:
    run = load_run(path)
    return 20 * run.epoch("best")


def test_metrics_and_explanation_agree_on_what_is_being_learned(trained: Run) -> None:
    for line in trained.metrics:
        found = explain_run(trained, line["epoch"])
        assert line["being_learned"] == found.being_learned and line["certified"] == found.certified


def test_a_line_of_metrics_says_what_the_explanation_says() -> None:
    table = table_with(COMING, EIGHTY)
    found = explain_evaluation(tiny_config(base=30), {"natural": table, "stratified": table})
    scores = score(table, table, 0.9)
    line = score_line(scores, found, [])
    assert line["being_learned"] == found.being_learned == [16, 32, 64] and scores.modal_only == [16]
