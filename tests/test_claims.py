"""The paper's claims: fair pairs, what is missing, older recipes, the page and the command."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from math import ceil
from pathlib import Path

import pytest

from claim_runs import BASES, D10, cut, grokked, in_steps, verdict, with_facts
from conftest import ROOT
from decisions import call
from gcdformer.cli import main
from gcdformer.paper import CLAIM_EPOCHS, Experiment, experiments
from gcdformer.paper.claims import ALL, PAIRS, PAIRS_NEEDED, claim_verdicts, claims_table, judge
from gcdformer.paper.entry import Entry
from gcdformer.paper.evidence import pair_runs
from gcdformer.paper.ledger import LARGEST_RATIO, ledger_entries
from gcdformer.paper.page import claims_section, render
from gcdformer.paper.tables.base import MIXTURE_30
from gcdformer.paper.tables.benford import benford
from ledger_entries import ideal

SMALL = ["--epoch-size", "512", "--test-size", "200", "--max-epochs", "1", "--backend", "autograd", "--quiet"]


def test_every_claim_has_experiments_of_the_tables() -> None:
    known = experiments()
    assert len(ALL) == 13
    for claim in ALL.values():
        found = judge(claim, [])
        assert found.status == "not measured" and found.missing == tuple(one.name for one in claim.experiments)
        assert all(one.name in known for one in claim.experiments)
        assert found.command == f"gcdformer reproduce claims --only {claim.name} --run"
    assert {one.base for one in claims_table(ALL.values()).experiments()} == {10, 30, 210, 1000, 2023, 2401}
    for contrasts in PAIRS.values():
        for one, other in contrasts:
            differing = [field.name for field in fields(one) if getattr(one, field.name) != getattr(other, field.name)]
            assert len(differing) == 1 or differing == ["model", "small"], (one, other)
    assert len({other for _, other in PAIRS["uniform"]}) == len(PAIRS["uniform"]), "a run is compared once"


def test_no_claim_of_pairs_rests_on_one_pair() -> None:
    for claim in ALL.values():
        assert claim.least >= 2
        if claim.unit == "pairs of runs" and claim.name != "fractions":
            assert claim.least == PAIRS_NEEDED == 3
    several = {name: sum(other in ALL[name].experiments and one in ALL[name].experiments for one, other in PAIRS[kind])
               for name, kind in (("log-operands", "operands"), ("log-outcomes", "outcomes"), ("determinism", "uniform"),
                                  ("model-size", "sizes"), ("batch-size", "batches"), ("fractions", "tasks"))}
    assert all(count >= ALL[name].least for name, count in several.items()), "its own experiments can decide it"


def test_pairs_differ_in_one_thing_only() -> None:
    one, other = Experiment(10), benford(10)
    first, second = ideal(one, {1, 2}), ideal(other, D10)
    assert pair_runs([first, second], one, other) == [(first, second)]
    for odd in (with_facts(second, preset_version="0"), with_facts(second, preset="paper"),
                with_facts(second, changed={"lr": 1.0}), ideal(other, D10, seed=1)):
        assert pair_runs([first, odd], one, other) == []
        assert verdict("log-operands", first, odd)[0] == "not measured"
    short = replace(cut(second, 10), name="short")
    assert pair_runs([first, short, second], one, other) == [(first, second)], "the nearest in examples"
    again = replace(cut(first, 12), name="again")
    assert {(a.name, b.name) for a, b in pair_runs([first, again, short, second], one, other)} == {
        (first.name, second.name), ("again", "short")}


def test_runs_of_one_recipe_that_make_no_pair_are_told() -> None:
    claim = ALL["log-operands"]
    seeds = [ideal(one, {1}, seed=seed) for seed, one in enumerate(claim.experiments)]
    found = judge(claim, seeds)
    assert (found.status, found.missing, found.summary) == ("not measured", (), "the runs there are make no fair pair")


def test_budgets_too_far_apart_are_not_compared() -> None:
    first, second = ideal(Experiment(10), {1, 2}), ideal(benford(10), D10)
    near, far = ceil(100 / LARGEST_RATIO), ceil(100 / LARGEST_RATIO) - 1
    assert (near, far) == (84, 83)
    assert verdict("log-operands", first, cut(second, near))[1:] == (1, 1)
    found = judge(ALL["log-operands"], [first, cut(second, far)])
    assert found.status == "undecided" and "not compared" in found.observations[0].finding.text


def test_both_runs_are_read_after_the_same_examples() -> None:
    """More correct GCD, but only after the other run had ended."""
    late = [ideal(Experiment(base), D10, epoch_of=dict.fromkeys(D10 - {1, 2}, 95)) for base in BASES]
    other = [ideal(benford(base), {1, 2, 5}) for base in BASES]
    found = judge(ALL["log-operands"], [*late, *(cut(run, 90) for run in other)])
    assert found.status == "holds" and found.observations[0].finding.text == "3 against 2 correct GCD after 27.0 M examples"
    assert verdict("log-operands", *late, *other) == ("does not hold", 0, 3)


def old(*entries: Entry) -> list[Entry]:
    return [with_facts(entry, f"old-{entry.name}", preset_version="0") for entry in entries]


def test_an_older_recipe_counts_only_where_there_is_no_newer() -> None:
    against = old(*(ideal(one(base), known) for base in BASES for one, known in ((Experiment, D10), (benford, {1}))))
    assert verdict("log-operands", *against) == ("does not hold", 0, 3)
    assert "(an older recipe, fast-0)" in claims_section(claim_verdicts(against))
    mixed = [against[0], ideal(benford(10), D10)]
    assert verdict("log-operands", *mixed)[0] == "not measured", "an old and a new run make no pair"
    now = [ideal(Experiment(10), {1}), ideal(benford(10), D10)]
    assert verdict("log-operands", *against, *now) == ("undecided", 1, 1)
    unlike = [now[0], cut(now[1], 10)]
    assert verdict("log-operands", *against, *unlike) == ("does not hold", 0, 3), "a new pair that does not tell hides none"
    tie = [ideal(Experiment(10), D10), ideal(benford(10), D10)]
    assert verdict("log-operands", *against, *tie) == ("does not hold", 0, 4), "nor does a tie"


def test_a_run_of_another_problem_decides_nothing() -> None:
    """Recorded for an experiment of whose distributions it is not: its primes may have come in another order."""
    fed = with_facts(grokked(2023, {2: 10, 3: 20, 5: 30, 11: 40, 13: 41}), changed={"focus": "2,3,5,11,13"})
    assert verdict("primes-in-order", fed)[0] == "not measured"
    assert "base-2023" in judge(ALL["primes-in-order"], [fed]).missing
    assert verdict("primes-in-order", with_facts(fed, changed={"lr": 0.002}))[0] == "holds", "a recipe is no other problem"


def test_the_page_and_the_lists_have_the_claims() -> None:
    entries = [ideal(one(base), known) for base in BASES for one, known in ((Experiment, {1, 2}), (benford, D10))]
    page = render(entries)
    assert page.index("## Claims\n") < page.index("## encodings\n")
    assert "| Log-uniform operands teach more GCD than uniform ones. | **holds** | 3 of 3 pairs of runs |" in page
    assert "**log-operands**: holds. Counted, at least 3: pairs of runs, more correct GCD" in page
    told = "- base-10, log-uniform-operands, seed 0: 13 against 2 correct GCD after 30.0 M examples."
    assert f"{told} Runs: `{entries[0].name}`, `{entries[1].name}`" in page
    held = page[page.index("**log-operands**: holds"):page.index("**log-outcomes**: ")]
    assert "- Missing: base-2023, base-2023_log-uniform-operands.\n" in held, "also where it is decided without"
    assert "`gcdformer reproduce claims --only log-operands --run`" in held
    two = judge(ALL["two-digits"], [ideal(Experiment(base), {1}) for base in (10, 30, 210)])
    assert two.status == "undecided" and not two.missing
    assert two.command == f"gcdformer reproduce claims --only two-digits --run --max-epochs {3 * CLAIM_EPOCHS}", "longer"
    assert f"measures what is missing,\n{CLAIM_EPOCHS} epochs per run" in page
    assert all(f"**{name}**: " in (ROOT / "docs" / "REPRODUCTION.md").read_text() for name in ALL)


def test_command_on_a_ledger(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def here(*words: object) -> str:
        assert main(["reproduce", *map(str, words), "--out", str(tmp_path / "none")]) == 0
        return capsys.readouterr().out

    own = json.loads(here("claims", "--show", "--json"))
    assert [claim["name"] for claim in own["claims"]] == list(ALL)
    assert own["claims"] == json.loads(json.dumps([verdict.to_json() for verdict in claim_verdicts(ledger_entries())]))
    runs = [ideal(one(base), known) for base in BASES for one, known in ((Experiment, {1, 2}), (benford, D10))]
    for entry in [*runs, with_facts(in_steps({}), "stepwise", experiments=[MIXTURE_30.name])]:
        entry.write(tmp_path / "ledger")
    words = ["--ledger", tmp_path / "ledger"]
    told = json.loads(here("claims", "--show", "--json", *words))
    by_name = {claim["name"]: claim for claim in told["claims"]}
    found = by_name["log-operands"]
    assert (found["verdict"], found["of"], found["least"], found["chance"]) == ("holds", 3, 3, None)
    assert by_name["steps"]["chance"].keys() == {"mean", "most"}
    assert found["evidence"][0]["runs"] == [runs[0].name, runs[1].name]
    assert {run["run"] for run in told["runs"]} >= {run.name for run in runs}
    assert by_name["fractions"]["missing"] == [f"{task}_base-10_max-{size}" for size in (100000, 1000000)
                                               for task in ("comparison", "addition")]
    some = json.loads(here("claims", "--show", "--json", "--only", "log-operands", "--bases", "30", *words))
    assert [(claim["name"], claim["of"]) for claim in some["claims"]] == [("log-operands", 1)]
    listed = json.loads(here("--json", *words))
    assert {claim["name"]: claim["verdict"] for claim in listed["claims"]}["log-operands"] == "holds"
    assert "13 claims: " in here(*words)
    assert "log-operands: holds" in here("claims", "--show", *words)
    page = here("claims", "--show", "--markdown", "--html", tmp_path / "x.html", *words)
    assert "**holds** | 3 of 3 pairs of runs |" in page
    assert '<h3>log-operands <span class="badge good">holds</span></h3>' in (tmp_path / "x.html").read_text()


def test_runs_of_claims_have_epochs_as_budget(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Minutes would give the runs of a pair unequal numbers of examples."""
    def commands(*words: str) -> list[str]:
        start = ["reproduce", "claims", "--only", "fractions", "--dry-run", "--json", "--out", str(tmp_path)]
        assert main([*start, *words]) == 0
        return [run["command"] for run in json.loads(capsys.readouterr().out)["runs"]]
    usual = commands()
    assert len(usual) == 4 and all(f"--max-epochs {CLAIM_EPOCHS}" in one and "minutes" not in one for one in usual)
    assert len(commands("--seeds", "2")) == 8
    assert all("--max-epochs 3" in one for one in commands("--max-epochs", "3"))
    assert all("--max-minutes 2" in one and "epochs" not in one for one in commands("--minutes", "2"))
    assert main(["reproduce", "claims", "--preset", "paper", "--dry-run", "--out", str(tmp_path)]) == 2
    assert "give --minutes or --max-epochs" in capsys.readouterr().err


@pytest.mark.processes
@pytest.mark.usefixtures("forked_trials")
def test_command_measures_what_is_missing(tmp_path: Path) -> None:
    out = tmp_path / "runs"
    words = ["reproduce", "claims", "--only", "mixture", "--out", out, "--ledger", tmp_path / "ledger", *SMALL, "--json"]
    planned = json.loads(call(*words, "--dry-run").stdout)
    assert [run["name"] for run in planned["runs"]] == ["base-30_seed-0", "base-30_mixture-outcomes_seed-0"]
    shown = call(*words)
    assert shown.returncode == 0 and not out.exists(), "showing trains nothing"
    assert json.loads(shown.stdout)["claims"][0]["verdict"] == "not measured"
    result = call(*words, "--run")
    assert result.returncode == 0, result.stderr
    (claim,) = json.loads(result.stdout)["claims"]
    assert claim["verdict"] == "undecided" and len(claim["evidence"][0]["runs"]) == 2 and claim["missing"] == []
