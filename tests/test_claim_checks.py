"""Every check of a claim on runs for which it is true, on runs for which it is not, and on runs that cannot tell."""

from __future__ import annotations

from math import ceil
from typing import Any

import numpy as np
import pytest

from claim_runs import BASES, D10, D30, accurate, cut, grokked, verdict, with_facts
from gcdformer.evaluation import PredictionTable
from gcdformer.explanation.sieve import products
from gcdformer.numbers.theory import prime_factors
from gcdformer.paper import Experiment, experiments
from gcdformer.paper.claims import ALL, FEW, MOST, Verdict, judge
from gcdformer.paper.entry import Entry, compress, pack
from gcdformer.paper.evidence import AT_THE_END, Finding, Observation
from gcdformer.paper.ledger import LARGEST_RATIO
from gcdformer.paper.observations import digits_needed
from gcdformer.paper.tables.base import MIXTURE_30
from gcdformer.paper.tables.benford import batch, benford, inverse
from gcdformer.paper.tables.grokking import GROKKED
from gcdformer.paper.tables.rational import fraction
from gcdformer.paper.tables.scaling import one_layer
from gcdformer.paper.tables.uniform import UNI10, UNI10_EPOCHS, UNI_10, UNI_1000
from ledger_entries import ideal


def test_rules() -> None:
    bases = [2, 4, 6, 10, 12, 15, 30, 60, 210, 420]
    good = [ideal(Experiment(base), products({p: p for p in prime_factors(base)}, 100)) for base in bases]
    assert verdict("rules", *good) == ("holds", 10, 10)
    holes = {1, 2, 5, 12, 28, 44, 66, 78}
    bad = [ideal(Experiment(base), holes) for base in bases]
    assert verdict("rules", *bad) == ("does not hold", 0, 10), "D is no set of products"
    assert verdict("rules", *good[:9]) == ("undecided", 9, 9), "too few"
    assert verdict("rules", *good[:7], *bad[7:])[0] == "does not hold"
    trivial = judge(ALL["rules"], [ideal(Experiment(997), {1})])
    assert trivial.of == 0 and "only the divisor 1" in trivial.observations[0].finding.text
    assert verdict("rules", ideal(benford(1000), {1, 2}), ideal(UNI_10, {1, 2}))[0] == "not measured", "other distributions"


def test_mixture() -> None:
    slow = ideal(Experiment(30), D30, epoch_of={k: 10 + 2 * place for place, k in enumerate(sorted(D30 - {1, 2, 3}))})
    fast = ideal(MIXTURE_30, D30, epoch_of={k: 2 + place for place, k in enumerate(sorted(D30 - {1, 2, 3}))})
    found = judge(ALL["mixture"], [slow, fast])
    assert (found.status, found.held, found.of) == ("holds", len(D30) - 3, len(D30) - 3)
    assert "correct GCD after" in found.observations[0].finding.text
    swapped = [with_facts(slow, experiments=[MIXTURE_30.name]), with_facts(fast, experiments=["base-30"])]
    assert verdict("mixture", *swapped) == ("does not hold", 0, len(D30) - 3)
    assert verdict("mixture", fast, with_facts(fast, "same", experiments=["base-30"]))[0] == "undecided"


def test_numbers_of_gcd_that_come_together_are_one_step() -> None:
    late = dict.fromkeys(D30 - {1, 2, 3}, 50)
    early = dict.fromkeys(D30 - {1, 2, 3}, 40)
    found = judge(ALL["mixture"], [ideal(Experiment(30), D30, epoch_of=late), ideal(MIXTURE_30, D30, epoch_of=early)])
    assert (found.status, found.held, found.of) == ("undecided", 1, 1)
    assert found.observations[0].finding.text == (
        f"4 to {len(D30)} correct GCD after 12.0 M against 15.0 M; {len(D30)} against {len(D30)} after 30.0 M examples")
    never = judge(ALL["mixture"], [ideal(Experiment(30), {1, 2, 3}), ideal(MIXTURE_30, D30, epoch_of=early)])
    assert (never.held, never.of) == (1, 1) and "12.0 M against never" in never.observations[0].finding.text


