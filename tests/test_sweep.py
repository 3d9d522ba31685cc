"""Sweeps: the file and its errors, names, what is missing, and the local launcher with processes that are killed."""

from __future__ import annotations

import json
import os
import shutil
import signal
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import tiny_config
from gcdformer import UserError, load_run, train
from gcdformer.cli import main
from gcdformer.runs.checkpoint import load_checkpoint, save_checkpoint
from gcdformer.runs.folder import RunFolder, checkpoint_path
from gcdformer.sweeps.estimate import wall_seconds
from gcdformer.sweeps.launcher import LocalLauncher, exit_code, record_outcome, was_killed
from gcdformer.sweeps.on_ray import places
from gcdformer.sweeps.plan import HIDDEN, note_start, plan, write_record
from gcdformer.sweeps.sweep import Needs, SweepFile, expand, read_sweep
from gcdformer.sweeps.trial import DIVERGED, IN_USE, PROGRESS, run_trial
from leftovers import is_running
from sweeps import (
    Gate,
    fingerprint,
    finish,
    fork_sweep,
    left_running,
    same_as_uninterrupted,
    start_sweep,
    wait_for,
    write_sweep,
)

BUDGET = {"max_epochs": 2}


def trials_of(**fields: object) -> list[str]:
    return [trial.name for trial in expand(SweepFile.model_validate({"budget": BUDGET, **fields}))]


def test_a_grid_lists_and_seeds_make_trials_with_telling_names() -> None:
    assert trials_of() == ["fast_seed-0"]
    assert trials_of(seeds=[3, 5], grid={"base": [10, 30], "lr": [1e-3]}) == [
        "fast_base-10_lr-0.001_seed-3", "fast_base-10_lr-0.001_seed-5",
        "fast_base-30_lr-0.001_seed-3", "fast_base-30_lr-0.001_seed-5"]
    assert trials_of(grid={"dim": [32]}, fixed={"heads": 2},
                     list=[{"outcomes": "natural"}, {"preset": "paper", "batch-size": 64}]) == [
        "fast_dim-32_outcomes-natural_seed-0", "paper_dim-32_batch-size-64_seed-0"]
    config = expand(SweepFile.model_validate({"budget": BUDGET, "preset": "paper", "fixed": {"max": 5000},
                                              "needs": {"cpus": 3}}))[0].config
    assert config.task.maximum == 5000 and config.machine.threads == 3 and config.model.encoder_dim == 512
    assert config.limits.max_epochs == 2 and config.limits.max_minutes is None


def test_equal_trials_come_once_and_names_never_clash() -> None:
    assert len(trials_of(grid={"base": [10, 30, 10]})) == 2
    names = trials_of(list=[{"init_from": "a/x"}, {"init_from": "b/x"}])
    assert len(set(names)) == 2 and all(name.startswith("fast_init-from-x_seed-0_") for name in names)


@settings(max_examples=30, deadline=None)
@given(bases=st.lists(st.integers(2, 500), min_size=1, max_size=5), seeds=st.integers(1, 4),
       rates=st.lists(st.sampled_from([1e-3, 2e-3, 5e-4]), min_size=1, max_size=3))
def test_there_are_as_many_trials_as_distinct_combinations(bases: list[int], seeds: int, rates: list[float]) -> None:
    names = trials_of(seeds=seeds, grid={"base": bases, "lr": rates})
    assert len(names) == len(set(names)) == len(set(bases)) * len(set(rates)) * seeds


BAD = [
    ("preset = 'fsat'\n[budget]\nmax_epochs=1", "preset"), ("[grid]\nbsae = [1]", "grid.bsae"),
    ("[grid]\nbase = []", "grid.base"), ("[grid]\nbase = 10", "grid.base"), ("[fixed]\nseed = 3", "seeds"),
    ("seeds = []", "seeds"), ("seeds = [1, 1]", "seeds"), ("seeds = 0", "seeds"), ("[fixed]\nmax_epochs = 3", "budget"),
    ("[grid]\nthreads = [1]", "cpus"), ("[grid]\ndevice = ['cpu']", "fixed"), ("[fixed]\nbase = 1", "base"),
    ("preset = 'paper'", "budget"), ("[needs]\ncpus = 0", "cpus"), ("colour = 1", "colour"), ("[grid", "not TOML"),
    ("[fixed]\noutcomes = 'uniform'\ntask = 'addition'", "outcomes"), ("[budget]\nmax_epochs = 0", "max_epochs"),
]


