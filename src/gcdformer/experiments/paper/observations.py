"""What a run, or a fair pair of runs, says about each of the paper's claims: pure functions of entries of the ledger.

Each returns a `Finding`: how often of how many times it was as claimed, and the figures in words. Which runs are asked, and
what share makes a claim hold, is in `claims`.
"""

from __future__ import annotations

from gcdformer.experiments.paper.compare import millions
from gcdformer.experiments.paper.entry import Entry
from gcdformer.experiments.paper.pairing import ROUNDING, Finding, common, value_at
from gcdformer.experiments.paper.table import PAPER_EPOCH
from gcdformer.explanation.sieve import components, prime_power
from gcdformer.numbers.theory import prime_factors

SIZE_POINTS = 2.0
"""Points of accuracy between two sizes that hardly matter: what ours may differ from the paper's; the published tables
have up to 1.4 (base 10 and base 30)."""
BATCH_GCDS = 5
"""Correct GCD between two batch sizes that hardly matter: the largest difference that is published (bases 210 and 2401)."""
SPLIT_GCDS = 3
"""Of 100 k, how many more must be split between predictions; the rules, too, may fail for three where they hold."""
LEARNED, NOT_LEARNED = 90.0, 10.0
"""Percent of right answers: a task is learned as a GCD is, at nine tenths, and not learned at one tenth. Guessing the
outcome of a comparison gives 50."""
VISIBLE_DIGITS = 2
STABLE, CHANGING, GROWN = 0.9, 0.1, 0.5
"""From one evaluation to the next nine tenths of the classes stay, while at least a tenth of those that stay is predicted
by another element; counted since half of the final number of classes was there: classes have to be learned first."""
WITHIN = 2
"""Epochs, of 300,000 examples, between a prime power and its products: they come together if it is one or two."""
SHORTEST = 5
"""A run of fewer times that does not tell: in a short one, everything comes within two epochs of everything."""
LARGEST = 100


def sooner(slow: Entry, fast: Entry) -> Finding:
    """Numbers of correct GCD that the second run reached in fewer examples, of all that tell the two apart."""
    end = common(slow, fast)
    best = max(value for entry in (slow, fast) for value, examples in points(entry) if examples <= end)
    times = {count: (reached(slow, count, end), reached(fast, count, end)) for count in range(1, best + 1)}
    told_apart = {count: pair for count, pair in times.items() if pair[0] != pair[1]}
    held = sum(second is not None and (first is None or second < first) for first, second in told_apart.values())
    both = [count for count, (first, second) in times.items() if first and second]
    last = [value_at(entry, "n_correct", end) for entry in (fast, slow)]
    told = [f"{last[0]} against {last[1]} correct GCD after {millions(end)}"]
    if both:
        first, second = times[both[-1]]
        assert first is not None and second is not None
        told.insert(0, f"{both[-1]} correct GCD after {millions(second)} against {millions(first)}")
    return Finding(held, len(told_apart), "; ".join(told))


def points(entry: Entry) -> list[tuple[int, int]]:
    """(correct GCD, examples) of every evaluation."""
    curve = entry.facts["curve"]
    return list(zip(curve["n_correct"], curve["examples"], strict=True))


def reached(entry: Entry, count: int, end: int) -> int | None:
    """Examples until so many GCD were correct."""
    return next((examples for value, examples in points(entry) if value >= count and examples <= end), None)


def more_correct(worse: Entry, better: Entry) -> Finding:
    """Whether the second run has more correct GCD; as many tell nothing."""
    end = common(worse, better)
    first, second = (value_at(entry, "n_correct", end) for entry in (worse, better))
    return Finding(int(second > first), int(second != first), f"{second} against {first} correct GCD after {millions(end)}")


def as_many_correct(usual: Entry, other: Entry) -> Finding:
    """Whether two batch sizes end with about as many correct GCD."""
    end = common(usual, other)
    first, second = (value_at(entry, "n_correct", end) for entry in (usual, other))
    return Finding(int(abs(first - second) <= BATCH_GCDS), 1, f"{second} against {first} correct GCD after {millions(end)}")


def as_accurate(usual: Entry, other: Entry) -> Finding:
    """Whether two sizes of a model end at about the same accuracy."""
    end = common(usual, other)
    first, second = (float(value_at(entry, "accuracy", end)) for entry in (usual, other))
    return Finding(int(abs(first - second) <= SIZE_POINTS), 1,
                   f"accuracy {second:.1f} against {first:.1f} after {millions(end)}")


def more_split(settled: Entry, uniform: Entry) -> Finding:
    """Whether more k are split between several predictions at the end of the second run."""
    (first, of), (second, _) = split(settled), split(uniform)
    law = settled.config.data.outcomes
    return Finding(int(100 * (second - first) > SPLIT_GCDS * of), 1,
                   f"{second} of {of} k have no prediction for nine tenths of their pairs, {first} with {law} outcomes")


def split(entry: Entry) -> tuple[int, int]:
    """How many k have no single prediction, and how many were tested."""
    assert entry.scores is not None, "a run of the gcd"
    scores = entry.scores.by_gcd.values()
    return sum(one.frequency < entry.config.evaluation.threshold for one in scores), len(scores)


def only_comparison(addition: Entry, comparison: Entry) -> Finding:
    """Whether comparing fractions is learned and adding them is not."""
    end = common(addition, comparison)
    sums, orders = (float(value_at(entry, "accuracy", end)) for entry in (addition, comparison))
    return Finding(int(orders >= LEARNED and sums <= NOT_LEARNED), 1,
                   f"comparison {orders:.1f} %, addition {sums:.2f} % right after {millions(end)}")


