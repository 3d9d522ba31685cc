"""Answers written as text: any integer in the usual sentences reads back, and nothing is read where nothing is said."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcdformer.cli import main
from gcdformer.config import LARGEST_INTEGER
from gcdformer.data.predictions import INTRODUCTION, LARGE, SMALL, TENS, UNITS, read_answer

TEMPLATES = ["{}", " {}\n", "{}.", "The GCD is {}.", "The greatest common divisor of 12 and 18 is {}.", "gcd(12, 18) = {}",
             "GCD(12,180)=gcd(12,6)={}", "**{}**", "`{}`", "\\boxed{{{}}}", "${}$", "\\(\\gcd(12, 18) = {}\\)", "Answer: {}",
             "The GCD of these two numbers is **{}**.", "So the answer is {}",
             "12 = 2^2 * 3 and 18 = 2 * 3^2, so \\boxed{{{}}}.",
             "12 = 2 * 2 * 3 and 18 = 2 * 3 * 3.\n\nFinal answer: {}", "{} is the greatest common divisor.", "Result: {}"]
DOUBT = ["not", "or", "?", "about"]


def in_words(n: int) -> str:
    """123456 -> one hundred twenty-three thousand four hundred fifty-six."""
    if n < 20:
        return UNITS[n]
    if n < 100:
        tens = next(word for word, value in TENS.items() if value == n // 10 * 10)
        return tens if n % 10 == 0 else f"{tens}-{UNITS[n % 10]}"
    for word, size in (("million", 10**6), ("thousand", 1000), ("hundred", 100)):
        if n >= size:
            rest = in_words(n % size) if n % size else ""
            return f"{in_words(n // size)} {word} {rest}".strip()
    raise AssertionError(n)


@given(st.integers(-LARGEST_INTEGER, LARGEST_INTEGER), st.sampled_from(TEMPLATES), st.sampled_from(["{}", "{:,}"]))
def test_an_integer_in_a_sentence_reads_back(n: int, template: str, digits: str) -> None:
    assert read_answer(template.format(digits.format(n))) == n


@given(st.integers(0, 10**9 - 1), st.sampled_from(TEMPLATES), st.booleans())
def test_an_integer_in_words_reads_back(n: int, template: str, british: bool) -> None:
    words = in_words(n)
    if british and n < 1000 and n % 100:
        words = words.replace("hundred ", "hundred and ")
    assert read_answer(template.format(words)) == n
    assert read_answer(template.format(words.upper())) == n


@given(st.text())
def test_text_without_an_integer_is_unreadable(text: str) -> None:
    spoken = {*SMALL, *LARGE, "hundred"}
    if not any(c.isdecimal() for c in text) and not any(word in text.lower() for word in spoken):
        assert read_answer(text) is None


@given(st.lists(st.sampled_from([*sorted(INTRODUCTION), *DOUBT, "6", "seven", ",", ".", "-"]), max_size=9))
def test_nothing_is_read_from_two_answers_or_doubt(words: list[str]) -> None:
    value = read_answer(" ".join(words))
    said = {6 if word == "6" else 7 for word in words if word in ("6", "seven")}
    if words.count("answer") == 1 and {".", "?"} & set(words):  # the last of several sentences may mark its integer
        assert value is None or value in said
        return
    assert value is None or {value} == said
    if len(said) != 1 or set(DOUBT) & set(words) and "answer" not in words:
        assert value is None


def test_the_last_sentence_may_mark_its_integer_as_the_answer() -> None:
    assert read_answer("6 . answer seven") == 7
    assert read_answer("answer seven . 6") is None and read_answer("answer 6 . answer seven") is None


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.sampled_from(["{} or {}", "{}, {}", "{} and {}", "{}/{}", "{}^{}",
                                                                      "{} * {}", "{}.{}5", "{}-{}", "{} + {}", "{}!, {}"]))
def test_calculations_and_choices_are_unreadable(a: int, b: int, template: str) -> None:
    if a != b or template not in ("{}, {}",):
        assert read_answer(template.format(a, b)) is None


@pytest.mark.parametrize("text", [
    "", " ", "I do not know", "The GCD is not 6.", "2*2", "2^2", "6 or 3", "is it 6?", "6th", "6%", "1e3", "0x6", "½", "٣",
    "1.000", "6.5", "1 000", "1,00", "12,34", "x1", "about 6", "at least 6", "a divisor of 6", "No one knows",
    "one of them is six", "twenty ten", "hundred", "six seven", "forty-two-three", "99999999999999999999",
    "\\boxed{6} or \\boxed{3}", "\\boxed{2^2}", "gcd(12, 18)", "The GCD of 12 and 18", "the answer is 6 or the answer is 3",
    "My answer was 4. The answer is 6.", "The answer is not 6", "9" * 5000,
])
def test_what_is_unreadable(text: str) -> None:
    assert read_answer(text) is None


def run_cli(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    code = main([str(word) for word in words])
    out, err = capsys.readouterr()
    return code, out, err


def test_a_template_is_filled_in_and_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The whole way: ask for a template, answer like a model that knows 2, 5 and 10, and explain that."""
    path, prompts = tmp_path / "ask.csv", tmp_path / "ask.txt"
    code, _, err = run_cli(capsys, "sample", "--for-llm", "--out", path, "--prompts", prompts, "--seed", 3)
    assert code == 0 and err == ""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["id", "a", "b", "question", "answer"] and len(rows) == 3000
    assert [row["id"] for row in rows] == [str(n) for n in range(1, 3001)] and {row["answer"] for row in rows} == {""}
    k = [int(np.gcd(int(row["a"]), int(row["b"]))) for row in rows]
    assert np.array_equal(np.bincount(k, minlength=101)[1:], np.full(100, 30)) and k != sorted(k)
    assert prompts.read_text().splitlines() == [row["question"] for row in rows]
    assert all(row["a"] in row["question"] and row["b"] in row["question"] for row in rows)
    answers = ["The GCD is {}.", "{}", "**{}**", "\\boxed{{{}}}"]
    for number, (row, gcd) in enumerate(zip(rows, k, strict=True)):
        known = 10 if gcd % 10 == 0 else 5 if gcd % 5 == 0 else 2 if gcd % 2 == 0 else 1
        row["answer"] = answers[number % 4].format(known)
    for row in (rows[0], rows[7]):
        row["answer"] = "I cannot say, perhaps 6 or 3."
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    code, out, _ = run_cli(capsys, "explain", "--predictions", path, "--base", 10, "--json")
    values = json.loads(out)
    assert code == 0 and values["D"] == [1, 2, 5, 10] and values["unreadable"] == {"pairs": 2}
    assert values["fidelity"]["pairs"]["n"] == 3000 and values["certified"]
    code, out, _ = run_cli(capsys, "explain", "--predictions", path, "--base", 10)
    assert code == 0 and "2 of 3,000 pairs" in out


