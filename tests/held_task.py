"""The GCD, but a training stays at its second block of examples for as long as a folder named `gate` is beside this file.

So a test has a process exactly where it wants it, for as long as it wants: it need not catch it there. A process that was
asked to stop by a signal is let go. Copied beside its gate and named by `gate_in` of sweeps.py.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import numpy as np

from gcdformer.numbers.distributions import OperandDistribution, PairDistribution
from gcdformer.numbers.encoding import Integers
from gcdformer.tasks.gcd import Gcd

GATE = Path(__file__).parent / "gate"


class Held(Gcd):
    """gcd with a gate before the second block that a process draws: after 256 steps of 16, or at the next block's start."""

    def __init__(self) -> None:
        self.blocks = 0

    def draw(self, rng: np.random.Generator, count: int, operands: OperandDistribution, pairs: PairDistribution,
             maximum: int) -> Integers:
        self.blocks += 1
        if self.blocks == 2 and GATE.is_dir():
            (GATE / str(os.getpid())).touch()
            while GATE.is_dir() and not asked_to_stop():
                time.sleep(0.02)
        return super().draw(rng, count, operands, pairs, maximum)


def asked_to_stop() -> bool:
    """Whether the session's own handler has got a signal."""
    request = getattr(signal.getsignal(signal.SIGTERM), "__self__", None)
    return getattr(request, "received", None) is not None
