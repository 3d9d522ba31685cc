"""Whether products are learned with the last of their prime powers, and how often they would be by chance.

Pure functions of entries of the ledger; randomness is passed in. In a short run everything comes within two epochs of
everything, so a count alone does not tell: it is compared with runs whose products have exchanged their times.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gcdformer.explanation.sieve import components
from gcdformer.numbers.theory import prime_factors
from gcdformer.paper.entry import Entry
from gcdformer.paper.pairing import ROUNDING, Chance, Finding
from gcdformer.paper.table import PAPER_EPOCH

WITHIN = 2
"""Epochs, of 300,000 examples, between a prime power and its products: they come together if it is one or two."""
SHORTEST = 5
"""A run of fewer times that does not tell."""
LARGEST = 100
SHUFFLES = 999
NEAR = WITHIN * ROUNDING * PAPER_EPOCH

Times = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


class Told(NamedTuple):
    """Of each product whether it came with its last prime power, sooner, or later or not; those that do not tell are in none
    of the three."""

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

    def tell(self, learned: Times) -> Told:
        """A product tells if its last prime power came in a step, after the first evaluation, and early enough for it to
        follow; one that came sooner than that tells in any case, also if the prime power never came."""
        step = self.causes > self.start
        open_end = step & (self.causes <= self.end - WITHIN * PAPER_EPOCH)
        sooner = step & (learned < self.causes - NEAR)
        later = open_end & (learned > self.causes + NEAR)
        return Told(open_end & ~sooner & ~later, sooner, later)


def products_of(entry: Entry) -> Products:
    first = {k: float(entry.examples_at(epoch)) for k in range(1, LARGEST + 1)
             if (epoch := entry.first_epoch(k)) is not None}
    products = [k for k in range(2, LARGEST + 1) if len(prime_factors(k)) > 1]
    causes = [max(first.get(q, np.inf) for q in components(k)) for k in products]
    return Products(np.array(products), np.array(causes), np.array([first.get(k, np.inf) for k in products]),
                    entry.facts["curve"]["examples"][0], entry.examples)


def products_follow(entry: Entry) -> Finding:
    """Products that were learned within two epochs of the last of their prime powers, of those that tell."""
    if entry.examples < WITHIN * SHORTEST * PAPER_EPOCH:
        return Finding(0, 0, f"{entry.examples / PAPER_EPOCH:.1f} epochs are too few to tell steps apart")
    run = products_of(entry)
    told = run.tell(run.learned)
    held, of = int(told.held.sum()), int(told.counted.sum())
    parts = [f"{held} of {of} products within {WITHIN} epochs of their last prime power"]
    parts += [f"{word} {', '.join(map(str, run.k[missed]))}"
              for word, missed in (("sooner", told.sooner), ("later or not", told.later)) if missed.any()]
    return Finding(held, of, "; ".join(parts))


def follow_by_chance(entries: Iterable[Entry], generator: np.random.Generator) -> Chance:
    """The share that all runs together reach when, in each, the products that were counted exchange their times.

    Only those: the times of products that were known from the start would make chance look worse than it is.
    """
    held, of = np.zeros(SHUFFLES), np.zeros(SHUFFLES)
    for entry in entries:
        run = products_of(entry)
        counted = run.tell(run.learned).counted
        learned = np.tile(run.learned, (SHUFFLES, 1))
        learned[:, counted] = generator.permuted(learned[:, counted], axis=1)
        told = run.tell(learned)
        held += told.held.sum(axis=1)
        of += told.counted.sum(axis=1)
    return Chance.of(held / np.maximum(of, 1))
