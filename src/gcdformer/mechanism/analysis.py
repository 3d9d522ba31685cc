"""The parts of an analysis of one model: its swaps, and what each measurement says of a prime. `locate.py` combines them.

Knows a predictor and its explanation, no run folder. Randomness comes from one seed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field

import numpy as np
import torch

from gcdformer.errors import UserError
from gcdformer.evaluation.predictor import Predictor
from gcdformer.explanation import Explanation
from gcdformer.mechanism.counterfactuals import Rules, Swaps, draw_neutral, draw_other, draw_swaps
from gcdformer.mechanism.interchange import Interchange, Place
from gcdformer.mechanism.layout import Layout
from gcdformer.mechanism.result import Best, Example, Matrix, Moment, Power, Prime, Side, Unlearned, Whole
from gcdformer.mechanism.subspace import Basis, Contexts, draw_contexts, find_subspace, read_clock, residue_share
from gcdformer.mechanism.verdict import (
    GAIN,
    LEAST_SWAPS,
    LOCATED,
    STRONG,
    best_place,
    first_answers,
    matrix,
    place_verdict,
    prime_verdict,
    share_of,
    whole_share,
)
from gcdformer.models import Seq2Seq
from gcdformer.numbers.encoding import Integers, Mask, encode

DRAWS = 4
"""How often more pairs are drawn if the model follows the rules on too few."""
EXAMPLES = 10
PARTS = 5


class TooFewPairs(Exception):
    """Too few counterfactuals on which the model follows the rules; says what there was."""


@dataclass(frozen=True)
class Drawn:
    """The swaps that are used, how many were drawn for them, and the share on which the model follows the rules."""

    swaps: Swaps
    drawn: int
    following: float


@dataclass(frozen=True, eq=False)
class Analysis:
    """A model with its rules, and a copy of it with fresh weights."""

    exchange: Interchange
    fresh: Interchange
    rules: Rules
    count: int
    rng: np.random.Generator
    tick: Callable[[], None] = lambda: None
    """Called after each part of the work; a prime has PARTS and one for each of its powers."""
    contexts: dict[tuple[str, int], Contexts] = field(default_factory=dict)

    @property
    def layout(self) -> Layout:
        return self.exchange.layout

    def draw(self, rules: Rules, q: int, side: int) -> Drawn:
        """Swaps on which the model follows the rules before the swap, on both questions."""
        usable: Swaps | None = None
        drawn = 0
        for _ in range(DRAWS):
            swaps = draw_swaps(rules, self.layout, q, self.count, side, self.rng)
            if not len(swaps):
                break
            drawn += len(swaps)
            swaps = self.following(swaps)
            usable = swaps if usable is None else usable.join(swaps)
            if len(usable) >= self.count:
                break
        have = 0 if usable is None else len(usable)
        if usable is None or have < LEAST_SWAPS:
            raise TooFewPairs(f"the model follows the rules on {have} of {drawn} counterfactuals; {LEAST_SWAPS} are needed")
        return Drawn(usable.take(slice(0, self.count)), drawn, have / drawn)

    def following(self, swaps: Swaps) -> Swaps:
        """The swaps of which the model answers both questions as the rules say."""
        return swaps.take(self.follows(swaps.pairs) & self.follows(swaps.sources)) if len(swaps) else swaps

    def follows(self, pairs: Integers) -> Mask:
        """Where the model answers as the rules say, decoded as under a patch, but without one."""
        return np.asarray(self.rules.model.agrees(np.gcd(pairs[:, 0], pairs[:, 1]), self.exchange.predict(pairs)))

    def slots_of(self, site: str) -> Sequence[int]:
        """The input positions of a site; a final state stands after the last token."""
        return [len(self.layout.names) - 1] if site.startswith("encoder.final") else range(len(self.layout.names))

    def side(self, q: int, side: int, sites: Sequence[str]) -> tuple[Side, Swaps]:
        """Every position and all digits at once, at these sites, both directions."""
        drawn = self.draw(self.rules, q, side)
        removing, adding = drawn.swaps, drawn.swaps.reversed()
        own = self.layout.digit_slots(side)
        singles = [Place(site, (slot,)) for site in sites for slot in self.slots_of(site)]
        wholes = [Place(site, own) for site in sites]
        adders = [place for place in singles if place.slots[0] in own or place.site.startswith("encoder.final")]
        removed = self.exchange.answers(removing, [*singles, *wholes])
        added = self.exchange.answers(adding, [*adders, *wholes])
        width = len(self.layout.names)
        removes = matrix(singles, removed[:len(singles)], removing.after, width)
        adds = matrix(adders, added[:len(adders)], adding.after, width)
        digits = [whole_share(place, taken, removing.after, given, adding.after) for place, taken, given in
                  zip(wholes, removed[len(singles):], added[len(adders):], strict=True)]
        counts = [int((self.layout.tokens(removing.pairs)[:, slot] >= 0).sum()) for slot in range(width)]
        best = best_place(removes, adds, counts, self.layout.names)
        self.tick()
        return Side(pairs=len(removing), drawn=drawn.drawn, following=drawn.following, interchange=removes, adding=adds,
                    counts=counts, digits=digits, best=best, whole=self.grown(best, removing),
                    answers=first_answers(singles, removed[:len(singles)], EXAMPLES, width)), removing

    def grown(self, best: Best, removing: Swaps) -> Whole:
        """The best position, and further ones as long as they help and both directions fall short: at each step the one that
        helps most."""
        adding = removing.reversed()

        def tried(sets: list[tuple[int, ...]]) -> list[Whole]:
            places = [Place(best.site, slots) for slots in sets]
            moved = zip(places, self.exchange.answers(removing, places), self.exchange.answers(adding, places), strict=True)
            return [whole_share(place, taken, removing.after, given, adding.after) for place, taken, given in moved]

        whole = tried([(best.position,)])[0]
        while min(whole.share, whole.adding) < STRONG and len(whole.positions) < self.layout.digits + 2:
            more = tried([(*whole.positions, slot) for slot in self.slots_of(best.site) if slot not in whole.positions])
            larger = max(more, key=lambda several: several.share + several.adding, default=whole)
            if larger.share + larger.adding < whole.share + whole.adding + GAIN:
                break
            whole = larger
        return whole

    def prime(self, p: int, powers: Sequence[int]) -> tuple[Prime, Basis]:
        """All that is said of one prime, and its subspace."""
        sites = self.exchange.sites
        first, swaps = self.side(p, 0, sites.encoder)
        second, swaps_b = self.side(p, 1, sites.encoder)
        place = Place(first.best.site, (first.best.position,))
        outputs, heads = self.decoder_shares(swaps)
        self.tick()
        unchanged = [self.unchanged(swaps, first, 0), self.unchanged(swaps_b, second, 1)]
        stay, neutral = sum(n for n, _ in unchanged), sum(n for _, n in unchanged)
        control = self.control(swaps)
        self.tick()
        both = swaps.join(swaps.reversed())
        verdict, why = prime_verdict(first.best, first.whole, stay / max(neutral, 1), control)
        contexts = self.contexts_at(place)
        carrier = place if verdict == LOCATED else Place(first.whole.site, tuple(first.whole.positions))
        subspace, basis = find_subspace(self.exchange, carrier, both, contexts, p, self.rng)
        self.tick()
        prime = Prime(
            **vars(first), p=p, divides_base=self.layout.base % p == 0, heads=heads, outputs=outputs, side_b=second,
            unchanged=stay / max(neutral, 1), neutral=neutral, control=control, rank=subspace.rank, subspace=subspace,
            clock=read_clock(contexts, p, basis), powers=self.powers(powers), examples=examples(swaps, first),
            verdict=verdict, why=why)
        return prime, basis

    def powers(self, powers: Sequence[int]) -> list[Power]:
        """Higher powers, at the end of the encoder; those without enough pairs are left out."""
        carried = []
        for q in powers:
            try:
                side, _ = self.side(q, 0, [self.exchange.sites.last])
            except TooFewPairs:
                continue
            carried.append(Power(q, side.pairs, side.interchange, side.adding, side.best, side.whole,
                                 place_verdict(side.best, side.whole)))
        return carried

    def decoder_shares(self, swaps: Swaps) -> tuple[Matrix, dict[str, list[list[float | None]]]]:
        """p taken away at every decoder site and at every head of both sides: by position, and at the end at all output
        positions or all digits of a together."""
        sites = self.exchange.sites
        steps = tuple(range(int(encode(swaps.after[:, None], self.layout.base)[1].max()) + 1))
        inputs = tuple(range(len(self.layout.names)))

        def places(site: str, head: int | None) -> list[Place]:
            single, together = (steps, steps) if site in sites.decoder else (inputs, self.layout.digit_slots(0))
            return [Place(site, slots, head) for slots in [*((position,) for position in single), together]]

        rows: dict[tuple[str, int | None], list[Place]] = {(site, None): places(site, None) for site in sites.decoder}
        rows |= {(site, head): places(site, head) for site, count in sites.heads.items() for head in range(count)}
        moved = iter(self.exchange.answers(swaps, [place for row in rows.values() for place in row]))
        shares = {key: [share_of(next(moved), swaps.after) for _ in row] for key, row in rows.items()}
        return ({site: shares[site, None] for site in sites.decoder},
                {site: [shares[site, head] for head in range(count)] for site, count in sites.heads.items()})

    def unchanged(self, swaps: Swaps, side: Side, number: int) -> tuple[int, int]:
        """How many answers stay as they are when the places of p get the values of an operand that agrees in all that the
        rules look at; of how many. Half of the questions have p, half lack it. As for other swaps, the model follows the
        rules on both questions: where it gets the second one wrong, a swap that brings in the mistake does no damage."""
        questions = np.concatenate([swaps.pairs[::2], swaps.sources[1::2]])
        neutral = self.following(draw_neutral(self.rules, self.layout, questions, number, self.rng))
        place = Place(side.whole.site, tuple(side.whole.positions))
        if len(neutral) < LEAST_SWAPS:
            neutral = self.following(draw_other(self.rules, self.layout, questions, number, self.rng))
            place = Place(side.whole.site, self.layout.digit_slots(number))
        moved = self.exchange.answers(neutral, [place])[0]
        return int(moved.agree(neutral.before).sum()), len(moved.swaps)

    def control(self, swaps: Swaps) -> float:
        """The best share of the same network with fresh weights, along the residual stream of the encoder."""
        ends = ("encoder.embedding", self.fresh.sites.last)
        sites = [site for site in self.fresh.sites.encoder if ".residual." in site or site in ends]
        own = self.layout.digit_slots(0)
        places = [Place(site, slots) for site in sites for slots in [*((slot,) for slot in self.slots_of(site)), own]]
        return max(share_of(moved, swaps.after) or 0.0 for moved in self.fresh.answers(swaps, places))

    def contexts_at(self, place: Place) -> Contexts:
        key = place.site, place.slots[0]
        if key not in self.contexts:
            self.contexts[key] = draw_contexts(self.exchange, *key, self.rng)
        return self.contexts[key]

    def unlearned(self, p: int, primes: Sequence[Prime]) -> Unlearned | None:
        """Swaps for a prime that is not learned, at every place that carries a learned one: nothing should follow it."""
        extended = self.rules.with_divisor(p)
        try:
            swaps = self.draw(extended, p, 0).swaps.reversed()
        except TooFewPairs:
            return None
        own = self.layout.digit_slots(0)
        keys = dict.fromkeys([(prime.best.site, slots) for prime in primes
                              for slots in ((prime.best.position,), tuple(prime.whole.positions), own)])
        moved = self.exchange.answers(swaps, [Place(site, slots) for site, slots in keys])
        answers = self.rules.model.answers_to(np.gcd(swaps.pairs[:, 0], swaps.pairs[:, 1]))
        return Unlearned(p, len(swaps), max(share_of(place, swaps.after) or 0.0 for place in moved),
                         max(1 - (share_of(place, answers) or 0.0) for place in moved))

    def moment(self, prime: Prime, swaps: Swaps, epoch: int, *, learned: bool) -> Moment:
        """This model, perhaps of an earlier checkpoint, at the final place of a prime."""
        adding = swaps.reversed()
        whole = self.exchange.answers(adding, [Place(prime.best.site, self.layout.digit_slots(0))])[0]
        contexts = self.contexts_at(Place(prime.best.site, (prime.best.position,)))
        return Moment(epoch, learned, share_of(whole, adding.after) or 0.0, *residue_share(contexts, prime.p))


def examples(swaps: Swaps, side: Side) -> list[Example]:
    """The first swaps at the best place; where an operand is too short for it, nothing is exchanged."""
    few, answers = swaps.take(slice(0, EXAMPLES)), side.answers[side.best.site][side.best.position]
    rows = zip(few.pairs.tolist(), few.sources[:, 0].tolist(), few.before.tolist(), few.after.tolist(), strict=True)
    return [Example(a, b, swapped, before, after, answers.get(number, before))
            for number, ((a, b), swapped, before, after) in enumerate(rows)]


def prepare(predictor: Predictor, explanation: Explanation, pairs: int, seed: int,
            tick: Callable[[], None] = lambda: None) -> Analysis:
    """The parts of an analysis; a `UserError` says what the model lacks for one."""
    task = predictor.problem.task
    if not task.has_gcd:
        raise UserError(f"mechanism: is for task 'gcd', not '{task.name}': the rules of other tasks know no divisors")
    if not explanation.prime_powers:
        raise UserError("mechanism: no prime is learned yet, so there is nothing to locate; train for longer")
    model, problem = predictor.model.float(), predictor.problem
    require_one_digit(predictor)
    layout, tree = Layout.of(problem), predictor.tree
    fresh = fresh_copy(model, torch.Generator().manual_seed(seed))
    return Analysis(Interchange(model, problem, layout, tree), Interchange(fresh, problem, layout, tree),
                    Rules(explanation.model), pairs, np.random.default_rng(seed), tick)


def fresh_copy(model: Seq2Seq, generator: torch.Generator) -> Seq2Seq:
    """A control: the same network, not trained."""
    copy = deepcopy(model)
    copy.initialise(generator)
    return copy.eval()


def require_one_digit(predictor: Predictor) -> None:
    """Under another prior than the training's, an answer has to be one digit, to whose logits the prior is added."""
    if predictor.tree is not None and not predictor.tree.one_token:
        raise UserError(f"prior: in base {predictor.problem.base} answers have several digits, and while values are swapped "
                        "those can only be decided under the training's prior; use --prior training")
