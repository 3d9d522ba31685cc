"""What a person is shown of the GCD that are learned and lost, without the flicker of those at the threshold.

`metrics.jsonl` has every event: a k whose accuracy wavers about 90 % enters and leaves D from one epoch to the next. Here k
is *learned* when it first enters D. From then on it is *lost*, or *learned* again, only when it has been out of D, or in it,
for three epochs in a row and for a minute of training; until then it *wavers*. Reads lines of metrics, nothing else, so that
a resumed run says the same.
"""

from __future__ import annotations

from dataclasses import dataclass

from gcdformer.display.words import SHOWN, numbers
from gcdformer.runs.metrics import Line

STEADY_EPOCHS, STEADY_SECONDS = 3, 60.0
"""How long a k that was learned once has to be out of D to be lost, and in it to be learned again."""


@dataclass(frozen=True)
class Announcement:
    """What an epoch changed, and which k waver: D is what was announced but for these."""

    learned: list[int]
    lost: list[int]
    wavering: list[int]

    def __str__(self) -> str:
        """`learned 4, 8; lost 9; wavering 16`; empty if there is nothing to say."""
        parts = {"learned": self.learned, "lost": self.lost, "wavering": self.wavering}
        return "; ".join(f"{word} {numbers(values, SHOWN)}" for word, values in parts.items() if values)


class Announcer:
    """Follows the lines of a run."""

    def __init__(self) -> None:
        self.known: set[int] = set()
        self.ever: set[int] = set()
        self.streaks: dict[int, tuple[int, float]] = {}
        """For each k that is not as it was announced: for how many epochs in a row, and from which second on."""

    def follow(self, line: Line) -> Announcement:
        """What to say of an epoch, whose line comes next."""
        correct, now = set(line.get("D", [])), line["seconds"]
        streaks = {}
        for k in correct ^ self.known:
            epochs, began = self.streaks.get(k, (0, now))
            streaks[k] = (epochs + 1, began)
        steady = {k for k, (epochs, began) in streaks.items() if epochs >= STEADY_EPOCHS and now - began >= STEADY_SECONDS}
        learned = {k for k in correct - self.known if k not in self.ever or k in steady}
        lost = (self.known - correct) & steady
        self.known = (self.known | learned) - lost
        self.ever |= learned
        self.streaks = {k: streak for k, streak in streaks.items() if k not in learned | lost}
        return Announcement(sorted(learned), sorted(lost), sorted(self.streaks))
