"""Breaches of a rule, one class for each kind: which k, what was predicted, what the rule says. Knows no tables.

A rule lists its breaches as exceptions or, where a k is being learned, as excused.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, final


class Breach(ABC):
    """A k that does not obey a rule. A prediction of None is no integer."""

    k: int

    @property
    @abstractmethod
    def text(self) -> str:
        """What is wrong with it, in a few words."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]: ...


@final
@dataclass(frozen=True)
class Hesitation(Breach):
    """No single prediction for the pairs with GCD k (or of the class of k): f(k) is too rare."""

    k: int
    prediction: int | None
    frequency: float
    values: int

    @property
    def text(self) -> str:
        if self.prediction is None:
            return f"f({self.k}) is unreadable"
        return f"{self.k}: {100 * self.frequency:.0f} % {self.prediction}, {self.values} values"

    def to_json(self) -> dict[str, Any]:
        return {"k": self.k, "prediction": self.prediction, "frequency": self.frequency, "values": self.values}


@final
@dataclass(frozen=True)
class NotAllProducts(Breach):
    """A product of learned prime powers that is missing from the set, or an element that is no such product."""

    k: int
    missing: bool

    @property
    def text(self) -> str:
        return f"{self.k} {'missing' if self.missing else 'unexpected'}"

    def to_json(self) -> dict[str, Any]:
        return {"k": self.k, "why": "missing" if self.missing else "unexpected"}


@final
@dataclass(frozen=True)
class OtherAnswer(Breach):
    """f(k) is not what the largest divisor in the set says."""

    k: int
    prediction: int | None
    expected: int | None
    frequency: float

    @property
    def text(self) -> str:
        if self.prediction is None:
            return f"f({self.k}) is unreadable"
        return f"f({self.k}) = {self.prediction}, not {self.expected}"

    def to_json(self) -> dict[str, Any]:
        return {"k": self.k, "prediction": self.prediction, "expected": self.expected, "frequency": self.frequency}


@final
@dataclass(frozen=True)
class WrongClass(Breach):
    """k is predicted as another class than that of its largest label."""

    k: int
    label: int
    expected: int

    @property
    def text(self) -> str:
        return f"{self.k} in the class of {self.label}, not {self.expected}"

    def to_json(self) -> dict[str, Any]:
        return {"k": self.k, "why": "in the wrong class", "class": self.label, "expected": self.expected}


@final
@dataclass(frozen=True)
class ForeignAnswer(Breach):
    """The class of k is predicted by a value that is none of its elements."""

    k: int
    prediction: int | None

    @property
    def text(self) -> str:
        return f"f({self.k}) is unreadable" if self.prediction is None else f"{self.k} predicted by no element of its class"

    def to_json(self) -> dict[str, Any]:
        return {"k": self.k, "why": "predicted by no element of its class", "prediction": self.prediction}
