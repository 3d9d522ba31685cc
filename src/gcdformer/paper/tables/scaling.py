"""Models of other sizes and families (app:scaling_base, app:lstm)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from gcdformer.paper.table import Cell, Experiment, Leaves, Measure, Note, Table, grid
from gcdformer.presets import preset

# base; then the columns of tab:small_dims and of tab:deep_models
ACCURACIES = """
2 81.3 81.4 81.4 81.4 81.2 81.6 81.3 81.3 81.4 81.5 81.4 81.3 81.3 81.3 81.4 - 81.4 -
3 68.8 68.9 68.7 68.8 68.7 68.9 68.7 68.8 68.7 68.8 68.9 69.0 68.9 68.8 68.8 68.8 68.6 -
4 81.4 81.4 81.4 81.4 81.4 81.4 81.3 81.4 81.4 81.4 81.4 81.6 81.4 81.4 81.4 81.5 81.4 81.3
5 64.0 63.7 63.8 63.7 63.8 64.0 63.8 63.8 63.7 63.8 63.6 63.7 63.7 63.7 63.6 63.9 63.7 63.6
6 91.3 91.3 91.1 91.1 90.7 91.5 91.3 91.1 91.3 91.3 91.4 91.3 91.3 91.0 91.0 91.3 91.0 90.9
7 62.5 62.4 62.5 62.5 62.5 62.5 62.6 62.6 62.4 62.5 62.4 62.6 62.5 62.4 62.4 62.4 62.3 62.2
10 84.4 84.3 84.3 84.4 84.2 84.7 84.3 84.2 84.4 84.7 84.4 84.5 84.4 84.4 83.4 84.5 83.4 83.3
11 61.7 61.7 61.7 61.9 61.7 61.8 61.8 61.7 61.6 61.7 61.8 61.7 62.0 61.6 61.7 61.7 61.6 61.6
12 91.4 91.4 91.3 91.3 91.1 91.5 91.4 91.3 91.3 91.4 91.5 91.4 81.4 91.2 91.2 91.4 91.3 91.2
15 71.6 71.6 71.5 71.5 71.4 71.7 71.5 71.5 71.4 71.5 71.5 71.5 71.4 71.5 71.5 71.5 70.6 71.4
30 94.6 93.8 93.5 93.7 93.3 94.7 94.6 93.4 93.5 94.7 93.6 93.6 94.7 93.6 93.6 93.5 93.4 93.4
31 61.3 61.3 61.2 61.3 61.3 61.3 61.2 61.2 61.3 61.2 61.3 61.2 61.4 61.2 61.3 61.4 61.3 61.1
"""
DIMS: dict[int, float] = {512: 11.6, 256: 4.0, 128: 1.7, 64: 0.6, 32: 0.3}
"""Width of a one-layer model -> millions of parameters in base 10."""
BASELINE = 33.7

DEPTHS: dict[tuple[int, int], float] = {
    (1, 6): 32.5, (6, 1): 27.3, (6, 6): 48.3, (1, 8): 59.1, (8, 1): 48.4, (8, 8): 97.1, (1, 12): 117.1, (12, 1): 94.7,
    (12, 12): 204.8, (1, 24): 387.4, (24, 1): 313.3, (24, 24): 713.8}
"""Layers of encoder and decoder -> millions of parameters in base 10."""
WIDTH_OF_DEPTH = {1: (512, 8), 6: (512, 8), 8: (640, 10), 12: (768, 12), 24: (1024, 16)}

# base; then the columns of tab:lstm1, of tab:lstm2 and of tab:lstm3
LSTM = """
10 15 15 15 15 30 33 45 36 53 54 38 53
30 32 30 32 30 38 40 40 40 40 58 36 40
31 2 2 2 2 29 32 22 20 44 58 37 44
210 35 35 35 35 47 46 44 46 61 74 53 61
420 38 34 34 38 50 45 44 43 64 74 53 64
1000 14 22 14 14 53 51 46 47 69 73 62 69
2021 8 7 8 10 44 40 36 35 60 76 54 60
2023 6 11 11 11 46 48 38 39 65 73 53 65
2025 24 24 10 18 52 52 40 46 69 74 60 69
2401 8 6 10 10 47 41 35 33 55 73 50 55
"""
RECURRENT = (("lstm", 1024), ("lstm", 2048), ("gru", 1024), ("gru", 2048))
SHRUNK = 8
"""`fast` is an eighth as wide as `paper`; deep and recurrent models shrink by as much."""

ACCURACY, PARAMETERS, CORRECT = Measure("accuracy"), Measure("parameters"), Measure("correct")
FAST, PUBLISHED = preset("fast").model, preset("paper").model
SMALLER = Note("smaller model", f"in the fast preset the widths are the published ones divided by {SHRUNK}")
RECURRENT_SMALLER = Note("smaller model", f"{SMALLER.text}, and the layers are {FAST.encoder_layers} instead of "
                         f"{PUBLISHED.encoder_layers}")
OWN_MODEL = Note("smaller model", "in the fast preset the last column is the preset's own model, encoder and decoder of "
                 f"{FAST.encoder_layers} layer, {FAST.encoder_dim} dimensions and {FAST.encoder_heads} heads; the other "
                 "columns are as published")
MISPRINT = Note("pitfall", "81.4 is surely a misprint of 91.4", alone=True)
COPIED = Note("pitfall", "the published columns of the LSTM of 1024 and the GRU of 2048 are the same in all ten rows: one "
              "is very likely a copy of the other")
COUNT_128 = Note("pitfall", "one layer of 128 dimensions has 1.5 million parameters")


def one_layer(base: int, column: int) -> Experiment:
    """A column of tab:small_dims; the last is the paper's own model."""
    widths = list(DIMS)
    if column == len(widths):
        return Experiment(base)
    return Experiment(base, model=(("layers", 1), ("dim", widths[column]), ("heads", 8)))


