"""`gcdformer reproduce` as a person runs it: trains, records, renders, tells the time, and names mistakes."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path

import pytest

from gcdformer.cli import main
from gcdformer.explanation.sieve import products
from gcdformer.paper import TABLES, Experiment
from gcdformer.paper.entry import Entry
from gcdformer.paper.ledger import ledger_entries
from gcdformer.paper.page import run_item
from gcdformer.paper.tables.benford import benford
from gcdformer.paper.tables.grokking import TWO_SET
from gcdformer.runs.priors import scan_priors
from ledger_entries import ideal

SMALL_FLAGS = ["--epoch-size", 512, "--test-size", 200, "--max-epochs", 1, "--backend", "autograd"]


@pytest.mark.processes
@pytest.mark.usefixtures("forked_trials")
def test_command_measures_records_and_renders(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The trainings in processes of their own; what only reads is called here."""
    def here(*words: object) -> str:
        assert main(["reproduce", *map(str, words)]) == 0
        return capsys.readouterr().out

    out, ledger, page = tmp_path / "runs", tmp_path / "ledger", tmp_path / "page.md"
    nowhere = ["--ledger", ledger, "--out", tmp_path / "none"]
    ledger.mkdir()
    words = ["base_gcd", "--bases", "31", "--seeds", 2, "--out", out, "--ledger", ledger, *SMALL_FLAGS]
    planned = json.loads(here(*words, "--dry-run", "--json"))
    assert [run["status"] for run in planned["runs"]] == ["missing", "missing"] and not out.exists()
    assert planned["seconds"] is None and planned["slots"] >= 1, "epochs do not tell the time"
    assert re.search(r"Table 1 +encodings +8 +8 +8 \(100 %\)", nothing := here(*nowhere))
    counted = re.search(r"46 of 2772 cells; (\d+) \((\d+) %\) agree; 0 runs; ", nothing)
    assert counted and round(100 * int(counted[1]) / 46) == int(counted[2])
    shown = here(*words)
    assert "not measured" in shown and "--run" in shown.splitlines()[-1] and not out.exists(), "showing trains nothing"
    assert main(["reproduce", *map(str, words), "--run", "--json", "--html", str(tmp_path / "page.html")]) == 0
    first, said = capsys.readouterr()
    assert "to train: 2 runs of 1 epoch (512 examples), " in said
    told = json.loads(first)
    assert told["tables"] == [{**told["tables"][0], "name": "base_gcd", "cells": 40, "measured": 2}]
    assert told["distinct_runs"] == 2 and {run["seed"] for run in told["runs"]} <= {0, 1}
    by_column = {cell["column"]: cell for cell in told["table"]["cells"]}
    assert by_column["correct GCD"]["seeds"] == [0, 1] and "gcdformer train" in by_column["accuracy"]["command"]
    assert "base_gcd" in (tmp_path / "page.html").read_text()

    runs = sorted(out.glob("*/*/metrics.jsonl"))
    before = [path.stat().st_mtime_ns for path in runs]
    again = here(*words, "--run")
    assert "correct GCD" in again and "start" not in again
    assert [path.stat().st_mtime_ns for path in runs] == before and len(runs) == 2

    here("--record", *(path.parent for path in runs), "--render", page, "--ledger", ledger,
         "--why", "fewer examples: a test of the command")
    assert "fewer examples: a test of the command" in page.read_text() and "2 runs;" in page.read_text()
    assert "a test of the command" in here(*words, "--show"), "a folder does not hide what was recorded"
    fresh = [*words, "--out", tmp_path / "fresh"]
    assert "to train: no run; 2 in the ledger (--again trains them)" in here(*fresh, "--run")
    assert here(*fresh, "--dry-run").count("in the ledger") == 3 and not (tmp_path / "fresh").exists()
    again = json.loads(here(*fresh, "--dry-run", "--again", "--json"))
    assert [run["status"] for run in again["runs"]] == ["missing", "missing"]
    listed = json.loads(here("--json", *nowhere))
    assert listed["distinct_runs"] == 2 and {t["name"]: t["measured"] for t in listed["tables"]}["base_gcd"] == 2
    assert "| 31 | 2 → " in here("base_gcd", "--show", "--markdown", *nowhere)
    assert "not measured" in here("grok_loss", "--show", *nowhere)
    assert "base_gcd" in here(*nowhere)