@pytest.mark.parametrize(("name", "plain", "better"), [
    ("log-operands", Experiment, benford), ("log-operands", lambda b: Experiment(b, outcomes="log-uniform"), inverse),
    ("log-outcomes", benford, inverse), ("log-outcomes", Experiment, lambda b: Experiment(b, outcomes="log-uniform"))])
def test_distributions(name: str, plain: Any, better: Any) -> None:
    few, many = {1, 2, 5, 10}, D10

    def runs(bases: tuple[int, ...], worse: set[int], best: set[int]) -> list[Entry]:
        return [ideal(one(base), known) for base in bases for one, known in ((plain, worse), (better, best))]
    assert verdict(name, *runs(BASES, few, many)) == ("holds", 3, 3)
    assert verdict(name, *runs(BASES, many, few)) == ("does not hold", 0, 3)
    assert verdict(name, *runs(BASES, many, many)) == ("undecided", 0, 3), "as many is a tie, and ties decide nothing"
    two = judge(ALL[name], runs(BASES[:2], few, many))
    assert (two.status, two.summary) == ("undecided", "2 of 2 pairs of runs, fewer than 3")
    three_of_four = [*runs((30,), many, few), *runs((10, 1000, 2023), few, many)]
    assert verdict(name, *three_of_four) == ("holds", 3, 4) and MOST == 3 / 4
    assert verdict(name, *three_of_four[:-2]) == ("does not hold", 2, 3)


@pytest.mark.parametrize(("more", "fewer", "ties", "status"), [
    (3, 0, 1, "holds"), (9, 0, 3, "holds"), (3, 0, 2, "undecided"), (9, 0, 4, "undecided"), (2, 0, 9, "undecided"),
    (6, 2, 0, "holds"), (6, 2, 1, "undecided"), (2, 1, 0, "does not hold"), (2, 1, 20, "does not hold"),
    (0, 3, 9, "does not hold"), (0, 0, 9, "undecided")])
def test_ties_count_and_speak_neither_for_nor_against(more: int, fewer: int, ties: int, status: str) -> None:
    claim = ALL["log-operands"]
    findings = [Finding(1, 1, "")] * more + [Finding(0, 1, "")] * fewer + [Finding(0, 1, "", ties=1)] * ties
    found = Verdict(claim, tuple(Observation("", one, ()) for one in findings), ())
    assert (found.status, found.held, found.of, found.ties) == (status, more, more + fewer + ties, ties)
    said = f", {ties} tie{'s' if ties > 1 else ''}" if ties else ""
    assert found.summary.startswith(f"{more} of {more + fewer + ties} pairs of runs{said}")
    assert ("fewer than 3" in found.summary) == (more + fewer < 3)


def test_steps_reached_together_are_ties() -> None:
    """But what both runs knew at their first evaluation does not tell."""
    late = {4: 10, 8: 20, 9: 30, 25: 40}
    known = {1, 2, 3, *late}
    runs = [ideal(Experiment(30), known, epoch_of=late), ideal(MIXTURE_30, known, epoch_of=late | {9: 25, 25: 35})]
    found = judge(ALL["mixture"], runs)
    assert (found.held, found.of, found.ties) == (2, 4, 2)
    assert "after 3.0 M against 3.0 M" in found.observations[0].finding.text


def split_table(answers: dict[int, list[int]]) -> PredictionTable:
    """100 pairs for every k, the predictions of each taken in turn."""
    gcds = np.repeat(np.arange(1, 101), 100)
    predictions = np.array([answers[int(k)][place % len(answers[int(k)])] for place, k in enumerate(gcds)])
    return PredictionTable.of(gcds, gcds, predictions, gcds)


