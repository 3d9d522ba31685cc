"""`gcdformer reproduce` shows, and trains only with --run: what counts as measured, and how the tables look."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from html import escape
from pathlib import Path

import pytest

from gcdformer import train
from gcdformer.cli import main
from gcdformer.display.progress import SWITCH, PlainLines
from gcdformer.explanation.sieve import products
from gcdformer.paper import TABLES, Experiment
from gcdformer.paper.claims import claim_verdicts
from gcdformer.paper.entry import Entry
from gcdformer.paper.ledger import ledger_entries
from gcdformer.paper.record import MARK
from gcdformer.paper.reproduce import MEASURED, RECORDED
from gcdformer.paper.tables.benford import benford
from ledger_entries import ideal

Reproduce = Callable[..., str]
D2, D10 = products({2: 64}, 100), products({2: 16, 5: 25}, 100)


@pytest.fixture
def reproduce(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Reproduce:
    """The command with an empty --out; what it printed on standard output. Nothing may appear under --out."""
    def call(*words: object, out: Path = tmp_path / "out") -> str:
        there = out.exists()
        assert main(["reproduce", *map(str, words), "--out", str(out)]) == 0
        assert out.exists() == there
        return capsys.readouterr().out

    return call


def statuses(told: str) -> dict[str, str]:
    return {run["name"]: run["status"] for run in json.loads(told)["runs"]}


def test_what_the_ledger_has_is_not_trained(reproduce: Reproduce) -> None:
    plan = ["base_gcd", "--dry-run", "--json"]
    assert set(statuses(reproduce(*plan)).values()) == {RECORDED}, "the package's own ledger has all cells of it"
    assert json.loads(reproduce(*plan))["seconds"] == 0
    assert reproduce("2", "--bases", 10, "--dry-run").endswith("to train: no run; 1 in the ledger (--again trains it)\n")
    for more in (["--again"], ["--minutes", 15], ["--max-epochs", 9], ["--lr", 0.1], ["--preset", "paper", "--minutes", 5]):
        assert set(statuses(reproduce(*plan, "--bases", 10, *more)).values()) == {"missing"}, more
    assert statuses(reproduce(*plan, "--bases", 10, "--max-epochs", 10)) == {"base-10_seed-0": RECORDED}
    assert list(statuses(reproduce(*plan, "--bases", 10, "--seeds", 2)).values()) == [RECORDED, "missing"]


def test_claims_train_what_they_name_as_missing(reproduce: Reproduce) -> None:
    missing = {name for verdict in claim_verdicts(ledger_entries()) for name in verdict.missing}
    planned = statuses(reproduce("claims", "--dry-run", "--json"))
    assert {name.removesuffix("_seed-0") for name, status in planned.items() if status == "missing"} == missing
    assert set(planned.values()) == {RECORDED, "missing"}


def test_a_run_that_leaves_a_cell_open_does_not_count(reproduce: Reproduce, tmp_path: Path) -> None:
    natural, balanced = ideal(Experiment(10), D10), ideal(Experiment(10, outcomes="log-uniform"), D10, seed=1)
    plan = ["grokking_inverse", "--bases", 10, "--dry-run", "--json", "--ledger", tmp_path]

    def missing(*entries: Entry) -> list[str]:
        for path in tmp_path.glob("*.json"):
            path.unlink()
        for entry in entries:
            entry.write(tmp_path)
        return [name for name, status in statuses(reproduce(*plan)).items() if status == "missing"]
    both = ["base-10_log-uniform-outcomes_seed-0", "base-10_seed-0"]
    assert sorted(missing(natural)) == both, "new prime powers need both, of one budget"
    assert sorted(missing(natural, balanced)) == both, "and of one seed"
    assert missing(natural, ideal(Experiment(10, outcomes="log-uniform"), D10)) == []
    old = Entry(natural.name, natural.facts | {"preset_version": "0"})
    assert "base-10_seed-0" in missing(old, ideal(Experiment(10, outcomes="log-uniform"), D10))


def test_ones_own_run_of_another_budget_counts_too(reproduce: Reproduce, tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "fast-4-1epochs" / "base-10_seed-0"
    train(Experiment(10).config("fast").derive(epoch_size=512, test_size=200, max_minutes=None, max_epochs=1,
                                               backend="autograd", threads=1), folder)
    (folder / MARK).write_text(json.dumps({"preset": "fast", "version": "4", "experiments": ["base-10"], "changed": {}}))
    plan = ["base_gcd", "--bases", "10", "--dry-run", "--ledger", tmp_path / "none"]
    assert statuses(reproduce(*plan, "--json", out=tmp_path / "runs")) == {"base-10_seed-0": MEASURED}
    assert reproduce(*plan, out=tmp_path / "runs").endswith("1 measured with another budget (--again trains it)\n")


def test_flags_of_training_do_not_change_nothing_in_silence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["reproduce", "2", "--bases", "10", "--minutes", "6", "--seeds", "3", "--lr", "0.1", "--out", str(tmp_path)]
    assert main(words) == 0
    assert capsys.readouterr().err == ("gcdformer: nothing is trained without --run, so --minutes, --seeds, --lr changed "
                                       "nothing\n")
    assert main([*words, "--show"]) == 0 and capsys.readouterr().err == "" and list(tmp_path.iterdir()) == []
    assert main([*words, "--show", "--dry-run"]) == 0  # --show shows, whatever else is given
    assert capsys.readouterr().out.startswith("Table 2: ")


@pytest.mark.parametrize("word", ["base_pred", "3", "Table 3", "table-3", "tab:base_pred"])
def test_a_table_is_printed_as_the_paper_has_it(word: str, reproduce: Reproduce, tmp_path: Path) -> None:
    ideal(Experiment(2), D2).write(tmp_path)
    ideal(Experiment(10), D10 - {16, 48, 80}).write(tmp_path)
    told = reproduce(word, "--ledger", tmp_path)
    assert told.startswith("Table 3: Predictions and their frequencies")
    lines = {line.split()[0]: " ".join(line.split()) for line in told.splitlines() if line and line[0].isdecimal()}
    assert {str(k) for k in range(1, 37)} <= lines.keys()
    assert lines["8"] == "8 8 → 8 100.0 → 100.0 8 → 8 100.0 → 100.0"
    assert lines["16"] == "16 16 → 16 100.0 → 100.0 16 → 8* 99.7 → 100.0"
    assert re.search(r"^base 10 +34 of 36 +base-10_seed-0", told, re.MULTILINE)


def test_every_table_shows_all_its_values_and_its_number(reproduce: Reproduce, tmp_path: Path) -> None:
    """In the terminal, however narrow, in Markdown and as a page; also where nothing is measured."""
    page = tmp_path / "page.html"
    nothing = ["--ledger", tmp_path / "none"]
    listed = reproduce("--html", page, *nothing)
    html = page.read_text()
    for table in TABLES.values():
        assert re.search(rf"^{table.in_paper} +{table.name} ", listed, re.MULTILINE)
        assert f"<h2>{table.in_paper}: {table.name}</h2>" in html and f"<tr><td>{table.in_paper}</td><td><a " in html
        shown, markdown = reproduce(table.name, *nothing), reproduce(table.name, "--markdown", *nothing)
        assert shown.startswith(f"{table.in_paper}: ") and markdown.startswith(f"## {table.name}\n\n{table.in_paper}: ")
        assert markdown.count(" → ") >= len(table.published)
        assert max(shown.count(" → "), shown.count("\n") - 2) >= len(table.published) and "`" not in shown
    assert html.count("<td><small>") == sum(len(table.published) for table in TABLES.values())
    counts = json.loads(reproduce("--json", *nothing))
    assert [one["number"] for one in counts["tables"]] == [table.in_paper for table in TABLES.values()]


def test_a_reason_is_shown_as_it_was_written(reproduce: Reproduce, tmp_path: Path) -> None:
    """Whatever marks of Markdown it has: no view is made from the Markdown of another."""
    text = "with `--lr 1`, **two** sets and <b>"
    entry = ideal(Experiment(10), {1})
    Entry(entry.name, entry.facts | {"why": {"reason": "other recipe", "text": text}}).write(tmp_path)
    shown = reproduce("base_gcd", "--bases", 10, "--html", tmp_path / "page.html", "--ledger", tmp_path)
    assert f"10: other recipe: {text}." in " ".join(shown.split())
    assert f"<li>10: other recipe: {escape(text)}.</li>" in (tmp_path / "page.html").read_text()


def test_only_chooses_what_is_shown(reproduce: Reproduce, tmp_path: Path) -> None:
    ideal(benford(10), D10).write(tmp_path)
    (one,) = [json.loads(reproduce("ablation_outcome_dist", "--bases", "1000", "--only", "inverse-sqrt", "--json",
                                   "--ledger", tmp_path))["table"]]
    assert [(cell["row"], cell["column"]) for cell in one["cells"]] == [("1000", "1/sqrt(k)")]


@pytest.mark.parametrize("words", [[], ["claims"], ["base_gcd"], ["--html"], ["base_gcd", "--dry-run"], ["--markdown"]])
def test_there_is_a_sign_of_life(words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                 capsys: pytest.CaptureFixture[str]) -> None:
    """What may take long runs under a watch that says so on standard error."""
    began: list[str] = []
    monkeypatch.delenv(SWITCH)
    monkeypatch.setattr(PlainLines, "watch", lambda lines: began.append(lines.label))
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", *words, "--ledger", "none"]) == 0 and began
    began.clear()
    assert main(["reproduce", *words, "--ledger", "none", "--quiet"]) == 0 and not began
    capsys.readouterr()
