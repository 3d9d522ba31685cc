"""Answers under patches as shares: by site and position, for all digits at once, and the best place of them."""

from __future__ import annotations

from collections.abc import Sequence

from gcdformer.explanation.rules import readable
from gcdformer.explanation.statistics import wilson
from gcdformer.mechanism.interchange import Moved, Place
from gcdformer.mechanism.result import Answers, Best, Matrix, Whole
from gcdformer.mechanism.verdict import LEAST_PAIRS
from gcdformer.numbers.encoding import Integers

NEARLY = 0.04
"""Places whose shares (of both directions together) differ by less are as good; the one nearest to the answer is taken."""


def share_of(moved: Moved, wanted: Integers) -> float | None:
    """The share of answers that are the wanted ones; None if too few swaps have the place."""
    return float(moved.agree(wanted).mean()) if len(moved.swaps) >= LEAST_PAIRS else None


def matrix(places: Sequence[Place], moved: Sequence[Moved], wanted: Integers, width: int) -> Matrix:
    """Shares by site and position, of places with one position each."""
    result: Matrix = {}
    for place, one in zip(places, moved, strict=True):
        result.setdefault(place.site, [None] * width)[place.slots[0]] = share_of(one, wanted)
    return result


def first_answers(places: Sequence[Place], moved: Sequence[Moved], count: int, width: int) -> Answers:
    """What came out of the first swaps, by site and position."""
    result: Answers = {}
    for place, one in zip(places, moved, strict=True):
        own = result.setdefault(place.site, [{} for _ in range(width)])
        pairs = zip(one.swaps.tolist(), one.answers.tolist(), strict=True)
        own[place.slots[0]] = {swap: readable(answer) for swap, answer in pairs if swap < count}
    return result


def whole_share(place: Place, removed: Moved, without: Integers, added: Moved, having: Integers) -> Whole:
    """Several positions at once."""
    moved, n = int(removed.agree(without).sum()), len(removed.swaps)
    return Whole(place.site, list(place.slots), moved / max(n, 1), *wilson(moved, n), n,
                 float(added.agree(having).mean()) if len(added.swaps) else 0.0)


def best_place(removes: Matrix, adds: Matrix, counts: Sequence[int], names: Sequence[str]) -> Best:
    """The position that does most: of those as good, the one nearest to the answer.

    The embedding is left out where there is anything else. To exchange it is to exchange the digit, which says what the
    answer depends on, not where that is carried. Attention patterns carry nothing themselves and are left out too.
    """
    sites = [site for site in removes if site != "encoder.embedding" and not site.endswith(".pattern")] or list(removes)
    found = [(site, position, share, adds.get(site, [None] * len(names))[position] or 0.0)
             for site in sites for position, share in enumerate(removes[site]) if share is not None]
    top = max(share + adding for *_, share, adding in found)
    site, position, share, adding = [one for one in found if one[2] + one[3] >= top - NEARLY][-1]
    n = counts[position]
    name = "final state" if site.startswith("encoder.final") else names[position]
    return Best(site, position, name, share, *wilson(round(share * n), n), n, adding)