def primes_in_order(entry: Entry) -> Finding:
    """Pairs of primes that do not divide B of which the smaller was learned first, of those with one learned before the
    other; primes that were not learned come last."""
    base = entry.config.task.base
    first = {p: entry.first_epoch(p) for p in range(2, LARGEST + 1) if (p, 1) == prime_power(p) and base % p}
    learned = {p: epoch for p, epoch in first.items() if epoch is not None}
    pairs = [(first[p], epoch) for q, epoch in learned.items() for p in first if p < q and first[p] != epoch]
    held = sum(smaller is not None and smaller < larger for smaller, larger in pairs)
    order = sorted(learned, key=lambda p: (learned[p], p))
    told = ", ".join(f"{p} at {at_epoch(entry, learned[p])}" for p in order) or "none"
    return Finding(held, len(pairs), f"primes that do not divide {base}, with epochs: {told}")


def digits_needed(q: int, base: int) -> int | None:
    """In how many last digits divisibility by q shows: the least n with q | B^n; None if in no number of them."""
    return next((n for n in range(1, 8) if base**n % q == 0), None)


def visible_first(entry: Entry) -> Finding:
    """Pairs of prime powers of which the larger shows in the last two digits and the smaller does not, with the larger
    learned first. The larger is the rarer one, so that being rare does not explain it. Pairs of which neither was learned do
    not tell."""
    base = entry.config.task.base
    powers = [q for q in range(2, LARGEST + 1) if prime_power(q) and digits_needed(q, base)]
    hidden = [q for q in powers if (digits_needed(q, base) or 0) > VISIBLE_DIGITS]
    seen = [q for q in powers if q not in hidden]
    pairs = [(entry.first_epoch(q), entry.first_epoch(r)) for q in seen for r in hidden if q > r]
    telling = [(near, far) for near, far in pairs if near != far]
    held = sum(near is not None and (far is None or near < far) for near, far in telling)
    return Finding(held, len(telling),
                   f"visible in two digits: {learned_at(entry, seen)}; hidden: {learned_at(entry, hidden)}")


def learned_at(entry: Entry, powers: list[int]) -> str:
    """When each was learned; those that were not, together at the end."""
    found = {q: epoch for q in powers if (epoch := entry.first_epoch(q)) is not None}
    never = [str(q) for q in powers if q not in found]
    told = [f"{q} at {at_epoch(entry, epoch)}" for q, epoch in found.items()]
    return ", ".join(told + ([f"not {' '.join(never)}"] if never else []))


def stable_classes(entry: Entry) -> Finding:
    """Whether the classes stay from one evaluation to the next while the elements that are predicted for them change."""
    history = [dict(classes) for classes in entry.class_history.values()]
    grown = [classes for place, classes in enumerate(history)
             if any(len(one) >= GROWN * len(history[-1]) for one in history[:place + 1])]
    steps = list(zip(grown, grown[1:], strict=False))
    if not steps:
        return Finding(0, 0, "the classes of successive evaluations were not kept" if not history else "too few evaluations")
    kept = sum(len(one.keys() & other.keys()) for one, other in steps)
    stay = kept / sum(len(one.keys() | other.keys()) for one, other in steps)
    change = sum(one[k] != other[k] for one, other in steps for k in one.keys() & other.keys()) / max(kept, 1)
    counts = sorted(map(len, grown))
    return Finding(int(stay >= STABLE and change >= CHANGING), 1,
                   f"{counts[0]} to {counts[-1]} classes in {len(grown)} evaluations; from one to the next "
                   f"{100 * stay:.0f} % of them stay, and {100 * change:.0f} % of those are predicted by another element")


def products_follow(entry: Entry) -> Finding:
    """Products of prime powers that were learned within two epochs of the last of them, of all whose last prime power came
    in a step: after the first evaluation, and early enough for the products to follow."""
    first = {k: entry.examples_at(epoch) for k in range(1, LARGEST + 1) if (epoch := entry.first_epoch(k)) is not None}
    start, end = entry.facts["curve"]["examples"][0], entry.examples
    if end < WITHIN * SHORTEST * PAPER_EPOCH:
        return Finding(0, 0, f"{end / PAPER_EPOCH:.1f} epochs are too few to tell steps apart")
    held = 0
    missed: dict[str, list[int]] = {"sooner": [], "later or not": []}
    for k in (k for k in range(2, LARGEST + 1) if len(prime_factors(k)) > 1):
        cause = max(first.get(q, end) for q in components(k))
        if not start < cause <= end - WITHIN * PAPER_EPOCH:
            continue
        delay = (first[k] - cause) / PAPER_EPOCH if k in first else float("inf")
        if abs(delay) <= WITHIN * ROUNDING:
            held += 1
        else:
            missed["sooner" if delay < 0 else "later or not"].append(k)
    of = held + sum(map(len, missed.values()))
    parts = [f"{held} of {of} products within {WITHIN} epochs of their last prime power"]
    parts += [f"{word} {', '.join(map(str, values))}" for word, values in missed.items() if values]
    return Finding(held, of, "; ".join(parts))


def at_epoch(entry: Entry, epoch: int) -> str:
    """One of our epochs as the paper counts them."""
    return f"{entry.examples_at(epoch) / PAPER_EPOCH:.1f}"