@pytest.mark.processes
@pytest.mark.usefixtures("forked_trials")
def test_the_claim_of_the_prior_trains_and_asks_what_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str],
                                                                monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the ledger has the run, recorded before it was asked under other priors. Two of the eleven are asked."""
    monkeypatch.setattr("gcdformer.commands.reproduce.scan_priors", partial(scan_priors, priors=("training", "natural")))
    out, ledger = tmp_path / "runs", tmp_path / "ledger"
    ledger.mkdir()
    words = ["claims", "--only", "prior", "--bases", "10", "--out", out, "--ledger", ledger, *SMALL_FLAGS]

    def missing(*more: object) -> list[str]:
        assert main(["reproduce", *map(str, words), "--json", *map(str, more)]) == 0
        (claim,) = json.loads(capsys.readouterr().out)["claims"]
        return [name for name in claim["missing"] if name.startswith("base-10_") or name == "base-10"]

    names = missing()
    assert len(names) == 3 and not out.exists()
    assert missing("--run") == [] and len(scans := sorted(out.glob("*/*/priors.json"))) == 3
    scans[0].unlink()
    assert main(["reproduce", "--record", *(str(scan.parent) for scan in scans), "--ledger", str(ledger)]) == 0
    capsys.readouterr()
    assert missing() == [scans[0].parent.name.removesuffix("_seed-0")], "not asked"
    trained = [scan.parent / "metrics.jsonl" for scan in scans]
    before = [path.stat().st_mtime_ns for path in trained]
    assert missing("--run") == [] and scans[0].exists()
    assert [path.stat().st_mtime_ns for path in trained] == before, "asked, not trained again"


def test_figures_are_drawn_from_the_ledger(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for seed in (0, 1, 2):
        ideal(Experiment(2023, two_set=TWO_SET), products({7: 7, 17: 17, 3: 3}, 100), seed=seed,
              epoch_of={3: 40 + seed}).write(tmp_path)
    words = ["grok_loss", "--show", "--figures", tmp_path / "figures", "--ledger", tmp_path, "--out", tmp_path / "none",
             "--html", tmp_path / "page.html"]
    assert main(["reproduce", *map(str, words)]) == 0
    assert sorted(path.name for path in (tmp_path / "figures").iterdir()) == ["grok_loss.png", "grok_loss.svg"]
    html = (tmp_path / "page.html").read_text()
    assert "<svg" in html and "seed 2" in html and "correct GCD at epoch" in capsys.readouterr().out


def test_the_figure_of_one_run_marks_what_was_learned(tmp_path: Path) -> None:
    """Test loss as in the paper's figures, and the prime powers behind the steps."""
    ideal(Experiment(30), products({2: 4, 3: 3, 5: 25}, 100), epoch_of={25: 40, 50: 40, 75: 40, 100: 41}).write(tmp_path)
    words = ["learning_curves", "--show", "--figures", tmp_path, "--ledger", tmp_path, "--out", tmp_path / "none"]
    assert main(["reproduce", *map(str, words)]) == 0
    drawn = (tmp_path / "learning_curves.svg").read_text()
    assert ">25</text>" in drawn and ">2, 3, 4, 5</text>" in drawn and "test loss (dotted: training)" in drawn