@pytest.mark.parametrize(("text", "word"), BAD, ids=[f"{word}-{i}" for i, (_, word) in enumerate(BAD)])
def test_a_bad_file_is_one_line_that_names_the_field(text: str, word: str, tmp_path: Path) -> None:
    file = tmp_path / "sweep.toml"
    file.write_text(text)
    with pytest.raises(UserError, match=word) as caught:
        expand(read_sweep(file), str(file))
    assert str(file) in str(caught.value) and "\n" not in str(caught.value)
    with pytest.raises(UserError, match=r"nowhere\.toml"):
        read_sweep(tmp_path / "nowhere.toml")


def test_wall_time_divides_the_work() -> None:
    assert wall_seconds([3, 1, 1, 1], 2) == 3 and wall_seconds([2, 2], 1) == 4 and wall_seconds([], 2) == 0


def test_trials_at_a_time_are_bounded_by_cpus_and_gpus() -> None:
    nodes = [{"CPU": 8.0, "GPU": 1.0}, {"CPU": 3.0, "GPU": 4.0}, {"CPU": 64.0}]
    assert places(nodes, Needs(cpus=2)) == 4 + 1 + 32 and places(nodes, Needs(cpus=65)) == 0
    assert places(nodes, Needs(cpus=2, gpus=1)) == 1 + 1 and places(nodes, Needs(cpus=1, gpus=0.25)) == 4 + 3


