"""Our value of a cell, whether it agrees with the published one, and why not if it does not.

It is read from a measured run, or computed where no run is needed (theory, parameters, tokens). Epochs are counted as the
paper does, in 300,000 examples.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from math import gcd, sqrt
from typing import Literal

from gcdformer.explanation.sieve import largest_divisor, prime_power
from gcdformer.numbers import theory
from gcdformer.numbers.encoding import Vocabulary, encode_row
from gcdformer.paper.entry import Entry
from gcdformer.paper.ledger import LARGEST_RATIO, Choice, Choices, budget_ratio, deviations, same_recipe
from gcdformer.paper.table import PAPER_EPOCH, Cell, Experiment, Kind, Note, Table, Value
from gcdformer.paper.tables.uniform import UNI10_CLASSES, UNI10_EPOCHS
from gcdformer.paper.text import millions, model_words

TOLERANCE = {"accuracy": 0.5, "frequency": 2.0, "theory": 0.11, "parameters": 0.11}
"""Differences up to which two values agree: the noise of a test set of 100,000, or the rounding of the paper."""
TESTED = 100_000
PAIR = (160, 120)
SLOWER: tuple[Kind, ...] = ("epoch-learned", "epochs", "reached")
Status = Literal["measured", "computed", "not published", "not measured"]


def choice_for(cell: Cell, choices: Choices) -> Choice | None:
    """The run that represents the experiment. For predictions at successive epochs it has to be long enough to show them;
    otherwise it is the best that is, if there is one of that recipe's version."""
    choice = choices.get(cell.experiment.name)
    if choice is None or not cell.measure.epoch or measure(choice.entry, cell) is not None:
        return choice
    enough = [entry for entry in choice.known if measure(entry, cell) is not None
              and entry.is_current == choice.entry.is_current]
    best = max(enough, key=lambda entry: (not deviations(entry), entry.rank), default=None)
    return replace(choice, entry=best, group=(best,)) if best else choice


def our_value(cell: Cell, choice: Choice | None, choices: Choices) -> tuple[Value | None, Status]:
    """Our value, and whether it was computed, measured, is not published, or is still open."""
    if cell.published is None:
        return None, "not published"
    if cell.computed:
        return compute(cell), "computed"
    if choice is None:
        return None, "not measured"
    ours = measure(choice.entry, cell, natural_beside(choice.entry, choices.get(cell.experiment.natural.name)))
    if ours is None and cell.measure.kind in SLOWER:
        return "not reached", "measured"
    return (ours, "measured") if ours is not None else (None, "not measured")


def natural_beside(entry: Entry, natural: Choice | None) -> Entry | None:
    """The best natural run of the same recipe and seed, and of about as many examples."""
    fair = [other for other in (natural.known if natural else ())
            if same_recipe(other, entry) and budget_ratio(other, entry) <= LARGEST_RATIO]
    return max(fair, key=lambda other: other.rank, default=None)


def compute(cell: Cell) -> Value:
    """Our value of a computed cell, rounded as the paper's."""
    base, kind = cell.experiment.base, cell.measure.kind
    if kind == "theory":
        return round(theory.base_limit_accuracy(base), 1)
    if kind == "parameters":
        return round(parameters(cell.experiment) / 1e6, 1)
    values = list(PAIR) if kind == "encoded-input" else [gcd(*PAIR)]
    return Vocabulary(base).text(encode_row(values, base))


@cache
def parameters(experiment: Experiment) -> int:
    """Parameters of the published transformer, its 4,096 positions on each side included.

    Counted by formula, as building the model takes torch, a second or two to import; a test builds them. With encoder width
    e, decoder width d, feed-forward layers four times as wide, V tokens and P positions: 12 e^2 + 13 e for an encoder layer;
    14 d^2 + 2 d e + 19 d for a decoder layer; (V + P + 2) e or d for each embedding with its norm; V output biases.
    """
    sizes, tokens = experiment.config("paper").model, Vocabulary(experiment.base).size
    assert sizes.positions is not None, "the paper preset has them"
    e, d = sizes.encoder_dim, sizes.decoder_dim
    return (sizes.encoder_layers * (12 * e * e + 13 * e) + sizes.decoder_layers * (14 * d * d + 2 * d * e + 19 * d)
            + (tokens + sizes.positions + 2) * (e + d) + tokens)


