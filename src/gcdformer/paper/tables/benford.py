"""Log-uniform operands: 36 bases, outcome distributions, batch sizes (sec:benford, app:outcomes, app:batch64)."""

from __future__ import annotations

from typing import Any

from gcdformer.paper.table import Experiment, Measure, Note, Table, grid

# base; with natural outcomes accuracy and correct GCD; the same with log-uniform outcomes
BENFORD = """
2 94.4 25 16.5 17
3 96.5 36 93.7 51
4 98.4 58 91.3 47
5 97.0 42 92.2 58
6 96.9 39 95.2 56
7 96.8 40 93.0 63
10 97.6 48 94.3 65
11 97.4 43 94.5 57
12 98.2 55 95.0 70
15 97.8 52 95.4 62
30 98.2 56 95.8 72
31 97.2 44 94.4 64
60 98.4 60 96.4 75
100 98.4 60 97.1 78
210 98.5 60 96.2 80
211 96.9 41 95.3 67
420 98.1 59 96.4 88
625 98.2 57 96.0 80
997 98.3 64 97.6 83
1000 99.1 71 97.9 91
1024 99.0 71 98.1 90
2017 98.6 63 97.6 88
2021 98.6 66 98.1 89
2023 98.7 65 97.5 88
2025 99.0 70 97.9 91
2187 98.7 66 97.8 91
2197 98.8 68 97.6 90
2209 98.6 65 97.6 87
2401 99.1 73 97.8 89
2744 98.9 72 97.6 91
3125 98.6 65 97.7 91
3375 98.8 67 97.6 91
4000 98.7 66 97.3 90
4913 98.2 57 97.1 88
5000 98.6 64 97.1 89
10000 98.0 56 95.2 88
"""

OUTCOME_DISTRIBUTIONS = """
1000 71 71 91 90 91
1024 71 72 90 85 91
2017 63 64 88 87 88
2021 66 71 89 87 92
2023 65 67 88 85 90
2025 70 71 91 88 92
2187 66 70 91 86 91
2197 68 65 90 85 91
2209 65 68 87 85 90
2401 73 69 89 85 92
2744 72 72 91 88 89
3125 65 67 91 87 92
3375 67 68 91 87 92
4000 66 60 90 85 90
4913 57 60 88 90 92
5000 64 65 89 90 91
10000 56 55 88 90 91
"""

BATCHES = """
10 49 48 69 65
12 54 55 67 70
30 56 56 73 72
31 45 44 64 64
210 55 60 81 80
1000 70 71 91 91
2025 66 70 90 91
2401 68 73 90 89
2744 70 72 91 91
4000 67 66 90 90
10000 55 56 89 88
"""

OUTCOME_COLUMNS: tuple[tuple[str, str, int | None], ...] = (
    ("1/k^2", "natural", None), ("1/k^1.5", "inverse-1.5", None), ("1/k, k <= 100", "log-uniform", None),
    ("1/k, k <= 200", "log-uniform", 200), ("1/sqrt(k)", "inverse-sqrt", None))
"""Name, outcome distribution, largest GCD."""
BATCH_COLUMNS = tuple(f"{outcomes}, batch {size}" for outcomes in ("natural", "log-uniform outcomes") for size in (64, 256))
CORRECT = Measure("correct")
SCORES = [("accuracy", Measure("accuracy")), ("correct GCD", CORRECT)]
DEAD_FLAG = Note("pitfall", "the published code's flag for this distribution has no effect, so the published column is very "
                 "likely a second natural run; ours follows the distribution as written", alone=True)
ROUNDING = Note("other recipe", "log-uniform operands are rounded to the nearest integer, as in the text; the published "
                "code rounds down")


def benford(base: int, column: int = 0, **leaves: Any) -> Experiment:
    """Log-uniform operands."""
    return Experiment(base, operands="log-uniform", **leaves)


def inverse(base: int, column: int = 0) -> Experiment:
    """Log-uniform operands and outcomes."""
    return benford(base, outcomes="log-uniform")


def batch(base: int, column: int) -> Experiment:
    return benford(base, batch_size=(64, 256)[column % 2], outcomes=("natural", "log-uniform")[column // 2])


TABLES = (
    Table("benford", "tab:benford", 6, "Log-uniform operands, natural outcomes", grid(BENFORD, SCORES, benford),
          best_of=3, epochs=1000, note=ROUNDING),
    Table("benford_inverse", "tab:benford_inverse", 7, "Log-uniform operands and outcomes",
          grid(BENFORD, SCORES, inverse, skip=2), best_of=3, epochs=1000, note=ROUNDING),
    Table("ablation_outcome_dist", "tab:ablation_outcome_dist", 13, "Outcome distributions, log-uniform operands",
          grid(OUTCOME_DISTRIBUTIONS, [(name, CORRECT) for name, _, _ in OUTCOME_COLUMNS],
               lambda base, column: benford(base, outcomes=OUTCOME_COLUMNS[column][1], max_gcd=OUTCOME_COLUMNS[column][2]),
               {(int(line.split()[0]), "1/k^1.5"): DEAD_FLAG for line in OUTCOME_DISTRIBUTIONS.strip().splitlines()}),
          best_of=3, epochs=1300),
    Table("ablation_batch64", "tab:ablation_batch64", 14, "Batches of 64 and of 256, log-uniform operands",
          grid(BATCHES, [(name, CORRECT) for name in BATCH_COLUMNS], batch), best_of=3, epochs=1300,
          epochs_of_columns=tuple((name, 800) for name in BATCH_COLUMNS if name.endswith("batch 64")),
          note=Note("other recipe", "batches of 64 were trained for 800 epochs, of 256 for 1300: a week each")),
    Table("logu_loss_natural", "fig:logu_loss", 6, "Learning curves of three seeds, base 2023, log-uniform operands", (),
          best_of=3, curves=(benford(2023),), note=Note("pitfall", "two figures share this label")),
    Table("logu_loss_inverse", "fig:logu_loss", 7,
          "Learning curves of three seeds, base 2023, log-uniform operands and outcomes", (), best_of=3,
          curves=(inverse(2023),), note=Note("pitfall", "two figures share this label")),
)
