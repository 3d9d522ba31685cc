"""What a run, or a fair pair of runs, says about each of the paper's claims: pure functions of entries of the ledger.

Each returns a `Finding`; none of none where the claim could not have failed. Which runs are looked at, and what share makes
a claim hold, is in `claims`. Randomness is passed in.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gcdformer.explanation.sieve import components, prime_power
from gcdformer.numbers.theory import base_limit_accuracy, limit_accuracy, prime_factors
from gcdformer.paper.entry import Entry
from gcdformer.paper.evidence import ROUNDING, Chance, Finding, common, value_at
from gcdformer.paper.table import PAPER_EPOCH
from gcdformer.paper.text import count_of, millions, model_words

RULE_BREAKS, RULE_FIDELITY = 3, 0.98
"""Exceptions to a rule, and the least stratified fidelity, for which a run follows the rules: some k are always on their way
from one prediction to another. The fidelity is that of a certificate, which allows no exception."""
SIZE_POINTS = 2.0
"""Points of accuracy between two sizes that hardly matter: what ours may differ from the paper's; the published tables
have up to 1.4 (base 10 and base 30)."""
ALWAYS_ONE = limit_accuracy({1})
"""Accuracy of answering 1 always: 60.8."""
HALF = 0.5
"""Share of what the rules gain over answering 1 that the better of two models has to have for their likeness to count."""
BATCH_GCDS = 5
"""Correct GCD between two batch sizes that hardly matter: the largest difference that is published (bases 210 and 2401)."""
ENOUGH_GCDS = 2 * BATCH_GCDS
"""Correct GCD that the better of two runs has to exceed, so that they could differ by more than that."""
SPLIT_GCDS = 3
"""Of 100 k, how many more must be split between predictions; the rules, too, may fail for three where they hold."""
LEARNED, NOT_LEARNED = 90.0, 10.0
"""Percent of right answers: a task is learned as a GCD is, at nine tenths, and not learned at one tenth. Guessing the
outcome of a comparison gives 50."""
VISIBLE_DIGITS = 2
STABLE, CHANGING, GROWN = 0.9, 0.1, 0.5
"""From one evaluation to the next nine tenths of the classes stay, while at least a tenth of those that stay is predicted
by another element; counted since half of the final number of classes was there: classes have to be learned first."""
LEAST_CLASSES = 4
"""Fewer classes at the end decide nothing: a single one always stays. Base 10 has eight among the first 20 k."""
LARGEST = 100
WITHIN = 2
"""Epochs, of 300,000 examples, between a prime power and its products: they come together if it is one or two."""
SHORTEST = 5
"""A run of fewer times that decides nothing: in a short run everything comes within two epochs of everything."""
SHUFFLES = 999
NEAR = WITHIN * ROUNDING * PAPER_EPOCH
Times = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


def follows_rules(entry: Entry) -> Finding:
    """Whether the three rules hold but for a few k, and predict nearly all stratified pairs. Where only the divisor 1 is
    known, as in a prime base above 100 until a prime is grokked, they cannot but hold."""
    explanation = entry.explanation
    assert explanation is not None, "a run of the gcd"
    if entry.correct == [1]:
        return Finding(0, 0, f"only the divisor 1 is known after {millions(entry.examples)}, so it does not tell")
    broken = {name: len({breach.k for breach in rule.exceptions}) for name, rule in explanation.rules.items()}
    fidelity = explanation.fidelity["stratified"].value
    text = (f"{len(entry.correct)} correct GCD after {millions(entry.examples)}, form {explanation.form.letter}, "
            f"stratified fidelity {100 * fidelity:.1f} %")
    parts = [f"{name.replace('_', ' ')} is broken by {count} k" for name, count in broken.items() if count]
    return Finding(int(max(broken.values()) <= RULE_BREAKS and fidelity >= RULE_FIDELITY), 1, "; ".join([text, *parts]))


def sooner(slow: Entry, fast: Entry) -> Finding:
    """Steps that the second run reached in fewer examples; in as many is a tie. Numbers of correct GCD that came together in
    both runs are one step: they are not learned one by one. What both knew when they were first evaluated does not count."""
    end = common(slow, fast)
    best = max(value for entry in (slow, fast) for value, examples in points(entry) if examples <= end)
    steps: dict[tuple[int | None, int | None], list[int]] = {}
    for count in range(1, best + 1):
        steps.setdefault((reached(slow, count, end), reached(fast, count, end)), []).append(count)
    steps.pop((points(slow)[0][1], points(fast)[0][1]), None)
    texts = [f"{' to '.join(map(str, dict.fromkeys((counts[0], counts[-1]))))} correct GCD after "
             f"{in_millions(second)} against {in_millions(first)}" for (first, second), counts in steps.items()]
    held = sum(second is not None and (first is None or second < first) for first, second in steps)
    last = [value_at(entry, "n_correct", end) for entry in (fast, slow)]
    return Finding(held, len(steps), "; ".join([*texts, f"{last[0]} against {last[1]} after {millions(end)}"]),
                   ties=sum(first == second for first, second in steps))


def in_millions(examples: int | None) -> str:
    return "never" if examples is None else f"{examples / 1e6:.1f} M"


def points(entry: Entry) -> list[tuple[int, int]]:
    """(correct GCD, examples) of every evaluation."""
    return list(zip(entry.curve["n_correct"], entry.curve["examples"], strict=True))


def reached(entry: Entry, count: int, end: int) -> int | None:
    """Examples until that many GCD were correct."""
    return next((examples for value, examples in points(entry) if value >= count and examples <= end), None)


def more_correct(worse: Entry, better: Entry) -> Finding:
    """Whether the second run has more correct GCD; as many is a tie."""
    first, second, text = correct_after(worse, better)
    return Finding(int(second > first), 1, text, ties=int(second == first))


def as_many_correct(usual: Entry, other: Entry) -> Finding:
    """Whether two batch sizes end with about as many correct GCD; where neither has many they cannot but do so."""
    first, second, text = correct_after(usual, other)
    if max(first, second) <= ENOUGH_GCDS:
        return Finding(0, 0, f"{text}, too few to differ by much")
    return Finding(int(abs(first - second) <= BATCH_GCDS), 1, text)


def correct_after(earlier: Entry, other: Entry) -> tuple[float, float, str]:
    """The correct GCD of two runs after the same number of examples, also in words."""
    end = common(earlier, other)
    first, second = (value_at(entry, "n_correct", end) for entry in (earlier, other))
    return first, second, f"{second} against {first} correct GCD after {millions(end)}"


def as_accurate(usual: Entry, other: Entry) -> Finding:
    """Whether two sizes of a model end at about the same accuracy; where the better of them is about as good as answering 1
    always, because of the base or because too little was learned, they cannot but do so."""
    end = common(usual, other)
    first, second = (value_at(entry, "accuracy", end) for entry in (usual, other))
    sizes = [model_words(entry.config.model) for entry in (other, usual)]
    text = f"accuracy {second:.1f} ({sizes[0]}) against {first:.1f} ({sizes[1]}) after {millions(end)}"
    if size(usual) == size(other):
        return Finding(0, 0, f"{text}, but the two are of the same size")
    rules = base_limit_accuracy(usual.config.task.base)
    if max(first, second) - ALWAYS_ONE <= max(SIZE_POINTS, HALF * (rules - ALWAYS_ONE)):
        return Finding(0, 0, f"{text}; answering 1 always gives {ALWAYS_ONE:.1f} and the rules {rules:.1f}, so this "
                       "does not tell")
    return Finding(int(abs(first - second) <= SIZE_POINTS), 1, text)


def size(entry: Entry) -> tuple[int, ...]:
    """Layers and dimensions; the number of heads is no size."""
    model = entry.config.model
    return model.encoder_layers, model.decoder_layers, model.encoder_dim, model.decoder_dim


def more_split(settled: Entry, uniform: Entry) -> Finding:
    """Whether more k are split between several predictions at the end of the second run. Only one that has grokked a prime
    counts: until then its classes have one prediction each in the paper too."""
    grokked = grokked_classes(uniform)
    if not grokked:
        return Finding(0, 0, f"no class of a prime that does not divide {uniform.config.task.base} after "
                       f"{millions(uniform.examples)}, so it does not tell")
    (first, of), (second, _) = split(settled), split(uniform)
    return Finding(int(100 * (second - first) > SPLIT_GCDS * of), 1,
                   f"{second} of {of} k have no prediction for nine tenths of their pairs after {millions(uniform.examples)}"
                   f" with {count_of(len(grokked), 'grokked class', 'grokked classes')}, "
                   f"{first} with {settled.config.data.outcomes} outcomes after {millions(settled.examples)}")


def grokked_classes(entry: Entry) -> list[int]:
    """The classes at the end whose least element a prime divides that does not divide the base."""
    history = list(entry.class_history.values())
    return [label for label in (history[-1] if history else ()) if any(entry.config.task.base % p
                                                                       for p in prime_factors(label))]


def split(entry: Entry) -> tuple[int, int]:
    """How many k have no single prediction, and how many were tested."""
    assert entry.scores is not None, "a run of the gcd"
    scores = entry.scores.by_gcd.values()
    return sum(scored.frequency < entry.config.evaluation.threshold for scored in scores), len(scores)


def only_comparison(addition: Entry, comparison: Entry) -> Finding:
    """Whether comparing fractions is learned and adding them is not."""
    end = common(addition, comparison)
    sums, orders = (value_at(entry, "accuracy", end) for entry in (addition, comparison))
    return Finding(int(orders >= LEARNED and sums <= NOT_LEARNED), 1,
                   f"comparison {orders:.1f} %, addition {sums:.2f} % right after {millions(end)}")


def primes_in_order(entry: Entry) -> Finding:
    """Pairs of primes that do not divide B of which the smaller was learned first, of those with one learned; in the same
    evaluation is a tie. Primes that were not learned come last."""
    base = entry.config.task.base
    first = {p: entry.first_epoch(p) for p in range(2, LARGEST + 1) if (p, 1) == prime_power(p) and base % p}
    learned = {p: epoch for p, epoch in first.items() if epoch is not None}
    pairs = [(first[p], epoch) for q, epoch in learned.items() for p in first if p < q]
    held = sum(smaller is not None and smaller < larger for smaller, larger in pairs)
    order = sorted(learned, key=lambda p: (learned[p], p))
    text = ", ".join(f"{p} at {entry.paper_epoch(learned[p])}" for p in order) or "none"
    return Finding(held, len(pairs), f"primes that do not divide {base}, with epochs: {text}",
                   ties=sum(smaller == larger for smaller, larger in pairs))


def digits_needed(q: int, base: int) -> int | None:
    """In how many last digits divisibility by q shows: the least n with q | B^n; None if in no number of them."""
    return next((n for n in range(1, 8) if base**n % q == 0), None)


def visible_first(entry: Entry) -> Finding:
    """Pairs of prime powers of which the larger shows in the last two digits and the smaller does not, with the larger
    learned first; in the same evaluation is a tie. The larger is the rarer one, so that being rare does not explain it.
    Pairs of which neither was learned do not count."""
    base = entry.config.task.base
    powers = [q for q in range(2, LARGEST + 1) if prime_power(q) and digits_needed(q, base)]
    hidden = [q for q in powers if (digits_needed(q, base) or 0) > VISIBLE_DIGITS]
    seen = [q for q in powers if q not in hidden]
    pairs = [(entry.first_epoch(q), entry.first_epoch(r)) for q in seen for r in hidden if q > r]
    counted = [(near, far) for near, far in pairs if (near, far) != (None, None)]
    held = sum(near is not None and (far is None or near < far) for near, far in counted)
    return Finding(held, len(counted),
                   f"visible in two digits: {learned_at(entry, seen)}; hidden: {learned_at(entry, hidden)}",
                   ties=sum(near == far for near, far in counted))


def learned_at(entry: Entry, powers: list[int]) -> str:
    """When each was learned; those that were not, together at the end."""
    learned = {q: epoch for q in powers if (epoch := entry.first_epoch(q)) is not None}
    never = [str(q) for q in powers if q not in learned]
    parts = [f"{q} at {entry.paper_epoch(epoch)}" for q, epoch in learned.items()]
    return ", ".join(parts + ([f"not {' '.join(never)}"] if never else []))


def stable_classes(entry: Entry) -> Finding:
    """Whether the classes stay from one evaluation to the next while the elements that are predicted for them change."""
    history = list(entry.class_history.values())
    grown = [classes for place, classes in enumerate(history)
             if any(len(earlier) >= GROWN * len(history[-1]) for earlier in history[:place + 1])]
    steps = list(zip(grown, grown[1:], strict=False))
    if not steps:
        return Finding(0, 0, "the classes of successive evaluations were not kept" if not history else "too few evaluations")
    if len(history[-1]) < LEAST_CLASSES:
        return Finding(0, 0, f"{len(history[-1])} classes at the end, too few to tell")
    staying = sum(len(before.keys() & after.keys()) for before, after in steps)
    stay = staying / sum(len(before.keys() | after.keys()) for before, after in steps)
    change = sum(before[k] != after[k] for before, after in steps for k in before.keys() & after.keys()) / max(staying, 1)
    counts = sorted(map(len, grown))
    return Finding(int(stay >= STABLE and change >= CHANGING), 1,
                   f"{counts[0]} to {counts[-1]} classes in {len(grown)} evaluations; from one to the next "
                   f"{100 * stay:.0f} % of them stay, and {100 * change:.0f} % of those are predicted by another element")


class Arrivals(NamedTuple):
    """Of each product whether it came with its last prime power, sooner, or later or not; those that do not count are in
    none of the three."""

    held: Flags
    sooner: Flags
    later: Flags

    @property
    def counted(self) -> Flags:
        return self.held | self.sooner | self.later


@dataclass(frozen=True)
class Products:
    """The products of prime powers up to 100 in one run. Times are in examples, infinite for what was never learned."""

    k: npt.NDArray[np.int64]
    causes: Times
    """When the last of its prime powers was learned."""
    learned: Times
    start: int
    end: int

    def arrivals(self, learned: Times) -> Arrivals:
        """A product counts if its last prime power came in a step, after the first evaluation, and early enough for it to
        follow; one that came sooner than that counts in any case, also if the prime power never came."""
        step = self.causes > self.start
        open_end = step & (self.causes <= self.end - WITHIN * PAPER_EPOCH)
        sooner = step & (learned < self.causes - NEAR)
        later = open_end & (learned > self.causes + NEAR)
        return Arrivals(open_end & ~sooner & ~later, sooner, later)


def products_of(entry: Entry) -> Products:
    first = {k: float(entry.examples_at(epoch)) for k in range(1, LARGEST + 1)
             if (epoch := entry.first_epoch(k)) is not None}
    products = [k for k in range(2, LARGEST + 1) if len(prime_factors(k)) > 1]
    causes = [max(first.get(q, np.inf) for q in components(k)) for k in products]
    return Products(np.array(products), np.array(causes), np.array([first.get(k, np.inf) for k in products]),
                    entry.curve["examples"][0], entry.examples)


def products_follow(entry: Entry) -> Finding:
    """Products that were learned within two epochs of the last of their prime powers, of those that count."""
    if entry.examples < WITHIN * SHORTEST * PAPER_EPOCH:
        return Finding(0, 0, f"{entry.examples / PAPER_EPOCH:.1f} epochs are too few to tell steps apart")
    run = products_of(entry)
    came = run.arrivals(run.learned)
    held, of = int(came.held.sum()), int(came.counted.sum())
    parts = [f"{held} of {of} products within {WITHIN} epochs of their last prime power"]
    parts += [f"{word} {', '.join(map(str, run.k[missed]))}"
              for word, missed in (("sooner", came.sooner), ("later or not", came.later)) if missed.any()]
    return Finding(held, of, "; ".join(parts))


def follow_by_chance(entries: Iterable[Entry], generator: np.random.Generator) -> Chance:
    """The share that all runs together reach when, in each, the products that were counted exchange their times.

    Only those: the times of products that were known from the start would make chance look worse than it is.
    """
    held, of = np.zeros(SHUFFLES), np.zeros(SHUFFLES)
    for entry in entries:
        run = products_of(entry)
        counted = run.arrivals(run.learned).counted
        learned = np.tile(run.learned, (SHUFFLES, 1))
        learned[:, counted] = generator.permuted(learned[:, counted], axis=1)
        came = run.arrivals(learned)
        held += came.held.sum(axis=1)
        of += came.counted.sum(axis=1)
    return Chance.of(held / np.maximum(of, 1))
