"""Small caches for what is costly to make: the most recently used few values, or a single one. Safe between threads."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class Cache(Generic[T]):
    """Values by key; the least recently used go first. Two threads may make the same value; both then use equal ones."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._lock = threading.Lock()
        self._found: OrderedDict[Hashable, T] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        with self._lock:
            if key in self._found:
                self._found.move_to_end(key)
                return self._found[key]
        made = make()
        with self._lock:
            self._found[key] = made
            while len(self._found) > self._size:
                self._found.popitem(last=False)
        return made


class Once(Generic[T]):
    """A value that the first to ask for it makes; whoever asks meanwhile waits for that."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._made: list[T] = []

    def get(self) -> T:
        with self._lock:
            if not self._made:
                self._made.append(self._make())
            return self._made[0]
