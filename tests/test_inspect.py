"""Tracing one question agrees with the model itself, and every answer gets a reason."""

from __future__ import annotations

from math import gcd
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import tiny_config
from gcdformer import PredictionTable, Problem
from gcdformer.display.reasons import reason
from gcdformer.explanation import explain_tables
from gcdformer.explanation.sieve import largest_divisor, products
from gcdformer.models import build_model, generate
from gcdformer.models.hooks import has_hooks
from gcdformer.models.inspect import attention, trace
from gcdformer.numbers.encoding import BEGIN
from recomputed import recomputed_attention


@pytest.mark.parametrize(
    "leaves",
    [
        {},
        {"layers": 2, "heads": 4},
        {"cross_query": "input"},
        {"encoder_dim": 32, "decoder_dim": 16},
        {"family": "lstm", "heads": 0},
    ],
)
def test_inspection_agrees_with_the_model(leaves: dict[str, Any]) -> None:
    """Attention is what it is recomputed to be, which leads to the model's own logits; the trace to `generate`'s tokens."""
    config = tiny_config(**leaves)
    model = build_model(config, Problem.of(config), seed=3).eval()
    inputs = [3, 6, 7, 3, 9, 14]
    outputs = [BEGIN, 3, 8, 5]
    found = trace(model, inputs, 5)
    expected = generate(model, torch.tensor([inputs]), 5)[0].tolist()
    assert found.tokens == expected[: len(found.tokens)] and all(abs(float(d.sum()) - 1) < 1e-5 for d in found.distributions)
    patterns, expected_patterns = attention(model, inputs, outputs), recomputed_attention(model, inputs, outputs)
    if config.model.family == "lstm":
        assert patterns is None
        return
    assert patterns is not None and expected_patterns is not None and not has_hooks(model)
    for side in ("encoder", "decoder", "cross"):
        torch.testing.assert_close(getattr(patterns, side), getattr(expected_patterns, side))
    with torch.inference_mode():
        logits = model.project(model(torch.tensor([inputs]), torch.tensor([outputs])))[0]
    torch.testing.assert_close(patterns.logits, logits)
    torch.testing.assert_close(expected_patterns.logits, logits)
    assert len(patterns.cross) == config.model.decoder_layers and patterns.cross[0].shape == (
        config.model.decoder_heads,
        4,
        6,
    )
    for layers in (patterns.encoder, patterns.decoder, patterns.cross):
        for layer in layers:
            torch.testing.assert_close(layer.sum(-1), torch.ones(layer.shape[:2]))
    assert float(patterns.decoder[0].triu(1).abs().max()) == 0


def explained(known: set[int]) -> Any:
    k = np.repeat(np.arange(1, 101), 30)
    answers = np.array([largest_divisor(known, int(x)) or 1 for x in k])
    return explain_tables({"stratified": PredictionTable.of(k, k, answers, k)}, base=10, maximum=None)


TWENTY = explained(products({2: 4, 5: 5}, 100))


@pytest.mark.parametrize(
    ("a", "b", "prediction", "words"),
    [
        (120, 180, 20, ["divisible by 20, the largest element of D", "true GCD is 60, but 3 is not learned yet"]),
        (40, 60, 20, ["divisible by 20", "it is their GCD"]),
        (7, 9, 1, ["only 1 divides"]),
        (16, 48, 4, ["of 16 only 4 is learned"]),
        (60, 120, 60, ["The model is right: the GCD is 60", "the rules say 20"]),
        (60, 120, None, ["an unreadable answer, against its own rules"]),
        (400, 800, 20, ["of 16 only 4 is learned and of 25 only 5 is learned"]),
    ],
)
def test_reasons(a: int, b: int, prediction: int | None, words: list[str]) -> None:
    text = reason(TWENTY, a, b, prediction)
    assert all(word in text for word in words) and text.endswith(".") and text.count("\n") == 0


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 10**6), st.integers(1, 10**6), st.one_of(st.none(), st.integers(1, 10**6)))
def test_every_question_has_a_reason(a: int, b: int, prediction: int | None) -> None:
    text = reason(TWENTY, a, b, prediction)
    assert str(gcd(a, b)) in text or prediction == gcd(a, b)
    assert ("rules say" in text) == (prediction != TWENTY.answer(a, b))
