"""Certificates against a second opinion: of 1,000 generated models none is certified wrongly, none is refused wrongly."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import second_opinion
from gcdformer import PredictionTable
from gcdformer.explanation import explain_tables
from gcdformer.runs.explain import by_order
from second_opinion import MAXIMUM, Model, judge, models, pairs_for_each_k

PARTS, EACH, PAIRS = 10, 100, 200


def answered(model: Model, pairs: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The model's answers to these pairs, its noise included."""
    a, b = pairs.T
    k = np.gcd(a, b)
    answers = model.answer(a, b, k)
    if model.noise:
        answers = np.where(rng.random(len(a)) < model.noise, rng.integers(1, 101, len(a)), answers)
    return answers


@pytest.fixture(scope="module")
def pairs() -> dict[str, np.ndarray]:
    """What the models are asked, and what the judge asks them."""
    rng = np.random.default_rng(21)
    return {"stratified": pairs_for_each_k(rng, PAIRS), "judge": pairs_for_each_k(rng, PAIRS),
            "natural": rng.integers(1, MAXIMUM, (5000, 2), endpoint=True)}


@pytest.mark.parametrize("part", range(PARTS))
def test_no_false_certificate_and_no_refused_true_one(part: int, pairs: dict[str, np.ndarray]) -> None:
    rng = np.random.default_rng([22, part])
    figures: Counter[tuple[str, bool | None, bool]] = Counter()
    wrong = []
    for number, model in enumerate(models(EACH, part)):
        answers = {name: answered(model, pairs[name], rng) for name in ("natural", "stratified")}
        tables = {name: PredictionTable.of(*pairs[name].T, answers[name]) for name in answers}
        found = explain_tables(tables, base=model.base, maximum=MAXIMUM,
                               orders=by_order(*pairs["stratified"].T, answers["stratified"]))
        opinion = judge(model, pairs["judge"])
        figures[model.kind, opinion, found.certified] += 1
        if opinion not in (None, found.certified):
            wrong.append((number, model.kind, opinion, found.verdict, found.form.letter, found.correct))
    for (kind, opinion, certified), count in sorted(figures.items(), key=str):
        print(f"part {part}: {kind}, opinion {opinion}, certified {certified}: {count}")
    assert not wrong, wrong[:5]
    total = Counter(opinion for kind, opinion, certified in figures.elements())
    assert total[True] >= 15 and total[False] >= 50 and total[None] <= 0.15 * EACH, total
    assert len({kind for kind, _, _ in figures}) == 10


def test_the_second_opinion_is_its_own() -> None:
    tree = ast.parse(Path(second_opinion.__file__).read_text())
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not any(name.startswith("gcdformer") for name in imported)
