"""Which runs tell of a claim: the pairs of experiments that differ in one thing, and the runs that are looked at singly."""

from __future__ import annotations

from dataclasses import replace

from gcdformer.numbers.theory import prime_factors
from gcdformer.paper import TABLES, experiments
from gcdformer.paper.entry import Entry
from gcdformer.paper.pairing import Contrast
from gcdformer.paper.table import Experiment

LARGE = 1000
"""Least base for which the paper says that uniform outcomes end determinism; in base 10 predictions stay mostly single."""


def is_plain(one: Experiment) -> bool:
    """The gcd in the preset's own model and batches."""
    return one.task == "gcd" and not one.model and not one.batch_size


def contrasts() -> dict[str, list[Contrast]]:
    """The pairs of experiments that differ in one thing, by that thing; the second is the one that a claim is about."""
    known = list(experiments().values())
    plain = [one for one in known if is_plain(one)]
    sizes = [one for name in ("small_dims", "deep_models") for one in TABLES[name].experiments() if one.model]
    return {
        "operands": [(replace(one, operands="uniform"), one) for one in plain
                     if one.operands == "log-uniform" and one.outcomes in ("natural", "log-uniform")],
        "outcomes": [(replace(one, outcomes="natural"), one) for one in plain
                     if one.outcomes == "log-uniform" and one.max_gcd is None],
        "uniform": [(replace(one, outcomes="natural"), one) for one in plain
                    if one.outcomes == "uniform" and one.base >= LARGE],
        "sizes": [(one.natural, one) for one in dict.fromkeys(sizes)],
        "batches": [(replace(one, batch_size=256), one) for one in known if one.batch_size == 64],
        "tasks": [(replace(one, task="addition"), one) for one in known if one.task == "comparison"],
    }


def tells_of_divisors(entry: Entry) -> bool:
    """Any run of the gcd but for uniform outcomes, under which the correct GCD come and go."""
    return entry.config.task.task == "gcd" and entry.config.data.outcomes != "uniform"


def has_more_digits(entry: Entry) -> bool:
    """Runs in bases of several primes in which operands have more than two digits, so that the last two do not tell all."""
    task = entry.config.task
    return tells_of_divisors(entry) and len(prime_factors(task.base)) > 1 and task.base**2 < task.maximum


def is_uniform(entry: Entry) -> bool:
    return entry.config.task.task == "gcd" and entry.config.data.outcomes == "uniform"


PAIRS = contrasts()
