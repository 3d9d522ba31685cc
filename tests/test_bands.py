"""Bands of size and order: every pair lies where its band says, and a certificate names where it does not hold."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from gcdformer import Run, explain
from gcdformer.cli import main
from gcdformer.display.html import certificate_sections
from gcdformer.display.terminal import show_explanation
from gcdformer.explanation.bands import Band, bands_of_pairs, distinct, draw_stratified, judge_bands, limits_text, regions
from gcdformer.explanation.rules import RuleModel
from gcdformer.explanation.sieve import products
from gcdformer.explanation.statistics import Fidelity
from gcdformer.numbers.encoding import Integers

KNOWN = tuple(sorted(products({2: 4, 5: 25}, 100)))
MODEL = RuleModel(KNOWN, {d: d for d in KNOWN}, 1)
Predict = Callable[[Integers, Integers], Integers]


def sieve(a: Integers, b: Integers) -> Integers:
    return MODEL.answers_to(np.gcd(a, b))


def memorising(limit: int) -> Predict:
    """A sieve that has memorised all pairs of small integers."""
    return lambda a, b: np.where(np.maximum(a, b) < limit, np.gcd(a, b), sieve(a, b))


@given(st.integers(2, 2**40), st.integers(0, 1000))
@settings(max_examples=60, deadline=None)
def test_pairs_lie_in_their_band_and_have_their_gcd(maximum: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for region in regions(maximum):
        every = np.arange(1, 101)
        fitting = every[region.fits(every)]
        if not len(fitting):
            continue
        a, b = draw_stratified(region, rng, 200)
        assert region.contains(a, b).all(), region.name
        assert min(a.min(), b.min()) >= 1 and max(a.max(), b.max()) <= maximum
        assert set(np.gcd(a, b).tolist()) == set(fitting.tolist()), "all k that fit, known or not"
        first, second = distinct(a, b)
        assert len(set(zip(first.tolist(), second.tolist(), strict=True))) == len(first) <= len(a)


def test_all_k_that_fit_are_tried() -> None:
    """Up to 50 there are 50 of them; a model that knows a k only by heart is found out."""
    bands = {band.name: band for band in judge_bands(sieve, MODEL, 10**6, np.random.default_rng(0))}
    assert list(bands) == ["both up to 50", "both up to 1,000", "both up to 10,000", "both up to 100,000",
                           "both up to 1,000,000", "one up to 1,000, one above 100,000", "a < b", "a > b", "a = b",
                           "one divides the other"]
    assert bands["both up to 50"].gcds == 50 and bands["a = b"].gcds == bands["both up to 1,000"].gcds == 100
    assert all(band.holds and band.fidelity.value == 1 for band in bands.values())
    assert bands["a = b"].fidelity.exact and bands["a = b"].fidelity.n == 100


CASES: dict[str, tuple[Predict, str]] = {
    "a sieve": (sieve, " and in every band"),
    "small pairs by heart": (memorising(8000), "; not below 10,000, nor for a = b"),
    "very small pairs by heart": (memorising(900), "; not below 1,000, nor for a = b"),
    "equal operands": (lambda a, b: np.where(a == b, 1, sieve(a, b)), "; not below 50, nor for a = b"),
    "order": (lambda a, b: np.where((a > b) & (b < 5000), 1, sieve(a, b)),
              "; not below 100,000, nor where one operand is small and one large, nor where one operand divides the other"),
    "one divides the other": (lambda a, b: np.where((a != b) & (np.maximum(a, b) % np.minimum(a, b) == 0), 1, sieve(a, b)),
                              "; not below 1,000, nor where one operand is small and one large, nor where one operand "
                              "divides the other"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_certificate_names_where_it_does_not_hold(case: str) -> None:
    predict, limits = CASES[case]
    found = explain(predict, 10, pairs=20_000)
    assert found.certified and found.verdict == f"certified on uniform pairs of 1..1,000,000{limits}"
    plain = explain(predict, 10, pairs=20_000, bands=False)
    assert plain.certified and plain.verdict == "certified on uniform pairs of 1..1,000,000" and plain.bands == ()


def test_no_model_without_a_certificate_gets_one_by_its_bands() -> None:
    def broken(a: Integers, b: Integers) -> Integers:
        return np.where(np.gcd(a, b) == 12, 3, sieve(a, b))

    found = explain(broken, 10, pairs=20_000)
    assert found.verdict == "not certified: exceptions to largest divisor" and len(found.bands) == 10


def band(limit: int | None, agree: int, where: str = "") -> Band:
    return Band(str(limit), where or f"for operands up to {limit:,}", limit, 100, Fidelity(agree, 1000), 50.0)


def test_words_for_the_bands_that_fail() -> None:
    good, bad, open_one = 1000, 500, 979
    assert limits_text([]) == "" and limits_text([band(50, good), band(1000, good)]) == " and in every band"
    assert limits_text([band(50, open_one), band(1000, good)]) == "", "undecided: neither is claimed"
    assert limits_text([band(50, bad), band(1000, bad), band(10**6, good)]) == "; not below 1,000"
    assert limits_text([band(50, good), band(1000, bad), band(10**6, good)]) == "; not for operands up to 1,000"
    assert limits_text([band(50, bad), band(1000, bad)]) == "; not for operands up to 50, nor for operands up to 1,000"


def test_bands_are_shown_and_in_json() -> None:
    found = explain(memorising(8000), 10, pairs=20_000)
    values = found.to_json()
    assert values["domain"] == "uniform pairs of 1..1,000,000" and values["certified"]
    assert set(values["bands"][0]) == {"name", "n", "gcds", "fidelity", "accuracy", "holds"}
    assert set(values["bands"][0]["fidelity"]) == {"value", "low", "high", "n"} and values["bands"][1]["accuracy"] == 100
    assert json.loads(json.dumps(values["bands"])) == values["bands"]
    out = io.StringIO()
    show_explanation(Console(file=out, width=140, highlight=False), found, "this")
    lines = [line for line in out.getvalue().splitlines() if "both up to" in line or "a = b" in line]
    assert [line.split()[0] for line in lines] == ["for", "✗", "✗", "✗", "✓", "✓", "✗"] and "█" in lines[2]
    assert "[all pairs]" in lines[-1]
    page = certificate_sections(found)
    assert page.count('<span class="bar"') == 10 and "By size and order" in page


def test_pairs_of_a_file_are_judged_by_their_own_bands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    k = np.repeat(np.arange(1, 101), 60)
    a, b = k * rng.integers(1, 900, len(k)), k * rng.integers(1, 900, len(k))
    predictions = np.where((a > b) & (b < 4000), 1, sieve(a, b))
    bands = {found.name: found for found in bands_of_pairs(a, b, predictions, MODEL)}
    assert "both up to 50" not in bands, "too few of them"
    assert bands["a < b"].fidelity.value == 1 and bands["a > b"].holds is False
    kept = (np.gcd(a, b) <= 100) & (np.maximum(a, b) <= 1000)
    assert bands["both up to 1,000"].fidelity.n == kept.sum()
    path = tmp_path / "rows.csv"
    path.write_text("a,b,prediction\n" + "".join(f"{x},{y},{p}\n" for x, y, p in zip(a, b, predictions, strict=True)))
    assert main(["explain", "--predictions", str(path), "--base", "10", "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert {entry["name"] for entry in values["bands"]} == set(bands)
    assert main(["explain", "--predictions", str(path), "--base", "10", "--json", "--no-bands"]) == 0
    assert json.loads(capsys.readouterr().out)["bands"] == []


def test_a_run_is_asked_and_one_without_weights_says_so(trained: Run, tmp_path: Path,
                                                        capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(trained.path), "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert [entry["name"] for entry in values["bands"]][:2] == ["both up to 50", "both up to 1,000"]
    assert explain(trained).to_json()["bands"] == values["bands"], "a function of the run"
    assert main(["explain", str(trained.path), "--no-bands"]) == 0
    assert "by size and order" not in capsys.readouterr().out
    from test_certified import made_run
    made = made_run(tmp_path / "made", False)
    assert main(["explain", str(made.path)]) == 0
    assert "sizes and orders were not judged: the weights of epoch 1 are not kept" in capsys.readouterr().out
    assert explain(made).bands == () and explain(made).verdict == "certified on uniform pairs of 1..1,000"