def test_templates_are_seeded_and_take_a_count(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = []
    for words in (["--seed", 1], ["--seed", 1], ["--seed", 2], ["--seed", 1, "--max", 500],
                  ["--seed", 1, "--operands", "log-uniform"]):
        code, out, _ = run_cli(capsys, "sample", "--for-llm", "--pairs-per-gcd", 2, *words)
        assert code == 0 and len(out.splitlines()) == 201
        texts.append(out)
    assert texts[0] == texts[1] and len(set(texts)) == 4
    for words, said in ((["--count", 5], "count"), (["--base", 30], "base"), (["--outcomes", "uniform"], "outcomes"),
                        (["--format", "parquet"], "format"), (["--pairs-per-gcd", 0], "pairs-per-gcd")):
        code, out, err = run_cli(capsys, "sample", "--for-llm", *words)
        assert code == 2 and out == "" and said in err and len(err.splitlines()) == 1
    for flag, value in (("--prompts", tmp_path / "x"), ("--pairs-per-gcd", 3)):
        code, _, err = run_cli(capsys, "sample", flag, value)
        assert code == 2 and "--for-llm" in err


def test_files_are_not_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, prompts = tmp_path / "a.csv", tmp_path / "p.txt"
    assert run_cli(capsys, "sample", "--count", 3, "--out", path)[0] == 0
    before = path.read_text()
    code, out, err = run_cli(capsys, "sample", "--count", 3, "--seed", 5, "--out", path)
    assert code == 2 and out == "" and "a.csv" in err and "--force" in err and path.read_text() == before
    assert run_cli(capsys, "sample", "--count", 3, "--seed", 5, "--out", path, "--force")[0] == 0
    assert path.read_text() != before
    prompts.write_text("mine")
    code, _, err = run_cli(capsys, "sample", "--for-llm", "--out", tmp_path / "new.csv", "--prompts", prompts)
    assert code == 2 and "p.txt" in err and prompts.read_text() == "mine" and not (tmp_path / "new.csv").exists()
