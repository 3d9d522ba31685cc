"""Controls: the same network with fresh weights, and primes that are not learned. (Permuted residues: subspace.py.)"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy

import torch

from gcdformer.models import Seq2Seq
from gcdformer.numbers.theory import prime_factors

UNLEARNED = 2
"""How many primes that are not learned are tried: the smallest ones, which occur most often."""


def fresh_copy(model: Seq2Seq, generator: torch.Generator) -> Seq2Seq:
    """The same network, not trained."""
    copy = deepcopy(model)
    copy.initialise(generator)
    return copy.eval()


def choose_unlearned(learned: Sequence[int], largest: int) -> list[int]:
    """The smallest primes that are not learned."""
    primes = (p for p in range(2, max(largest // 4, 3)) if prime_factors(p) == {p: 1})
    return [p for p, _ in zip((p for p in primes if p not in learned), range(UNLEARNED), strict=False)]
