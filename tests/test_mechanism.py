"""Where a divisor is carried: the arithmetic of counterfactuals, the exchange, what is found in a run, and its controls."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import gcdformer
from conftest import tiny_config
from gcdformer import Problem, Run, UserError
from gcdformer.cli import main
from gcdformer.display.mechanism import reading_words, sentences
from gcdformer.evaluation.predictor import Predictor
from gcdformer.explanation import RuleModel
from gcdformer.explanation.sieve import prime_power, products
from gcdformer.mechanism.analysis import prepare
from gcdformer.mechanism.counterfactuals import Rules, Swaps, draw_neutral, draw_other, draw_swaps
from gcdformer.mechanism.interchange import Interchange, Place, Sites
from gcdformer.mechanism.layout import Layout
from gcdformer.mechanism.result import ADAPTER, Mechanism
from gcdformer.mechanism.subspace import Contexts, basis_of, overlap, read_clock
from gcdformer.mechanism.verdict import raised_alarms, run_verdict
from gcdformer.models import build_model
from gcdformer.numbers.encoding import DIGIT_0, PLUS, Integers, digit_counts
from gcdformer.runs.explain import explain_run
from gcdformer.runs.mechanism import flip_in_run, saved_mechanism

HIGHEST = st.fixed_dictionaries({2: st.sampled_from([1, 2, 4, 8]), 3: st.sampled_from([1, 3, 9]), 5: st.sampled_from([1, 5]),
                                 7: st.sampled_from([1, 7]), 11: st.sampled_from([1, 11])})


def rules_of(highest: dict[int, int]) -> Rules:
    labels = tuple(sorted(products({p: q for p, q in highest.items() if q > 1}, 100)))
    return Rules(RuleModel(labels, {d: d for d in labels}, 1))


def layout_of(base: int, maximum: int = 1_000_000) -> Layout:
    return Layout.of(Problem.of(tiny_config(base=base, maximum=maximum)))


def digits(values: Integers, base: int, j: int) -> Integers:
    return values // base**j % base


@settings(max_examples=25, deadline=None)
@given(HIGHEST, st.sampled_from([2, 3, 10, 30, 256, 420, 1000, 1260, 2401]), st.integers(0, 1), st.integers(0, 2**32))
def test_counterfactuals_differ_by_one_prime_alone(highest: dict[int, int], base: int, side: int, seed: int) -> None:
    rules, layout = rules_of(highest), layout_of(base)
    for q in filter(prime_power, rules.model.labels):
        p = (prime_power(q) or (0, 0))[0]
        rng = np.random.default_rng(seed)
        swaps = draw_swaps(rules, layout, q, 30, side, rng)
        assert (swaps.pairs[:, 1 - side] == swaps.sources[:, 1 - side]).all()
        assert (digit_counts(swaps.pairs, base) == digit_counts(swaps.sources, base)).all()
        before, after = (rules.model.answers_to(np.gcd.reduce(pairs, axis=1)) for pairs in (swaps.pairs, swaps.sources))
        assert (before == swaps.before).all() and (after == swaps.after).all()
        assert (before == p * after).all() and (before % q == 0).all()
        a, other, b = swaps.pairs[:, side], swaps.sources[:, side], swaps.pairs[:, 1 - side]
        assert (a <= layout.largest).all() and (other <= layout.largest).all()
        for j in range(layout.digits):
            mixed = a + (digits(other, base, j) - digits(a, base, j)) * base**j
            labels = rules.model.labels_to(np.gcd(mixed, b))
            assert ((labels == before) | (labels == after)).all()
        neutral = draw_neutral(rules, layout, swaps.pairs, side, rng)
        for j in range(layout.digits):
            a, other = neutral.pairs[:, side], neutral.sources[:, side]
            mixed = a + (digits(other, base, j) - digits(a, base, j)) * base**j
            assert (rules.model.labels_to(np.gcd(mixed, neutral.pairs[:, 1 - side])) == neutral.before).all()
        assert (neutral.pairs[:, side] != neutral.sources[:, side]).all()


@pytest.mark.parametrize("base", [10, 420, 1260])
def test_there_are_counterfactuals_of_all_sizes(base: int) -> None:
    rules, layout = rules_of({2: 4, 3: 3, 5: 5, 7: 7, 11: 11}), layout_of(base)
    for q in (2, 4, 3, 5, 7, 11):
        swaps = draw_swaps(rules, layout, q, 100, 0, np.random.default_rng(0))
        sizes = set(digit_counts(swaps.pairs[:, 1], base).tolist())
        assert len(swaps) == 100 and sizes == set(range(2 if q >= base else 1, layout.digits + 1))
        draw = draw_other if q > base else draw_neutral
        neutral = draw(rules, layout, swaps.pairs, 0, np.random.default_rng(1))
        assert len(neutral) > (30 if base == 10 else 90) and (neutral.pairs[:, 0] != neutral.sources[:, 0]).all()
        assert (rules.model.answers_to(np.gcd(*neutral.sources.T)) == neutral.before).all()
        assert (digit_counts(neutral.pairs, base) == digit_counts(neutral.sources, base)).all()


@pytest.mark.parametrize("framing", ["none", "published"])
def test_slots_name_the_tokens(framing: str) -> None:
    problem = Problem.of(tiny_config(base=10, maximum=1000, framing=framing))
    layout = Layout.of(problem)
    assert layout.digits == 3 and layout.largest == 999, "only M itself has four digits"
    pairs = np.array([[123, 4], [5, 67], [890, 999]])
    tokens, where = problem.encode_questions(pairs)[0], layout.tokens(pairs)
    for row, (pair, slots) in enumerate(zip(pairs, where, strict=True)):
        for name, at in zip(layout.names, slots, strict=True):
            side = 1 if name.endswith("b") else 0
            if name.startswith("sign"):
                assert tokens[row, at] == PLUS
            elif "digit" in name and at >= 0:
                j = ["last digit", "second-to-last digit", "third-to-last digit"].index(name[:-len(" of a")])
                assert tokens[row, at] - DIGIT_0 == pair[side] // 10**j % 10
        assert (slots >= 0).sum() == (tokens[row] != 0).sum()


@pytest.fixture(scope="module", params=["transformer", "lstm", "gru"])
def exchange(request: pytest.FixtureRequest) -> Interchange:
    """A network that is not trained, with large weights, so that it answers different questions differently."""
    heads = {} if request.param == "transformer" else {"heads": 0}
    config = tiny_config(base=10, maximum=1000, family=request.param, layers=2, **heads)
    problem = Problem.of(config)
    model = build_model(config, problem, seed=3).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(1 if request.param == "transformer" else 5)
    return Interchange(model, problem, Layout.of(problem))


@pytest.fixture(scope="module")
def swaps(exchange: Interchange) -> Swaps:
    """Questions of all lengths whose second operand is the same. What the rules would say does not matter."""
    a, b, other = np.random.default_rng(0).integers(1, 1000, (3, 120))
    same = digit_counts(a, 10) == digit_counts(other, 10)
    pairs, sources = np.stack([a, b], 1)[same], np.stack([other, b], 1)[same]
    assert (tokens(exchange, pairs) != tokens(exchange, sources)).any(1).sum() > 20, "they are answered differently"
    return Swaps(pairs, sources, np.full(len(pairs), 7), np.full(len(pairs), 7))


def tokens(exchange: Interchange, pairs: Integers) -> Integers:
    """Without a patch."""
    return Predictor(exchange.model, exchange.problem, torch.device("cpu")).tokens(pairs)


def patched_tokens(exchange: Interchange, swaps: Swaps, place: Place) -> Integers:
    source, every = exchange.source(swaps, [place]), np.arange(len(swaps))
    return exchange.decode(source, [place], np.zeros_like(every), every)


def test_exchanging_all_of_an_operand_is_asking_the_other_question(exchange: Interchange, swaps: Swaps) -> None:
    """At the embedding by all digits; in a recurrent model also by the final state. Token for token."""
    places = [Place("encoder.embedding", exchange.layout.digit_slots(0))]
    places += [Place("encoder.final.hidden", (0,))] if exchange.sites.final else []
    for place in places:
        assert (patched_tokens(exchange, swaps, place) == tokens(exchange, swaps.sources)).all()
    untouched = Place("encoder.embedding", (exchange.layout.digit_slot(1, 0),))
    assert (patched_tokens(exchange, swaps, untouched) == tokens(exchange, swaps.pairs)).all(), "b is the same"


def test_a_full_subspace_is_the_whole_place_and_an_empty_one_nothing(exchange: Interchange, swaps: Swaps) -> None:
    site, slots = exchange.sites.last, exchange.layout.digit_slots(0)
    whole = patched_tokens(exchange, swaps, Place(site, slots))
    values = exchange.source(swaps, [Place(site, slots)]).values
    for name in exchange.parts(site):
        width = values[name].shape[-1] * (values[name].shape[0] if exchange.sites.final else 1)
        assert width in (16, 32)
    full = {name: torch.eye(width) for name in exchange.parts(site)}
    assert (patched_tokens(exchange, swaps, Place(site, slots, basis=full)) == whole).all()
    empty = {name: torch.zeros(width, 0) for name in exchange.parts(site)}
    assert (patched_tokens(exchange, swaps, Place(site, slots, basis=empty)) == tokens(exchange, swaps.pairs)).all()


def test_heads_side_by_side_are_the_whole() -> None:
    """Every head by itself changes something, and a site with one head is that head."""
    for heads in (1, 2):
        config = tiny_config(base=10, maximum=1000, heads=heads)
        problem = Problem.of(config)
        single = Interchange(build_model(config, problem, seed=3).eval(), problem, Layout.of(problem))
        drawn = np.random.default_rng(1).integers(100, 1000, (60, 3))
        asked = Swaps(drawn[:, :2], np.stack([drawn[:, 2], drawn[:, 1]], 1), np.ones(60, np.int64), np.ones(60, np.int64))
        site, slots = "encoder.0.attention.heads", single.layout.digit_slots(0)
        assert single.sites.heads[site] == heads
        whole = patched_tokens(single, asked, Place(site, slots))
        each = [patched_tokens(single, asked, Place(site, slots, head)) for head in range(heads)]
        assert ((each[0] == whole).all()) == (heads == 1)
        pattern = patched_tokens(single, asked, Place("encoder.0.attention.pattern", slots))
        first = patched_tokens(single, asked, Place("encoder.0.attention.pattern", slots, 0))
        assert (first == pattern).all() or heads > 1
        assert (pattern != tokens(single, asked.pairs)).any() and (pattern != whole).any()


def test_a_decoder_patch_follows_its_row_to_the_end() -> None:
    """The last residual stream at all output positions is the answer, in rows that end at different steps."""
    predictor = Run(str(files("gcdformer") / "lab" / "example")).predictor()
    exchange = Interchange(predictor.model, predictor.problem, Layout.of(predictor.problem))
    k = np.array([1, 60, 2, 30, 4, 10, 5, 60])
    pairs = np.stack([100_003 * k % 900_000 // k * k, 7919 * k], 1)
    sources = pairs[::-1].copy()
    before, after = (predictor.predict(*rows.T) for rows in (pairs, sources))
    assert {1, 2} <= set(digit_counts(after, 30).tolist()), "some answers have two digits"
    swaps = Swaps(pairs, sources, before, after)
    moved, first = exchange.answers(swaps, [Place("decoder.0.residual.feed_forward", tuple(range(5))),
                                            Place("decoder.0.residual.feed_forward", (0,))])
    assert (moved.answers == after).all() and (first.answers == before).all(), "the first output is the sign"


def test_a_clock_is_read_off_a_circle() -> None:
    """Digits on a circle by residue mod 7 at frequency 2/7, beside as much noise in other directions."""
    rng = np.random.default_rng(0)
    held = np.repeat(np.arange(100), 5)
    angle = 2 * np.pi * 2 * (held % 7) / 7
    noise = rng.normal(size=(100, 6))[held] + 0.1 * rng.normal(size=(500, 6))
    values = torch.from_numpy(np.concatenate([3 * np.stack([np.cos(angle), np.sin(angle)], 1), noise], 1)).float()
    contexts = Contexts(held, held, {"x": values})
    basis = basis_of(contexts, contexts.classes(7), 2)
    clock = read_clock(contexts, 7, basis)
    assert clock.share > 0.95 and clock.flag < 0.3 and clock.chance < 0.1
    assert clock.frequency == 2 and clock.frequency_share > 0.95
    assert len(clock.points) == len(clock.digits) == 100 and clock.residues == [digit % 7 for digit in clock.digits]
    other = {"x": torch.eye(8)[:, 2:4]}
    assert read_clock(contexts, 7, other).share < 0.3
    assert overlap(basis, basis) == pytest.approx(1, abs=1e-4) and overlap(basis, other) < 0.2
    assert overlap({"x": torch.eye(8)[:, :2]}, other) == 0


@pytest.fixture(scope="module")
def grokking(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The bundled run in base 256 that knows powers of 2 and has grokked 3; a copy, since something is saved in it."""
    folder = tmp_path_factory.mktemp("runs") / "grokking"
    shutil.copytree(str(files("gcdformer") / "lab" / "example-grokking"), folder)
    return Run(folder)