def test_determinism() -> None:
    def run(experiment: Experiment, split: int, label: int = 3) -> Entry:
        table = split_table({k: [k, 101] if k <= split else [k] for k in range(1, 101)})
        classes = compress({epoch: [[1, 1], *([[label, label]] if epoch > 99 else [])] for epoch in range(1, 101)})
        return with_facts(ideal(experiment, {1}), tables=pack({"natural": table, "stratified": table}), classes=classes)

    def uniform(split: int, *bases: int) -> list[Entry]:
        return [run(Experiment(base, outcomes="uniform"), split) for base in bases]
    large = (1000, 2023, 2401)
    settled = [run(Experiment(base), 2) for base in large]
    assert verdict("determinism", *settled, *uniform(40, *large)) == ("holds", 3, 3)
    assert verdict("determinism", *settled, *uniform(5, *large)) == ("does not hold", 0, 3)
    assert verdict("determinism", *settled, *uniform(6, *large)) == ("holds", 3, 3)
    assert verdict("determinism", *settled, *uniform(40, 1000)) == ("undecided", 1, 1)
    both = [*settled, run(Experiment(1000, outcomes="log-uniform"), 2)]
    assert verdict("determinism", *both, *uniform(40, 1000)) == ("undecided", 1, 1), "a run is compared once"
    assert verdict("determinism", run(Experiment(10), 2), run(UNI_10, 40))[0] == "not measured", "base 10 stays single"
    near, far = ceil(100 / AT_THE_END), ceil(100 / AT_THE_END) - 1
    (one,) = uniform(40, 1000)
    assert verdict("determinism", settled[0], cut(one, near))[1:] == (1, 1)
    found = judge(ALL["determinism"], [settled[0], cut(one, far)])
    assert far >= 100 / LARGEST_RATIO and found.of == 0 and "not compared" in found.observations[0].finding.text
    told = judge(ALL["determinism"], [settled[0], one]).observations[0].finding.text
    assert told.startswith("40 of 100 k have no prediction")
    assert told.endswith("after 30.0 M examples with 1 grokked class, 2 with natural outcomes after 30.0 M examples")
    known = [run(Experiment(base, outcomes="uniform"), 40, label) for base, label in zip(large, (50, 17, 49), strict=True)]
    found = judge(ALL["determinism"], [*settled, *known])
    assert (found.status, found.of) == ("undecided", 0), "before a prime is grokked it does not tell"
    assert "no class of a prime that does not divide 1000" in found.observations[0].finding.text
    log = [run(one(base), split) for base in large
           for one, split in ((benford, 2), (lambda base: benford(base, outcomes="uniform"), 40))]
    assert verdict("determinism", *log) == ("holds", 3, 3), "with log-uniform operands too"


def test_model_size() -> None:
    bases = (2, 10, 30)

    def sizes(usual: float, other: float) -> tuple[str, int, int]:
        return verdict("model-size", *(accurate(Experiment(base), usual) for base in bases),
                       *(accurate(one_layer(base, 4), other) for base in bases))
    assert sizes(94.7, 93.3) == sizes(93.3, 94.7) == ("holds", 3, 3)
    assert sizes(94.7, 92.0) == ("does not hold", 0, 3)
    assert sizes(94.7, 97.0) == ("does not hold", 0, 3), "better is not the same"
    assert sizes(60.8, 94.7) == ("does not hold", 0, 3), "nor is learning where the usual model does not"
    usual = accurate(Experiment(30), 94.7)
    lstm = experiments()["base-30_family-lstm_hidden-dim-1024"]
    assert verdict("model-size", usual, accurate(lstm, 94.7))[0] == "not measured", "another family is not another size"
    deep = experiments()["base-30_encoder-layers-6_decoder-layers-6_encoder-dim-512_decoder-dim-512"]
    assert verdict("model-size", usual, accurate(deep, 94.0))[1:] == (1, 1)
    same = judge(ALL["model-size"], [usual, accurate(one_layer(30, 3), 94.7)])
    assert same.of == 0 and "of the same size" in same.observations[0].finding.text, "64 dimensions, as in the preset"
    assert "learning rate" in ALL["model-size"].rule
    small = judge(ALL["model-size"], [usual, accurate(deep, 94.0)])
    assert "(6 layers of 64 dimensions)" in small.observations[0].finding.text, "ours, whatever the experiment is called"


@pytest.mark.parametrize(("base", "usual", "counts"), [
    (7, 62.1, 0), (11, 61.3, 0), (31, 60.9, 0), (5, 63.3, 1), (30, 62.9, 0), (30, 77.0, 0), (30, 78.5, 1), (7, 68.0, 1)])