def test_a_trial_sees_gpus_that_were_given_to_the_sweep_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine may have none: what CUDA would say is put in its place."""
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 3)
    monkeypatch.setattr("gcdformer.sweeps.launcher.available_cores", lambda: 8)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,GPU-5a, 7")

    def seen(needs: Needs, jobs: int | None = None) -> list[str]:
        launcher = LocalLauncher(needs, jobs)
        return [launcher.environment(slot)["CUDA_VISIBLE_DEVICES"] for slot in range(launcher.slots)]

    assert seen(Needs(gpus=1)) == ["3", "GPU-5a", "7"] and seen(Needs(gpus=2)) == ["3,GPU-5a"]
    assert seen(Needs(gpus=0.5)) == ["3", "3", "GPU-5a", "GPU-5a", "7", "7"]
    assert seen(Needs(cpus=8, gpus=1)) == ["3"] and seen(Needs(gpus=1), jobs=4) == ["3", "GPU-5a", "7", "3"]
    with pytest.raises(UserError, match=r"needs\.gpus: a trial asks for 4 GPUs, this machine has 3"):
        LocalLauncher(Needs(gpus=4), 1)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    assert seen(Needs(gpus=1)) == ["0", "1", "2"]
    assert LocalLauncher(Needs(), 1).environment(0).get("CUDA_VISIBLE_DEVICES") is None


def in_process(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str]:
    """A command in this process: its trials are processes of their own."""
    code = main([str(word) for word in words])
    return code, capsys.readouterr().out


@pytest.mark.processes
@pytest.mark.usefixtures("forked_trials")
def test_a_sweep_runs_what_is_missing_and_a_changed_file_adds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, out = tmp_path / "sweep.toml", tmp_path / "out"
    write_sweep(file, rates=[1e-3], seeds=2, epochs=1)
    _, text = in_process(capsys, "sweep", file, "--out", out, "--dry-run", "--json")
    dry = json.loads(text)
    assert [one["status"] for one in dry["trials"]] == ["missing", "missing"] and dry["seconds"] > 0
    assert not out.exists()
    code, text = in_process(capsys, "sweep", file, "--out", out, "--json")
    assert code == 0
    assert [(row["name"], row["status"], row["epoch"]) for row in json.loads(text)["trials"]] == [
        ("fast_lr-0.001_seed-0", "finished", 1), ("fast_lr-0.001_seed-1", "finished", 1)]
    before = {path: path.stat().st_mtime_ns for path in out.glob("*/metrics.jsonl")}
    code, text = in_process(capsys, "sweep", file, "--out", out)
    assert code == 0 and "start" not in text and "2 finished" in text
    changed = file.read_text().replace("[grid]\n", "[grid]\nbase = [10, 7]\n").replace("base = 10\n", "")
    file.write_text(changed.replace("seeds = 2", "seeds = 1"))  # other names: found by what they are
    code, text = in_process(capsys, "sweep", file, "--out", out)
    assert code == 0 and [line for line in text.splitlines() if line.startswith("start ")] == [
        "start fast_base-7_lr-0.001_seed-0"]
    assert before == {path: path.stat().st_mtime_ns for path in before}
    write_sweep(file, rates=[1e-3], seeds=1, epochs=2)
    code, text = in_process(capsys, "sweep", file, "--out", out)
    assert code == 0 and len(load_run(out / "fast_lr-0.001_seed-0").metrics) == 2
    assert len(load_run(out / "fast_lr-0.001_seed-1").metrics) == 1


@pytest.mark.processes
@pytest.mark.usefixtures("forked_trials")
def test_damaged_metrics_fail_their_trial_and_no_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, out = write_sweep(tmp_path / "sweep.toml", rates=[1e-3], seeds=2, epochs=1), tmp_path / "out"
    both = plan(expand(read_sweep(file)), out)
    for one in both:
        train(one.config, one.path)
    metrics = both[0].path / "metrics.jsonl"
    metrics.write_text(metrics.read_text().replace('"epoch": 1', '"epoch": 2'))
    damage = f"{metrics} line 1: does not match its checksum"
    code, text = in_process(capsys, "sweep", file, "--out", out, "--json")
    rows = json.loads(text)["trials"]
    assert code == 1 and [row["status"] for row in rows] == ["failed", "finished"]
    assert damage in rows[0]["reason"] and rows[0]["epoch"] is None and rows[1]["epoch"] == 1
    write_record(both[0], "stopped", "by ASHA after epoch 1")
    code, text = in_process(capsys, "sweep", file, "--out", out, "--json")
    assert code == 0 and damage in json.loads(text)["trials"][0]["reason"]


def test_parts_are_disjoint_and_complete(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write_sweep(tmp_path / "sweep.toml", rates=[1e-3, 2e-3], seeds=2)
    file.write_text(file.read_text().replace("max_epochs = 3", "max_minutes = 1"))
    names = []
    for part in range(3):
        _, text = in_process(capsys, "sweep", file, "--out", tmp_path, "--dry-run", "--json", "--part", f"{part}/3")
        names.append([one["name"] for one in json.loads(text)["trials"]])
        assert json.loads(text)["seconds"] == 60
    assert sorted(map(len, names)) == [1, 1, 2] and len({name for some in names for name in some}) == 4


def test_what_diverged_is_remembered_until_retried(tmp_path: Path) -> None:
    file = write_sweep(tmp_path / "sweep.toml", rates=[1e-3], seeds=1)
    trials = expand(read_sweep(file))
    one = plan(trials, tmp_path)[0]
    write_record(one, "diverged", "the loss is nan at step 7")
    again = plan(trials, tmp_path)[0]
    assert again.over and again.status == "diverged" and "step 7" in again.reason
    assert plan(trials, tmp_path, retry=True)[0].status == plan(trials, tmp_path)[0].status == "missing"


def test_an_open_horizon_and_a_given_one_are_two_trials(tmp_path: Path) -> None:
    """Whichever ran first, in one file or in two, in parts or not; each has a folder of its own."""
    fields = {"fixed": {"dim": 16, "epoch_size": 512, "test_size": 200, "device": "cpu"}, "budget": {"max_epochs": 1}}
    trials = expand(SweepFile.model_validate({**fields, "list": [{}, {"horizon": 9000}]}))
    alone = expand(SweepFile.model_validate(fields))
    given_one = plan(trials, tmp_path)[1]
    note_start(given_one)
    train(given_one.config, given_one.path)
    assert [one.status for one in plan(trials, tmp_path)] == ["missing", "finished"]
    assert [one.status for one in plan(trials[:1], tmp_path, beside=trials)] == ["missing"]
    assert [one.status for one in plan(alone, tmp_path)] == ["missing"]
    open_one = plan(alone, tmp_path)[0]
    note_start(open_one)
    train(open_one.config, open_one.path)
    for records in ("kept", "removed"):  # without records, as an earlier version left it, the file tells which is which
        both = plan(trials, tmp_path)
        assert [one.status for one in both] == ["finished", "finished"], records
        assert [one.path for one in both] == [open_one.path, given_one.path]
        shutil.rmtree(tmp_path / HIDDEN, ignore_errors=True)


def test_a_horizon_that_equals_the_one_fixed_at_the_start_is_run_once_more_and_only_once(tmp_path: Path) -> None:
    fields = {"fixed": {"dim": 16, "epoch_size": 512, "test_size": 200, "warmup": 1, "batch_size": 256, "device": "cpu"},
              "budget": {"max_epochs": 1}}
    trials = expand(SweepFile.model_validate({**fields, "list": [{"horizon": 2}, {}]}))
    for one in plan(trials[1:], tmp_path):
        note_start(one)
        train(one.config, one.path)
        assert load_run(one.path).config.identity() == trials[0].config.identity()
    other = plan(trials[:1], tmp_path)[0]  # another file, that asks for what was fixed, may extend it
    assert (other.status, other.path) == ("finished", one.path)
    note_start(other)
    assert [one.status for one in plan(trials, tmp_path)] == ["missing", "finished"]
    for one in plan(trials[:1], tmp_path, beside=trials):
        note_start(one)
        train(one.config, one.path)
    assert [one.status for one in plan(trials, tmp_path)] == ["finished", "finished"]


def test_a_damaged_state_makes_no_trial_finished(tmp_path: Path) -> None:
    file = write_sweep(tmp_path / "sweep.toml", rates=[1e-3], seeds=1)
    text = file.read_text().replace("checkpoint_minutes = 1e-3", "checkpoint_minutes = 1000")  # none but at the epoch's end
    file.write_text(text.replace("max_epochs = 3", "max_minutes = 100"))
    one = plan(expand(read_sweep(file)), tmp_path)[0]
    run = train(one.config.replace(max_minutes=None, max_epochs=1), one.path)
    again = plan(expand(read_sweep(file)), tmp_path)[0]
    assert again.status == "begun" and again.reason == "at step 20"
    state = checkpoint_path(run.path, 20) / "state.json"
    state.write_text(state.read_text().replace('"seconds": ', '"seconds": 9000'))
    again = plan(expand(read_sweep(file)), tmp_path)[0]
    assert again.status == "begun" and again.reason == ""


def test_a_budget_shorter_than_an_epoch_is_no_success(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write_sweep(tmp_path / "sweep.toml", rates=[1e-3], seeds=1)
    file.write_text(file.read_text().replace("max_epochs = 3", "max_minutes = 1e-6"))
    one = plan(expand(read_sweep(file)), tmp_path / "out")[0]
    ending = run_trial(one.config, one.path)
    record_outcome(one, ending)
    reason = "no epoch fits into max_minutes 1e-06, so nothing was evaluated"
    assert (one.status, one.reason) == ("failed", reason)
    again = plan(expand(read_sweep(file)), tmp_path / "out")[0]
    assert (again.status, again.reason) == ("begun", reason)
    again.status = "failed"
    assert exit_code([again], interrupted=False) == 1
    file.write_text(file.read_text().replace("max_minutes = 1e-6", "max_epochs = 1"))
    longer = plan(expand(read_sweep(file)), tmp_path / "out")[0]
    record_outcome(longer, run_trial(longer.config, longer.path))
    assert longer.status == "finished"


def test_a_trial_that_diverges_is_not_tried_again(tmp_path: Path) -> None:
    source = train(tiny_config(max_epochs=1), tmp_path / "source")
    last = load_checkpoint(source.path, source.checkpoint_step())
    spoiled = {name: torch.full_like(tensor, float("nan")) for name, tensor in last.model.items()}
    save_checkpoint(source.path, replace(last, model=spoiled))
    file = write_sweep(tmp_path / "sweep.toml", rates=[1e-3], seeds=1)
    file.write_text(file.read_text().replace("warmup = 5", f"warmup = 5\ninit_from = '{source.path}'"))
    one = plan(expand(read_sweep(file)), tmp_path / "out")[0]
    ending = run_trial(one.config, one.path)
    assert (ending.code, was_killed(ending)) == (DIVERGED, False) and "nan" in ending.reason
    record_outcome(one, ending)
    assert plan(expand(read_sweep(file)), tmp_path / "out")[0].status == "diverged"


def test_a_run_in_use_is_waited_for_and_then_told(tmp_path: Path) -> None:
    config = tiny_config(max_epochs=1)
    folder = RunFolder(tmp_path / "run")
    with folder.locked():
        ending = run_trial(config, folder.path, patience=0.1)
    assert ending.code == IN_USE and f"in use by process {os.getpid()}" in ending.reason
    assert run_trial(config, folder.path).code == 0


def test_a_progress_file_that_cannot_be_written_ends_no_trial(tmp_path: Path) -> None:
    (tmp_path / "run" / PROGRESS).mkdir(parents=True)  # not even root can put a file in its place
    assert run_trial(tiny_config(max_epochs=1), tmp_path / "run", every=0).code == 0
    assert len(load_run(tmp_path / "run").metrics) == 1


@pytest.mark.parametrize("words", [["--asha"], ["--address", "127.0.0.1:1"], ["--part", "3/3"], ["--part", "x"],
                                   ["--jobs", "0"], ["--engine", "ray", "--jobs", "2"], ["--engine", "slurm"],
                                   ["--engine", "ray", "--asha-grace", "2"],
                                   ["--engine", "ray", "--address", "127.0.0.1:1"]], ids=" ".join)
def test_flags_that_clash_are_one_line(words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write_sweep(tmp_path / "sweep.toml", rates=[1e-3], seeds=1)
    assert main(["sweep", str(file), "--out", str(tmp_path / "out"), *words]) == 2
    error = capsys.readouterr().err
    assert error.startswith("gcdformer: ") and len(error.splitlines()) == 1


@pytest.mark.processes
def test_a_signal_while_trials_start_fails_none(tmp_path: Path) -> None:
    file, out = write_sweep(tmp_path / "sweep.toml", rates=[1e-3], seeds=2), tmp_path / "out"
    driver = start_sweep(file, out, "--jobs", 1)
    assert driver.stdout is not None and driver.stdout.readline().startswith("start ")  # and torch is not loaded yet
    driver.send_signal(signal.SIGTERM)
    code, output = finish(driver)
    assert code == 75 and "failed" not in output and "2 trials: 2 missing" in output, output


@pytest.mark.processes
def test_killed_trials_change_nothing(tmp_path: Path) -> None:
    """Trials stopped by a signal, then one of them killed: the same runs in the end, bit for bit."""
    file, out, gate = tmp_path / "sweep.toml", tmp_path / "out", Gate(tmp_path)
    write_sweep(file, rates=[1e-3], seeds=2, epochs=8, gate=gate)
    driver = fork_sweep(file, out, "--retries", 0, "--jobs", 2)
    for process in gate.held(2):
        os.kill(process, signal.SIGTERM)
    code, output = finish(driver)
    assert code == 1 and output.count("\nbegun fast") == 4 and "2 trials: 2 begun" in output, output
    driver = fork_sweep(file, out, "--jobs", 2)
    killed, other = gate.held(2)
    os.kill(killed, signal.SIGKILL)
    wait_for(lambda: not is_running(killed))
    again = gate.held(2)
    assert other in again and killed not in again
    gate.open()
    code, output = finish(driver)
    assert code == 0 and "2 trials: 2 finished" in output
    assert output.count("its process was ended by SIGKILL; resumes from its last checkpoint") == 1
    same_as_uninterrupted(out, tmp_path / "whole", 2, 8)
    assert fingerprint(load_run(next(out.glob("*seed-0")))) != fingerprint(load_run(next(out.glob("*seed-1"))))


@pytest.mark.processes
def test_killed_and_stopped_drivers_change_nothing(tmp_path: Path) -> None:
    """The driver killed, then stopped by a signal: its trials save and stop, and are the same runs in the end."""
    file, out, gate = tmp_path / "sweep.toml", tmp_path / "out", Gate(tmp_path)
    write_sweep(file, rates=[1e-3], seeds=1, epochs=8, gate=gate)
    driver = start_sweep(file, out)
    orphans = gate.held(1)
    driver.kill()
    finish(driver)
    wait_for(lambda: not any(map(is_running, orphans)))
    assert not left_running(out)
    driver = start_sweep(file, out)
    held = gate.held(1)
    driver.send_signal(signal.SIGTERM)
    code, output = finish(driver)
    assert code == 75 and "SIGTERM: the trials save and stop" in output
    assert not left_running(out) and not any(map(is_running, held))
    gate.open()
    code, output = finish(start_sweep(file, out))
    assert code == 0 and "1 trials: 1 finished" in output
    same_as_uninterrupted(out, tmp_path / "whole", 1, 8)
