"""Arithmetic of fractions (app:fractions)."""

from __future__ import annotations

from gcdformer.paper.table import Experiment, Measure, Table, grid

TASKS = ("comparison", "division", "simplification", "addition", "multiplication")
FRACTIONS = """
10 100 100 21.2 2.4 0.14 0.02 0 0 0 0
30 99.9 100 14.2 2.2 0.21 0.02 0 0 0 0
31 99.9 100 14.3 2.4 0.02 0 0 0 0 0
1000 100 99.9 8.8 0.7 0.09 0.01 0 0 0 0
"""


def fraction(base: int, column: int) -> Experiment:
    return Experiment(base, task=TASKS[column // 2], maximum=(100_000, 1_000_000)[column % 2])


TABLES = (
    Table("fractions", "tab:fractions", 9, "Tasks on fractions: accuracy",
          grid(FRACTIONS, [(f"{task}, M = 10^{power}", Measure("accuracy")) for task in TASKS for power in (5, 6)],
               fraction),
          best_of=3, epochs=1500),
)
