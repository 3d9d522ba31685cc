"""Large bases: grokked primes, log-uniform outcomes against natural ones, the 5 % mixture (sec:grok, app:grok)."""

from __future__ import annotations

from gcdformer.paper.table import Cell, Experiment, Measure, Note, Table, grid
from gcdformer.presets import preset

Grokked = tuple[int, int, tuple[int, ...], dict[int, int]]

# base, GCD predicted, powers of the primes of B, {prime power that does not divide B: epoch}
GROKKED: tuple[Grokked, ...] = (
    (625, 6, (5, 25), {2: 634}),
    (2017, 4, (), {2: 142, 3: 392}),
    (2021, 10, (43, 47), {2: 125, 3: 228}),
    (2023, 16, (7, 17), {3: 101, 2: 205, 4: 599}),
    (2025, 28, (3, 9, 27, 81, 5, 25), {2: 217, 4: 493, 8: 832}),
    (2187, 20, (3, 9, 27, 81), {2: 86, 4: 315, 5: 650}),
    (2197, 11, (13,), {2: 62, 3: 170, 4: 799}),
    (2209, 8, (47,), {2: 111, 3: 260, 9: 937}),
    (2401, 10, (7, 49), {2: 39, 3: 346}),
    (2401, 14, (7, 49), {3: 117, 2: 399, 4: 642}),
    (2744, 30, (2, 4, 8, 16, 32, 7, 49), {3: 543, 5: 1315}),
    (3125, 16, (5, 25), {2: 46, 3: 130, 4: 556}),
    (3375, 23, (3, 9, 27, 5, 25), {2: 236, 4: 319}),
    (4000, 24, (2, 4, 8, 16, 32, 5, 25), {3: 599}),
    (4913, 17, (17,), {2: 54, 3: 138, 4: 648, 5: 873}),
    (5000, 28, (2, 4, 8, 16, 32, 5, 25), {3: 205, 9: 886}),
    (10000, 22, (2, 4, 8, 16, 5, 25), {3: 211}),
)

GROKKED_NOTES = {
    2021: Note("pitfall", "the products of the listed prime powers are 8 GCD up to 100, the table says 10"),
    2744: Note("pitfall", "the products of the listed prime powers are 31 GCD; 30 here, 29 in other tables"),
    4000: Note("pitfall", "24 here, 25 in other tables"),
    5000: Note("pitfall", "the products of the listed prime powers are 30 GCD, the table says 28"),
}
TWO_SET = (preset("grok").data.repeat_share, preset("grok").data.repeat_size or 0)
LARGER_SET = (0.5, 100_000)
"""What base 1000 took, where 3 is in a ninth of the pairs; 2 is in a quarter of those of an odd base."""


def two_set_note(two_set: tuple[float, int], otherwise: str) -> Note:
    return Note("other recipe", f"in the fast preset {100 * two_set[0]:.0f} % of the examples are drawn from {two_set[1]:,} "
                f"that are repeated (two-set training); {otherwise}")


GROKS = two_set_note(TWO_SET, "without that it did not grok")
GROKS_1000 = two_set_note(LARGER_SET, f"with {100 * TWO_SET[0]:.0f} % from {TWO_SET[1]:,} it did not grok in 51 epochs")
GROKKED_EPOCHS = 1300
LATER = Note("pitfall", f"the text has models trained for up to {GROKKED_EPOCHS} epochs")
MORE_EPOCHS = Note("pitfall", "the caption gives 700 epochs; by the epochs of tab:grokking_det the natural models of bases "
                   "2025, 2197, 2209, 2744, 4913 and 5000 had more")
SECOND = Note("other recipe", "a second published model of the same experiment; ours is one best model", alone=True)


def grokking_det() -> tuple[Cell, ...]:
    cells: list[Cell] = []
    seen: set[int] = set()
    for base, correct, divisors, epochs in GROKKED:
        run = Experiment(base, two_set=TWO_SET)
        row = f"{base} (second)" if base in seen else str(base)
        second = SECOND if base in seen else None
        seen.add(base)
        cells += [Cell(row, "GCD predicted", correct, Measure("correct"), run, second or GROKKED_NOTES.get(base)),
                  Cell(row, "divisors of B", divisors, Measure("divisors"), run)]
        cells += [Cell(row, f"{k} at epoch", epoch, Measure("epoch-learned", k), run,
                       LATER if epoch > GROKKED_EPOCHS else second) for k, epoch in sorted(epochs.items())]
    return tuple(cells)


# f(1), f(2), ... f(50) in base 1000; 32 is split between 16 and 32
GROKKED_3 = [1, 2, 3, 4, 5, 6, 1, 8, 3, 10, 1, 12, 1, 2, 15, 16, 1, 6, 1, 20, 3, 2, 1, 24, 25, 2, 3, 4, 1, 30,
             1, 32, 3, 2, 5, 12, 1, 2, 3, 40, 1, 6, 1, 4, 15, 2, 1, 48, 1, 50]