@pytest.fixture(scope="module")
def found(grokking: Run) -> Mechanism:
    return gcdformer.mechanism(grokking, pairs=60, through_training=True)


def test_a_prime_of_the_base_is_at_the_last_digit_and_a_grokked_one_in_all(found: Mechanism) -> None:
    two, three = found.primes
    assert (two.p, two.divides_base, two.verdict) == (2, True, "located")
    assert two.best.name == two.side_b.best.name.replace("of b", "of a") == "last digit of a"
    assert two.best.share >= 0.9 and two.best.adding >= 0.85 and two.best.low <= two.best.share <= two.best.high
    others = [share for name, share in zip(found.positions, two.interchange[two.best.site], strict=True)
              if name != "last digit of a" and share is not None]
    assert max(others) < 0.2
    assert (three.p, three.divides_base, three.verdict) == (3, False, "spread")
    at_input = three.interchange["encoder.embedding"][1:3], three.adding["encoder.embedding"][1:3]
    assert min(share or 0 for share in at_input[0]) > 0.85 and max(share or 0 for share in at_input[1]) < 0.2, "a sum"
    assert min(three.whole.share, three.whole.adding) >= 0.9
    assert two.rank == 1 and three.rank <= 4 and (found.overlap[0][1] or 0) < 0.2
    for prime in found.primes:
        assert prime.unchanged >= 0.9 and prime.control < 0.02 and prime.pairs == 60 and 0.3 < prime.following <= 1
        assert 60 <= prime.neutral <= 120, "of both operands"
        assert prime.clock.share > 10 * prime.clock.chance
        assert prime.subspace.share >= 0.8 * prime.subspace.whole
        assert len(prime.examples) == 10 and all(example.before == prime.p * example.expected for example in prime.examples)
    assert [power.q for power in two.powers] == [4, 8, 16, 32] and {power.verdict for power in two.powers} == {"located"}
    assert not found.alarms and found.verdict == "spread" and [one.p for one in found.unlearned] == [5, 7]
    assert found.through_training[3][0].epoch == 26 and found.through_training[3][0].adding > 0.8


