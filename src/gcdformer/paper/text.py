"""Lines of text whose parts say what they are, so that Markdown, terminal and HTML mark them each in its own way.

Knows neither tables nor runs, only configurations.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from gcdformer.config import ModelSection

MOST_LISTED = 40


@dataclass(frozen=True)
class Span:
    """A part of a line that is marked: the name of a run, a command or tokens, or emphasis."""

    kind: Literal["run", "code", "strong"]
    text: str


Line = list[str | Span]
MARKS = {"run": "`", "code": "`", "strong": "**"}


def plain(line: Line) -> str:
    """A line without marks, as a terminal shows it: a command in it can be copied as it is."""
    return "".join(part if isinstance(part, str) else part.text for part in line)


def to_markdown(line: Line) -> str:
    return "".join(part if isinstance(part, str) else f"{MARKS[part.kind]}{part.text}{MARKS[part.kind]}" for part in line)


def run_names(names: Iterable[str]) -> Line:
    """Names of runs with commas between."""
    line: Line = []
    for name in names:
        line += [", ", Span("run", name)] if line else [Span("run", name)]
    return line


def count_of(number: int, what: str, many: str | None = None) -> str:
    """1 run, 2 runs."""
    return f"{number} {what if number == 1 else many or what + 's'}"


def millions(examples: int) -> str:
    """A number of examples, in words."""
    if examples < 100_000:
        return f"{examples:,} examples"
    return f"{examples / 1e6:.{0 if examples >= 1e8 else 1}f} M examples"


def shorten(values: Iterable[object]) -> str:
    """Values with commas between; beyond MOST_LISTED they are only counted."""
    listed = list(map(str, values))
    more = len(listed) - MOST_LISTED
    return ", ".join(listed[:MOST_LISTED]) + (f" and {more} more" if more > 0 else "")


def model_words(model: ModelSection) -> str:
    """Family, layers and widths of a model."""
    layers, widths = {model.encoder_layers, model.decoder_layers}, {model.encoder_dim, model.decoder_dim}
    if model.family != "transformer":
        return f"{model.family} of {count_of(layers.pop(), 'layer')} of {model.hidden_dim or model.encoder_dim} dimensions"
    if len(layers) == len(widths) == 1:
        return f"{count_of(layers.pop(), 'layer')} of {widths.pop()} dimensions"
    return (f"{model.encoder_layers} and {model.decoder_layers} layers of {model.encoder_dim} and {model.decoder_dim} "
            "dimensions")
