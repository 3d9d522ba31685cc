"""Answers under patches as shares, and shares as verdicts: the best place of a prime, when it counts as located, spread or
not found, and when a control raises the alarm. The thresholds have their reasons.

Knows counts and places, no network.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gcdformer.evaluation.table import readable
from gcdformer.explanation.statistics import wilson
from gcdformer.mechanism.result import Answers, Best, Matrix, Prime, Unlearned, Whole
from gcdformer.numbers.encoding import Integers

if TYPE_CHECKING:
    from gcdformer.mechanism.interchange import Moved, Place  # which import torch

MOVES = 0.8
"""A place carries p if its swap moves this share of the answers as the rules say, both when it takes p away and when it adds
it. A learned k is answered right for 90 % of its pairs; a swap rests on two such answers, 0.9 * 0.9."""
STRONG, GAIN = 0.9, 0.05
"""Further positions join the best one until both directions are this strong, or none gains this much in the two together."""
STAYS = 0.9
"""Share of answers that must stay under neutral swaps there: else the swap itself does damage, whatever the value."""
CONTROL = 0.05
"""Share of answers that a control may move: beyond it (the whole 95 % interval) there is an alarm. Without a mechanism an
answer is right by accident only; one in twenty is far above what fresh weights do, and far below what a place must do."""
ENOUGH = 0.9
"""A subspace is enough if its swap does this share of what the whole swap does."""
LEAST_SWAPS = 20
"""Pairs below which nothing is said: the 95 % interval of one half would be wider than 0.4."""
LOCATED, SPREAD, NOT_FOUND = "located", "spread", "not found"
NEARLY = 0.04
"""Places whose shares (of both directions together) differ by less are as good; the one nearest to the answer is taken."""


def share_of(moved: Moved, wanted: Integers) -> float | None:
    """The share of answers that are the wanted ones; None if too few swaps have the place."""
    return float(moved.agree(wanted).mean()) if len(moved.swaps) >= LEAST_SWAPS else None


def matrix(places: Sequence[Place], moved: Sequence[Moved], wanted: Integers, width: int) -> Matrix:
    """Shares by site and position, of places with one position each."""
    result: Matrix = {}
    for place, answers in zip(places, moved, strict=True):
        result.setdefault(place.site, [None] * width)[place.slots[0]] = share_of(answers, wanted)
    return result


def first_answers(places: Sequence[Place], moved: Sequence[Moved], count: int, width: int) -> Answers:
    """What came out of the first swaps, by site and position."""
    result: Answers = {}
    for place, answers in zip(places, moved, strict=True):
        own = result.setdefault(place.site, [{} for _ in range(width)])
        pairs = zip(answers.swaps.tolist(), answers.answers.tolist(), strict=True)
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
    shares = [(site, position, share, adds.get(site, [None] * len(names))[position] or 0.0)
             for site in sites for position, share in enumerate(removes[site]) if share is not None]
    top = max(share + adding for *_, share, adding in shares)
    site, position, share, adding = [entry for entry in shares if entry[2] + entry[3] >= top - NEARLY][-1]
    n = counts[position]
    name = "final state" if site.startswith("encoder.final") else names[position]
    return Best(site, position, name, share, *wilson(round(share * n), n), n, adding)


def place_verdict(best: Best, whole: Whole) -> str:
    """Located: one position does both, takes p away and adds it. Spread: only several together do."""
    if min(best.share, best.adding) >= MOVES:
        return LOCATED
    return SPREAD if min(whole.share, whole.adding) >= MOVES else NOT_FOUND


def prime_verdict(best: Best, whole: Whole, unchanged: float, control: float) -> tuple[str, str]:
    """The verdict on a prime, and why."""
    verdict = place_verdict(best, whole)
    if control >= CONTROL:
        return NOT_FOUND, f"fresh weights move {control:.2f} of the answers too"
    if verdict == NOT_FOUND:
        return verdict, (f"the best position takes it away in {best.share:.2f} and adds it in {best.adding:.2f} of the "
                         f"pairs, {len(whole.positions)} together in {whole.share:.2f} and {whole.adding:.2f}; "
                         f"{MOVES} would do")
    if unchanged < STAYS:
        return NOT_FOUND, f"neutral swaps leave only {unchanged:.2f} of the answers as they are"
    if verdict == LOCATED:
        return verdict, f"one position takes it away in {best.share:.2f} and adds it in {best.adding:.2f} of the pairs"
    return verdict, (f"one position takes it away in {best.share:.2f} but adds it in {best.adding:.2f} of the pairs; "
                     f"{len(whole.positions)} together in {whole.share:.2f} and {whole.adding:.2f}")


def run_verdict(primes: Sequence[Prime], alarms: Sequence[str]) -> str:
    """The weakest verdict of all primes; an alarm overrides it."""
    if alarms:
        return NOT_FOUND
    verdicts = {prime.verdict for prime in primes}
    return next((verdict for verdict in (NOT_FOUND, SPREAD, LOCATED) if verdict in verdicts), NOT_FOUND)


def raised_alarms(primes: Sequence[Prime], unlearned: Sequence[Unlearned]) -> list[str]:
    """Every control that passed although it should not."""
    alarms = [f"fresh weights move {prime.control:.2f} of the answers for {prime.p}" for prime in primes
              if is_beyond(prime.control, prime.pairs)]
    alarms += [f"swaps for {control.p}, which is not learned, move {control.share:.2f} of the answers"
               for control in unlearned if is_beyond(control.share, control.pairs)]
    fitted = [(prime.p, prime.subspace) for prime in primes]
    return alarms + [f"a subspace fitted to permuted answers gives {subspace.permuted:.2f} of them for {p}"
                     for p, subspace in fitted if is_beyond(subspace.permuted, subspace.permuted_n)]


def is_beyond(share: float, n: int) -> bool:
    """Whether a control's share lies above the threshold, and not by chance."""
    return n > 0 and wilson(round(share * n), n)[0] >= CONTROL
