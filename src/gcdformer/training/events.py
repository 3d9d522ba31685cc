"""What a person is shown of the GCD that are learned and lost, without the flicker of those at the threshold.

`metrics.jsonl` has every event: a k whose accuracy wavers about 90 % enters and leaves D from one epoch to the next. Here k
is *learned* when it first enters D. It is *lost* when most of its pairs get another answer, or when it has been out of D for
three epochs in a row; and it is learned again when it has been in D for three. Meanwhile it is *being learned*. Reads lines
of metrics, nothing else, so that a resumed run says the same.
"""

from __future__ import annotations

from dataclasses import dataclass

from gcdformer.runs.metrics import Line

STEADY = 3
"""Epochs in a row after which a k that wavered counts as lost, or as learned again."""


@dataclass(frozen=True)
class Announcement:
    """What an epoch changed, and which k are between learned and lost: D is what is known but for these."""

    learned: list[int]
    lost: list[int]
    being_learned: list[int]

    def __str__(self) -> str:
        """`learned 4, 8; lost 9; being learned 16`; empty if there is nothing to say."""
        parts = {"learned": self.learned, "lost": self.lost, "being learned": self.being_learned}
        return "; ".join(f"{word} {shorten(values)}" for word, values in parts.items() if values)


class Announcer:
    """Follows the lines of a run."""

    def __init__(self) -> None:
        self.known: set[int] = set()
        self.ever: set[int] = set()
        self.streaks: dict[int, int] = {}
        """For each k that is not as it was announced, for how many epochs in a row."""

    def follow(self, line: Line) -> Announcement:
        """What to say of an epoch, whose line comes next."""
        correct, close = set(line.get("D", [])), set(line.get("being_learned", []))
        wavering = correct ^ self.known
        streaks = {k: self.streaks.get(k, 0) + 1 for k in wavering}
        steady = {k for k, epochs in streaks.items() if epochs >= STEADY}
        learned = {k for k in correct - self.known if k not in self.ever or k in steady}
        lost = {k for k in self.known - correct if k not in close or k in steady}
        self.known = (self.known | learned) - lost
        self.ever |= learned
        self.streaks = {k: epochs for k, epochs in streaks.items() if k not in learned | lost}
        return Announcement(sorted(learned), sorted(lost), sorted(self.streaks))


def shorten(values: list[int], most: int = 12) -> str:
    shown = ", ".join(map(str, values[:most]))
    return shown + (f" … ({len(values)})" if len(values) > most else "")
