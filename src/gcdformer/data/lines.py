"""What a line of examples is, in Int2Int text and in CSV: read word by word, and what is wrong with one said in words.

Slow and plain; `words.py` reads whole chunks at once and must give the same integers. Knows lines, not files.
"""

from __future__ import annotations

from gcdformer.config import LARGEST_INTEGER
from gcdformer.data.kinds import Kind


class BadLine(Exception):
    """What is wrong with a line, and what would be right."""


def text_of(line: bytes) -> str:
    """A line without its end, as text."""
    if line.endswith(b"\r"):
        raise BadLine("ends in CRLF; a line ends in LF alone (tr -d '\\r' mends it)")
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
    found: list[list[int]] = []
    signs: list[str] = []
    for word in words:
        if word in ("+", "-"):
            signs.append(word)
            found.append([])
            continue
        digit = decimal(word)
        if digit is None or not 0 <= digit < base:
            raise BadLine(f"unknown token '{word[:50]}'; in base {base} a word is +, - or a digit 0..{base - 1}")
        if not found:
            raise BadLine(f"a sign before the digits, got '{word}' first")
        found[-1].append(digit)
    return [join(sign, digits, base) for sign, digits in zip(signs, found, strict=True)]


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
