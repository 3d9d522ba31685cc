"""When each GCD entered and left D, which prime power caused each step, and when nothing happened.

Reads lines of metrics (epoch and D of each evaluation); knows no files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from typing_extensions import TypedDict

from gcdformer.explanation.sieve import components, prime_power

SHORTEST_STAGNATION = 3


class TimelineStep(TypedDict):
    """An epoch at which D changed; `causes` has for a prime power the k that it brought."""

    epoch: int
    entered: list[int]
    left: list[int]
    causes: dict[str, list[int]]
    text: str


@dataclass(frozen=True)
class Step:
    """What entered and left D at one epoch, and the prime powers behind what entered."""

    epoch: int
    entered: list[int]
    left: list[int]
    causes: dict[int, list[int]]
    """Prime power -> the GCD that it brought, itself included if it entered now."""

    def sentence(self) -> str:
        parts = [f"learned {q} -> {', '.join(map(str, brought))}" if brought != [q] else f"learned {q}"
                 for q, brought in self.causes.items()]
        if self.left:
            parts.append(f"lost {', '.join(map(str, self.left))}")
        return f"epoch {self.epoch}: {'; '.join(parts)}"

    def to_json(self) -> TimelineStep:
        return {"epoch": self.epoch, "entered": self.entered, "left": self.left,
                "causes": {str(q): brought for q, brought in self.causes.items()}, "text": self.sentence()}


@dataclass(frozen=True)
class Timeline:
    """The history of D over a run."""

    steps: list[Step]
    first: dict[int, int]
    """k -> the epoch at which it first entered D."""
    settled: dict[int, int]
    """k in D at the end -> the epoch since which it has been there."""
    stagnation: list[tuple[int, int]]
    """Periods (first and last epoch) in which D did not change, three epochs at least."""

    @property
    def prime_powers(self) -> dict[int, int]:
        """Prime power -> the epoch at which it first entered D, in order of learning."""
        first_epochs = {k: epoch for k, epoch in self.first.items() if prime_power(k)}
        return dict(sorted(first_epochs.items(), key=lambda item: (item[1], item[0])))

    def to_json(self) -> dict[str, Any]:
        return {"steps": [step.to_json() for step in self.steps],
                "first": {str(k): epoch for k, epoch in self.first.items()},
                "settled": {str(k): epoch for k, epoch in self.settled.items()},
                "prime_powers": {str(q): epoch for q, epoch in self.prime_powers.items()},
                "stagnation": [list(period) for period in self.stagnation]}


def timeline(lines: Iterable[Mapping[str, Any]]) -> Timeline:
    """The timeline of a run from its lines of metrics."""
    known: set[int] = set()
    first: dict[int, int] = {}
    since: dict[int, int] = {}
    steps: list[Step] = []
    quiet: list[int] = []
    stagnation: list[tuple[int, int]] = []

    def end_quiet() -> None:
        if len(quiet) >= SHORTEST_STAGNATION:
            stagnation.append((quiet[0], quiet[-1]))
        quiet.clear()

    for line in lines:
        epoch, now = int(line["epoch"]), set(line["D"])
        entered, left = sorted(now - known), sorted(known - now)
        if entered or left:
            end_quiet()
            for k in entered:
                first.setdefault(k, epoch)
                since[k] = epoch
            steps.append(Step(epoch, entered, left, causes(entered, since)))
            for k in left:
                since.pop(k)
        else:
            quiet.append(epoch)
        known = now
    end_quiet()
    return Timeline(steps, dict(sorted(first.items())), dict(sorted(since.items())), stagnation)


def causes(entered: list[int], since: Mapping[int, int]) -> dict[int, list[int]]:
    """Each GCD that entered goes to the one of its prime powers that D has known for the shortest time; to itself if D
    does not know them all."""
    brought: dict[int, list[int]] = {}
    for k in entered:
        parts = components(k) or [1]
        newest = max(parts, key=lambda q: (since[q], q)) if all(q in since for q in parts) else k
        brought.setdefault(newest, []).append(k)
    return dict(sorted(brought.items()))


@dataclass(frozen=True)
class Comparison:
    """A prime power, and for each run the epoch at which it was learned, or None."""

    prime_power: int
    epochs: dict[str, int | None]

    @property
    def order(self) -> tuple[int, float, int]:
        """First what most runs learned, then what they learned earliest."""
        known = [epoch for epoch in self.epochs.values() if epoch is not None]
        return (-len(known), sum(known) / len(known), self.prime_power)

    def to_json(self) -> dict[str, Any]:
        return {"prime_power": self.prime_power, "epochs": self.epochs}


def compare(timelines: Mapping[str, Timeline]) -> list[Comparison]:
    """When each of the runs learned each prime power that any of them learned."""
    learned = {name: history.prime_powers for name, history in timelines.items()}
    powers = {q for epochs in learned.values() for q in epochs}
    rows = [Comparison(q, {name: epochs.get(q) for name, epochs in learned.items()}) for q in powers]
    return sorted(rows, key=lambda row: row.order)
