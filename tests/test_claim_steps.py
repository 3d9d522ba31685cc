"""The claim that products are learned with their prime powers: what counts for and against it, and chance."""

from __future__ import annotations

from typing import Any

import numpy as np

from claim_runs import D30, POWERS, cut, in_steps, verdict, with_facts
from gcdformer.explanation.sieve import components
from gcdformer.numbers.random import Purpose, block_generator
from gcdformer.paper import Experiment
from gcdformer.paper.claims import ALL, FEW, MOST, judge
from gcdformer.paper.observations import follow_by_chance, products_follow
from ledger_entries import ideal


def test_steps() -> None:
    together = judge(ALL["steps"], [in_steps({12: 1, 36: 2})])
    assert together.status == "holds" and together.held == together.of >= FEW
    late = judge(ALL["steps"], [in_steps(dict.fromkeys((12, 20, 18, 45, 90, 24, 36, 40), 9))])
    assert late.status == "does not hold" and late.of - late.held == 8
    assert "later or not 12, 18, 20, 24, 36, 40, 45, 90" in late.observations[0].finding.text
    early = judge(ALL["steps"], [in_steps({75: -9, 100: 2, 50: -2})]).observations[0].finding
    assert early.held == early.of - 1 and early.text.endswith("sooner 75")
    never = ideal(Experiment(30), {1, 2, 3, 4}, epoch_of={4: 10})
    assert judge(ALL["steps"], [never]).observations[0].finding.text.endswith("later or not 12")
    short = judge(ALL["steps"], [cut(in_steps({}), 9)])
    assert short.of == 0 and "9.0 epochs are too few" in short.observations[0].finding.text
    assert verdict("steps", ideal(Experiment(30), D30)) == ("undecided", 0, 0), "all in the first evaluation is no step"


def test_products_without_their_prime_power_count_against_steps() -> None:
    """75, 50 and 100 without 25; and 75 long before a 25 that comes at the very end."""
    known = D30 - {25}
    found = products_follow(ideal(Experiment(30), known, epoch_of={75: 7, 50: 8, 100: 8}))
    assert (found.held, found.of) == (0, 3) and found.text.endswith("sooner 50, 75, 100")
    found = products_follow(ideal(Experiment(30), D30, epoch_of={25: 99, 75: 7, 50: 98, 100: 99}))
    assert (found.held, found.of) == (0, 1) and found.text.endswith("sooner 75")
    whole = in_steps({})
    status, held, of = verdict("steps", whole, with_facts(ideal(Experiment(30), known), "without", events=[
        [1, [1, 2, 3, 5], []], [2, [50, 75, 100, 36, 72, 18, 45, 90], []]]))
    assert status == "does not hold" and held == verdict("steps", whole)[1] and of - held == 8


def test_steps_have_to_beat_chance() -> None:
    """All prime powers within three epochs: whatever the order of the products, most come within two of theirs."""
    close = POWERS | {4: 10, 9: 11, 8: 12, 25: 12}
    entry = in_steps({}, close)
    generator = np.random.default_rng(1)
    order = [k for k in D30 if k not in close and k > 1 and max(close[q] for q in components(k)) > 1]
    times = {k: max(close[q] for q in components(k)) for k in order}
    mixed = dict(zip(order, generator.permuted(list(times.values())).tolist(), strict=True))
    for one in (entry, ideal(Experiment(30), D30, epoch_of={**close, **mixed})):
        found = judge(ALL["steps"], [one])
        assert found.held >= MOST * found.of and found.of >= FEW
        assert found.status == "undecided" and found.by_chance
        assert found.chance is not None and found.chance.most == 1.0
        assert found.summary.endswith("(100 %; by chance 100 %, in 95 shuffles of 100 at most 100 %)")
    apart = judge(ALL["steps"], [in_steps({})])
    assert apart.chance is not None and apart.chance.most < MOST and apart.status == "holds"
    assert f"(100 %; by chance {100 * apart.chance.mean:.0f} %, in 95 shuffles of 100 at most" in apart.summary


def test_chance_is_what_random_times_reach() -> None:
    """Runs whose products have exchanged their times go beyond what chance reaches in about five cases of 100."""
    run, generator = in_steps({}), np.random.default_rng(3)
    order = [k for k in sorted(D30) if len(components(k)) > 1 and max(POWERS[q] for q in components(k)) > 1]
    times = [max(POWERS[q] for q in components(k)) for k in order]
    beyond = 0
    for _ in range(60):
        mixed = dict(zip(order, generator.permuted(times).tolist(), strict=True))
        entry = with_facts(run, events=as_events({k: POWERS.get(k, 1) for k in D30} | mixed))
        found = products_follow(entry)
        beyond += found.held / found.of > follow_by_chance([entry], block_generator(0, Purpose.CHECKS, 0)).most
    assert beyond <= 9, "three are expected"
    first, again = (follow_by_chance([run], block_generator(0, Purpose.CHECKS, 0)) for _ in range(2))
    assert first == again


def as_events(first: dict[int, int]) -> list[Any]:
    return [[epoch, [k for k in first if first[k] == epoch], []] for epoch in sorted(set(first.values()))]
