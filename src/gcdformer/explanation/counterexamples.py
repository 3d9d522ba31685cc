"""Pairs on which a model does not answer what the rules say. Knows tables and a rule model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gcdformer.evaluation.table import PredictionTable
from gcdformer.explanation.rules import RuleModel, readable

MOST_COUNTEREXAMPLES = 100
MOST_EXAMINED = 20_000


@dataclass(frozen=True)
class Counterexample:
    """A pair of a test set on which the model does not answer what the rules say; None stands for no integer."""

    a: int
    b: int
    gcd: int
    prediction: int | None
    rule: int | None
    set: str

    @property
    def text(self) -> str:
        """In a few words."""
        instead = "no rule says so" if self.rule is None else f"not {self.rule}"
        return f"({self.a}, {self.b}) -> {'unreadable' if self.prediction is None else self.prediction}, {instead}"

    def to_json(self) -> dict[str, Any]:
        return {"a": self.a, "b": self.b, "gcd": self.gcd, "prediction": self.prediction, "rule": self.rule, "set": self.set}


def find_counterexamples(tables: dict[str, PredictionTable], model: RuleModel, largest: int) -> list[Counterexample]:
    """Example pairs, of GCD up to `largest`, against the rules: at most 100, spread over the k."""
    ranked: list[tuple[int, int, Counterexample]] = []
    seen: set[tuple[int, int]] = set()
    for name, table in tables.items():
        place: dict[int, int] = {}
        against = ~model.agrees(table.gcd, table.prediction) & (table.gcd <= largest)
        for index in np.flatnonzero(against[table.example_row])[:MOST_EXAMINED]:
            row, a, b = table.example_row[index], int(table.example_a[index]), int(table.example_b[index])
            k, prediction = int(table.gcd[row]), int(table.prediction[row])
            if (a, b) not in seen:
                seen.add((a, b))
                place[k] = place.get(k, 0) + 1
                ranked.append((place[k], k, Counterexample(a, b, k, readable(prediction), readable(model.answer(k)), name)))
    ranked.sort(key=lambda item: item[:2])
    return [example for _, _, example in ranked[:MOST_COUNTEREXAMPLES]]
