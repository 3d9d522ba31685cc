"""Integers to tokens and back: the paper's own examples, round trips as a property, every unreadable row refused."""

from __future__ import annotations

import doctest

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gcdformer import Config, Problem, Stream, UserError
from gcdformer.numbers import encoding
from gcdformer.numbers.encoding import (
    BEGIN,
    DIGIT_0,
    END,
    MINUS,
    PAD,
    PLUS,
    SPECIAL_SYMBOLS,
    Integers,
    Vocabulary,
    decode,
    encode,
    encode_row,
    longest_row,
)

BOUND = 2**62
PROPERTY = settings(deadline=None, max_examples=150)
bases = st.one_of(st.integers(2, 20_000), st.sampled_from([2, 3, 10, 30, 1000, 20_000]))

# tab:encodings: (160, 120) and its GCD, 40.
PUBLISHED = [
    (2, "+ 1 0 1 0 0 0 0 0 + 1 1 1 1 0 0 0", "+ 1 0 1 0 0 0"),
    (6, "+ 4 2 4 + 3 2 0", "+ 1 0 4"),
    (10, "+ 1 6 0 + 1 2 0", "+ 4 0"),
    (30, "+ 5 10 + 4 0", "+ 1 10"),
]

# Rows in base 10 that `encode` never writes, and how many integers are asked for.
UNREADABLE = {
    "empty": (1, ""),
    "end at once": (1, "<end> + 3"),
    "padding only": (1, "<pad> <pad>"),
    "leading zero": (1, "+ 0 5"),
    "two zeros": (1, "+ 0 0"),
    "leading zero in the second integer": (2, "+ 5 + 0 7"),
    "minus zero": (1, "- 0"),
    "minus zero first": (2, "- 0 + 1"),
    "minus and leading zero": (1, "- 0 3"),
    "too few integers": (2, "+ 1"),
    "too many integers": (1, "+ 1 + 2"),
    "far too many integers": (2, "+ 1 + 2 + 3 + 4"),
    "no digits after the sign": (1, "+"),
    "no digits after a sign inside": (2, "+ + 1"),
    "no digits after the last sign": (2, "+ 1 -"),
    "two signs": (1, "+ - 1"),
    "no sign": (1, "5"),
    "digits before the first sign": (1, "5 + 3"),
    "digit as large as the base": (1, "+ 10"),
    "later digit above the base": (1, "+ 3 11"),
    "begin before": (1, "<begin> + 3"),
    "begin inside": (1, "+ <begin> 3"),
    "begin after": (1, "+ 3 <begin>"),
    "digits after padding": (1, "+ 3 <pad> 4"),
    "2^63": (1, "+ " + " ".join(str(2**63))),
    "-2^63": (1, "- " + " ".join(str(2**63))),
    "2^64 + 5, which wraps to 5": (1, "+ " + " ".join(str(2**64 + 5))),
    "thirty digits": (1, "+ " + " ".join("9" * 30)),
    "overflow in the first integer": (2, "+ " + " ".join(str(2**64 + 5)) + " + 1"),
}


def tokens_of(text: str) -> list[int]:
    """Tokens of words, not checked: digits may lie outside the base."""
    return [SPECIAL_SYMBOLS.index(word) if word in SPECIAL_SYMBOLS else DIGIT_0 + int(word) for word in text.split()]


def rows_of(rows: list[list[int]]) -> Integers:
    """Token rows, padded to the longest."""
    width = max(map(len, rows))
    return np.array([row + [PAD] * (width - len(row)) for row in rows], dtype=np.int64).reshape(len(rows), width)


def plain_tokens(value: int, base: int) -> list[int]:
    """The definition, one digit at a time."""
    digits, rest = [], abs(value)
    while rest or not digits:
        rest, digit = divmod(rest, base)
        digits.append(DIGIT_0 + digit)
    return [MINUS if value < 0 else PLUS, *reversed(digits)]


@st.composite
def tables(draw: st.DrawFn) -> tuple[int, Integers]:
    """A base and rows of several integers, many of them where the number of digits changes."""
    base = draw(bases)
    edges = st.builds(lambda power, shift, sign: sign * min(base**power + shift, BOUND),
                      st.integers(0, 62), st.integers(-1, 1), st.sampled_from([-1, 1]))
    value = st.one_of(st.integers(-BOUND, BOUND), st.integers(-20, 20), edges)
    arity = draw(st.integers(1, 5))
    rows = draw(st.lists(st.lists(value, min_size=arity, max_size=arity), min_size=1, max_size=12))
    return base, np.array(rows, dtype=np.int64)


@pytest.mark.parametrize(("base", "question", "answer"), PUBLISHED)
def test_published_encodings(base: int, question: str, answer: str) -> None:
    vocabulary = Vocabulary(base)
    assert vocabulary.text(encode_row([160, 120], base)) == question
    assert vocabulary.text(encode_row([40], base)) == answer
    for text, values in ((question, [160, 120]), (answer, [40])):
        decoded, readable = decode(np.array([[vocabulary.token(word) for word in text.split()]]), base, len(values))
        assert readable.all() and decoded.tolist() == [values]


@PROPERTY
@given(tables())
def test_round_trip(table: tuple[int, Integers]) -> None:
    base, values = table
    tokens, _ = encode(values, base)
    decoded, readable = decode(tokens, base, values.shape[1])
    assert readable.all()
    assert np.array_equal(decoded, values)


