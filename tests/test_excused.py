"""What is excused or was never judged is said as such, in every text, and no sentence contradicts D."""

from __future__ import annotations

import io
from math import gcd

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from gcdformer import UNREADABLE, PredictionTable
from gcdformer.display.html import notebook_html
from gcdformer.display.reasons import missing, reason
from gcdformer.display.terminal import show_explanation
from gcdformer.display.words import rule_mark, rule_words
from gcdformer.explanation import Explanation, explain_tables
from gcdformer.explanation.forms import NONE
from gcdformer.explanation.metamorphic import metamorphic_checks
from gcdformer.explanation.rules import RuleModel
from gcdformer.explanation.sieve import products
from test_explanation import explain_one, table_with

EIGHTY = products({2: 8, 3: 3, 5: 5}, 100) | {48, 80}
"""D of a model in which 48 and 80 came before 16."""
COMING = {16: {16: 255, 8: 45}, 32: {16: 240, 8: 60}, 64: {16: 240, 8: 60}, 96: {48: 290, 24: 10}}


@pytest.fixture(scope="module")
def early() -> Explanation:
    return explain_one(table_with(COMING, EIGHTY), 30)


def terminal(found: Explanation) -> str:
    out = io.StringIO()
    show_explanation(Console(file=out, width=140, highlight=False), found, "this")
    return out.getvalue()


def ticked(text: str) -> bool:
    return '<li class="yes">' in text or "  ✓ " in text


def test_products_before_their_prime_power_are_excused_and_said(early: Explanation) -> None:
    rule = early.rules["products"]
    assert 16 not in early.correct and {48, 80} <= set(early.correct) and 16 in early.being_learned
    assert rule.holds and rule_mark(rule) == "wait" and rule.judged == 98
    assert rule.to_json()["excused"] == [{"k": 48, "why": "unexpected"}, {"k": 80, "why": "unexpected"}]
    said = "D is all products of the learned prime powers: holds but for 2 being learned (48, 80 are in D before 16)"
    for text in (terminal(early), notebook_html(early)):
        assert said in text
        assert f"✓ {said}" not in text and f'<li class="yes">{said}' not in text
    assert "all three rules hold but for what is being learned" in early.why


def test_excused_k_of_the_other_rules_are_listed(early: Explanation) -> None:
    texts = dict(zip(early.rules, (says for says, _ in rule_words(early)), strict=True))
    assert texts["deterministic"].endswith("holds but for 3 being learned (16, 32, 64)")
    assert [breach.k for breach in early.rules["largest_divisor"].excused] == [16, 32, 64]
    plain = explain_one(table_with({}, products({2: 8, 5: 5}, 100)), 10)
    assert all(rule_mark(rule) == "yes" and not rule.excused for rule in plain.rules.values())
    assert plain.why.startswith("all three rules hold;")


def test_why_80_is_the_answer_while_16_is_not_known(early: Explanation) -> None:
    k = 2**6 * 5**6
    text = reason(early, k, 3 * k, 80)
    assert "divisible by 80" in text and "of 15625 only 5 is learned" in text
    assert "of 64 only 16 is learned (within 80; 16 itself is not in D yet: 85 % of the pairs with GCD 16" in text


@given(st.sets(st.integers(2, 100), max_size=12), st.integers(1, 5000))
@settings(max_examples=200)
def test_what_is_missing_explains_the_answer(known: set[int], k: int) -> None:
    """Either the powers named multiply to the answer, or their product is said not to be in D, and is not."""
    correct = sorted({1} | known)
    found = explain_of(correct)
    answer = max(d for d in correct if k % d == 0)
    if answer == k:
        return
    text = " " + missing(found, k, answer)
    together = 1
    for p in (q for q in range(2, k + 1) if k % q == 0 and all(q % r for r in range(2, int(q**0.5) + 1))):
        power = max(gcd(d, p**20) for d in correct if k % d == 0)
        whole = gcd(k, p**20)
        together *= power
        assert (f" {p} is not learned yet" in text) == (power == 1)
        assert (f" of {whole} only {power} is learned" in text) == (1 < power < whole)
    assert ("is not in D" in text.replace("itself is not in D yet", "") or "only measured" in text) == (together != answer)
    assert together == answer or together not in correct


def explain_of(correct: list[int]) -> Explanation:
    """An explanation whose D is any set at all."""
    k = np.arange(1, 101, dtype=np.int64)
    table = PredictionTable.of(k, k, np.where(np.isin(k, correct), k, 1), k)
    return explain_tables({"natural": table, "stratified": table}, base=10, maximum=1000)


def test_a_model_without_a_readable_answer_agrees_with_nothing() -> None:
    k = np.repeat(np.arange(1, 101), 40)
    found = explain_one(PredictionTable.of(k, 2 * k, np.full(len(k), UNREADABLE), k), 10)
    assert not any(rule.holds for rule in found.rules.values()) and found.form is NONE
    assert {one.value for one in found.fidelity.values()} == {0.0} and found.mean_agreement == 0.0
    assert found.unreadable == {"natural": 4000, "stratified": 4000} and "no integer" in found.why
    for text in (terminal(found), notebook_html(found)):
        assert "f(1) is unreadable" in text and "4,000 of 4,000" in text and not ticked(text) and "None" not in text
    assert "no rule explains" in reason(found, 6, 9, None)

    def silent(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.full(len(a), UNREADABLE)

    checks = metamorphic_checks(silent, RuleModel((1,), {1: UNREADABLE}, UNREADABLE), 1000, np.random.default_rng(0), 50)
    assert all(check.rate == 0 for check in checks)


def test_some_unreadable_answers_count_against_fidelity() -> None:
    known = products({2: 4, 5: 5}, 100)
    found = explain_one(table_with({3: {1: 290, UNREADABLE: 10}}, known), 10)
    assert found.fidelity["stratified"].agree == 29_990 and found.unreadable["stratified"] == 10
    assert all(rule.holds for rule in found.rules.values())


def test_a_rule_that_judged_nothing_does_not_hold() -> None:
    one = np.array([6], dtype=np.int64)
    found = explain_tables({"pairs": PredictionTable.of(one, one, one)}, base=10, maximum=None, least_pairs=30)
    values = found.to_json()["rules"]
    assert [rule["holds"] for rule in values.values()] == [False] * 3
    assert [rule["judged"] for rule in values.values()] == [0] * 3
    for text in (terminal(found), notebook_html(found)):
        assert text.count("not judged, no k was tested often enough") == 3 and not ticked(text)


def test_reprs_are_short(early: Explanation) -> None:
    assert len(repr(early)) < 250 and "form G" not in repr(early) and "base 30" in repr(early)


COUNTS = st.dictionaries(st.sampled_from([1, 2, 3, 6, 50, UNREADABLE]), st.integers(1, 40), min_size=1, max_size=3)


@given(st.dictionaries(st.integers(2, 100), COUNTS, min_size=1, max_size=8))
def test_tables_without_coprime_pairs_are_explained(answers: dict[int, dict[int, int]]) -> None:
    """A file of pairs need not hold any k, 1 least of all."""
    rows = [(k, value) for k, counts in answers.items() for value, count in counts.items() for _ in range(count)]
    k, value = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
    table = PredictionTable.of(k, k, value, k)
    found = explain_tables({"natural": table, "stratified": table}, base=10, maximum=None)
    assert found.to_json()["verdict"] == found.verdict and 0 <= found.fidelity["natural"].value <= 1
    assert terminal(found) and notebook_html(found)
