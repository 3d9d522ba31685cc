"""Questions for a model that is asked in words, a language model say: pairs for every GCD, and a CSV to fill in.

What it answers is read by `explain --predictions`. The pairs are a function of the seed, in random order, and the file
does not give the answers away. Knows pairs and text, no model.
"""

from __future__ import annotations

import csv
from typing import IO

import numpy as np

from gcdformer.config import TESTED_GCDS
from gcdformer.numbers.distributions import OPERAND_DISTRIBUTIONS, coprime_pairs
from gcdformer.numbers.encoding import Integers
from gcdformer.numbers.random import Purpose, block_generator

COLUMNS = ("id", "a", "b", "question", "answer")


def question_pairs(maximum: int, operands: str, pairs_per_gcd: int, seed: int) -> Integers:
    """(n, 2): as many pairs for every GCD k in 1..min(100, M), shuffled."""
    rng = block_generator(seed, Purpose.QUESTIONS, 0)
    k = np.repeat(np.arange(1, min(TESTED_GCDS, maximum) + 1, dtype=np.int64), pairs_per_gcd)
    a, b = coprime_pairs(rng, OPERAND_DISTRIBUTIONS[operands], maximum // k)
    return np.asarray(rng.permutation(np.stack([a * k, b * k], axis=1)))


def question(a: int, b: int) -> str:
    return f"What is the greatest common divisor of {a} and {b}? Answer with the integer alone."


def write_questions(pairs: Integers, file: IO[str]) -> None:
    """The CSV, with an empty column for the answers."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows((number, a, b, question(a, b), "") for number, (a, b) in enumerate(pairs.tolist(), 1))


def write_prompts(pairs: Integers, file: IO[str]) -> None:
    """One question per line, in the order of the CSV."""
    file.writelines(question(a, b) + "\n" for a, b in pairs.tolist())
