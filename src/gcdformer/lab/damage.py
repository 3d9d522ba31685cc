"""Files of a run that are not as gcdformer writes them: whatever they make a reader say becomes `DamagedFile`.

A run folder may come from anywhere; its checksums guard against accidents, not against someone who writes them anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gcdformer.errors import DamagedFile


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Around everything that interprets a run's files."""
    try:
        yield
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise DamagedFile(f"{path}: not as gcdformer writes it: {type(error).__name__}: {error}") from error
    except OSError as error:
        raise DamagedFile(f"{error.filename or path}: {error.strerror or error}") from error
