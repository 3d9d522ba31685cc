"""Anyone's predictions as a CSV: columns a, b and prediction (or answer) in any order.

a and b must be integers, and a broken row is an error that names its line. A prediction may be text, as a language model
writes it: "six", "The GCD is 6.", "**6**", "\\boxed{6}". Nothing is guessed: the text must be an integer and words that
only introduce it. One with any other word, a second integer, a fraction or a calculation counts as unreadable, unless it
marks its answer by \\boxed{…} or ends in a sentence such as "Answer: 6".
"""

from __future__ import annotations

import csv
import re
from pathlib import Path

import numpy as np

from gcdformer.config import LARGEST_INTEGER
from gcdformer.errors import UserError
from gcdformer.numbers.encoding import Integers

OPERAND_COLUMNS = ("a", "b")
PREDICTION_COLUMNS = ("prediction", "answer")
UNITS = [
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"]
TENS = dict(zip([
    "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"], range(20, 100, 10), strict=True))
SMALL = {word: n for n, word in enumerate(UNITS)} | TENS
LARGE = {"thousand": 10**3, "million": 10**6}

PLAIN = re.compile(r"\s*[-+]?[0-9]{1,19}\s*")
"""Most answers; read first."""
DIGITS = r"(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.00?)?"
"""Digits, with commas between thousands, and with an empty fraction as spreadsheets write it."""
INTEGER = re.compile(rf"(?<![\w.,^/*+×·-])[-+]?{DIGITS}(?![\w%^!]|[.,][0-9]|\s*[-+*/^×·][\s-]*[0-9])")
BOXED = re.compile(r"\\boxed\s*\{([^{}]*)\}")
SENTENCE_END = re.compile(r"\n|(?<=[.!?])\s+")
CALL = re.compile(r"\\?\b(?:gcd|gcf|hcf)\s*\([^()]*\)", re.IGNORECASE)
OPERANDS = re.compile(rf"\b(?:of|for|between)\s+{DIGITS}\s+(?:and|&)\s+{DIGITS}(?!\S*[0-9])", re.IGNORECASE)
NUMBERS = re.compile(r"\b(?:of|for) (?:the |these |those )?(?:two )?(?:numbers|integers)\b", re.IGNORECASE)
MARKUP = re.compile(r"\\[()\[\]]|[*`$_#>\"'“”‘’]")
PRODUCT = re.compile(r"[0-9]\s*[*`$_#>\"'“”‘’]+\s*[0-9]")
"""Markup between two digits, which may be a sign of a calculation."""
INTRODUCTION = frozenset([
    "the", "is", "are", "was", "equals", "equal", "to", "so", "thus", "therefore", "hence", "it", "this", "that",
    "my", "your", "answer", "final", "result", "value", "number", "integer", "greatest", "highest", "largest",
    "common", "divisor", "factor", "gcd", "gcf", "hcf", "sure", "certainly", "here"])
"""Words that may stand around an integer without changing what it says."""


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
    for name in OPERAND_COLUMNS:
        if names.count(name) != 1:
            raise UserError(f"{path} line 1: needs exactly one column '{name}', its columns are {', '.join(names)}")
    answers = [place for place, name in enumerate(names) if name in PREDICTION_COLUMNS]
    if len(answers) != 1:
        raise UserError(f"{path} line 1: needs exactly one column 'prediction' or 'answer', its columns are "
                        f"{', '.join(names)}")
    return [*map(names.index, OPERAND_COLUMNS), *answers]


def operand(cell: str, where: str) -> int:
    try:
        value = int(cell)
    except ValueError:
        raise UserError(f"{where}: an integer up to 2^62, got '{cell[:50]}'") from None
    if not 1 <= value <= LARGEST_INTEGER:
        raise UserError(f"{where}: a and b must be positive integers up to 2^62, got '{cell[:50]}'")
    return value


def read_answer(text: str) -> int | None:
    """The integer that the text gives as its answer; None if there is none, or more than one, or it is above 2^62."""
    value = int(text) if PLAIN.fullmatch(text) else plain_answer(text)
    if value is None:
        value = marked_answer(text)
    return value if value is not None and abs(value) <= LARGEST_INTEGER else None


def marked_answer(text: str) -> int | None:
    """What a longer text marks as its answer: all its boxes, or else its last sentence, if only that speaks of an answer."""
    boxes = BOXED.findall(text)
    if boxes:
        values = {plain_answer(box) for box in boxes}
        return values.pop() if len(values) == 1 else None
    last = SENTENCE_END.split(text.strip())[-1].lower()
    return plain_answer(last) if "answer" in last and text.lower().count("answer") == 1 else None


def plain_answer(text: str) -> int | None:
    """The integer of a text that says nothing else."""
    if PRODUCT.search(text):
        return None
    text = NUMBERS.sub(" ", OPERANDS.sub(" ", CALL.sub(" ", MARKUP.sub(" ", text))))
    values = {whole(match.group()) for match in INTEGER.finditer(text)}
    rest = re.sub(r"[.,:;!=()\[\]{}–—\s]|(?<!\w)-(?!\w)", " ", INTEGER.sub(" ", text)).lower()
    spoken, left = spoken_integers(rest.replace("-", " ").split())
    values |= spoken
    return values.pop() if len(values) == 1 and not left - INTRODUCTION else None


def whole(digits: str) -> int:
    """A match of INTEGER; too many digits are no answer anyway."""
    plain = digits.partition(".")[0].replace(",", "")
    return int(plain) if len(plain) <= 30 else LARGEST_INTEGER + 1


def spoken_integers(words: list[str]) -> tuple[set[int], set[str]]:
    """The integers written in words, and the words that are none."""
    values: set[int] = set()
    left: set[str] = set()
    run: list[str] = []
    for index, word in enumerate([*words, ""]):
        joins = word == "and" and run[-1:] == ["hundred"] and words[index + 1:index + 2] and words[index + 1] in SMALL
        if word in SMALL or word in LARGE or word == "hundred":
            run.append(word)
        elif not joins:
            if run:
                value = from_words(run)
                if value is None:
                    left.update(run)
                else:
                    values.add(value)
                run = []
            if word:
                left.add(word)
    return values, left


def from_words(words: list[str]) -> int | None:
    """one hundred twenty three -> 123; None if the words are not those of one integer, written in order."""
    total, part, below = 0, 0, 10**9
    last = 1000
    for word in words:
        if word in LARGE:
            if not part or LARGE[word] >= below:
                return None
            total, part, below, last = total + part * LARGE[word], 0, LARGE[word], 1000
        elif word == "hundred":
            if not 1 <= part <= 9:
                return None
            part, last = 100 * part, 100
        else:
            value = SMALL[word]
            if value >= last or (value == 0 and len(words) > 1):
                return None
            part, last = part + value, 10 if value >= 20 else 1
    return total + part
