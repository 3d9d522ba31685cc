"""What a cell measures, read from a measured run. Epochs are counted as the paper does, in 300,000 examples."""

from __future__ import annotations

from collections.abc import Callable

from gcdformer.explanation.sieve import prime_power
from gcdformer.paper.entry import Entry
from gcdformer.paper.table import PAPER_EPOCH, Cell, Kind, Value
from gcdformer.paper.tables.uniform import UNI10_EPOCHS

Reader = Callable[[Entry, Cell], Value | None]


def measured(entry: Entry, cell: Cell, natural: Entry | None = None) -> Value | None:
    """Our value of a cell; None if the run does not tell it (yet). `natural` is what new prime powers are new against."""
    if cell.measure.kind == "new-prime-powers":
        return None if natural is None else new_prime_powers(entry, natural)
    return READERS[cell.measure.kind](entry, cell)


def accuracy(entry: Entry, cell: Cell) -> float:
    return round(float(entry.last("accuracy")), 2)


def correct(entry: Entry, cell: Cell) -> int | None:
    return len(entry.correct) if entry.scores else None


def prediction(entry: Entry, cell: Cell) -> Value | None:
    found = late(entry, cell) if cell.measure.epoch else at_end(entry, cell)
    return "unreadable" if found and found[0] is None else found[0] if found else None


def frequency(entry: Entry, cell: Cell) -> float | None:
    found = late(entry, cell) if cell.measure.epoch else at_end(entry, cell)
    return found[1] if found else None


def at_end(entry: Entry, cell: Cell) -> tuple[int | None, float] | None:
    """f(k) and its percentage at the last epoch."""
    if entry.scores is None or cell.measure.k not in entry.scores.by_gcd:
        return None
    one = entry.scores.by_gcd[cell.measure.k]
    return one.prediction, round(100 * one.frequency, 1)


def late(entry: Entry, cell: Cell) -> tuple[int | None, float] | None:
    """f(k) at the one of our last epochs that stands for the published one."""
    epochs = sorted(entry.facts["late"], key=int)
    place = UNI10_EPOCHS.index(cell.measure.epoch)
    if len(epochs) < len(UNI10_EPOCHS):
        return None
    f, percent = entry.facts["late"][epochs[place]][cell.measure.k - 1]
    return f, percent


def share(entry: Entry, cell: Cell) -> float | None:
    if "stratified" not in entry.tables:
        return None
    counts = entry.tables["stratified"].counts_of(cell.measure.k)
    return round(100 * counts.get(cell.measure.value, 0) / max(sum(counts.values()), 1), 1)


def divisors(entry: Entry, cell: Cell) -> tuple[int, ...] | None:
    """The powers of primes of B in D, in the order of the primes."""
    found = [(power[0], q) for q in entry.correct if (power := prime_power(q)) and entry.config.task.base % power[0] == 0]
    return tuple(q for _, q in sorted(found)) if entry.scores else None


def new_prime_powers(entry: Entry, natural: Entry) -> tuple[int, ...]:
    return tuple(q for q in entry.correct if prime_power(q) and q not in natural.correct)


def epoch_learned(entry: Entry, cell: Cell) -> float | None:
    """When k was first correct, if it is correct at the end."""
    epoch = entry.first_epoch(cell.measure.k)
    return paper_epochs(entry, epoch) if epoch is not None and cell.measure.k in entry.correct else None


def epochs(entry: Entry, cell: Cell) -> float | None:
    """When the last of the correct GCD was first learned."""
    found = [epoch for k in entry.correct if (epoch := entry.first_epoch(k)) is not None]
    return paper_epochs(entry, max(found)) if found else None


def reached(entry: Entry, cell: Cell) -> float | None:
    curve = entry.curve
    found = next((epoch for epoch, count in zip(curve["epoch"], curve["n_correct"], strict=True)
                  if count >= cell.measure.value), None)
    return None if found is None else paper_epochs(entry, found)


def paper_epochs(entry: Entry, epoch: int) -> float:
    """One of our epochs as a number of the paper's."""
    return round(entry.examples_at(epoch) / PAPER_EPOCH, 1)


READERS: dict[Kind, Reader] = {
    "accuracy": accuracy, "correct": correct, "prediction": prediction, "frequency": frequency, "share": share,
    "divisors": divisors, "epoch-learned": epoch_learned, "epochs": epochs, "reached": reached,
}
