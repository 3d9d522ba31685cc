"""The same weights under many priors: the figures, their file, the command and its picture, and the claim about them."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from claim_runs import D10, verdict, with_facts
from decisions import call
from gcdformer import Run, UserError, explain
from gcdformer.errors import DamagedFile
from gcdformer.explanation.priors import SCANNED_EXPONENTS, UnderPrior
from gcdformer.explanation.sieve import products
from gcdformer.paper import Experiment
from gcdformer.paper.claims import ALL, judge
from gcdformer.paper.entry import Entry, compress
from gcdformer.paper.record import Mark, entry_of
from gcdformer.paper.tables.benford import inverse
from gcdformer.paper.tables.uniform import UNI_10
from gcdformer.runs.priors import NAME, SCANNED_PRIORS, saved_scan, scan_priors, write_scan
from ledger_entries import ideal

RULES = UnderPrior("natural", 83.0, 83.2, "R", True, None, 0.999, 0.998, sorted(D10))
BROKEN = replace(RULES, prior="training", accuracy=4.1, implied=2.0, form="none", certified=False, missing="no form fits",
                 natural=0.22, D=[50, 100])


def test_the_figures_are_those_of_the_explanation_under_each_prior(uniform_run: Run) -> None:
    scan = scan_priors(uniform_run, priors=("training", "natural", "1.5"))
    assert [figures.prior for figures in scan.under] == ["training", "natural", "1.5"] and scan.epoch == 2
    for figures in scan.under:
        found = explain(uniform_run, prior=figures.prior, bands=False)
        assert (figures.D, figures.form, figures.certified) == (found.correct, found.form.letter, found.certified)
        assert figures.accuracy == pytest.approx(found.measured_accuracy, abs=1e-3)
        assert figures.natural == pytest.approx(found.fidelity["natural"].value, abs=1e-5)
    assert scan.under[1].accuracy > scan.under[0].accuracy + 20


def test_the_command_shows_draws_and_keeps_them(uniform_run: Run, tmp_path: Path) -> None:
    path = shutil.copytree(uniform_run.path, tmp_path / "run")
    shown = call("explain", path, "--over-priors", "--figure", tmp_path / "x.svg")
    assert shown.returncode == 0, shown.stderr
    assert all(f"k^-{exponent} " in shown.stdout for exponent in SCANNED_EXPONENTS) and "natural" in shown.stdout
    assert "exponent α of the prior" in (tmp_path / "x.svg").read_text()
    saved = saved_scan(Run(path))
    assert saved is not None and [figures.prior for figures in saved.under] == list(SCANNED_PRIORS)
    found = json.loads(call("explain", path, "--over-priors", "--json").stdout)["runs"][0]
    assert [figures["prior"] for figures in found["under"]][:3] == ["training", "natural", 0.0]
    assert found["under"][1]["D"] == saved.under[1].D
    (path / NAME).write_text("{}")
    with pytest.raises(DamagedFile, match="--over-priors` writes it anew"):
        saved_scan(Run(path))


@pytest.mark.parametrize(("words", "says"), [
    (("--over-priors", "--prior", "1"), "prior: explains the answers under one prior"),
    (("--figure", "x.svg"), "figure: draws --over-priors"),
    (("--over-priors", "--figure", "x.pdf"), "figure: a file that ends in .svg or .png")])
def test_flags_that_clash(uniform_run: Run, words: tuple[str, ...], says: str) -> None:
    failed = call("explain", uniform_run.path, *words)
    assert failed.returncode == 2 and says in failed.stderr and failed.stderr.count("\n") == 1


def test_a_run_is_recorded_with_them(uniform_run: Run, tmp_path: Path) -> None:
    run = Run(shutil.copytree(uniform_run.path, tmp_path / "run"))
    mark = Mark("fast", "4", [UNI_10.name], {})
    assert entry_of(run, "x", mark).under_priors == {}
    scan = scan_priors(run, priors=("training", "natural"))
    write_scan(run, scan)
    assert list(entry_of(run, "x", mark).under_priors.values()) == list(scan.under)
    write_scan(run, replace(scan, epoch=1))
    assert entry_of(run, "x", mark).under_priors == {}, "of other weights than those recorded"


def asked(entry: Entry, own: UnderPrior, natural: UnderPrior) -> Entry:
    return with_facts(entry, priors=compress([replace(own, prior="training").to_json(), natural.to_json()]))


def test_the_claim_of_the_prior() -> None:
    uniform = [ideal(UNI_10, D10, seed=seed) for seed in range(4)]
    others = [ideal(maker, products({2: 4, 5: 5}, 100), seed=seed) for seed in range(2)
              for maker in (Experiment(10), inverse(10))]
    held = [asked(entry, BROKEN, RULES) for entry in uniform] + [asked(entry, RULES, RULES) for entry in others]
    assert verdict("prior", *held) == ("holds", 8, 8)
    assert verdict("prior", *uniform, *others)[0] == "not measured", "runs that were not asked say nothing"
    assert UNI_10.name in judge(ALL["prior"], uniform).missing and UNI_10.name not in judge(ALL["prior"], held).missing
    for natural in (BROKEN, replace(RULES, natural=0.97), replace(RULES, implied=84.5)):
        against = [asked(entry, BROKEN, replace(natural, prior="natural")) for entry in uniform]
        assert verdict("prior", *against, *held[4:])[1] == 4, "the rules are not restored"
    assert verdict("prior", *(asked(entry, RULES, RULES) for entry in uniform), *held[4:])[1] == 4, "nothing was broken"
    assert verdict("prior", *held[:4], *(asked(entry, BROKEN, RULES) for entry in others))[1] == 4, "the control broke"


def test_a_prior_has_to_be_one() -> None:
    with pytest.raises(UserError, match="prior: one of"):
        scan_priors(Path("src/gcdformer/lab/example-grokking"), priors=("no",))
