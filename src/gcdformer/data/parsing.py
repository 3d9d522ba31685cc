"""Text of examples to integers, twice: line by line, and whole chunks as arrays.

The readers of lines define the formats, Int2Int text and CSV, and say what is wrong with a line. The scanners of chunks are
the fast path: they give the same integers, or None for a chunk that is not exactly as expected, never a guess. Knows bytes
and integers, no files.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gcdformer.config import LARGEST_INTEGER
from gcdformer.data.kinds import Kind
from gcdformer.numbers.encoding import Integers, Mask

TAB, NEWLINE, BLANK, COMMA, PLUS, MINUS, ZERO, V = b"\t\n ,+-0V"
MOST_DIGITS = 18
"""Decimal digits of a word that fit into 64 bits whatever they are."""


class BadLine(Exception):
    """What is wrong with a line, and what would be right."""


def text_of(line: bytes) -> str:
    """A line without its end, as text."""
    if line.endswith(b"\r"):
        raise BadLine("ends in CRLF; a line ends in LF alone (tr -d '\\r' fixes it)")
    if not line:
        raise BadLine("is empty; every line holds one example")
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadLine(f"is not UTF-8 text: {error.reason} at byte {error.start + 1} of the line") from None


def decimal(word: str) -> int | None:
    """A decimal integer within 2^62, written as we would write it; else None."""
    digits = word.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 20 and str(int(word)) == word):
        return None
    return int(word) if abs(int(word)) <= LARGEST_INTEGER else None


def read_csv_line(line: bytes, order: list[int]) -> list[int]:
    """The cells of a line, in this order."""
    cells = text_of(line).split(",")
    if len(cells) != len(order):
        raise BadLine(f"{len(order)} cells as in the first line, got {len(cells)}")
    values = []
    for cell in cells:
        value = decimal(cell)
        if value is None:
            raise BadLine(f"an integer up to 2^62 in plain digits, got '{cell[:50]}'")
        values.append(value)
    return [values[place] for place in order]


def read_int2int_line(line: bytes, kinds: tuple[Kind, Kind], base: int) -> list[int]:
    """The integers of a question and of its answer."""
    sides = text_of(line).split("\t")
    if len(sides) != 2:
        raise BadLine(f"one tab between question and answer, got {len(sides) - 1 or 'none'}")
    values = []
    for name, side, kind in zip(("question", "answer"), sides, kinds, strict=True):
        values += read_side(name, side.split(" "), kind, base)
    return values


def read_side(name: str, words: list[str], kind: Kind, base: int) -> list[int]:
    if "" in words:
        raise BadLine(f"the {name} is empty" if words == [""] else f"one blank between two words, got more in the {name}")
    if kind.symbol:
        value = decimal(words[0])
        if value is None or len(words) > 1:
            raise BadLine(f"the {name} is one decimal word, got '{' '.join(words)[:50]}'")
        return [value]
    if kind.array and words.pop(0) != f"V{kind.count}":
        raise BadLine(f"the {name} is an array of {kind.count} integers and starts with V{kind.count}")
    values = read_integers(words, base)
    if len(values) != kind.count:
        raise BadLine(f"the {name} holds {kind.count} integers, got {len(values)}")
    return values


def read_integers(words: list[str], base: int) -> list[int]:
    """Integers as signs and digits in the base, most significant first."""
    groups: list[list[int]] = []
    signs: list[str] = []
    for word in words:
        if word in ("+", "-"):
            signs.append(word)
            groups.append([])
            continue
        digit = decimal(word)
        if digit is None or not 0 <= digit < base:
            raise BadLine(f"unknown token '{word[:50]}'; in base {base} a word is +, - or a digit 0..{base - 1}")
        if not groups:
            raise BadLine(f"a sign before the digits, got '{word}' first")
        groups[-1].append(digit)
    return [join(sign, digits, base) for sign, digits in zip(signs, groups, strict=True)]


def join(sign: str, digits: list[int], base: int) -> int:
    if not digits:
        raise BadLine(f"a digit after each sign, got none after '{sign}'")
    if digits[0] == 0 and (len(digits) > 1 or sign == "-"):
        raise BadLine("no leading zeros, and no - 0")
    value = 0
    for digit in digits:
        value = value * base + digit
        if value > LARGEST_INTEGER:
            raise BadLine("an integer up to 2^62, got a larger one")
    return -value if sign == "-" else value


@dataclass(frozen=True)
class Words:
    """Every word of a chunk: the byte behind it, its first byte, and its number (0 for a sign alone)."""

    behind: npt.NDArray[np.uint8]
    first: npt.NDArray[np.uint8]
    value: Integers
    sign: Mask
    prefix: Mask

    @classmethod
    def of(cls, chunk: bytes, separators: bytes) -> Words | None:
        """The words between separators; None unless each is a sign alone or a number, with a minus or V before it or not."""
        data = np.frombuffer(chunk, dtype=np.uint8)
        is_separator = np.zeros(256, dtype=np.bool_)
        is_separator[list(separators)] = True
        ends = np.flatnonzero(is_separator[data])
        if not len(ends) or ends[-1] != len(data) - 1:
            return None
        starts = np.concatenate([[0], ends[:-1] + 1])
        lengths = ends - starts
        if lengths.min() < 1:
            return None
        first = data[starts]
        sign = (lengths == 1) & ((first == PLUS) | (first == MINUS))
        prefix = first == V
        marked = ~sign & (prefix | (first == MINUS))
        value = np.zeros(len(starts), dtype=np.int64)
        places = np.flatnonzero(~sign)
        at, left = starts[places] + marked[places], lengths[places] - marked[places]
        if len(left) and not 1 <= left.min() <= left.max() <= MOST_DIGITS:
            return None
        if ((data[at] == ZERO) & (left > 1)).any():
            return None
        while len(places):
            digit = data[at].astype(np.int64) - ZERO
            if ((digit < 0) | (digit > 9)).any():
                return None
            value[places] = value[places] * 10 + digit
            keep = np.flatnonzero(left > 1)
            places, at, left = places[keep], at[keep] + 1, left[keep] - 1
        negative = marked & ~prefix
        if (negative & (value == 0)).any():
            return None
        value[negative] *= -1
        return cls(data[ends], first, value, sign, prefix)


def scan_csv(chunk: bytes, order: list[int]) -> Integers | None:
    """Rows of a chunk of CSV lines, the cells in this order."""
    words = Words.of(chunk, b",\n")
    width = len(order)
    if words is None or len(words.behind) % width or words.sign.any() or words.prefix.any():
        return None
    behind = words.behind.reshape(-1, width)
    if (behind[:, :-1] != COMMA).any() or (behind[:, -1] != NEWLINE).any():
        return None
    return words.value.reshape(-1, width)[:, order]


def scan_int2int(chunk: bytes, kinds: tuple[Kind, Kind], base: int) -> Integers | None:
    """Rows of a chunk of Int2Int lines, the question's integers and the answer's side by side."""
    words = Words.of(chunk, b"\t\n ")
    if words is None:
        return None
    closes = words.behind != BLANK
    last = np.flatnonzero(closes)
    behind = words.behind[last]
    if len(last) % 2 or (behind[::2] != TAB).any() or (behind[1::2] != NEWLINE).any():
        return None
    first = np.concatenate([[0], last[:-1] + 1])
    in_answer = (np.cumsum(closes) - closes) % 2 == 1
    sides = []
    for number, kind in enumerate(kinds):
        side = scan_side(words, first[number::2], last[number::2], kind, base, in_answer == bool(number))
        if side is None:
            return None
        sides.append(side)
    return np.concatenate(sides, axis=1)


def scan_side(words: Words, first: Integers, last: Integers, kind: Kind, base: int, inside: Mask) -> Integers | None:
    """One side of every line, whose words are first..last; `inside` marks them."""
    if kind.symbol:
        sound = (first == last) & ~words.sign[first] & ~words.prefix[first]
        return words.value[first][:, None] if sound.all() else None
    if kind.array:
        if (~words.prefix[first] | (words.value[first] != kind.count) | (first == last)).any():
            return None
        first = first + 1
    plain = ~words.sign & ~words.prefix & (words.value >= 0) & (words.value < base)
    allowed = np.concatenate([[0], np.cumsum(words.sign | plain)])
    signs = np.concatenate([[0], np.cumsum(words.sign)])
    if ((allowed[last + 1] - allowed[first] != last + 1 - first).any() or not words.sign[first].all()
            or (signs[last + 1] - signs[first] != kind.count).any()):
        return None
    places = np.flatnonzero(words.sign & inside).reshape(-1, kind.count)
    stops = np.concatenate([places[:, 1:], last[:, None] + 1], axis=1)
    return join_digits(words, places.reshape(-1), stops.reshape(-1), base, (len(first), kind.count))


def join_digits(words: Words, signs: Integers, stops: Integers, base: int, shape: tuple[int, int]) -> Integers | None:
    """The integers whose sign is at `signs` and whose digits follow up to `stops`."""
    count = stops - signs - 1
    if count.min(initial=1) < 1 or ((words.value[np.minimum(signs + 1, stops - 1)] == 0) & (count > 1)).any():
        return None
    value = np.zeros(len(signs), dtype=np.int64)
    for place in range(int(count.max(initial=0))):
        live = np.flatnonzero(count > place)
        if (value[live] > (2**63 - 1 - base) // base).any():
            return None
        value[live] = value[live] * base + words.value[signs[live] + 1 + place]
    minus = words.first[signs] == MINUS
    if (minus & (value == 0)).any():
        return None
    return np.where(minus, -value, value).reshape(shape)
