"""The errors a person can fix.

`UserError` carries one line that names the field or file and what would be right; the command line
prints it and exits with 2. Everything else is a defect of ours and shows its traceback.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class UserError(Exception):
    """Bad input: one line, the field or file, what would be right."""


class DamagedFile(UserError):
    """A file of ours that does not match its checksum or cannot be read."""


class InUse(UserError):
    """Another process writes this run."""


class MissingExtra(UserError):
    """A verb needs an optional dependency that is not installed."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"{package} is not installed: pip install 'gcdformer[{extra}]'")


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The known word that is meant, if one is near: `; did you mean --base?`."""
    near = get_close_matches(word, list(known), 1)
    return f"; did you mean {near[0]}?" if near else ""


def one_line(text: str) -> str:
    """Without line breaks, and without what a terminal would obey: names in files may come from anyone."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in " ".join(text.split()))