def grokked_3() -> tuple[Cell, ...]:
    return tuple(Cell(str(k), "prediction", (16, 32) if k == 32 else value, Measure("prediction", k),
                      Experiment(1000, two_set=LARGER_SET))
                 for k, value in enumerate(GROKKED_3, 1))


# base, natural, log-uniform outcomes, prime powers new under log-uniform outcomes
INVERSE: tuple[tuple[int, int, int, tuple[int, ...]], ...] = (
    (2, 7, 7, ()), (3, 5, 5, ()), (4, 7, 7, ()), (5, 3, 3, ()), (6, 19, 20, (64,)), (7, 3, 3, ()), (10, 13, 14, (32,)),
    (11, 2, 2, ()), (12, 19, 20, (81,)), (15, 9, 10, (81,)), (30, 25, 36, (16, 29, 31)), (31, 2, 2, ()),
    (60, 28, 33, (27, 32, 64)), (100, 13, 15, (32, 64)), (210, 32, 32, ()), (211, 1, 18, (2, 3, 4, 5, 7)),
    (420, 38, 47, (13, 49)), (625, 6, 9, (4,)), (997, 1, 1, ()), (1000, 22, 31, (9, 32, 64)), (2017, 4, 6, (9,)),
    (2021, 10, 10, ()), (2023, 16, 11, ()), (2025, 28, 28, ()), (2187, 20, 20, ()), (2197, 11, 11, ()), (2209, 8, 8, ()),
    (2401, 14, 16, (5,)), (2744, 29, 21, ()), (3125, 16, 16, ()), (3375, 23, 21, ()), (4000, 25, 31, (9, 64)),
    (4913, 17, 9, ()), (5000, 28, 30, (64,)), (10000, 22, 40, (7, 9, 32)), (10000, 22, 62, (7, 9, 13, 27, 32, 64)),
)
NATURAL_NOTES = {
    30: Note("pitfall", "25 here, 27 in tab:base_gcd and in the text"),
    1000: Note("pitfall", "22 here, 14 in tab:base_gcd: after and before 3 is grokked"),
    2744: Note("pitfall", "29 here, 30 in tab:grokking_det"),
    4000: Note("pitfall", "25 here, 24 in tab:grokking_det"),
}


def grokking_inverse() -> tuple[Cell, ...]:
    cells: list[Cell] = []
    seen: set[int] = set()
    for base, natural, balanced, new in INVERSE:
        run = Experiment(base, outcomes="log-uniform")
        row, note = (f"{base} (second)", SECOND) if base in seen else (str(base), None)
        seen.add(base)
        cells += [Cell(row, "natural", natural, Measure("correct"), Experiment(base), NATURAL_NOTES.get(base)),
                  Cell(row, "log-uniform outcomes", balanced, Measure("correct"), run, note),
                  Cell(row, "new prime powers", new, Measure("new-prime-powers"), run, note)]
    return tuple(cells)


UNI5 = """
625 6 650 3 10
1000 22 250 15 560
2017 4 450 1 0
2021 10 550 10 600
2023 16 600 11 800
2025 28 850 18 225
2187 20 750 12 750
2197 11 800 11 775
2209 8 850 6 575
2401 14 700 14 630
2744 29 1400 21 650
3125 16 550 11 500
3375 23 400 23 475
4000 25 650 25 600
4913 17 950 7 575
5000 28 900 24 675
10000 22 250 22 300
"""
UNI5_COLUMNS = [("natural", Measure("correct")), ("natural, epochs", Measure("epochs")),
                ("5 % uniform", Measure("correct")), ("5 % uniform, epochs", Measure("epochs"))]

TABLES = (
    Table("grokking_det", "tab:grokking_det", 4, "Large bases: divisors of B learned, other primes and when", grokking_det(),
          best_of=3, epochs=GROKKED_EPOCHS, note=GROKS),
    Table("grokking_inverse", "tab:grokking_inverse", 5, "Log-uniform outcomes against natural ones, uniform operands",
          grokking_inverse(), best_of=3, epochs=700, note=MORE_EPOCHS),
    Table("grokked_3", "tab:grokked_3", 20, "Predictions in base 1000 after 3 was grokked", grokked_3(), epochs=220,
          note=GROKS_1000, curves=(Experiment(1000, two_set=LARGER_SET),),
          similar=(Experiment(2023, two_set=TWO_SET), Experiment(2401, two_set=TWO_SET))),
    Table("grokking_uni5", "tab:grokking_uni5", 21, "5 % uniform outcomes for large bases",
          grid(UNI5, UNI5_COLUMNS, lambda base, column: Experiment(base, outcomes="natural" if column < 2 else "mixture"),
               {(base, "natural"): note for base, note in NATURAL_NOTES.items()}), best_of=3),
    Table("grok_loss", "fig:grok_loss", 5, "Learning curves of three seeds, base 2023, uniform operands", (), best_of=3,
          note=GROKS, curves=(Experiment(2023, two_set=TWO_SET),)),
)