def test_model_sizes_that_cannot_but_agree_do_not_count(base: int, usual: float, counts: int) -> None:
    found = judge(ALL["model-size"], [accurate(Experiment(base), usual), accurate(one_layer(base, 4), usual)])
    assert (found.held, found.of) == (counts, counts)
    assert ("answering 1 always gives 60.8" in found.observations[0].finding.text) == (not counts)


def test_batch_size() -> None:
    known = sorted(products({2: 16, 5: 25, 3: 3}, 100))
    assert (batch(1000, 1).batch_size, batch(1000, 0).batch_size) == (256, 64)

    def batches(usual: list[int], small: list[int]) -> tuple[str, int, int]:
        return verdict("batch-size", *(ideal(batch(base, column), set((small, usual)[column]))
                                       for base in BASES for column in (0, 1)))
    assert batches(known, known[:-5]) == batches(known[:-5], known) == ("holds", 3, 3)
    assert batches(known, known[:-6]) == batches(known[:-6], known) == ("does not hold", 0, 3)
    assert batches(known[:10], known[:9]) == ("undecided", 0, 0), "too few to differ"
    assert batches(known[:11], known[:9]) == ("holds", 3, 3) and batches(known[:11], known[:5]) == ("does not hold", 0, 3)
    both = with_facts(ideal(batch(1000, 1), set(known)), experiments=[benford(1000).name, batch(1000, 1).name])
    assert verdict("batch-size", both, ideal(batch(1000, 0), set(known)))[1:] == (1, 1)


def test_fractions() -> None:
    assert (fraction(10, 0).task, fraction(10, 6).task) == ("comparison", "addition")

    def both(orders: float, sums: float) -> tuple[str, int, int]:
        return verdict("fractions", *(accurate(fraction(10, column), right) for power in (0, 1)
                                      for column, right in ((power, orders), (6 + power, sums))))
    assert both(99.0, 0.3) == ("holds", 2, 2)
    assert both(55.0, 0.3) == both(99.0, 40.0) == ("does not hold", 0, 2)
    assert verdict("fractions", accurate(fraction(10, 0), 99.0), accurate(fraction(10, 6), 0.3)) == ("undecided", 1, 1)
    assert verdict("fractions", accurate(fraction(10, 0), 99.0), accurate(fraction(10, 7), 0.3))[0] == "not measured"


def test_primes_in_order() -> None:
    ordered = grokked(2023, {2: 10, 3: 20, 5: 30, 11: 40, 13: 41})
    assert verdict("primes-in-order", ordered) == ("holds", 10, 10)
    reverse = grokked(2023, {2: 41, 3: 40, 5: 30, 11: 20, 13: 10})
    assert verdict("primes-in-order", reverse) == ("does not hold", 0, 10)
    assert verdict("primes-in-order", ordered, reverse) == ("does not hold", 10, 20)
    assert verdict("primes-in-order", grokked(2023, {13: 5})) == ("undecided", 0, 4), "those not learned come last"
    together = judge(ALL["primes-in-order"], [grokked(2023, {2: 5, 3: 5, 7: 1, 17: 1, 4: 60})])
    assert (together.status, together.held, together.of, together.ties) == ("undecided", 0, 1, 1)
    assert together.summary == "0 of 1 pairs of primes, 1 tie, fewer than 10 without ties"
    assert FEW == 10


