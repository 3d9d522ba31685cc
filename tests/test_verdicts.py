"""Verdicts that are true: what is excused, what is undecided, what was too little tested, and in which words it is said."""

from __future__ import annotations

import io
from math import gcd
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from conftest import tiny_config
from gcdformer import PredictionTable, explain
from gcdformer.cli import main
from gcdformer.display.html import notebook_html
from gcdformer.display.terminal import show_explanation
from gcdformer.display.words import rule_mark, rule_words
from gcdformer.explanation import Explanation, explain_tables
from gcdformer.explanation.certificate import shares_of
from gcdformer.explanation.sieve import products
from gcdformer.explanation.statistics import Fidelity, binomial, is_above, power_of, wilson
from gcdformer.explanation.transition import Shares
from gcdformer.runs.explain import explain_run
from test_certified import made_run
from test_explanation import K, explain_one, sieve_answers, table_with

TEN = products({2: 8, 5: 5}, 100)


def terminal(found: Explanation) -> str:
    out = io.StringIO()
    show_explanation(Console(file=out, width=200, highlight=False), found, "this")
    return out.getvalue()


def mixed(first: set[int], second: set[int], share: float, pairs: int = 1000, only: int = 1) -> PredictionTable:
    """A table in which a share of the pairs of every k (divisible by `only`) gets what the second set says."""
    old, new = sieve_answers(first), sieve_answers(second)
    late = np.arange(pairs) < round(share * pairs)
    predictions = np.where(late[None, :] & (K % only == 0)[:, None], new[:, None], old[:, None]).reshape(-1)
    k = np.repeat(K, pairs)
    return PredictionTable.of(k, 2 * k, predictions, k)


# being learned

UNEXCUSED: dict[str, tuple[dict[int, dict[int, int]], set[int], int, int]] = {
    "50 is a coin flip while 25 is never answered": ({50: {50: 150, 10: 150}}, TEN, 10, 50),
    "99 is a coin flip while 9 is never right": ({99: {99: 150, 33: 150}}, products({3: 3, 11: 11}, 100), 33, 99),
    "75 is, and 25 is predicted everywhere alike": (
        {k: {25: 60, 1: 240} for k in range(1, 100) if k % 5} | {25: {25: 60, 5: 240}, 75: {25: 150, 5: 150}}, TEN, 10, 75),
}


@pytest.mark.parametrize("case", UNEXCUSED)
def test_only_what_is_on_its_way_excuses(case: str) -> None:
    changes, known, base, k = UNEXCUSED[case]
    found = explain_one(table_with(changes, known), base)
    assert k not in found.being_learned and not found.certified
    assert any(breach.k == k for rule in found.rules.values() for breach in rule.exceptions)


def test_a_prime_power_on_its_way_excuses_its_multiples() -> None:
    coming = products({2: 8, 5: 25}, 100)
    found = explain_one(mixed(TEN, coming, 0.5), 10)
    assert found.being_learned == [25, 50, 75, 100] and all(rule.holds for rule in found.rules.values())
    rule = found.rules["deterministic"]
    assert rule_mark(rule) == "wait" and "holds but for 4 being learned (25, 50, 75, 100)" in rule_words(found)[0][0]
    assert "✓ one prediction" not in terminal(found)


