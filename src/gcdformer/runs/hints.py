"""What to type next: commands that can be pasted into the shell that ran this one, and questions that show the sieve.

Knows the program's own name and the rules that a run follows; runs nothing but the model that is asked.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from math import gcd
from pathlib import Path

import numpy as np

from gcdformer.explanation import Explanation
from gcdformer.runs.explain import Done, certified_epoch
from gcdformer.runs.run import Run

NAME = "gcdformer"
FACTORS = ((3, 4), (5, 7), (11, 8), (13, 17), (101, 103), (211, 207), (997, 1009), (1511, 1213), (4001, 3083), (7, 9001))
"""Coprime factors to make pairs of a GCD from: small ones, which are easy to read, then larger ones."""


def hint(*words: object) -> str:
    """A command of ours as this shell understands it."""
    return shlex.join([*program(), *map(str, words)])


def earlier_certificate(run: Run, before: int, on_epoch: Done = lambda done: None) -> str | None:
    """The last epoch before one that was certified, and how to see it."""
    epoch = certified_epoch(run, before, on_epoch)
    if epoch is None:
        return None
    return (f"epoch {epoch}, with {run.metrics[epoch - 1]['n_correct']} correct GCD, was certified: "
            f"{hint('explain', run.path, '--checkpoint', 'certified')}")


def program() -> list[str]:
    """How this program is called here: by its name if that is on PATH, else by its script, else as a module of Python."""
    running, beside = Path(sys.argv[0]), Path(sys.executable).with_name(NAME)
    script = running if running.name == NAME and running.is_file() else beside
    on_path = shutil.which(NAME)
    if on_path and (not script.is_file() or Path(on_path).samefile(script)):
        return [NAME]
    return [nearby(script)] if script.is_file() else [nearby(Path(sys.executable)), "-m", NAME]


def nearby(path: Path) -> str:
    """A path as seen from here, if that is shorter; with a slash, so that the shell does not look for it on PATH."""
    absolute, relative = os.path.abspath(path), os.path.relpath(path)  # noqa: PTH100 (a link in an environment stays one)
    shown = relative if len(relative) < len(absolute) else absolute
    return shown if os.sep in shown else f".{os.sep}{shown}"


def questions(run: Run, explanation: Explanation) -> list[int]:
    """Operands that show the sieve: a pair whose GCD is not in D, so that the model answers the largest element of D that
    divides it, then a pair that it answers right. The model has been asked and agrees with the rules."""
    chosen: list[int] = []
    for gcds in (unlearned(explanation), learned(explanation)):
        chosen += next(agreeing_pairs(run, explanation, gcds), [])
    return chosen or run.stream.examples(0, 1)[0, :2].tolist()


def unlearned(explanation: Explanation) -> list[int]:
    """GCD that the rules answer by a smaller divisor, those first for which that is more than 1."""
    wrong = [k for k in explanation.shares if 1 <= explanation.model.answer(k) < k and k % explanation.model.answer(k) == 0]
    return sorted(wrong, key=lambda k: (k in explanation.being_learned, explanation.model.answer(k) == 1, k))


def learned(explanation: Explanation) -> list[int]:
    """GCD that the rules answer right, the largest first."""
    return sorted((k for k in explanation.shares if k > 1 and explanation.model.answer(k) == k), reverse=True)


def agreeing_pairs(run: Run, explanation: Explanation, gcds: list[int]) -> Iterator[list[int]]:
    """Pairs of these GCD for which the model answers what the rules say."""
    for k in gcds[:10]:
        pairs = [(k * x, k * y) for x, y in FACTORS if gcd(x, y) == 1 and k * max(x, y) <= run.problem.maximum]
        if not pairs:
            continue
        a, b = np.array(pairs, dtype=np.int64).T
        agree = run.predict(a, b) == explanation.model.answer(k)
        yield from (list(pair) for pair, same in zip(pairs, agree, strict=True) if same)