def measure(entry: Entry, cell: Cell, natural: Entry | None = None) -> Value | None:
    """Our value of a cell; None if the run does not show it (yet). `natural` is what new prime powers are new against."""
    wanted, correct = cell.measure, entry.correct
    match wanted.kind:
        case "accuracy":
            return round(entry.accuracy, 2)
        case "correct":
            return len(correct) if entry.scores else None
        case "prediction" | "frequency":
            scored = prediction_at(entry, wanted.k, wanted.epoch)
            if scored is None:
                return None
            prediction, percent = scored
            return percent if wanted.kind == "frequency" else "unreadable" if prediction is None else prediction
        case "share":
            if not entry.tables:
                return None
            counts = entry.tables["stratified"].counts_of(wanted.k)
            return round(100 * counts.get(wanted.value, 0) / max(sum(counts.values()), 1), 1)
        case "divisors":  # in the order of the primes
            powers = sorted((power[0], q) for q in correct if (power := prime_power(q)))
            return tuple(q for p, q in powers if entry.config.task.base % p == 0) if entry.scores else None
        case "new-prime-powers":
            if natural is None:
                return None
            return tuple(q for q in correct if prime_power(q) and q not in natural.correct)
        case "epoch-learned":  # when k was first correct, if it is correct at the end
            epoch = entry.first_epoch(wanted.k) if wanted.k in correct else None
        case "epochs":  # when the last of the correct GCD was first learned
            epoch = max((first for k in correct if (first := entry.first_epoch(k)) is not None), default=None)
        case "reached":
            history = zip(entry.curve["epoch"], entry.curve["n_correct"], strict=True)
            epoch = next((epoch for epoch, count in history if count >= wanted.value), None)
        case _:
            raise AssertionError(f"{wanted.kind} is computed")
    return None if epoch is None else entry.paper_epoch(epoch)


def prediction_at(entry: Entry, k: int, epoch: int) -> tuple[int | None, float] | None:
    """f(k) and its percentage: at the end, or at the one of our last epochs that corresponds to a published one."""
    if epoch:
        return entry.late[UNI10_EPOCHS.index(epoch)][k - 1] if len(entry.late) >= len(UNI10_EPOCHS) else None
    scored = entry.scores.by_gcd.get(k) if entry.scores else None
    return None if scored is None else (scored.prediction, round(100 * scored.frequency, 1))


def agree(table: Table, cell: Cell, ours: Value, entry: Entry | None) -> bool:
    """Whether ours is the published value, but for noise. Learning as many GCD sooner than the paper is agreeing with it."""
    published, kind = cell.published, cell.measure.kind
    if entry is not None and falls_short(table, cell, entry):
        return False
    if kind == "prediction" and isinstance(published, tuple):
        return ours in published
    if kind == "prediction" and cell.measure.epoch and isinstance(published, int) and isinstance(ours, int):
        return largest_divisor(UNI10_CLASSES, published) == largest_divisor(UNI10_CLASSES, ours)
    if isinstance(published, tuple) and isinstance(ours, tuple):
        return set(published) == set(ours)
    if isinstance(published, int | float) and isinstance(ours, int | float):
        return abs(ours - published) <= tolerance(cell, published) or (kind in SLOWER and ours <= published)
    return published == ours


def falls_short(table: Table, cell: Cell, entry: Entry) -> bool:
    """Whether the epochs of a cell were needed for more GCD than ours has."""
    if cell.measure.kind != "epochs":
        return False
    return any(len(entry.correct) < other.published for other in table.cells if other.measure.kind == "correct"
               and other.row == cell.row and other.experiment == cell.experiment and isinstance(other.published, int))


def tolerance(cell: Cell, published: float) -> float:
    """Of fractions, shares near 0 and 100 are less noisy: four standard errors of a test set there, or the rounding."""
    usual = TOLERANCE.get(cell.measure.kind, 0)
    if cell.measure.kind != "accuracy" or cell.experiment.task == "gcd":
        return usual
    error = sqrt(published * (100 - published) / TESTED)
    return min(usual, max(4 * error, 0.05 if published >= 1 else 0.02))


def reason(table: Table, cell: Cell, ours: Value, entry: Entry | None) -> Note:
    """Why ours differs: what the ledger says, else a note that explains it alone, else how the two budgets and recipes
    differ, with what is noted of the cell."""
    if entry is not None and entry.note is not None:
        return entry.note
    if cell.note is not None and (cell.computed or cell.note.alone):
        return cell.note
    if table.note is not None and table.note.reason == "not comparable":
        return table.note
    assert entry is not None, "a computed cell that differs has a note; a test says so"
    why = recipe_reason(table, cell, ours, entry)
    return why if cell.note is None else Note(why.reason, f"{why.text}; {cell.note.text}")


def recipe_reason(table: Table, cell: Cell, ours: Value, entry: Entry) -> Note:
    """How the two budgets, models and recipes differ."""
    epochs = table.epochs_of(cell)
    theirs = "a number of examples that is not stated" if epochs is None else millions(epochs * PAPER_EPOCH)
    text = (f"{millions(entry.examples)} by {entry.recipe}, {model_words(entry.config.model)}; "
            f"in the paper {theirs}, {published_model(cell.experiment)}")
    if entry.preset != "paper" and cell.experiment.small:
        return Note("smaller model", text)
    more = isinstance(ours, int | float) and isinstance(cell.published, int | float) and ours > cell.published
    if more and cell.measure.kind in ("correct", "accuracy", "prediction"):
        return Note("other recipe", f"more was learned: {text}")
    fewer = epochs is not None and entry.examples < epochs * PAPER_EPOCH
    return Note("fewer examples" if fewer else "other recipe", text)


@cache
def published_model(experiment: Experiment) -> str:
    return model_words(experiment.config("paper").model)