@PROPERTY
@given(tables())
def test_tokens_lengths_and_padding(table: tuple[int, Integers]) -> None:
    base, values = table
    tokens, lengths = encode(values, base)
    expected = [[token for value in row for token in plain_tokens(value, base)] for row in values.tolist()]
    assert lengths.tolist() == [len(row) for row in expected]
    assert tokens.shape == (len(values), max(map(len, expected)))
    assert np.array_equal(tokens, rows_of(expected))


def test_no_rows() -> None:
    tokens, lengths = encode(np.zeros((0, 2), dtype=np.int64), 10)
    assert tokens.shape == (0, 0) and lengths.shape == (0,)
    values, readable = decode(tokens, 10, 2)
    assert values.shape == (0, 2) and readable.shape == (0,)


@PROPERTY
@given(tables(), st.lists(st.integers(0, 30), max_size=6))
def test_what_follows_the_end_is_not_read(table: tuple[int, Integers], junk: list[int]) -> None:
    base, values = table
    rows = [[token for value in row for token in plain_tokens(value, base)] + [END, *junk] for row in values.tolist()]
    decoded, readable = decode(rows_of(rows), base, values.shape[1])
    assert readable.all()
    assert np.array_equal(decoded, values)


@pytest.mark.parametrize("case", UNREADABLE)
def test_unreadable_rows(case: str) -> None:
    arity, text = UNREADABLE[case]
    good = [token for _ in range(arity) for token in plain_tokens(-70, 10)]
    values, readable = decode(rows_of([good, tokens_of(text), good]), 10, arity)
    assert readable.tolist() == [True, False, True]
    assert values.tolist() == [[-70] * arity, [0] * arity, [-70] * arity]


def test_no_columns_are_unreadable() -> None:
    _, readable = decode(np.zeros((3, 0), dtype=np.int64), 10, 1)
    assert not readable.any()


@pytest.mark.parametrize("base", [2, 7, 10, 1000, 20_000])
def test_largest_readable_integer(base: int) -> None:
    largest = 2**63 - 1
    rows = rows_of([plain_tokens(n, base) for n in (largest, -largest, largest + 1, -largest - 1, largest + base)])
    values, readable = decode(rows, base, 1)
    assert readable.tolist() == [True, True, False, False, False]
    assert values[:, 0].tolist() == [largest, -largest, 0, 0, 0]


@settings(deadline=None, max_examples=400)
@given(st.integers(2, 4), st.integers(1, 3), st.lists(st.lists(st.integers(1, DIGIT_0 + 4), max_size=9),
                                                    min_size=1, max_size=20))
def test_readable_is_what_encode_writes(base: int, arity: int, rows: list[list[int]]) -> None:
    values, readable = decode(rows_of(rows), base, arity)
    for row, row_values, row_readable in zip(rows, values.tolist(), readable.tolist(), strict=True):
        read = row[:row.index(END)] if END in row else row
        written = [token for value in row_values for token in plain_tokens(value, base)]
        assert row_readable == (read == written)
        assert row_readable or row_values == [0] * arity


@PROPERTY
@given(tables())
def test_longest_row_is_an_upper_bound_and_is_attained(table: tuple[int, Integers]) -> None:
    base, values = table
    arity, largest = values.shape[1], int(np.abs(values).max())
    longest = longest_row(arity, largest, base)
    assert encode(values, base)[1].max() <= longest
    assert encode(np.full((1, arity), largest), base)[1].tolist() == [longest]


@pytest.mark.parametrize("task", ["gcd", "division", "addition"])
def test_batches_run_from_begin_to_end_and_fit_the_positions(task: str) -> None:
    problem = Problem.of(Config().derive(task=task, base=7, maximum=5000, operands="uniform"))
    questions = Stream(problem, 0).examples(0, 500)
    answers = problem.answer(questions)
    batch = problem.encode_batch(questions)
    for i in range(len(questions)):
        target = [token for value in answers[i].tolist() for token in plain_tokens(value, 7)]
        question = [token for value in questions[i].tolist() for token in plain_tokens(value, 7)]
        assert batch.targets[i, :batch.target_lengths[i]].tolist() == [BEGIN, *target, END]
        assert batch.inputs[i, :batch.input_lengths[i]].tolist() == question
        assert not batch.targets[i, batch.target_lengths[i]:].any() and not batch.inputs[i, len(question):].any()
    assert batch.input_lengths.max() <= problem.longest_input
    assert batch.target_lengths.max() - 1 <= problem.longest_target
    decoded, readable = problem.decode_answers(batch.targets[:, 1:])
    assert readable.all() and np.array_equal(decoded, answers)


@pytest.mark.parametrize("base", [2, 30, 20_000])
def test_words_and_tokens(base: int) -> None:
    vocabulary = Vocabulary(base)
    words = [vocabulary.symbol(token) for token in range(vocabulary.size)]
    assert len(set(words)) == vocabulary.size == base + 5
    assert [vocabulary.token(word) for word in words] == list(range(vocabulary.size))
    for word in (str(base), "01", "-1", "x", "", "²", "1.0"):
        with pytest.raises(UserError, match=f"base {base}"):
            vocabulary.token(word)


def test_the_example_in_the_module() -> None:
    results = doctest.testmod(encoding)
    assert results.attempted and not results.failed