def test_grokked_runs_of_other_bases_are_told_in_the_form_of_the_table(tmp_path: Path,
                                                                       capsys: pytest.CaptureFixture[str]) -> None:
    """A run of grokking_det shows its predictions as grokked_3 has them, once a prime was grokked."""
    ideal(Experiment(2023, two_set=TWO_SET), products({7: 7, 17: 17}, 100)).write(tmp_path)
    grokked = ideal(Experiment(2401, two_set=TWO_SET), products({7: 49, 2: 4, 3: 3}, 100))
    grokked.write(tmp_path)
    words = ["grokked_3", "--show", "--ledger", tmp_path, "--out", tmp_path / "none", "--html", tmp_path / "page.html"]
    assert main(["reproduce", *map(str, words)]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "base 2401" in told and "base 2023" not in told and "2 and 3 were grokked" in told
    assert "1, 2, 3, 4, 1, 6, 7, 4, 3, 2, 1, 12," in told and "divides k (50 of 50)" in told
    assert f"- {grokked.name}: " in told, "with its command"
    html = (tmp_path / "page.html").read_text()
    assert "1, 2, 3, 4, 1, 6, 7, 4, 3, 2, 1, 12," in html
    assert html.count("<td>prediction</td>") == 5, "a column of 50, ten to a line"


def test_links_of_the_page_lead_somewhere(tmp_path: Path) -> None:
    """Every table is listed, and every name of a run leads to its command."""
    for base in (10, 30, 1000):
        for one, known in ((Experiment(base), {1, 2}), (benford(base), {1, 2, 5, 10})):
            ideal(one, known).write(tmp_path)
    words = ["--html", tmp_path / "page.html", "--ledger", tmp_path, "--out", tmp_path / "none"]
    assert main(["reproduce", *map(str, words)]) == 0
    html = (tmp_path / "page.html").read_text()
    targets, places = set(re.findall(r'href="#([^"]+)"', html)), set(re.findall(r'id="([^"]+)"', html))
    assert {*TABLES, "run-base-10_log-uniform-operands_seed-0"} <= targets <= places
    assert "`" not in html.split("<style>")[0] + html.split("</style>")[1] and "of 30 tables and figures have runs" in html


def test_the_time_is_told_before_it_is_taken(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nothing = ["--out", str(tmp_path / "none"), "--ledger", str(tmp_path), "--dry-run"]
    told = []
    for words in (["--minutes", "40", "--jobs", "2"], ["--max-epochs", "3", "--jobs", "1"]):
        assert main(["reproduce", "base_gcd", "--bases", "2,10,30", *words, *nothing]) == 0
        told.append(capsys.readouterr().out.splitlines()[-1])
    assert told == ["to train: 3 runs of 40 minutes, 2 at a time: about 80 min",
                    "to train: 3 runs of 3 epochs (900,000 examples), 1 at a time"]


def test_only_chooses_experiments_of_a_table_by_their_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def names(table: str, only: str) -> list[str]:
        words = ["--bases", "10", "--max-epochs", "1", "--dry-run", "--json", "--out", tmp_path / "none",
                 "--ledger", tmp_path]
        assert main(["reproduce", table, "--only", only, *map(str, words)]) == 0
        return [run["name"] for run in json.loads(capsys.readouterr().out)["runs"]]

    assert names("deep_models", "encoder-layers-1_decoder-layers-6,encoder-layers-24_decoder-layers-1_") == [
        "base-10_encoder-layers-1_decoder-layers-6_encoder-dim-512_decoder-dim-512_seed-0",
        "base-10_encoder-layers-24_decoder-layers-1_encoder-dim-1024_decoder-dim-512_seed-0"]
    whole = "addition_base-10_max-100000"
    assert names("fractions", whole) == [f"{whole}_seed-0"], "a whole name is not taken for the beginning of a longer one"
    assert len(names("fractions", whole[:-1])) == 2


def test_the_terminal_names_the_run_of_a_cell_and_the_command_for_what_is_open(
        tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    entry = ideal(Experiment(30), {1, 2})
    entry.write(tmp_path)

    def shown(*words: str) -> str:
        assert main(["reproduce", *words, "--show", "--ledger", str(tmp_path), "--out", str(tmp_path / "none")]) == 0
        return capsys.readouterr().out
    told = shown("base_gcd", "--bases", "10,12,30")
    assert [line.split()[-1] for line in told.splitlines() if line.startswith("30 ")] == [entry.name] * 2
    assert told.splitlines()[-1] == "to measure: gcdformer reproduce base_gcd --bases 10,12 --run"
    assert "to measure" not in shown("base_gcd", "--bases", "30")
    assert entry.name in next(line for line in shown("base_pred_det").splitlines() if line.startswith("base 30  "))
    assert shown("grok_loss").splitlines()[-1] == "to measure: gcdformer reproduce grok_loss --run"


def test_times_of_a_run_do_not_contradict_each_other() -> None:
    """A pause of the machine is in the minutes and not in the speed, so it is named; the speed is said to be of training."""
    entry = ideal(Experiment(10), {1, 2, 5, 10})
    assert "; 100.0 minutes; 30.0 M examples, 5,000 examples/s in training; " in run_item(entry)
    paused = [60 * epoch + (1200 if epoch >= 40 else 0) for epoch in range(1, 101)]
    slept = Entry("slept", entry.facts | {"curve": entry.facts["curve"] | {"seconds": paused}})
    told = run_item(slept)
    assert "; 120.0 minutes, 20.0 of them stalled; 30.0 M examples, 5,000 examples/s in training; " in told
    assert "examples/s" not in run_item(Entry("x", entry.facts | {"examples_per_s": None}))
    for entry in ledger_entries():
        own = 60 * (entry.minutes - entry.stalled_minutes)
        speed = entry.facts["examples_per_s"]
        assert speed is None or 0.5 <= entry.examples / speed / own <= 1.25, f"{entry.name}: its figures do not fit"


@pytest.mark.parametrize(("words", "said"), [
    (["base_gdc"], "unknown table 'base_gdc'"),
    (["base_gcd", "--bases", "10,8"], "bases: 8 is not in base_gcd"),
    (["base_gcd", "--minutes", "-1"], "minutes"),
    (["base_gcd", "--minutes", "1", "--max-epochs", "1"], "not both"),
    (["--bases", "10"], "need a table"),
    (["--why", "x:y"], "--record"),
    (["--record", "nowhere"], "no such run folder"),
    (["--record", "nowhere", "--as", "base-10"], "give --why"),
    (["base_gcd", "--show", "--again"], "give one of them"),
    (["base_gcd", "--show", "--run"], "give one of them"),
    (["base_gcd", "--again"], "give --run or --dry-run"),
    (["--run"], "need a table"),
    (["fig:logu_loss"], "logu_loss_natural and of logu_loss_inverse: name one of them, or say Figure 6 or Figure 7"),
    (["24"], "the paper has no Table 24: it has Table 1 to 23 and Figure 1 to 7"),
    (["figure-0"], "the paper has no Figure 0: it has Table 1 to 23 and Figure 1 to 7"),
    (["Table", "2", "3"], "unknown table 'Table 2 3'"),
    (["base_gcd", "--render", "x.md"], "leave the table out"),
    (["base_gcd", "--preset", "paper", "--dry-run"], "minutes"),
    (["claims", "--only", "miture"], "unknown claim 'miture'"),
    (["base_gcd", "--only", "mixture"], "only: no experiment of base_gcd has 'mixture' in its name"),
    (["encodings", "--only", "mixture"], "only: no experiment of encodings has 'mixture' in its name"),
    (["--only", "mixture"], "give claims or a table"),
    (["claims", "--figures", "x"], "claims have none"),
    (["claims", "--only", "mixture", "--bases", "10"], "bases: 10 is not in claims"),
    (["claims", "--render", "x.md"], "leave the table out"),
])
def test_mistakes_are_told_in_one_line(words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                       capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", *words]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1
