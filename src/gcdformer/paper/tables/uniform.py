"""Uniform outcomes: classes whose predictions change from epoch to epoch (app:uni, app:uniform1000, app:uni_large)."""

from __future__ import annotations

from gcdformer.paper.table import Cell, Experiment, Measure, Note, Table, grid, numbers

UNI10_EPOCHS = (266, 267, 268, 269, 270, 580, 581)
UNI10_CLASSES = (1, 2, 4, 5, 8, 10, 16, 20)
"""The least elements of the classes that its rows show; 12 is predicted by no element of its own at the last epoch."""

# GCD, then prediction and frequency at each of these epochs, base 10
UNI10 = numbers("""
1 1 100 19 54 73 100 7 100 13 100 1 98 77 99
2 2 100 66 100 26 100 62 100 66 100 22 93 22 99
3 1 100 19 52 73 100 7 100 13 100 1 99 77 99
4 44 91 4 100 4 100 44 100 4 100 4 100 4 100
5 5 100 55 100 55 100 55 100 5 100 5 100 5 100
6 2 100 66 100 26 200 62 100 66 100 22 93 22 99
7 1 100 19 62 73 100 7 100 13 100 1 99 77 99
8 8 99 8 100 88 100 8 100 8 100 88 100 88 99
9 1 100 19 53 73 100 7 100 13 100 1 99 77 99
10 70 70 10 100 30 99 70 100 70 100 30 100 70 100
11 1 100 19 57 73 100 7 100 13 100 1 98 77 99
12 44 91 4 100 4 100 44 100 4 100 4 100 18 22
13 1 100 19 55 73 100 7 100 13 100 1 98 77 99
14 2 100 66 100 26 100 62 100 66 100 22 92 22 99
15 5 100 55 100 55 100 55 100 5 100 5 100 5 100
16 48 97 16 84 48 99 48 99 16 98 48 98 48 78
17 1 100 19 54 73 100 7 100 13 100 1 99 77 100
18 2 100 66 100 26 100 62 100 66 100 22 93 22 99
19 1 100 19 53 73 100 7 100 13 100 1 99 77 99
20 20 100 60 100 20 98 20 100 20 53 20 100 20 100
""")

# base 1000, epoch 400: for each GCD its predictions and their frequencies
UNI1000: dict[int, dict[int, int]] = {
    1: {11: 5, 17: 2, 19: 2, 23: 3, 29: 5, 31: 7, 37: 5, 41: 13, 43: 8, 59: 1, 61: 2, 67: 2, 71: 4, 73: 3, 79: 9, 83: 13,
        89: 7, 97: 7},
    2: {2: 8, 22: 13, 34: 18, 38: 12, 46: 10, 58: 10, 62: 10, 74: 4, 82: 8, 86: 6},
    3: {3: 12, 27: 11, 33: 7, 51: 9, 57: 12, 69: 22, 81: 7, 87: 7, 93: 8, 99: 2},
    4: {4: 40, 44: 19, 68: 5, 76: 24, 92: 12},
    5: {5: 12, 55: 21, 85: 31, 95: 36},
}

UNIFORMS = """
1000 71 94
2017 98 87
2023 99 90
2187 99 94
2209 57 90
2310 96 92
2401 98 90
2744 96 93
3375 98 92
4000 98 94
4913 99 93
10000 99 95
"""
COLUMNS = [("uniform operands", Measure("correct")), ("log-uniform operands", Measure("correct"))]
UNI_10, UNI_1000 = Experiment(10, outcomes="uniform"), Experiment(1000, outcomes="uniform")
TYPO = Note("pitfall", "200 is a misprint of 100", alone=True)
CHANGING = Note("not comparable", "the element that stands for a class changes from epoch to epoch; what can be compared "
                "are the classes. C_4 lists 24 in the text, although 8 is a class of its own")
BY_CLASS = Note("not comparable", f"{CHANGING.text}. Two predictions agree here if they are elements of the same class; "
                f"ours are of the last {len(UNI10_EPOCHS)} evaluations")
BASE_1000 = Note("pitfall", "71 here, 95 in the text (by epoch 740 to 800)")


def uni10() -> tuple[Cell, ...]:
    cells = []
    for row in UNI10:
        k = int(row[0])
        for place, epoch in enumerate(UNI10_EPOCHS):
            prediction, frequency = int(row[1 + 2 * place]), row[2 + 2 * place]
            cells += [Cell(str(k), f"epoch {epoch}", prediction, Measure("prediction", k, epoch=epoch), UNI_10),
                      Cell(str(k), f"epoch {epoch} %", frequency, Measure("frequency", k, epoch=epoch), UNI_10,
                           TYPO if frequency > 100 else None)]
    return tuple(cells)


def uni1000() -> tuple[Cell, ...]:
    return tuple(Cell(f"GCD {k}", f"{value} %", share, Measure("share", k, value), UNI_1000)
                 for k, shares in UNI1000.items() for value, share in shares.items())


TABLES = (
    Table("pred_uni10", "tab:pred_uni10", 8, "Predictions at successive epochs, base 10, uniform operands and outcomes",
          uni10(), epochs=581, note=BY_CLASS),
    Table("pred_uni1000_400", "tab:pred_uni1000_400", 15, "Predictions split over many values, base 1000, uniform outcomes",
          uni1000(), epochs=400, note=CHANGING),
    Table("uniforms", "tab:uniforms", 16, "Correct GCD with uniform outcomes",
          grid(UNIFORMS, COLUMNS, lambda base, column: Experiment(base, ("uniform", "log-uniform")[column], "uniform"),
               {(1000, "uniform operands"): BASE_1000}), best_of=3, epochs=1200),
    Table("uniacc", "fig:uniacc", 3, "Learning curves of three seeds, base 10, uniform operands and outcomes", (), best_of=3,
          curves=(UNI_10,)),
    Table("uniacc1000", "fig:uniacc1000", 4, "Learning curve, base 1000, uniform operands and outcomes", (),
          curves=(UNI_1000,)),
)