def test_answers_are_decided_under_the_prior(grokking: Run) -> None:
    """Pair by pair as a predictor decides them, without a swap and with one of all digits."""
    predictor = grokking.predictor(prior="uniform")
    analysis = prepare(predictor, explain_run(grokking), 40, 0)
    k = np.arange(1, 101).repeat(2)
    pairs = k[:, None] * np.random.default_rng(0).integers(1, 600, (len(k), 2))
    answers = predictor.predict(*pairs.T)
    assert (analysis.exchange.predict(pairs) == answers).all() and (grokking.predictor().predict(*pairs.T) != answers).any()
    swaps = Swaps(pairs[::-1].copy(), pairs, answers[::-1].copy(), answers)
    same = (digit_counts(swaps.pairs, 256) == digit_counts(pairs, 256)).all(1)
    every = Place("encoder.embedding", (*analysis.layout.digit_slots(0), *analysis.layout.digit_slots(1)))
    moved = analysis.exchange.answers(swaps.take(same), [every])[0]
    assert len(moved.swaps) > 30 and (moved.answers == answers[same]).all()


def test_neutral_swaps_need_answers_as_the_rules_say(grokking: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The value of a question that the model gets wrong brings the mistake with it, whatever the swap does."""
    analysis = prepare(grokking.predictor(), explain_run(grokking), 40, 0)
    pairs = np.random.default_rng(0).integers(1, 300, (200, 2))
    answers = analysis.rules.model.answers_to(np.gcd(*pairs.T))
    follows = analysis.follows(pairs)
    assert 20 < follows.sum() < 200
    monkeypatch.setitem(prepare.__globals__, "draw_neutral", lambda *_: Swaps(pairs, pairs, answers, answers))
    side = SimpleNamespace(whole=SimpleNamespace(site="encoder.embedding", positions=[2]))
    counted = analysis.unchanged(Swaps(pairs, pairs, answers, answers), side, 0)  # type: ignore[arg-type]
    assert counted == (follows.sum(), follows.sum())


def test_divisibility_can_be_flipped_in_one_question(found: Mechanism, grokking: Run) -> None:
    flips = [flip_in_run(grokking, found, p, a, b) for p, a, b in
             ((3, 1440, 3600), (2, 1440, 3600), (3, 1000, 600), (2, 999, 600), (3, 30000, 9), (2, 5000, 46))]
    for flipped in flips:
        ratio = sorted([flipped.before, flipped.expected])
        assert ratio[1] in (2 * ratio[0], 3 * ratio[0]) and flipped.swapped != flipped.a
    assert [flipped.expected for flipped in flips[:4]] == [16, 24, 24, 6]
    assert sum(flipped.answer == flipped.expected for flipped in flips) >= 4
    for p, a, b, words in ((5, 10, 20, "not a prime whose place is known"), (3, 10, 20, "the rules do not look at it")):
        with pytest.raises(UserError, match=words):
            flip_in_run(grokking, found, p, a, b)


def test_it_is_said_in_words(found: Mechanism) -> None:
    said = " ".join(sentences(found))
    for words in ("2 is read off the last digit.", "3 is a sum over the digits", "Controls: fresh weights move 0 %", "Head ",
                  "2 at the last digit of a; 3 at the second-to-last digit of a and the last digit of a",
                  "5 and 7, not learned, are followed in 0 %"):
        assert words in said, said
    assert "read off" in found._repr_html_() and "3 spread" in repr(found)
    two, *others = found.primes  # as in an odd base, where a change of one digit makes the sum odd
    shares = {"encoder.embedding": [0.0, 0.54, 0.45, 0.0, 0.0, 0.0]}
    odd = replace(found, primes=(replace(two, interchange=shares, adding=shares), *others))
    assert ("2 is a sum over the digits, of which one decides each pair: the second-to-last digit in 54 % and the last "
            "digit in 45 % of the pairs." in reading_words(odd))


@pytest.mark.parametrize("family", ["gru", "lstm"])
def test_a_recurrent_model_has_one_place(family: str, tmp_path: Path) -> None:
    """Trained for a second, until it knows 2 and 5: both are read off the last digit and fit in part of the final state."""
    config = tiny_config(family=family, heads=0, dim=32, lr=1e-2, batch_size=64, epoch_size=25600, max_epochs=2,
                         test_size=1000)
    run = gcdformer.train(config, tmp_path / family)
    found = gcdformer.mechanism(run, pairs=40)
    flipped = flip_in_run(run, found, 5, 730, 210)
    assert (flipped.before, flipped.expected) == (10, 2) and flipped.answer == run.predict(flipped.swapped, 210)
    assert {2, 5} <= {prime.p for prime in found.primes} and found.family == "recurrent"
    for prime in found.primes[:2]:
        assert prime.best.site == "encoder.final.hidden" and prime.best.name == "final state"
        assert min(prime.best.share, prime.best.adding) == 1, "the whole question is exchanged"
        assert prime.subspace.rank <= prime.subspace.dimension / 4 and prime.control < 0.02
    said = " ".join(sentences(found))
    assert "read off the last digit" in said and "the final state is all that the decoder knows" in said
    assert "final state" in found._repr_html_()


def test_a_control_that_passes_is_an_alarm(found: Mechanism) -> None:
    two = found.primes[0]
    for bad in (replace(two, control=0.3), replace(two, subspace=replace(two.subspace, permuted=0.4, permuted_n=50))):
        alarms = raised_alarms([bad], found.unlearned)
        assert len(alarms) == 1 and run_verdict([bad], alarms) == "not found"
        assert any(text.startswith("Alarm") for text in sentences(replace(found, primes=[bad], alarms=alarms)))
    assert raised_alarms([two], [replace(found.unlearned[0], share=0.5)])
    by_chance = replace(two, subspace=replace(two.subspace, permuted=0.1, permuted_n=10))
    assert not raised_alarms([by_chance], []), "one of ten is no alarm"


def test_json_has_the_keys_and_comes_back(found: Mechanism) -> None:
    values = found.to_json()
    assert {"base", "D", "primes", "verdict", "positions", "weights_sha256", "epoch"} <= set(values)
    for prime in values["primes"]:
        assert {"p", "divides_base", "pairs", "interchange", "best", "unchanged", "control", "rank"} <= set(prime)
        assert set(prime["best"]) >= {"site", "position", "share", "low", "high"}
        row = prime["interchange"][prime["best"]["site"]]
        assert len(row) == len(found.positions) and row[prime["best"]["position"]] == prime["best"]["share"]
    assert ADAPTER.validate_json(json.dumps(values)) == found


def test_the_verb_saves_it_the_report_shows_it(grokking: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, report = tmp_path / "page.html", tmp_path / "report.html"
    words = ["--pairs", "40", "--html", str(page), "--quiet", "--prior", "natural"]
    assert main(["mechanism", str(grokking.path), *words]) == 0
    shown = capsys.readouterr().out
    assert "Answers are decided under the natural prior." in shown
    assert "read off the last digit" in shown and "p taken away from a" in shown and "spread" in shown
    saved = saved_mechanism(grokking)
    assert saved is not None and saved.weights_sha256 is not None and saved.epoch == 26 and saved.prior == "natural"
    assert saved_mechanism(grokking, 25) is None, "of another epoch"
    assert "Where it is carried" in page.read_text() and page.read_text().count("<svg") == 3
    assert main(["report", str(grokking.path), "--out", str(report), "--quiet"]) == 0
    assert "Where it is carried" in report.read_text()
    (grokking.path / "mechanism.json").write_text("{}")
    assert main(["report", str(grokking.path), "--out", str(report)]) == 2
    assert "gcdformer mechanism" in capsys.readouterr().err
    (grokking.path / "mechanism.json").unlink()
    assert main(["report", str(grokking.path), "--out", str(report)]) == 0
    assert "Where it is carried" not in report.read_text()


def test_bad_input_is_one_line(trained: Run, grokking: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bare = tmp_path / "bare"
    shutil.copytree(grokking.path, bare)
    shutil.rmtree(bare / "checkpoints")
    fraction = gcdformer.train(tiny_config(task="comparison", maximum=100, max_epochs=1), tmp_path / "fraction")
    capsys.readouterr()
    for words, wanted in (([bare], "no checkpoint"), ([fraction.path], "'gcd', not 'comparison'"),
                          ([trained.path], "no prime is learned"), ([grokking.path, "--pairs", "3"], "pairs: an integer"),
                          ([grokking.path, "--checkpoint", "7"], "not kept"), ([tmp_path / "none"], "no such run folder"),
                          ([grokking.path, "--prior", "wide"], "prior: one of training"),
                          ([files("gcdformer") / "lab" / "example", "--prior", "natural"], "use --prior training")):
        assert main(["mechanism", *map(str, words)]) == 2
        error = capsys.readouterr().err
        assert len(error.splitlines()) == 1 and wanted in error, error


def test_the_function_is_not_hidden_by_its_folder() -> None:
    assert callable(gcdformer.mechanism) and Sites.__module__ == "gcdformer.mechanism.interchange"
