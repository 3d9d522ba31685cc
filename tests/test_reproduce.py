"""Measured runs beside published values: the ledger's files, the choice of a run, and the page."""

from __future__ import annotations

import hashlib
import json
import shlex
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import ROOT
from gcdformer import DamagedFile, Run, UserError, train
from gcdformer.cli import build_parser
from gcdformer.explanation.certificate import shares_of
from gcdformer.explanation.classes import find_classes
from gcdformer.explanation.sieve import products
from gcdformer.lab import paper
from gcdformer.options import config_from
from gcdformer.paper import TABLES, Experiment, Note, experiments
from gcdformer.paper.comparison import compare_tables, count_tables, reproduction_tables
from gcdformer.paper.entry import Entry, read_entry, unpack
from gcdformer.paper.ledger import changes, choose, ledger_entries, matching_experiments
from gcdformer.paper.page import difference_lines, group_grid, overview, render, run_item, table_section
from gcdformer.paper.record import Mark, entry_of, measure_run
from gcdformer.paper.reproduce import RECORDED, Recipe, make_trials, mark_recorded
from gcdformer.paper.table import REASONS
from gcdformer.paper.tables.grokking import TWO_SET
from gcdformer.paper.text import to_markdown
from gcdformer.presets import VERSIONS, preset
from gcdformer.sweeps.plan import Planned
from ledger_entries import ideal

SMALL: dict[str, Any] = dict(epoch_size=512, test_size=200, max_minutes=None, max_epochs=2, backend="autograd", threads=1)
PINNED = {"fast": ("4", "eff27f161e10"), "paper": ("1", "e73e26498c01")}
PINNED_BY = [experiments()[name] for name in ("base-10", "base-10_layers-1_dim-512", "base-10_family-lstm_hidden-dim-1024",
                                              "addition_base-10_max-100000")]
