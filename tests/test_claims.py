"""The paper's claims: fair pairs, every check on runs for which it is true and on runs for which it is not, the command."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import ROOT, gcdformer
from gcdformer.cli import main
from gcdformer.evaluation import PredictionTable
from gcdformer.experiments.paper import Experiment, experiments
from gcdformer.experiments.paper.base import MIXTURE_30
from gcdformer.experiments.paper.benford import batch, benford, inverse
from gcdformer.experiments.paper.claims import ALL, FEW, MOST, claim_verdicts, claims_table, judge
from gcdformer.experiments.paper.contrasts import PAIRS
from gcdformer.experiments.paper.entry import Entry, compress, pack
from gcdformer.experiments.paper.grokking import GROKKED
from gcdformer.experiments.paper.ledger import ledger_entries
from gcdformer.experiments.paper.observations import digits_needed
from gcdformer.experiments.paper.page import claims_section, render
from gcdformer.experiments.paper.pairing import MOST_UNLIKE, pair_runs
from gcdformer.experiments.paper.rational import fraction
from gcdformer.experiments.paper.scaling import one_layer
from gcdformer.experiments.paper.uniform import UNI10, UNI10_EPOCHS, UNI_10
from gcdformer.explanation.sieve import products
from ledger_entries import ideal

D10, D30 = products({2: 16, 5: 25}, 100), products({2: 8, 3: 9, 5: 25}, 100)
SMALL = ["--epoch-size", "512", "--test-size", "200", "--max-epochs", "1", "--engine", "autograd", "--quiet"]


def with_facts(entry: Entry, name: str | None = None, **facts: Any) -> Entry:
    return Entry(name or entry.name, entry.facts | facts)


def cut(entry: Entry, epochs: int) -> Entry:
    """The same run, stopped earlier."""
    return with_facts(entry, curve={key: values[:epochs] for key, values in entry.facts["curve"].items()},
                      events=[event for event in entry.facts["events"] if event[0] <= epochs])


def accurate(experiment: Experiment, accuracy: float, **more: Any) -> Entry:
    """A run of which only the accuracy matters."""
    entry = ideal(experiment, {1}, **more)
    tables = "" if experiment.task != "gcd" else entry.facts["tables"]
    return with_facts(entry, curve=entry.facts["curve"] | {"accuracy": [accuracy] * 100}, tables=tables)


def verdict(name: str, *entries: Entry) -> tuple[str, int, int]:
    found = judge(ALL[name], entries)
    return found.status, found.held, found.of


def test_every_claim_has_experiments_of_the_tables() -> None:
    known = experiments()
    assert len(ALL) == 11
    for claim in ALL.values():
        found = judge(claim, [])
        assert found.status == "not measured" and found.missing == tuple(one.name for one in claim.experiments)
        assert all(one.name in known for one in claim.experiments) and claim.name in claim.command
    assert {one.base for one in claims_table(ALL.values()).experiments()} == {10, 30, 210, 420, 1000, 2023}
    for contrasts in PAIRS.values():
        for one, other in contrasts:
            differing = [name for name in vars(one) if getattr(one, name) != getattr(other, name)]
            assert len(differing) == 1 or differing == ["model", "small"], (one, other)


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
    assert (found.status, found.missing, found.told) == ("not measured", (), "the runs there are make no fair pair")


def test_budgets_too_far_apart_are_not_compared() -> None:
    first, second = ideal(Experiment(10), {1, 2}), ideal(benford(10), D10)
    near, far = int(100 / MOST_UNLIKE), int(100 / MOST_UNLIKE) - 1
    assert verdict("log-operands", first, cut(second, near)) == ("holds", 1, 1)
    found = judge(ALL["log-operands"], [first, cut(second, far)])
    assert found.status == "undecided" and "not compared" in found.observations[0].finding.told


def test_both_runs_are_read_after_the_same_examples() -> None:
    """More correct GCD, but only after the other run had ended."""
    late = ideal(Experiment(10), D10, epoch_of=dict.fromkeys(D10 - {1, 2}, 90))
    short = cut(ideal(benford(10), {1, 2, 5}), 60)
    found = judge(ALL["log-operands"], [late, short])
    assert found.status == "holds" and found.observations[0].finding.told == "3 against 2 correct GCD after 18.0 M examples"
    assert verdict("log-operands", late, ideal(benford(10), {1, 2, 5}))[0] == "does not hold"


def test_an_older_recipe_counts_only_where_there_is_no_newer() -> None:
    def old(*entries: Entry) -> list[Entry]:
        return [with_facts(entry, f"old-{entry.name}", preset_version="0") for entry in entries]
    against = old(ideal(Experiment(10), D10), ideal(benford(10), {1}))
    assert verdict("log-operands", *against) == ("does not hold", 0, 1)
    assert "(an older recipe, fast-0)" in claims_section(claim_verdicts(against))
    mixed = [against[0], ideal(benford(10), D10)]
    assert verdict("log-operands", *mixed)[0] == "not measured", "an old and a new run make no pair"
    now = [ideal(Experiment(10), {1}), ideal(benford(10), D10)]
    assert verdict("log-operands", *against, *now) == ("holds", 1, 1)


def test_mixture() -> None:
    slow = ideal(Experiment(30), D30, epoch_of={k: 10 + 2 * place for place, k in enumerate(sorted(D30 - {1, 2, 3}))})
    fast = ideal(MIXTURE_30, D30, epoch_of={k: 2 + place for place, k in enumerate(sorted(D30 - {1, 2, 3}))})
    found = judge(ALL["mixture"], [slow, fast])
    assert (found.status, found.held, found.of) == ("holds", len(D30) - 3, len(D30) - 3)
    assert "correct GCD after" in found.observations[0].finding.told
    swapped = [with_facts(slow, experiments=[MIXTURE_30.name]), with_facts(fast, experiments=["base-30"])]
    assert verdict("mixture", *swapped) == ("does not hold", 0, len(D30) - 3)
    assert verdict("mixture", fast, with_facts(fast, "same", experiments=["base-30"]))[0] == "undecided"


@pytest.mark.parametrize(("name", "plain", "better"), [
    ("log-operands", Experiment, benford), ("log-operands", lambda b: Experiment(b, outcomes="log-uniform"), inverse),
    ("log-outcomes", benford, inverse), ("log-outcomes", Experiment, lambda b: Experiment(b, outcomes="log-uniform"))])
def test_laws(name: str, plain: Any, better: Any) -> None:
    few, many = {1, 2, 5, 10}, D10
    assert verdict(name, ideal(plain(10), few), ideal(better(10), many)) == ("holds", 1, 1)
    assert verdict(name, ideal(plain(10), many), ideal(better(10), few)) == ("does not hold", 0, 1)
    assert verdict(name, ideal(plain(10), many), ideal(better(10), many)) == ("undecided", 0, 0), "as many tell nothing"
    bases = (10, 30, 1000, 2023)
    three_of_four = [ideal(one(base), known) for base in bases
                     for one, known in ((plain, few if base != 30 else many), (better, many if base != 30 else few))]
    assert verdict(name, *three_of_four) == ("holds", 3, 4) and MOST == 3 / 4
    assert verdict(name, *three_of_four[2:]) == ("does not hold", 2, 3)


def split_table(answers: dict[int, list[int]]) -> PredictionTable:
    """100 pairs for every k, the predictions of each taken in turn."""
    gcds = np.repeat(np.arange(1, 101), 100)
    predictions = np.array([answers[int(k)][place % len(answers[int(k)])] for place, k in enumerate(gcds)])
    return PredictionTable.of(gcds, gcds, predictions, gcds)


@pytest.mark.parametrize("law", ["natural", "log-uniform"])
def test_determinism(law: str) -> None:
    def run(experiment: Experiment, split: int) -> Entry:
        table = split_table({k: [k, 101] if k <= split else [k] for k in range(1, 101)})
        return with_facts(ideal(experiment, {1}), tables=pack({"natural": table, "stratified": table}))
    settled = run(Experiment(10, outcomes=law), 2)
    assert verdict("determinism", settled, run(UNI_10, 40)) == ("holds", 1, 1)
    assert verdict("determinism", settled, run(UNI_10, 5)) == ("does not hold", 0, 1)
    assert verdict("determinism", settled, run(UNI_10, 6)) == ("holds", 1, 1)


def test_model_size() -> None:
    usual, narrow = accurate(Experiment(30), 94.7), one_layer(30, 4)
    assert verdict("model-size", usual, accurate(narrow, 93.3)) == ("holds", 1, 1)
    assert verdict("model-size", usual, accurate(narrow, 92.0)) == ("does not hold", 0, 1)
    deep = experiments()["base-30_encoder-layers-6_decoder-layers-6_encoder-dim-512_decoder-dim-512"]
    assert verdict("model-size", usual, accurate(deep, 97.0)) == ("does not hold", 0, 1), "better is not the same"
    lstm = experiments()["base-30_family-lstm_hidden-dim-1024"]
    assert verdict("model-size", usual, accurate(lstm, 94.7))[0] == "not measured", "another family is not another size"


def test_batch_size() -> None:
    usual, small = batch(1000, 1), batch(1000, 0)
    known = sorted(products({2: 16, 5: 25, 3: 3}, 100))
    assert (usual.batch_size, small.batch_size) == (256, 64)
    assert verdict("batch-size", ideal(usual, set(known)), ideal(small, set(known[:-5]))) == ("holds", 1, 1)
    assert verdict("batch-size", ideal(usual, set(known)), ideal(small, set(known[:-6]))) == ("does not hold", 0, 1)
    both = with_facts(ideal(usual, set(known)), experiments=[benford(1000).name, usual.name])
    assert verdict("batch-size", both, ideal(small, set(known))) == ("holds", 1, 1)


def test_fractions() -> None:
    comparison, addition = fraction(10, 0), fraction(10, 6)
    assert (comparison.task, addition.task) == ("comparison", "addition")
    assert verdict("fractions", accurate(comparison, 99.0), accurate(addition, 0.3)) == ("holds", 1, 1)
    assert verdict("fractions", accurate(comparison, 55.0), accurate(addition, 0.3)) == ("does not hold", 0, 1)
    assert verdict("fractions", accurate(comparison, 99.0), accurate(addition, 40.0)) == ("does not hold", 0, 1)
    assert verdict("fractions", accurate(comparison, 99.0), accurate(fraction(10, 7), 0.3))[0] == "not measured", "another M"


def grokked(base: int, epochs: dict[int, int]) -> Entry:
    return ideal(Experiment(base), {1, *epochs}, epoch_of=epochs)


def test_primes_in_order() -> None:
    ordered = grokked(2023, {2: 10, 3: 20, 5: 30, 11: 40, 13: 41})
    assert verdict("primes-in-order", ordered) == ("holds", 10, 10)
    reverse = grokked(2023, {2: 41, 3: 40, 5: 30, 11: 20, 13: 10})
    assert verdict("primes-in-order", reverse) == ("does not hold", 0, 10)
    assert verdict("primes-in-order", ordered, reverse) == ("does not hold", 10, 20)
    assert verdict("primes-in-order", grokked(2023, {13: 5})) == ("undecided", 0, 4), "those not learned come last"
    assert verdict("primes-in-order", grokked(2023, {2: 5, 3: 5, 7: 1, 17: 1, 4: 60})) == ("undecided", 0, 0)
    assert FEW == 10


def test_primes_in_order_as_published() -> None:
    """Of the rows of the paper's table most, not all, have 2 before 3 before 5."""
    runs = [with_facts(grokked(base, {k: -(-epoch // 14) for k, epoch in epochs.items()}), f"row-{place}")
            for place, (base, _, _, epochs) in enumerate(GROKKED)]
    status, held, of = verdict("primes-in-order", *runs)
    assert status == "holds" and held < of


def test_two_digits() -> None:
    assert [digits_needed(q, 210) for q in (2, 4, 8, 9, 49, 27, 16, 11)] == [1, 2, 3, 2, 2, 3, 4, None]
    assert (digits_needed(16, 420), digits_needed(32, 420)) == (2, 3)
    visible = {2: 1, 3: 1, 5: 1, 7: 1, 4: 3, 9: 6, 25: 20, 49: 40}
    found = judge(ALL["two-digits"], [grokked(210, visible)])
    assert (found.status, found.held) == ("holds", found.of) and found.of >= 7
    assert "4 at 3.0" in found.observations[0].finding.told and "not 8" in found.observations[0].finding.told
    by_rarity = grokked(210, {2: 1, 3: 1, 5: 1, 7: 1, 4: 3, 8: 6, 9: 7, 16: 9, 25: 20, 27: 30, 49: 60})
    assert verdict("two-digits", by_rarity)[:2] == ("does not hold", 1), "only 49 against 32"
    assert verdict("two-digits", grokked(210, {2: 1, 3: 1, 4: 3}))[0] == "undecided", "8 may just be rare"
    assert verdict("two-digits", grokked(30, visible))[0] == "not measured"


def uniform_run(history: dict[int, list[tuple[int, int]]]) -> Entry:
    return with_facts(ideal(UNI_10, {1}), classes=compress(history))


def test_classes_as_published() -> None:
    """The published predictions in base 10: eight classes among the first 20 k, predicted by one element and by another."""
    labels = (1, 2, 4, 5, 8, 10, 16, 20)
    published = {epoch: [(k, int(UNI10[k - 1][1 + 2 * place])) for k in labels] for place, epoch in enumerate(UNI10_EPOCHS)}
    found = judge(ALL["classes"], [uniform_run(published)])
    assert found.status == "holds"
    assert found.observations[0].finding.told.startswith("8 to 8 classes in 7 evaluations; from one to the next 100 % of")


def test_classes() -> None:
    labels = (1, 2, 4, 5, 8, 10, 16, 20, 25, 50)
    settled = {epoch: [(k, k) for k in labels] for epoch in range(1, 9)}
    assert verdict("classes", uniform_run(settled)) == ("does not hold", 0, 1), "nothing changes"
    moving = {epoch: [(k, k * (1 + 2 * (epoch % 2))) for k in labels] for epoch in range(1, 9)}
    assert verdict("classes", uniform_run(moving)) == ("holds", 1, 1)
    passing = {epoch: [(k + epoch % 2, 7) for k in (1, 4, 8, 20)] for epoch in range(1, 9)}
    assert verdict("classes", uniform_run(passing)) == ("does not hold", 0, 1), "other classes each time"
    renewed = {epoch: [(k, k * (1 + 2 * (epoch % 2))) for k in (*labels[:4], *(q + epoch % 2 for q in (30, 60, 80, 90)))]
               for epoch in range(1, 9)}
    assert verdict("classes", uniform_run(renewed)) == ("does not hold", 0, 1), "half of the classes are others each time"
    growing = {0: [(1, 1)], **moving}
    assert verdict("classes", uniform_run(growing)) == ("holds", 1, 1), "while few classes are learned it is not counted"
    found = judge(ALL["classes"], [ideal(UNI_10, {1})])
    assert found.status == "undecided" and "not kept" in found.observations[0].finding.told


def test_steps() -> None:
    """30: 2, 3, 5 at first, then 4, 9, 8 and 25 with their products, a little later."""
    def run(delay: dict[int, int]) -> Entry:
        powers = {2: 1, 3: 1, 5: 1, 4: 10, 9: 20, 8: 30, 25: 40}
        known = products({2: 8, 3: 9, 5: 25}, 100)
        first = {k: max(epoch for q, epoch in powers.items() if k % q == 0) + delay.get(k, 0) for k in known - {1}}
        return ideal(Experiment(30), known, epoch_of={**first, **powers})
    together = judge(ALL["steps"], [run({12: 1, 36: 2})])
    assert together.status == "holds" and together.held == together.of >= FEW
    late = judge(ALL["steps"], [run(dict.fromkeys((12, 20, 18, 45, 90, 24, 36, 40), 9))])
    assert late.status == "does not hold" and late.of - late.held == 8
    assert "later or not 12, 18, 20, 24, 36, 40, 45, 90" in late.observations[0].finding.told
    early = judge(ALL["steps"], [run({75: -9, 100: 2, 50: -2})]).observations[0].finding
    assert early.held == early.of - 1 and early.told.endswith("sooner 75")
    never = ideal(Experiment(30), {1, 2, 3, 4}, epoch_of={4: 10})
    assert judge(ALL["steps"], [never]).observations[0].finding.told.endswith("later or not 12")
    short = judge(ALL["steps"], [cut(run({}), 9)])
    assert short.of == 0 and "9.0 epochs are too few" in short.observations[0].finding.told
    assert verdict("steps", ideal(Experiment(30), D30)) == ("undecided", 0, 0), "all in the first evaluation is no step"


def test_the_page_and_the_lists_have_the_claims() -> None:
    entries = [ideal(Experiment(10), {1, 2}), ideal(benford(10), D10)]
    page = render(entries)
    assert page.index("## Claims\n") < page.index("## encodings\n")
    assert "| Log-uniform operands teach more GCD than uniform ones. | **holds** | 1 of 1 pairs of runs |" in page
    told = "- base-10, log-uniform-operands, seed 0: 13 against 2 correct GCD after 30.0 M examples."
    assert f"{told} Runs: `{entries[0].name}`, `{entries[1].name}`" in page
    assert "`gcdformer reproduce claims --only mixture --max-epochs 30`" in page
    assert all(f"**{name}**: " in (ROOT / "docs" / "REPRODUCTION.md").read_text() for name in ALL)


def test_command_on_a_ledger(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def here(*words: object) -> str:
        assert main(["reproduce", *map(str, words), "--out", str(tmp_path / "none")]) == 0
        return capsys.readouterr().out

    own = json.loads(here("claims", "--show", "--json"))
    assert [claim["name"] for claim in own["claims"]] == list(ALL)
    assert own["claims"] == json.loads(json.dumps(claim_verdicts(ledger_entries())))
    runs = [ideal(Experiment(10), {1, 2}), ideal(benford(10), D10), ideal(Experiment(30), {1}), ideal(benford(30), {1, 2})]
    for entry in runs:
        entry.write(tmp_path / "ledger")
    words = ["--ledger", tmp_path / "ledger"]
    told = json.loads(here("claims", "--show", "--json", *words))
    by_name = {claim["name"]: claim for claim in told["claims"]}
    assert by_name["log-operands"]["verdict"] == "holds" and by_name["log-operands"]["of"] == 2
    assert by_name["log-operands"]["evidence"][0]["runs"] == [runs[0].name, runs[1].name]
    assert {run["run"] for run in told["runs"]} >= {run.name for run in runs}
    assert by_name["fractions"]["missing"] == ["comparison_base-10_max-100000", "addition_base-10_max-100000"]
    some = json.loads(here("claims", "--show", "--json", "--only", "log-operands", "--bases", "30", *words))
    assert [(claim["name"], claim["of"]) for claim in some["claims"]] == [("log-operands", 1)]
    listed = json.loads(here("--json", *words))
    assert {claim["name"]: claim["verdict"] for claim in listed["claims"]}["log-operands"] == "holds"
    assert "11 claims: " in here(*words)
    assert "log-operands: holds" in here("claims", "--show", *words)
    page = here("claims", "--show", "--markdown", "--html", tmp_path / "x.html", *words)
    assert "**holds** | 2 of 2 pairs of runs |" in page
    assert "<h3>log-operands: holds</h3>" in (tmp_path / "x.html").read_text()


def test_command_measures_what_is_missing(tmp_path: Path) -> None:
    out = tmp_path / "runs"
    words = ["reproduce", "claims", "--only", "mixture", "--out", out, "--ledger", tmp_path / "ledger", *SMALL, "--json"]
    planned = json.loads(gcdformer(*words, "--dry-run").stdout)
    assert [run["name"] for run in planned["runs"]] == ["base-30_seed-0", "base-30_mixture-outcomes_seed-0"]
    result = gcdformer(*words)
    assert result.returncode == 0, result.stderr
    (claim,) = json.loads(result.stdout)["claims"]
    assert claim["verdict"] == "undecided" and len(claim["evidence"][0]["runs"]) == 2 and claim["missing"] == []
