"""Anyone's predictions as a CSV: columns a, b and prediction (or answer) in any order.

a and b must be integers, and a broken row is an error that names its line. A prediction may be text: one that is no
integer for certain counts as unreadable.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from gcdformer.config import LARGEST_INTEGER
from gcdformer.data.answers import read_answer
from gcdformer.errors import UserError
from gcdformer.numbers.encoding import Integers

OPERANDS = ("a", "b")
PREDICTIONS = ("prediction", "answer")


def read_predictions(path: Path, unreadable: int) -> tuple[Integers, Integers, Integers]:
    """a, b and predictions; one that is no integer becomes `unreadable`."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.reader(file)
            header = next(rows, None)
            if header is None:
                raise UserError(f"{path} line 1: empty; its first line must name the columns a, b and prediction")
            places = find_columns(header, path)
            width = len(header)
            values: list[tuple[int, int, int]] = []
            for row in rows:
                if not row:
                    continue
                if len(row) != width:
                    raise UserError(f"{path} line {rows.line_num}: {width} cells as in the first line, got {len(row)}")
                a, b, text = (row[place] for place in places)
                where = f"{path} line {rows.line_num}"
                prediction = read_answer(text)
                values.append((operand(a, where), operand(b, where), unreadable if prediction is None else prediction))
    except (OSError, csv.Error) as error:
        raise UserError(f"{path}: cannot be read: {error}") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8 text: {error.reason} at byte {error.start}") from None
    if not values:
        raise UserError(f"{path} line 2: no rows below the header")
    a_b_predictions = np.array(values, dtype=np.int64)
    return a_b_predictions[:, 0], a_b_predictions[:, 1], a_b_predictions[:, 2]


def find_columns(header: list[str], path: Path) -> list[int]:
    """The places of a, b and the prediction."""
    names = [cell.strip().lower() for cell in header]
    for name in OPERANDS:
        if names.count(name) != 1:
            raise UserError(f"{path} line 1: needs exactly one column '{name}', its columns are {', '.join(names)}")
    answers = [place for place, name in enumerate(names) if name in PREDICTIONS]
    if len(answers) != 1:
        raise UserError(f"{path} line 1: needs exactly one column 'prediction' or 'answer', its columns are "
                        f"{', '.join(names)}")
    return [*map(names.index, OPERANDS), *answers]


def operand(cell: str, where: str) -> int:
    try:
        value = int(cell)
    except ValueError:
        raise UserError(f"{where}: an integer up to 2^62, got '{cell[:50]}'") from None
    if not 1 <= value <= LARGEST_INTEGER:
        raise UserError(f"{where}: a and b must be positive integers up to 2^62, got '{cell[:50]}'")
    return value
