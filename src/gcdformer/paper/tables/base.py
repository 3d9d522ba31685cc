"""The base experiments: encodings, correct GCD and accuracy, theory, learning curves (sec:base_xp, app:theory_acc)."""

from __future__ import annotations

from gcdformer.paper.table import Cell, Experiment, Measure, Note, Table

ENCODINGS = {
    2: ("+ 1 0 1 0 0 0 0 0 + 1 1 1 1 0 0 0", "+ 1 0 1 0 0 0"),
    6: ("+ 4 2 4 + 3 2 0", "+ 1 0 4"),
    10: ("+ 1 6 0 + 1 2 0", "+ 4 0"),
    30: ("+ 5 10 + 4 0", "+ 1 10"),
}

# base: correct GCD, accuracy, theoretical accuracy
BASE_GCD = {
    2: (7, 81.6, 81.1), 3: (5, 68.9, 68.4), 4: (7, 81.4, 81.1), 5: (3, 64.0, 63.3), 6: (19, 91.5, 90.2), 7: (3, 62.5, 62.1),
    10: (13, 84.7, 88.6), 11: (2, 61.8, 61.3), 12: (19, 91.5, 90.2), 15: (9, 71.7, 80.3), 30: (27, 94.7, 94.1),
    31: (2, 61.3, 60.9), 60: (28, 95.0, 94.1), 100: (13, 84.7, 88.6), 210: (32, 95.5, 96.3), 211: (1, 61.3, 60.8),
    420: (38, 96.8, 96.3), 997: (1, 61.3, 60.8), 1000: (14, 84.7, 88.6), 1024: (7, 81.5, 81.1),
}

CORRECT, ACCURACY = Measure("correct"), Measure("accuracy")
LATER = {1000: Note("pitfall", "14 here, 22 in later tables: before and after 3 is grokked"),
         30: Note("pitfall", "27 here and in the text, 25 in the prediction table and in tab:grokking_inverse")}
FORMULA = Note("pitfall", "the paper's formula is right for one prime only; ours is the product over the primes of B of "
               "p^2/(p^2-1), times 6/pi^2")
COMPOSITE = (6, 10, 12, 15, 30, 60, 100, 210, 420, 1000)  # more than one prime
COPY = Note("pitfall", "80.3 here, the formula gives 80.9 and the right product 71.2")


def base_gcd(with_theory: bool) -> tuple[Cell, ...]:
    cells = []
    for base, (correct, accuracy, theory) in BASE_GCD.items():
        run, row = Experiment(base), str(base)
        if with_theory:
            note = COPY if base == 15 else FORMULA if base in COMPOSITE else None
            cells.append(Cell(row, "theoretical accuracy", theory, Measure("theory"), run, note))
        cells += [Cell(row, "correct GCD", correct, CORRECT, run, LATER.get(base)),
                  Cell(row, "accuracy", accuracy, ACCURACY, run)]
    return tuple(cells)


def encodings() -> tuple[Cell, ...]:
    cells = []
    for base, (tokens, answer) in ENCODINGS.items():
        cells += [Cell(str(base), "input", tokens, Measure("encoded-input"), Experiment(base)),
                  Cell(str(base), "output", answer, Measure("encoded-output"), Experiment(base))]
    return tuple(cells)


def reached(experiment: Experiment, epochs: dict[int, int]) -> tuple[Cell, ...]:
    """The epochs at which that many GCD were correct, as far as the text states them."""
    return tuple(Cell(f"base {experiment.base}", f"{count} GCD at epoch", epoch, Measure("reached", value=count), experiment)
                 for count, epoch in epochs.items())


MIXTURE_30 = Experiment(30, outcomes="mixture")

TABLES = (
    Table("encodings", "tab:encodings", 1, "Tokens of 160 and 120, and of their GCD", encodings()),
    Table("base_gcd", "tab:base_gcd", 2, "Correct GCD and accuracy, uniform operands, natural outcomes", base_gcd(False),
          best_of=6),
    Table("theory", "tab:theory", 12, "Theoretical and measured accuracy", base_gcd(True), best_of=6),
    Table("learning_curves", "fig:learning_curves", 1, "Steps of the learning curve, base 30, natural outcomes",
          reached(Experiment(30), {21: 50, 25: 250, 27: 660}),
          note=Note("pitfall", "the text gives 25 GCD by epoch 220 and by epoch 250"), curves=(Experiment(30),)),
    Table("mix", "fig:mix", 2, "Steps of the learning curve, base 30, 5 % uniform outcomes",
          reached(MIXTURE_30, {25: 30, 27: 175}), curves=(MIXTURE_30,)),
)
