"""Caches for what is costly to make: the most recently used few values, or a single one. Safe between threads.

A value that was read from a file has the file's stamp in its key, so that it is made again when the file changes.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Generic, TypeVar

T = TypeVar("T")


class Cache(Generic[T]):
    """Values by key; the least recently used go first. Two threads may make the same value; both then use equal ones."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._lock = threading.Lock()
        self._values: OrderedDict[Hashable, T] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
        value = make()
        with self._lock:
            self._values[key] = value
            while len(self._values) > self._size:
                self._values.popitem(last=False)
        return value


class Once(Generic[T]):
    """A value that the first to ask for it makes; whoever asks meanwhile waits for that."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._values: list[T] = []

    def get(self) -> T:
        with self._lock:
            if not self._values:
                self._values.append(self._make())
            return self._values[0]


def stamp(path: Path) -> tuple[int, int]:
    """When a file changed and how long it is; zeros if it is not there."""
    try:
        status = path.lstat()
    except OSError:
        return 0, 0
    return status.st_mtime_ns, status.st_size