def test_primes_in_order_as_published() -> None:
    """Of the rows of the paper's table most, not all, have 2 before 3 before 5."""
    runs = [with_facts(grokked(base, {k: -(-epoch // 14) for k, epoch in epochs.items()}), f"row-{place}")
            for place, (base, _, _, epochs) in enumerate(GROKKED)]
    status, held, of = verdict("primes-in-order", *runs)
    assert status == "holds" and held < of


def test_two_digits() -> None:
    assert [digits_needed(q, 210) for q in (2, 4, 8, 9, 49, 27, 16, 11)] == [1, 2, 3, 2, 2, 3, 4, None]
    assert (digits_needed(16, 420), digits_needed(32, 420)) == (2, 3)
    visible = {2: 1, 3: 1, 5: 1, 7: 1, 4: 3, 9: 6, 25: 20, 49: 40}
    found = judge(ALL["two-digits"], [grokked(210, visible)])
    assert (found.status, found.held) == ("holds", found.of) and found.of >= 7
    assert "4 at 3.0" in found.observations[0].finding.text and "not 8" in found.observations[0].finding.text
    by_rarity = grokked(210, {2: 1, 3: 1, 5: 1, 7: 1, 4: 3, 8: 6, 9: 7, 16: 9, 25: 20, 27: 30, 49: 60})
    assert verdict("two-digits", by_rarity)[:2] == ("does not hold", 1), "only 49 against 32"
    assert verdict("two-digits", grokked(210, {2: 1, 3: 1, 4: 3}))[0] == "undecided", "8 may just be rare"
    assert verdict("two-digits", grokked(30, {2: 1, 3: 1, 5: 1, 9: 2, 25: 3}))[:2] == ("holds", 3), "9, 25 before 8, 16"
    assert verdict("two-digits", grokked(1000, visible))[0] == "not measured", "two digits are all"
    assert verdict("two-digits", grokked(31, visible))[0] == "not measured", "a prime"


def uniform_runs(history: dict[int, list[tuple[int, int]]]) -> list[Entry]:
    return [with_facts(ideal(one, {1}), classes=compress(history)) for one in (UNI_10, UNI_1000)]


def test_classes_as_published() -> None:
    """The published predictions in base 10: eight classes among the first 20 k, predicted by one element and by another."""
    labels = (1, 2, 4, 5, 8, 10, 16, 20)
    published = {epoch: [(k, int(UNI10[k - 1][1 + 2 * place])) for k in labels] for place, epoch in enumerate(UNI10_EPOCHS)}
    found = judge(ALL["classes"], uniform_runs(published)[:1])
    assert (found.status, found.held, found.of) == ("undecided", 1, 1), "one run is not enough"
    assert found.observations[0].finding.text.startswith("8 to 8 classes in 7 evaluations; from one to the next 100 % of")


def test_classes() -> None:
    labels = (1, 2, 4, 5, 8, 10, 16, 20, 25, 50)
    settled = {epoch: [(k, k) for k in labels] for epoch in range(1, 9)}
    assert verdict("classes", *uniform_runs(settled)) == ("does not hold", 0, 2), "nothing changes"
    moving = {epoch: [(k, k * (1 + 2 * (epoch % 2))) for k in labels] for epoch in range(1, 9)}
    assert verdict("classes", *uniform_runs(moving)) == ("holds", 2, 2)
    passing = {epoch: [(k + epoch % 2, 7) for k in (1, 4, 8, 20)] for epoch in range(1, 9)}
    assert verdict("classes", *uniform_runs(passing)) == ("does not hold", 0, 2), "other classes each time"
    renewed = {epoch: [(k, k * (1 + 2 * (epoch % 2))) for k in (*labels[:4], *(q + epoch % 2 for q in (30, 60, 80, 90)))]
               for epoch in range(1, 9)}
    assert verdict("classes", *uniform_runs(renewed)) == ("does not hold", 0, 2), "half of the classes are others each time"
    growing = {0: [(1, 1)], **moving}
    assert verdict("classes", *uniform_runs(growing)) == ("holds", 2, 2), "while few classes are learned it is not counted"
    found = judge(ALL["classes"], [ideal(UNI_10, {1})])
    assert found.status == "undecided" and "not kept" in found.observations[0].finding.text


@pytest.mark.parametrize(("count", "status"), [(1, "undecided"), (3, "undecided"), (4, "holds")])
def test_few_classes_do_not_tell(count: int, status: str) -> None:
    """A single class stays whatever happens, and its prediction changes if the model guesses."""
    guessing = {epoch: [(k, k * epoch) for k in (1, 2, 5, 10)[:count]] for epoch in range(1, 9)}
    found = judge(ALL["classes"], uniform_runs(guessing))
    assert found.status == status
    assert ("too few to tell" in found.observations[0].finding.text) == (status == "undecided")
