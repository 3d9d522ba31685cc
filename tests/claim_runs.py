"""Runs for and against the paper's claims, made without training, and the verdict on them."""

from __future__ import annotations

from typing import Any

from gcdformer.explanation.sieve import components, products
from gcdformer.paper import Experiment
from gcdformer.paper.claims import ALL, judge
from gcdformer.paper.entry import Entry
from ledger_entries import ideal

BASES = (10, 30, 1000)
D10, D30 = products({2: 16, 5: 25}, 100), products({2: 8, 3: 9, 5: 25}, 100)
POWERS = {2: 1, 3: 1, 5: 1, 4: 10, 9: 20, 8: 30, 25: 40}


def with_facts(entry: Entry, name: str | None = None, **facts: Any) -> Entry:
    return Entry(name or entry.name, entry.facts | facts)


def cut(entry: Entry, epochs: int) -> Entry:
    """The same run, stopped earlier."""
    return with_facts(entry, curve={key: values[:epochs] for key, values in entry.facts["curve"].items()},
                      events=[event for event in entry.facts["events"] if event[0] <= epochs])


def accurate(experiment: Experiment, accuracy: float, **more: Any) -> Entry:
    """A run of which only the accuracy matters."""
    entry = ideal(experiment, {1}, **more)
    tables = "" if experiment.task != "gcd" else entry.facts["tables"]
    return with_facts(entry, curve=entry.facts["curve"] | {"accuracy": [accuracy] * 100}, tables=tables)


def verdict(name: str, *entries: Entry) -> tuple[str, int, int]:
    found = judge(ALL[name], entries)
    return found.status, found.held, found.of


def grokked(base: int, epochs: dict[int, int]) -> Entry:
    return ideal(Experiment(base), {1, *epochs}, epoch_of=epochs)


def in_steps(delay: dict[int, int], powers: dict[int, int] = POWERS) -> Entry:
    """30: 2, 3, 5 at first, then 4, 9, 8 and 25 with their products, a little later."""
    first = {k: max(powers[q] for q in components(k)) + delay.get(k, 0) for k in D30 - {1}}
    return ideal(Experiment(30), D30, epoch_of={**first, **powers})
