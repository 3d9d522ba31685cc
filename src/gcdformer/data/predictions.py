"""Anyone's predictions as a CSV: columns a, b, prediction in any order. Nothing is guessed: a bad row names its line."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from gcdformer.config import LARGEST_INTEGER
from gcdformer.errors import UserError
from gcdformer.numbers.encoding import Integers

WANTED = ("a", "b", "prediction")


def read_predictions(path: Path, unreadable: int) -> tuple[Integers, Integers, Integers]:
    """a, b and predictions; a blank prediction becomes `unreadable`."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.reader(file)
            header = next(rows, None)
            if header is None:
                raise UserError(f"{path} line 1: empty; its first line must name the columns a, b and prediction")
            places = find_columns(header, path)
            width = len(header)
            lines: list[int] = []
            cells: list[list[str]] = []
            for row in rows:
                if not row:
                    continue
                if len(row) != width:
                    raise UserError(f"{path} line {rows.line_num}: {width} cells as in the first line, got {len(row)}")
                cells.append([row[place] for place in places])
                lines.append(rows.line_num)
    except (OSError, csv.Error) as error:
        raise UserError(f"{path}: cannot be read: {error}") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8 text: {error.reason} at byte {error.start}") from None
    if not cells:
        raise UserError(f"{path} line 2: no rows below the header")
    return to_arrays(cells, lines, path, unreadable)


def find_columns(header: list[str], path: Path) -> list[int]:
    names = [cell.strip().lower() for cell in header]
    for name in WANTED:
        if names.count(name) != 1:
            raise UserError(f"{path} line 1: needs exactly one column '{name}', its columns are {', '.join(names)}")
    return [names.index(name) for name in WANTED]


def to_arrays(cells: list[list[str]], lines: list[int], path: Path, unreadable: int) -> tuple[Integers, Integers, Integers]:
    a, b, predictions = (np.empty(len(cells), dtype=np.int64) for _ in range(3))
    for index, (first, second, third) in enumerate(cells):
        try:
            a[index], b[index] = int(first), int(second)
            predictions[index] = int(third) if third.strip() else unreadable
            if predictions[index] != unreadable and abs(int(third)) > LARGEST_INTEGER:
                raise ValueError
        except (ValueError, OverflowError):
            bad = next(cell for cell in (first, second, third) if not is_integer(cell))
            raise UserError(f"{path} line {lines[index]}: an integer up to 2^62, got '{bad[:50]}'") from None
        if not (1 <= a[index] <= LARGEST_INTEGER and 1 <= b[index] <= LARGEST_INTEGER):
            bad = first if not 1 <= a[index] <= LARGEST_INTEGER else second
            raise UserError(f"{path} line {lines[index]}: a and b must be positive integers up to 2^62, got '{bad[:50]}'")
    return a, b, predictions


def is_integer(cell: str) -> bool:
    try:
        return abs(int(cell)) <= LARGEST_INTEGER
    except ValueError:
        return False