def depth_leaves(encoder: int, decoder: int, shrunk: int = 1) -> Leaves:
    (wide, heads), (decoder_wide, decoder_heads) = WIDTH_OF_DEPTH[encoder], WIDTH_OF_DEPTH[decoder]
    return (("encoder_layers", encoder), ("decoder_layers", decoder), ("encoder_dim", wide // shrunk),
            ("decoder_dim", decoder_wide // shrunk), ("encoder_heads", heads), ("decoder_heads", decoder_heads))


def deep(base: int, column: int) -> Experiment:
    """A column of tab:deep_models: a side of one layer is 512 wide, whatever the other is."""
    layers = list(DEPTHS)[column]
    return Experiment(base, model=depth_leaves(*layers), small=depth_leaves(*layers, SHRUNK))


def recurrent(base: int, column: int, operands: str, outcomes: str) -> Experiment:
    """A recurrent model; in the fast preset one layer, like its transformer."""
    family, hidden = RECURRENT[column]
    return Experiment(base, operands, outcomes, model=(("family", family), ("hidden_dim", hidden)),
                      small=(("family", family), ("hidden_dim", hidden // SHRUNK)))


def parameters(columns: list[tuple[str, Experiment, float]]) -> tuple[Cell, ...]:
    return tuple(Cell("parameters (millions)", name, count, PARAMETERS, run, COUNT_128 if name == "128" else None)
                 for name, run, count in columns)


def recurrent_table(number: int, operands: str, outcomes: str, title: str, epochs: int,
                    notes: Mapping[tuple[int, str], Note] = MappingProxyType({})) -> Table:
    """tab:lstm1 is Table 17, and the others follow."""
    block = number - 17
    columns = [(f"{family} {hidden}", CORRECT) for family, hidden in RECURRENT]
    return Table(f"lstm{block + 1}", f"tab:lstm{block + 1}", number, title,
                 grid(LSTM, columns, lambda base, column: recurrent(base, column, operands, outcomes), notes,
                      skip=block * len(columns)),
                 best_of=3, epochs=epochs, note=RECURRENT_SMALLER)


DIM_NAMES = [*map(str, DIMS), "4 layers of 512"]
DEPTH_NAMES = [f"{encoder}/{decoder}" for encoder, decoder in DEPTHS]

TABLES = (
    Table("small_dims", "tab:small_dims", 10, "One layer of 512 to 32 dimensions: accuracy and parameters",
          parameters([(name, one_layer(10, place), count)
                      for place, (name, count) in enumerate(zip(DIM_NAMES, [*DIMS.values(), BASELINE], strict=True))])
          + grid(ACCURACIES, [(name, ACCURACY) for name in DIM_NAMES], one_layer),
          note=OWN_MODEL),
    Table("deep_models", "tab:deep_models", 11, "Encoder and decoder layers: accuracy and parameters",
          parameters([(name, deep(10, place), count)
                      for place, (name, count) in enumerate(zip(DEPTH_NAMES, DEPTHS.values(), strict=True))])
          + grid(ACCURACIES, [(name, ACCURACY) for name in DEPTH_NAMES], deep, {(12, "1/12"): MISPRINT},
                 skip=len(DIM_NAMES)), note=SMALLER),
    recurrent_table(17, "uniform", "natural", "Recurrent models, uniform operands", 500),
    recurrent_table(18, "log-uniform", "natural", "Recurrent models, log-uniform operands", 500),
    recurrent_table(19, "log-uniform", "log-uniform", "Recurrent models, log-uniform operands and outcomes", 450,
                    {(int(line.split()[0]), column): COPIED for line in LSTM.strip().splitlines()
                     for column in ("lstm 1024", "gru 2048")}),
)