def test_what_is_right_in_one_order_only_is_not_being_learned(tmp_path: Path) -> None:
    """A function that knows 25 only for a < b: fidelity is above 98 %, yet nothing is being learned."""
    old, new = products({2: 8, 5: 5}, 100), products({2: 8, 5: 25}, 100)
    first, second = np.array([0, *sieve_answers(new)]), np.array([0, *sieve_answers(old)])

    def one_sided(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        k = np.minimum(np.gcd(a, b), 100)
        return np.where(a < b, first[k], second[k])

    def coin(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        k = np.minimum(np.gcd(a, b), 100)
        return np.where((a + b) // k % 2 == 0, first[k], second[k])

    found = explain(one_sided, 10, pairs=20_000)
    assert found.being_learned == [] and not found.certified and found.rules["deterministic"].exceptions
    assert explain(coin, 10, pairs=20_000).being_learned == [25, 50, 75, 100]
    k = np.repeat(K, 40)
    a, b = k * np.tile([*range(2, 22), *[1] * 20], 100), k * np.tile([*[1] * 20, *range(2, 22)], 100)
    path = tmp_path / "ordered.csv"
    rows = zip(a.tolist(), b.tolist(), one_sided(a, b).tolist(), strict=True)
    path.write_text("a,b,prediction\n" + "".join(f"{x},{y},{p}\n" for x, y, p in rows))
    assert explain(path, 10).being_learned == []


@pytest.mark.parametrize(("before", "rises"), [([0.2, 0.3], True), ([0.5] * 3, False), ([0.7, 0.6], False), ([], True)])
def test_in_a_run_only_what_rises_is_being_learned(before: list[float], rises: bool) -> None:
    coming = products({2: 8, 5: 25}, 100)
    history = [shares_of(mixed(TEN, coming, share))[0] for share in before]
    table = mixed(TEN, coming, 0.5)
    asked = []

    def earlier() -> list[Shares]:
        asked.append(1)
        return history

    found = explain_tables({"natural": table, "stratified": table}, base=10, maximum=10**6, earlier=earlier)
    assert (found.being_learned == [25, 50, 75, 100]) == rises and (found.being_learned == []) != rises
    assert all(rule.holds for rule in found.rules.values()) == rises
    plain = table_with({}, TEN)
    asked.clear()
    explain_tables({"natural": plain, "stratified": plain}, base=10, maximum=10**6, earlier=earlier)
    assert not asked, "nothing is on its way, so no earlier table is read"


def test_at_a_step_the_products_may_lag_behind() -> None:
    """25 has just entered D, for certain, while 50 has not: excused in a run that saw it enter, an exception otherwise."""
    table = table_with({50: {50: 240, 10: 60}}, products({2: 2, 5: 25}, 49))
    history = [shares_of(table_with({}, products({2: 2, 5: 5}, 100)))[0]]
    found = explain_tables({"natural": table, "stratified": table}, base=10, maximum=10**6, earlier=lambda: history)
    assert 50 in found.being_learned and not found.rules["products"].exceptions
    assert explain_one(table, 10).rules["products"].exceptions


def test_a_run_reads_its_earlier_tables(tmp_path: Path) -> None:
    """An epoch whose table equals those before it: nothing rises, so that nothing is being learned."""
    run = made_run(tmp_path / "run", False, False)
    coming, config = products({2: 4, 5: 25}, 100), tiny_config()
    tables = {name: mixed(products({2: 4, 5: 5}, 100), coming, 0.5) for name in ("natural", "stratified")}
    for epoch, rises in ((3, True), (4, True), (9, False)):
        while len(run.metrics) < epoch:
            number = len(run.metrics) + 1
            run.folder.append_metrics({**run.metrics[-1], "epoch": number,
                                       "predictions_sha256": run.folder.write_predictions(number, tables)})
        assert (explain_run(run, epoch).being_learned == [25, 50, 75, 100]) == rises, epoch
    run.folder.predictions_path(8).write_bytes(b"damaged")
    assert explain_run(run, 9).being_learned == [] and config.task.base == 10


# D with its uncertainty

def test_a_k_at_the_threshold_is_undecided() -> None:
    """16 at 90.8 % of 600 pairs, and what belongs to it."""
    coming = products({2: 16, 5: 5}, 100)
    found = explain_one(mixed(TEN, coming, 545 / 600, pairs=600, only=16), 10)
    assert found.undecided == [16, 80] and {16, 80} <= set(found.correct) and found.to_json()["undecided"] == [16, 80]
    for text in (terminal(found), notebook_html(found)):
        assert "16? " in text.replace("}", " ") and "2 undecided" in text and "16 (90.8 %), 80 (90.8 %)" in text
        assert "as far as decided (16, 80 are not)" in text
    low = explain_one(mixed(TEN, coming, 535 / 600, pairs=600, only=16), 10)
    assert low.undecided == [16, 80] and 16 not in low.correct
    sure = explain_one(mixed(TEN, coming, 0.95, pairs=600, only=16), 10)
    assert sure.undecided == [] and 16 in sure.correct


def test_an_undecided_k_is_no_exception_and_hides_none() -> None:
    """80 misses the threshold by chance while 16 reaches it, or the other way round; at 50 % it is an exception."""
    for high, low in ((16, 80), (80, 16)):
        changes = {high: {high: 545, high // 2: 55}, low: {low: 536, low // 2: 64}}
        found = explain_one(table_with(changes, products({2: 8, 5: 5}, 100) | {16, 80}, pairs=600), 10)
        assert sorted(found.undecided) == [16, 80] and not found.rules["products"].exceptions
        assert rule_mark(found.rules["products"]) == "wait"
    changes = {16: {16: 545, 8: 55}, 80: {40: 600}}
    found = explain_one(table_with(changes, products({2: 16, 5: 5}, 100), pairs=600), 10)
    assert [breach.k for breach in found.rules["products"].undecided] == [80], "if 16 is not in D, 80 is not missing"
    changes = {16: {16: 590, 8: 10}, 80: {40: 600}}
    found = explain_one(table_with(changes, products({2: 16, 5: 5}, 100), pairs=600), 10)
    assert [breach.k for breach in found.rules["products"].exceptions] == [80]


def test_few_pairs_decide_what_they_can() -> None:
    assert is_above(30, 30, 0.9) is True and is_above(29, 30, 0.9) is None and is_above(20, 30, 0.9) is False
    assert is_above(545, 600, 0.9) is None and is_above(10**6, 10**6, 0.9) is True and is_above(899_000, 10**6, 0.9) is False


@given(st.integers(1, 3000), st.floats(0.01, 0.99), st.data())
def test_decisions_are_monotone_and_agree_with_the_tails(n: int, threshold: float, data: st.DataObject) -> None:
    successes = data.draw(st.integers(0, n))
    probabilities = binomial(n, threshold)
    assert probabilities.sum() == pytest.approx(1, abs=1e-6)
    above = probabilities[successes:].sum() - probabilities[successes] / 2
    below = probabilities[:successes + 1].sum() - probabilities[successes] / 2
    if min(abs(above - 0.025), abs(below - 0.025)) > 1e-9:
        assert is_above(successes, n, threshold) == (True if above <= 0.025 else False if below <= 0.025 else None)
    order = {False: 0, None: 1, True: 2}
    if successes < n:
        assert order[is_above(successes, n, threshold)] <= order[is_above(successes + 1, n, threshold)]


def test_fidelity_is_judged_by_its_lower_end() -> None:
    table = table_with({}, TEN, pairs=30)
    few = PredictionTable.of(np.ones(100, dtype=np.int64), np.ones(100, dtype=np.int64), np.ones(100, dtype=np.int64))
    found = explain_tables({"natural": few, "stratified": table}, base=10, maximum=10**6)
    assert found.missing == "too few pairs: fidelity is at least 96.3 % for certain, and 98 % is needed"
    assert Fidelity(98, 100).at_least(0.98) is None and Fidelity(980, 1000, exact=True).at_least(0.98) is True
    assert Fidelity(90, 100).at_least(0.98) is False and Fidelity(1000, 1000).at_least(0.98) is True


def test_the_true_gcd_up_to_200_is_certified(tmp_path: Path) -> None:
    """Larger GCD than are judged are no breach of rules that say nothing of them."""
    k = np.repeat(np.arange(1, 201), 40)
    factor = np.tile(np.arange(2, 42), 200)
    found = explain_tables({"pairs": PredictionTable.of(k, k * factor, k)}, base=10, maximum=None, least_pairs=30)
    assert found.certified and found.fidelity["pairs"].n == 4000 and "of 4,000 pairs with k ≤ 100" in terminal(found)
    assert not found.counterexamples
    assert explain(np.gcd, 10, maximum=250, exhaustive=True).is_proof
    path = tmp_path / "true.csv"
    path.write_text("a,b,prediction\n" + "".join(f"{x},{x * y},{x}\n" for x, y in zip(k, factor, strict=True)))
    assert explain(path, 10).certified


def test_small_integers_have_few_pairs_and_no_more_count() -> None:
    """Of 1..50 there is one pair with GCD 50, however often it is drawn."""
    k = np.repeat(np.arange(1, 51), 1000)
    table = PredictionTable.of(k, k, sieve_answers(TEN)[k - 1], k)
    found = explain_tables({"natural": table, "stratified": table}, base=10, maximum=50)
    assert found.pairs[50] == 1 and found.pairs[25] == 3 and found.pairs[1] == 1000 and found.certified
    assert found.undecided == [], "all pairs of 40 were drawn, again and again"
    few = explain_tables({"natural": table, "stratified": PredictionTable.of(*[np.arange(1, 51)] * 3)}, base=10, maximum=50)
    assert few.pairs[25] == 1 and 25 in few.undecided and 50 not in few.undecided


# words

def test_a_constant_is_not_grokked() -> None:
    k = np.repeat(K, 300)
    found = explain_one(PredictionTable.of(k, 2 * k, np.full(len(k), 7), k), 10)
    assert found.grokked == [] and found.prime_powers == {} and found.form.letter == "none"
    assert found.why == "the usual answer is 7, whatever the GCD: nothing is told apart" and "grokked" not in terminal(found)
    one = explain_one(PredictionTable.of(k, 2 * k, np.ones(len(k), dtype=np.int64), k), 10)
    assert one.certified and one.why == "all three rules hold; no prime is learned by itself"


def test_what_is_in_d_beside_products_is_said() -> None:
    found = explain_one(table_with({}, {1, 2, 12}), 10)
    assert "every learned prime divides" not in found.why and not found.certified
    assert "but D also has 12, which is no product of learned prime powers" in found.why


def test_d_is_printed_as_a_product_only_as_far_as_tested() -> None:
    k = np.repeat(np.arange(1, 12), 40)
    table = PredictionTable.of(k, k * np.tile(np.arange(2, 42), 11), sieve_answers(TEN)[k - 1], k)
    found = explain_tables({"pairs": table}, base=10, maximum=None, least_pairs=30)
    assert "{1, 2, 4, 5, 8, 10}" in terminal(found) and "×" not in terminal(found)
    assert "{1, 2, 4, 8} × {1, 5}   " in terminal(explain_one(table_with({}, TEN), 10))
    assert "{1, 2, 4, 8} × {1, 5, 25} up to 100" in terminal(explain_one(table_with({}, products({2: 8, 5: 25}, 100)), 10))


def test_too_few_pairs_are_said_to_be_too_few() -> None:
    k = np.repeat(K, 29)
    table = PredictionTable.of(k, 2 * k, k, k)
    found = explain_tables({"pairs": table}, base=10, maximum=None, least_pairs=30)
    assert found.verdict == "not certified: too few pairs: no k has 30"


def test_a_mostly_right_table_is_described_by_what_it_gets_right(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A made-up language model: right for small operands, and for four in five of the large ones."""
    rng = np.random.default_rng(0)
    rows = []
    for k in range(1, 101):
        for i in range(40):
            size = 9 if i < 10 else 999
            a, b = k * int(rng.integers(1, size)), k * int(rng.integers(1, size))
            right = size == 9 or rng.random() < 0.75
            rows.append(f"{a},{b},{gcd(a, b) if right else gcd(a, b) * 2 if rng.random() < 0.2 else 1}")
    path = tmp_path / "llm.csv"
    path.write_text("a,b,answer\n" + "\n".join(rows) + "\n")
    found = explain(path, 10)
    assert found.form.letter == "none" and found.grokked == [] and found.being_learned == []
    assert "of the answers are right, a mean over the k, but not by a sieve" in found.why
    small, whole = found.bands[0], next(band for band in found.bands if band.limit and band.limit > 10_000)
    assert small.accuracy > 97 > 85 > whole.accuracy
    mistakes = found.mistakes
    assert mistakes.mostly_right and mistakes.multiples > 0 and mistakes.divisors > mistakes.multiples
    digits = {size: (n, right) for size, n, right in mistakes.by_digits}
    sizes = {tuple(map(int, row.split(",")[:2])) for row in rows}
    for size, (n, _) in digits.items():
        assert n == sum(len(str(max(pair))) == size for pair in sizes)
    assert digits[2][1] / digits[2][0] > 0.97 > 0.85 > digits[5][1] / digits[5][0]
    assert f"{100 * digits[5][1] / digits[5][0]:.0f} % at 5" in mistakes.text
    assert mistakes.right + mistakes.divisors + mistakes.multiples + mistakes.others + mistakes.unreadable == mistakes.n
    assert main(["explain", "--predictions", str(path), "--base", "10"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "right and wrong" in said and "least often for k = " in said and "both up to 1,000" in said


def test_what_a_test_can_miss_is_said() -> None:
    found = explain_one(table_with({}, TEN, pairs=1000), 10)
    power = found.power
    assert power is not None and power.pairs == 1000 and found.to_json()["power"]["probability"] == 0.99
    assert "could have missed    at 1,000 pairs per k, a k against the rules in 0.46 % of its pairs shows" in terminal(found)
    for pairs in (30, 300, 1000):
        power = power_of(pairs, 0.9)
        assert 1 - (1 - power.seen) ** pairs == pytest.approx(0.99)
        broken = [n for n in range(pairs + 1) if wilson(pairs - n, pairs)[1] < 0.9]
        assert binomial(pairs, power.refused)[broken].sum() == pytest.approx(0.99, abs=0.001)
