"""The prediction table: for each true GCD k, how often each value was predicted, and a few example pairs.

It is all that the explanation reads. Every prediction is in it: values above 100 and sequences that are no integer
(which count as one value, UNREADABLE) too. Knows arrays, not models.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gcdformer.errors import DamagedFile, MissingExtra
from gcdformer.numbers.encoding import Integers, Mask

if TYPE_CHECKING:
    import pandas

UNREADABLE = int(np.iinfo(np.int64).min)
EXAMPLES_PER_CELL = 3
SMALL, MOST_PACKED = 50_000_000, 50
"""Bytes a file may always unpack to, and how many times its size beyond that: ours reach 5."""


def readable(value: int) -> int | None:
    """A prediction for people and JSON: None if it is no integer."""
    return None if value == UNREADABLE else value


@dataclass(frozen=True)
class PredictionTable:
    """One row for each (k, prediction) that occurs, sorted; example pairs refer to rows."""

    gcd: Integers
    prediction: Integers
    count: Integers
    example_row: Integers
    example_a: Integers
    example_b: Integers

    @classmethod
    def of(cls, a: Integers, b: Integers, predictions: Integers,
           gcds: Integers | None = None) -> PredictionTable:
        """Count predictions for the pairs (a, b); `UNREADABLE` stands for a sequence that is no integer."""
        truth = np.gcd(a, b) if gcds is None else gcds
        order = np.lexsort((predictions, truth))
        truth, predicted = truth[order], predictions[order]
        starts = np.flatnonzero(first_of_run(truth, predicted))
        counts = np.diff(np.append(starts, len(order)))
        places = np.arange(len(order)) - np.repeat(starts, counts)
        shown = np.flatnonzero(places < EXAMPLES_PER_CELL)
        rows = np.repeat(np.arange(len(starts)), counts)[shown]
        return cls(truth[starts], predicted[starts], counts, rows, a[order][shown], b[order][shown])

    def joined(self, other: PredictionTable) -> PredictionTable:
        """This table and another as one; of the example pairs as many are kept as a table has."""
        order = np.lexsort((np.concatenate([self.prediction, other.prediction]), np.concatenate([self.gcd, other.gcd])))
        k = np.concatenate([self.gcd, other.gcd])[order]
        value = np.concatenate([self.prediction, other.prediction])[order]
        count = np.concatenate([self.count, other.count])[order]
        fresh = first_of_run(k, value)
        starts = np.flatnonzero(fresh)
        new_row = np.empty(len(order), dtype=np.int64)
        new_row[order] = np.cumsum(fresh) - 1
        rows = new_row[np.concatenate([self.example_row, other.example_row + len(self.gcd)])]
        by_row = np.argsort(rows, kind="stable")
        rows = rows[by_row]
        shown = np.arange(len(rows)) - np.searchsorted(rows, rows) < EXAMPLES_PER_CELL
        a = np.concatenate([self.example_a, other.example_a])[by_row][shown]
        b = np.concatenate([self.example_b, other.example_b])[by_row][shown]
        return PredictionTable(k[starts], value[starts], np.add.reduceat(count, starts), rows[shown], a, b)

    def __repr__(self) -> str:
        """One line: the pairs, their GCD, and how many were predicted right."""
        return f"PredictionTable({self.total:,} pairs, {len(self.tested()):,} GCD, {100 * self.accuracy:.2f} % right)"

    @property
    def total(self) -> int:
        return int(self.count.sum())

    @property
    def accuracy(self) -> float:
        """Share of pairs predicted right, 0..1."""
        return float(self.count[self.gcd == self.prediction].sum() / max(self.total, 1))

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from gcdformer.display.html import table_html
        return table_html(self)

    def tested(self) -> list[int]:
        """The GCD that occur, in order."""
        return [int(k) for k in np.unique(self.gcd)]

    def counts_of(self, k: int) -> dict[int, int]:
        """How often each value was predicted for GCD k, most frequent first, ties by value."""
        rows = range(*np.searchsorted(self.gcd, [k, k + 1]).tolist())
        pairs = sorted(((int(self.prediction[i]), int(self.count[i])) for i in rows),
                       key=lambda pair: (-pair[1], pair[0]))
        return dict(pairs)

    def examples_of(self, k: int, prediction: int) -> list[tuple[int, int]]:
        """Some pairs with GCD k that got this prediction."""
        row = np.flatnonzero((self.gcd == k) & (self.prediction == prediction))
        chosen = np.flatnonzero(np.isin(self.example_row, row))
        return [(int(self.example_a[i]), int(self.example_b[i])) for i in chosen]

    def arrays(self, prefix: str) -> dict[str, Integers]:
        """The arrays under names that start with `prefix`."""
        return {f"{prefix}.{name}": getattr(self, name) for name in self.__dataclass_fields__}

    def to_frame(self) -> pandas.DataFrame:
        """One row for each (gcd, prediction): a pandas DataFrame; unreadable predictions are missing values."""
        try:
            import pandas
        except ImportError:
            raise MissingExtra("pandas", "query") from None
        readable = self.prediction != UNREADABLE
        prediction = pandas.array(np.where(readable, self.prediction, 0), dtype="Int64")
        prediction[~readable] = pandas.NA
        return pandas.DataFrame({"gcd": self.gcd, "prediction": prediction, "count": self.count})


def first_of_run(k: Integers, value: Integers) -> Mask:
    """Which rows, in order, differ from the row before."""
    first = np.ones(len(k), dtype=np.bool_)
    first[1:] = (k[1:] != k[:-1]) | (value[1:] != value[:-1])
    return first


def tables_to_bytes(tables: dict[str, PredictionTable]) -> bytes:
    """Several tables by name as one compressed npz file."""
    buffer = io.BytesIO()
    arrays: dict[str, Any] = {}
    for name, table in tables.items():
        arrays |= table.arrays(name)
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def tables_from_bytes(data: bytes, source: str) -> dict[str, PredictionTable]:
    """The tables of such a file; `DamagedFile` if it is not one."""
    fields = list(PredictionTable.__dataclass_fields__)
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            unpacked = sum(member.file_size for member in archive.zip.infolist())
            if unpacked > max(SMALL, MOST_PACKED * len(data)):
                raise ValueError(f"{unpacked} bytes when unpacked")
            names = sorted({key.rpartition(".")[0] for key in archive.files})
            tables = {name: PredictionTable(*(archive[f"{name}.{field}"] for field in fields)) for name in names}
    except Exception as error:  # whatever a damaged archive makes zipfile, zlib or numpy say
        raise DamagedFile(f"{source}: not a prediction table: {type(error).__name__}: {str(error)[:100]}") from None
    if not all(map(is_sound, tables.values())):
        raise DamagedFile(f"{source}: its prediction table has columns of the wrong kind")
    return tables


def is_sound(table: PredictionTable) -> bool:
    """Integers of the right lengths, rows in order, counts and GCD positive, examples of rows that are there."""
    columns = list(table.arrays("").values())
    if (any(c.dtype != np.int64 or c.ndim != 1 for c in columns) or len({len(c) for c in columns[:3]}) != 1
            or len({len(c) for c in columns[3:]}) != 1 or not len(table.gcd)):
        return False
    k, value, row = table.gcd, table.prediction, table.example_row
    ordered = (k[1:] > k[:-1]) | ((k[1:] == k[:-1]) & (value[1:] > value[:-1]))
    return bool(ordered.all() and k[0] >= 1 and table.count.min() >= 1
                and ((row >= 0) & (row < len(k))).all())
