"""Counter-based randomness: the generator of block j of a stream is a function of (seed, purpose, j, epoch).

Philox has a 256-bit counter. Each block gets its own value of the upper 192 bits, so a block could draw 2^66
words before it met the next one, and streams with different purposes never share a counter. Nothing is saved
to resume: the position of a stream is an integer.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np


class Purpose(IntEnum):
    """What a stream is for; each has counters of its own."""

    TRAINING = 0
    NATURAL_TEST = 1
    STRATIFIED_TEST = 2
    REPEATED_SET = 3
    REPEAT_CHOICE = 4
    RESHUFFLE = 5
    CHECKS = 7
    FILE_ORDER = 8
    QUESTIONS = 9


def block_generator(seed: int, purpose: Purpose, block: int, epoch: int = 0) -> np.random.Generator:
    """The generator of one block."""
    counter = np.array([0, block, purpose, epoch], dtype=np.uint64)
    key = np.array([seed, 0], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(counter=counter, key=key))