DISTRIBUTION = ("operands", "outcomes")


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run of base 10 in the fast recipe, but for its length."""
    return train(Experiment(10).config("fast").derive(**SMALL), tmp_path_factory.mktemp("measured") / "base-10_seed-0")


def cells(entries: list[Entry], table: str, **wanted: Any) -> dict[tuple[str, str], dict[str, Any]]:
    (found,) = reproduction_tables(entries, names=[table], **wanted)
    return {(cell["row"], cell["column"]): cell for cell in found["cells"]}


D10 = products({2: 16, 5: 25}, 100)
D1000 = products({2: 16, 5: 25, 3: 3}, 100)


def test_a_run_becomes_a_small_file_that_tells_the_same(measured: Run, tmp_path: Path) -> None:
    entry = measure_run(measured.path)
    path = entry.write(tmp_path)
    assert path.stat().st_size < 20_000 and path.parent == tmp_path
    (read,) = ledger_entries(tmp_path)
    assert read == entry and read.experiments == ["base-10"]
    assert read.recipe.startswith(f"fast-{VERSIONS['fast']} with epoch_size 512")
    assert read.config == measured.config
    scores = measured.scores()
    assert read.scores == scores and read.accuracy == pytest.approx(scores.accuracy, abs=1e-3)
    for name, table in measured.prediction_tables().items():
        for column in ("gcd", "prediction", "count"):
            assert np.array_equal(getattr(read.tables[name], column), getattr(table, column))
    assert read.curve["examples"] == [line["examples"] for line in measured.metrics]
    assert read.explanation is not None and read.explanation.correct == scores.correct
    assert f"--horizon {measured.config.training.horizon}" in read.command


def test_a_file_edited_by_hand_is_refused(measured: Run, tmp_path: Path) -> None:
    path = measure_run(measured.path).write(tmp_path)
    text = path.read_text()
    for old, new in (('"seed":0', '"seed":1'), ('"format": 1', '"format": 2'), ("{", "[", )):
        assert old in text
        with pytest.raises(DamagedFile, match="a measured run|does not match its checksum"):
            read_entry("x", text.replace(old, new, 1), "x.json")
    with pytest.raises(DamagedFile):
        unpack("not compressed", "x")


def test_which_experiments_a_run_serves(measured: Run) -> None:
    benford = experiments()["base-10_log-uniform-operands"].config("fast").derive(max_gcd=None)
    found, _ = matching_experiments(benford, "fast")
    assert found == ["base-10_log-uniform-operands", "base-10_log-uniform-operands_batch-256"]
    other = benford.derive(batch_size=64, lr=5e-4)
    assert matching_experiments(other, "fast") == (["base-10_log-uniform-operands_batch-64"], {"lr": 5e-4})
    odd = benford.derive(batch_size=32)
    assert matching_experiments(odd, "fast") == (["base-10_log-uniform-operands"], {"batch_size": 32})
    assert matching_experiments(benford.derive(dim=16), "fast") == ([], {})
    mixture = Experiment(30, outcomes="mixture").config("fast").derive(mixture_share=0.05)
    assert matching_experiments(mixture, "fast")[0] == ["base-30_mixture-outcomes"]


def test_a_run_that_serves_nothing_needs_to_be_told(tmp_path: Path) -> None:
    run = train(Experiment(10).config("fast").derive(**SMALL, dim=16), tmp_path / "narrow")
    with pytest.raises(UserError, match="--as"):
        measure_run(run.path)
    with pytest.raises(UserError, match="base 30"):
        measure_run(run.path, experiment="base-30")
    why = Note("smaller model", "16 dimensions")
    entry = measure_run(run.path, experiment="base-10", why=why)
    assert entry.facts["changed"]["encoder_dim"] == 16 and entry.note == why
    with pytest.raises(UserError, match="why"):
        entry_of(run, "x", Mark("fast", "1", [], {}), Note("mood", "x"))  # type: ignore[arg-type]


def test_a_run_keeps_the_preset_it_was_started_in(measured: Run, tmp_path: Path) -> None:
    """A preset that changes later neither relabels nor loses a run."""
    copy = tmp_path / "base-10_seed-0"
    shutil.copytree(measured.path, copy)
    started = {"preset": "fast", "version": "0", "experiments": ["base-10"], "changed": {"lr": 1.0}}
    (copy / ".reproduce.json").write_text(json.dumps(started))
    entry = measure_run(copy)
    assert entry.recipe == "fast-0 with lr 1.0" and entry.experiments == ["base-10"]
    assert entry.name != measure_run(measured.path).name
    (copy / ".reproduce.json").write_text("{")
    with pytest.raises(DamagedFile):
        measure_run(copy)


def test_predictions_of_the_rules_agree_with_the_paper() -> None:
    entries = [ideal(Experiment(10), D10), ideal(Experiment(2), products({2: 64}, 100))]
    for table in ("base_pred", "base_pred_det", "base_pred_det2"):
        found = [cell for (_, column), cell in cells(entries, table).items() if column.split()[1] in ("2", "10")]
        assert found and all(cell["agrees"] and cell["status"] == "measured" for cell in found)
    assert cells(entries, "base_gcd")["10", "correct GCD"]["ours"] == 13
    assert cells(entries, "base_gcd")["10", "accuracy"]["ours"] == pytest.approx(84.4, abs=2)
    assert cells(entries, "base_gcd")["30", "accuracy"]["status"] == "not measured"
    assert cells(entries, "base_gcd", bases=[2]).keys() == {("2", "correct GCD"), ("2", "accuracy")}
    assert cells(entries, "base_gcd", preset="paper")["10", "accuracy"]["ours"] is None
    assert "the rule" not in run_item(entries[0])


def test_epochs_divisors_and_new_prime_powers() -> None:
    grokked, epochs_of = products({7: 7, 17: 17, 3: 3, 2: 2}, 100), {3: 40, 21: 41, 2: 90}
    entry = ideal(Experiment(2023), grokked, epoch_of=epochs_of)
    assert cells([entry], "grokking_det")["2023", "3 at epoch"]["ours"] is None, "the fast recipe groks by repetition"
    found = cells([ideal(Experiment(2023, two_set=TWO_SET), grokked, epoch_of=epochs_of)], "grokking_det")
    assert found["2023", "3 at epoch"]["ours"] == 40.0 and found["2023", "3 at epoch"]["agrees"]
    assert found["2023", "2 at epoch"]["ours"] == 90.0
    assert found["2023", "4 at epoch"]["ours"] == "not reached" and not found["2023", "4 at epoch"]["agrees"]
    assert found["2023", "divisors of B"]["ours"] == [7, 17] and found["2023", "divisors of B"]["agrees"]
    uni5 = cells([entry, ideal(Experiment(2023, outcomes="mixture"), {1, 7})], "grokking_uni5")
    assert uni5["2023", "natural, epochs"]["ours"] == 90.0 and uni5["2023", "5 % uniform"]["ours"] == 2
    for known, agrees in ((D1000, True), (D10, False)):
        epochs = cells([ideal(Experiment(1000), known)], "grokking_uni5")["1000", "natural, epochs"]
        assert (epochs["ours"], epochs["agrees"]) == (1.0, agrees), "sooner counts only with as many GCD"
    inverse = Experiment(10, outcomes="log-uniform")
    balanced = ideal(inverse, products({2: 32, 5: 25}, 100))
    assert cells([balanced], "grokking_inverse")["10", "new prime powers"]["ours"] is None
    both = cells([balanced, ideal(Experiment(10), D10)], "grokking_inverse")
    assert both["10", "new prime powers"]["ours"] == [32] and both["10", "log-uniform outcomes"]["agrees"]
    natural = ideal(Experiment(10), D10)
    old, longer = Entry("old", natural.facts | {"preset_version": "0"}), Entry("longer", stretched(natural.facts, 3))
    for unfair in (old, longer, ideal(Experiment(10), D10, seed=1)):
        assert cells([balanced, unfair], "grokking_inverse")["10", "new prime powers"]["status"] == "not measured"
    three = cells([balanced, Entry("best", stretched(ideal(Experiment(10), D1000).facts, 3)), natural], "grokking_inverse")
    assert three["10", "natural"]["run"] == "best" and three["10", "new prime powers"]["ours"] == [32]
    steps = cells([ideal(Experiment(30), products({2: 8, 3: 9, 5: 25}, 100), epoch_of={100: 77})], "learning_curves")
    assert (steps["base 30", "21 GCD at epoch"]["ours"], steps["base 30", "25 GCD at epoch"]["ours"]) == (1.0, 77.0)
    assert steps["base 30", "27 GCD at epoch"]["ours"] == "not reached"


def stretched(facts: dict[str, Any], times: int) -> dict[str, Any]:
    """The facts of a run with more examples in each epoch."""
    examples = [times * seen for seen in facts["curve"]["examples"]]
    config = facts["config"] | {"limits": {"max_epochs": times * len(examples)}}
    return facts | {"curve": facts["curve"] | {"examples": examples}, "config": config}


def test_fractions_near_nothing_agree_only_within_their_noise() -> None:
    def agrees(column: str, accuracy: float) -> bool:
        one = next(cell.experiment for cell in TABLES["fractions"].cells if (cell.row, cell.column) == ("30", column))
        facts = ideal(one, {1}).facts
        run = Entry("x", facts | {"tables": "", "curve": facts["curve"] | {"accuracy": [accuracy]}})
        return bool(cells([run], "fractions")["30", column]["agrees"])
    assert agrees("simplification, M = 10^5", 0.2) and not agrees("simplification, M = 10^5", 0.0), "0.21 is published"
    assert agrees("addition, M = 10^5", 0.01) and not agrees("addition, M = 10^5", 0.4), "0 is published"
    assert agrees("division, M = 10^5", 14.5) and not agrees("division, M = 10^5", 14.8), "14.2 is published"


def test_uniform_outcomes_keep_their_last_epochs(tmp_path: Path) -> None:
    config = Experiment(10, outcomes="uniform").config("fast").derive(**SMALL | {"max_epochs": 8, "epoch_size": 256})
    run = train(config, tmp_path / "uniform")
    entry = measure_run(run.path)
    assert list(entry.facts["late"]) == [str(epoch) for epoch in range(2, 9)]
    assert list(entry.class_history) == list(range(1, 9))
    for epoch, classes in entry.class_history.items():
        shares, *_ = shares_of(run.prediction_tables(epoch)["stratified"], 1)
        assert classes == {one.label: one.prediction for one in find_classes(shares)}
    found = cells([entry], "pred_uni10")
    first = run.scores(2).by_gcd[1]
    assert found["1", "epoch 266"]["ours"] == (first.prediction if first.prediction is not None else "unreadable")
    assert found["1", "epoch 266 %"]["ours"] == pytest.approx(100 * first.frequency, abs=0.06)
    assert all(cell["why"]["reason"] in ("not comparable", "pitfall") for cell in found.values() if cell["agrees"] is False)


def test_classes_agree_whichever_element_stands_for_them() -> None:
    """Two predictions of one class agree; a run too short to tell the epochs does not hide one that tells them."""
    def late(name: str, known: set[int], f: dict[int, int], epochs: int = 7) -> Entry:
        rows = [[f.get(k, k), 100.0] for k in range(1, 21)]
        facts = ideal(Experiment(10, outcomes="uniform"), known).facts
        return Entry(name, facts | {"late": {str(epoch): rows for epoch in range(1, epochs + 1)}})
    short, told = late("short", D10, {}, epochs=6), late("told", {1, 2}, {1: 77, 4: 28, 8: 4, 16: 96})
    found = cells([short, told], "pred_uni10")
    assert {cell["run"] for cell in found.values()} == {"told"}
    agrees = {k: found[str(k), "epoch 266"]["agrees"] for k in (1, 4, 8, 16)}
    assert agrees == {1: True, 4: True, 8: False, 16: True}, "4 is no element of the class of 8"
    (counts,) = [one for one in count_tables([short, told]).tables if one.table.name == "pred_uni10"]
    assert counts.counts.measured == 280
    assert not any(cell["ours"] for cell in cells([short], "pred_uni10").values())


def test_best_of_seeds_never_mixes_recipes() -> None:
    weak, good, other = (ideal(Experiment(10), known, seed=seed) for seed, known in enumerate(({1, 2, 5, 10}, D10, D1000)))
    old = Entry("old", other.facts | {"preset_version": "0"})
    (choice,) = choose([weak, good, old]).values()
    assert choice.entry is good and choice.seeds == [0, 1] and choice.entry.is_current
    (older,) = choose([old]).values()
    assert not older.entry.is_current and "older recipe" in render([old])
    changed = Entry("changed", other.facts | {"config": other.config.replace(lr=5e-4).model_dump(exclude_none=True)})
    assert choose([weak, good, changed])["base-10"].seeds == [2]
    found = cells([weak, good, old], "base_gcd")["10", "correct GCD"]
    assert (found["ours"], found["seeds"], found["run"]) == (13, [0, 1], "base-10_seed-1")


def test_a_run_of_another_law_counts_only_where_there_is_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    true, mixture = ideal(Experiment(30), {1, 2}), ideal(Experiment(30, outcomes="mixture"), D1000)
    other = Entry("other", mixture.facts | {"experiments": ["base-30"], "changed": {"outcomes": "mixture"}})
    assert choose([other, true])["base-30"].entry is true
    assert choose([other, Entry("old", true.facts | {"preset_version": "0"})])["base-30"].entry.name == "old"
    (table,) = compare_tables([other], names=["base_gcd"])
    assert "30: measured as outcomes mixture (`other`)." in map(to_markdown, difference_lines(table))
    (figure,) = compare_tables([other], names=["learning_curves"])
    assert "`other` (seed 0, measured as outcomes mixture), correct GCD" in table_section(figure)
    (both,) = compare_tables([other, true], names=["base_gcd"])
    better = ideal(Experiment(30), D1000)
    begun = better.config.replace(init_from="runs/other").model_dump(exclude_none=True)
    later = Entry("later", better.facts | {"changed": {"init_from": "runs/other"}, "config": begun})
    assert choose([later, true])["base-30"].entry is true, "weights of another run count as another distribution does"
    told = f"{len(D1000)} correct GCD, where 27 are published, if measured as outcomes mixture (`other`)"
    assert f"30: {told}." in map(to_markdown, difference_lines(both)) and both.runs == ["base-30_seed-0", "other"]
    assert next(cell.ours for cell in both.cells if cell.row == "30") == 2
    monkeypatch.setattr(paper, "ledger_entries", lambda: [other])
    remark = ["30: ", "measured as outcomes mixture (", {"kind": "run", "text": "other"}, ")", "."]
    assert remark in paper.read_ledger().table("base_gcd")["remarks"]
    (table,) = compare_tables([true], names=["base_gcd"])
    assert not any("measured as" in to_markdown(line) for line in difference_lines(table))
    said = Entry("said", mixture.facts | {"changed": {"mixture_share": 0.05}})
    assert cells([said], "mix")["base 30", "25 GCD at epoch"]["measured_as"] is None, "the default is no other distribution"


def test_what_is_in_the_ledger_counts_as_measured() -> None:
    recipe, one = Recipe("fast", epochs=100), Experiment(30, outcomes="mixture")
    entry = ideal(one, {1}, seed=1)

    def statuses(recipe: Recipe, *entries: Entry) -> list[str]:
        planned = [Planned(trial, Path(trial.name)) for trial in make_trials([one], recipe, range(2))]
        mark_recorded(planned, recipe, entries)
        return [run.status for run in planned]
    assert statuses(recipe, entry) == ["missing", RECORDED]
    old = Entry("old", entry.facts | {"preset_version": "0"})
    elsewhere = Entry("elsewhere", entry.facts | {"experiments": ["base-30"]})
    assert statuses(recipe, entry, elsewhere) == ["missing", RECORDED]
    for asked, have in ((recipe, old), (recipe, elsewhere), (Recipe("fast", epochs=99), entry),
                        (Recipe("fast", epochs=100, changed={"lr": 0.1}), entry)):
        assert statuses(asked, have) == ["missing", "missing"]


def test_where_ours_differs_a_line_says_why() -> None:
    entries = [ideal(Experiment(base), {1}) for base in (10, 30, 420, 1000)] + [
        ideal(Experiment(1000, "log-uniform", "inverse-1.5"), {1}), ideal(Experiment(10, outcomes="mixture"), {1}),
        ideal(experiments()["base-10_family-lstm_hidden-dim-1024"], {1})]
    differing = [cell for table in reproduction_tables(entries) for cell in table["cells"] if cell["agrees"] is False]
    assert len(differing) > 100 and all(cell["why"]["reason"] in REASONS and cell["why"]["text"] for cell in differing)
    reasons = {(cell["row"], cell["column"], cell["why"]["reason"]) for cell in differing}
    assert {("10", "correct GCD", "other recipe"), ("1000", "1/k^1.5", "pitfall"), ("10", "lstm 1024", "smaller model"),
            ("1000", "natural", "fewer examples"), ("15", "theoretical accuracy", "pitfall")} <= reasons
    said = Entry("said", ideal(Experiment(10), {1}).facts | {"why": {"reason": "other recipe", "text": "a test"}})
    assert cells([said], "base_gcd")["10", "correct GCD"]["why"] == {"reason": "other recipe", "text": "a test"}
    own = f"30.0 M examples by fast-{VERSIONS['fast']}, 1 layer of 64 dimensions; in the paper"
    told = {(table["name"], cell["row"], cell["column"]): cell["why"]["text"] for table in reproduction_tables(entries)
            for cell in table["cells"] if cell["agrees"] is False}
    unknown = f"{own} a number of examples that is not stated, 4 layers of 512 dimensions"
    assert told["base_gcd", "30", "accuracy"] == told["small_dims", "30", "4 layers of 512"] == unknown
    assert told["base_gcd", "30", "correct GCD"].startswith(f"{unknown}; 27 here"), "a note does not replace the reason"
    assert told["grokking_inverse", "420", "natural"] == f"{own} 210 M examples, 4 layers of 512 dimensions"
    assert told["learning_curves", "base 30", "27 GCD at epoch"].startswith(f"{own} 198 M examples")
    assert ", lstm of 1 layer of 128 dimensions; in the paper" in told["lstm1", "10", "lstm 1024"]
    assert "lstm of 4 layers of 1024 dimensions" in told["lstm1", "10", "lstm 1024"]
    assert "no effect" in told["ablation_outcome_dist", "1000", "1/k^1.5"] and own not in told[
        "ablation_outcome_dist", "1000", "1/k^1.5"]
    more = cells([ideal(Experiment(10), D1000)], "base_gcd")["10", "correct GCD"]
    assert more["why"]["reason"] == "other recipe" and more["difference"] > 0


def test_the_lab_shows_what_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    run = ideal(Experiment(10), D10)
    monkeypatch.setattr(paper, "ledger_entries", lambda: [run])
    found = paper.read_ledger()
    with_runs = {table.name for table in TABLES.values() if found.table(table.name)["runs"]}
    assert {"base_gcd", "theory", "base_pred", "base_pred_det", "small_dims"} <= with_runs and "lstm1" not in with_runs
    cells = found.table("base_gcd")["cells"]
    ours = {"row": "10", "column": "correct GCD", "published": "13", "ours": "13", "agrees": True, "run": run.name}
    assert ours in cells and sum(cell["ours"] is None for cell in cells) == 38
    views = {name: view for name, view in found.files() if not name.startswith("paper/runs/")}
    assert json.loads(json.dumps(views)) == views


def test_two_sets_are_of_the_fast_recipe_only() -> None:
    plain, repeated = Experiment(2401), Experiment(2401, two_set=TWO_SET)
    assert repeated.config("paper") == plain.config("paper") != plain.config("fast") != repeated.config("fast")
    assert repeated.config("fast").data == preset("grok").data
    assert matching_experiments(repeated.config("fast"), "fast")[0] == ["base-2401_two-set"]
    assert matching_experiments(plain.config("fast"), "fast")[0] == ["base-2401"]
    assert matching_experiments(plain.config("paper"), "paper")[0] == ["base-2401", "base-2401_two-set"]
    notes = [TABLES[name].note for name in ("grokking_det", "grokked_3", "grok_loss")]
    drawn = ["25 % of the examples are drawn from 50,000", "50 % of the examples are drawn from 100,000"]
    assert all(note is not None and drawn[place == 1] in note.text for place, note in enumerate(notes))


def test_counts() -> None:
    none = count_tables([])
    assert none.runs == none.with_measurements == 0
    assert none.cells.measured == sum(cell.computed for table in TABLES.values() for cell in table.published) == 46
    some = count_tables([ideal(Experiment(10), D10), ideal(Experiment(2023, two_set=TWO_SET), {1})])
    by_name = {table["name"]: table for table in some.to_json()["tables"]}
    assert some.runs == 2 and by_name["base_gcd"]["measured"] == 2 and by_name["base_gcd"]["cells"] == 40
    assert by_name["grok_loss"]["curves"] == 1 and by_name["base_pred"]["measured"] == 72
    for table in some.tables:
        counts = table.counts
        assert counts.agreeing + counts.differing + counts.missing == counts.published == len(table.table.published)
        assert counts.agreeing == by_name[table.table.name]["agree"] == sum(cell.agrees is True for cell in table.cells)
    assert some.to_json()["agree"] == sum(table["agree"] for table in by_name.values()) > 46 / 2
    (total,) = [line for line in overview(some).splitlines() if line.startswith("| all |")]
    share = 100 * some.cells.agreeing / some.cells.measured
    assert f"| 2772 | {some.cells.measured} | {some.cells.agreeing} ({share:.0f} %) |" in total, "of those measured"


def test_the_page_equals_the_ledger() -> None:
    page = (ROOT / "docs" / "REPRODUCTION.md").read_text()
    assert page == render(ledger_entries()), "render it again: gcdformer reproduce --render docs/REPRODUCTION.md"
    assert all(f"## {name}\n" in page for name in TABLES)


def test_every_recorded_run_can_be_read_and_serves_known_experiments() -> None:
    known = experiments()
    for entry in ledger_entries():
        assert set(entry.experiments) <= set(known) and entry.experiments
        assert entry.facts["preset"] in VERSIONS and entry.examples > 0
        if entry.is_current:
            told = changes(known[entry.experiments[0]], entry.config, entry.facts["preset"])
            assert told == entry.facts["changed"], f"{entry.name}: the experiment is another one now"


def test_the_command_of_a_recorded_run_makes_its_configuration_again() -> None:
    parser = build_parser("train")
    for entry in ledger_entries():
        words = shlex.split(entry.command)
        again = config_from(parser.parse_args(words[1:]))
        assert again.identity() == entry.config.identity() and again.limits == entry.config.limits, entry.command


def test_the_page_shows_broken_rules_and_commands() -> None:
    broken = ideal(Experiment(10), {1, 2, 5})
    page = render([broken])
    assert "the rule 'products' is broken by 10" in page and broken.command in page
    assert "| 10 | 13 → **3** |" in page and "| 30 | 27 → · |" in page


@pytest.mark.parametrize("name", VERSIONS)
def test_a_changed_preset_needs_a_new_version(name: str) -> None:
    """If this fails, give the preset a new version in VERSIONS and write version and digest here. What counts is what the
    tables take from the preset, also for wide and recurrent models and for fractions, not its own base and distribution; a
    field that is left empty does not count, so that a new one changes no version."""
    taken = [one.config(name).identity() for one in PINNED_BY]
    given = [{leaf: value for leaf, value in leaves.items() if value is not None and leaf not in DISTRIBUTION}
             for leaves in taken]
    digest = hashlib.sha256(json.dumps(given, sort_keys=True).encode()).hexdigest()[:12]
    assert (VERSIONS[name], digest) == PINNED[name]


def test_trials_are_shared_and_named() -> None:
    table = TABLES["theory"]
    trials = make_trials(table.experiments([10, 30]), Recipe("fast", minutes=6), range(2), table)
    assert [one.name for one in trials] == ["base-10_seed-0", "base-30_seed-0", "base-10_seed-1", "base-30_seed-1"]
    assert all(one.config.limits.max_minutes == 6 and one.config.machine.threads == 1 for one in trials)
    batches = TABLES["ablation_batch64"]
    sizes = [one.config.training.batch_size for one in
             make_trials(batches.experiments([10]), Recipe(minutes=6, changed={"batch_size": 32}), [0], batches)]
    assert sorted(sizes) == [64, 64, 256, 256]
    published = make_trials(TABLES["benford"].experiments([10]), Recipe("paper"), [0], TABLES["benford"])
    assert published[0].config.limits.max_epochs == 1000
    published = make_trials(batches.experiments([10]), Recipe("paper"), [0], batches)
    assert {(one.config.training.batch_size, one.config.limits.max_epochs) for one in published} == {(64, 800), (256, 1300)}
    with pytest.raises(UserError, match="minutes"):
        make_trials(table.experiments([10]), Recipe("paper"), [0], table)
    assert Recipe("fast", minutes=6).folder == f"fast-{VERSIONS['fast']}-6min"


def test_small_words_of_the_page() -> None:
    (shares,) = compare_tables([], names=["pred_uni1000_400"])
    assert group_grid(shares).count("\n| GCD ") == 5 and "| GCD 1 | 18 |" in group_grid(shares), "a line per GCD, not a cell"
    page = render([Entry("old", ideal(Experiment(10), {1}).facts | {"preset_version": "0"})])
    assert "\n1 run; " in page and "- 1 cell was measured in an older recipe, fast-0." in page
    assert "\nFigure 5: " in page and "\n| Table 2 | [base_gcd](#base_gcd) | " in page
    assert "(`fig:grok_loss`). Published: 3 seeds." in page and "(`tab:benford`). Published: best of 3, up to" in page
