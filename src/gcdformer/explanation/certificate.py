"""The certificate: for which pairs, D, the form of the rules and why, fidelity with its interval, accuracy, every exception.

From prediction tables alone; bands of size and order are added by who can ask the model. Nothing is said of a k that was not
tested often enough, or that is above the largest tested.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd
from typing import Any

import numpy as np

from gcdformer.config import LEAST_PAIRS, TESTED_GCDS
from gcdformer.evaluation.table import UNREADABLE, PredictionTable, readable
from gcdformer.explanation.bands import Band, limits_text
from gcdformer.explanation.classes import Class
from gcdformer.explanation.forms import NONE, Evidence, Form, choose_form
from gcdformer.explanation.mistakes import Counterexample, Mistakes, find_counterexamples, find_mistakes
from gcdformer.explanation.rules import Rule, RuleModel
from gcdformer.explanation.statistics import CERTIFIED_FIDELITY, Fidelity, Power, power_of, wilson
from gcdformer.explanation.transition import Earlier, Shares, mode, no_earlier
from gcdformer.numbers.theory import count_pairs, exact_accuracy

CERTIFIED_TESTED = 0.97
DRAWS_FOR_ALL = 7
"""How often as many pairs as there are must be drawn, with replacement, to take them for all."""


@dataclass(frozen=True)
class Explanation:
    """What a model does, as far as its tables show."""

    base: int
    maximum: int | None
    threshold: float
    shares: Shares
    pairs: dict[int, int]
    """How many pairs were tried for each k; at most as many as there are, so that repeated ones count once."""
    correct: list[int]
    """D."""
    undecided: list[int]
    """The k, in D or not, whose 95 % interval contains the threshold."""
    form: Form
    why: str
    model: RuleModel
    rules: dict[str, Rule]
    classes: list[Class]
    being_learned: list[int]
    fidelity: dict[str, Fidelity]
    measured_accuracy: float
    predicted_accuracy: float
    counterexamples: list[Counterexample]
    unreadable: dict[str, int]
    """For each table, how many answers were no integer."""
    untested: list[int]
    exhaustive: bool
    domain: str
    """The pairs that were tried, and for which a certificate holds."""
    mistakes: Mistakes
    bands: tuple[Band, ...] = ()
    """Fidelity for pairs of some size or order, if the model could be asked."""

    def __repr__(self) -> str:
        """One line: the form, the size of D, the fidelity, the verdict."""
        shown = ", ".join(f"{name} {100 * share.value:.2f} %" for name, share in self.fidelity.items())
        return (f"Explanation(base {self.base}, form {self.form}, {len(self.correct)} correct GCD of {len(self.shares)}, "
                f"fidelity {shown}: {self.verdict})")

    @property
    def certified(self) -> bool:
        """Whether nothing is missing for it, on its domain."""
        return self.missing is None

    @property
    def verdict(self) -> str:
        """Certified, for which pairs and in which bands not; or what is missing for it."""
        if self.missing is None:
            return f"certified on {self.domain}{limits_text(self.bands)}"
        return f"not certified: {self.missing}"

    @property
    def missing(self) -> str | None:
        """What is missing for a certificate: enough pairs for almost every k (unless all were tried), a form, rules without
        exception, and fidelity of 98 % for certain, in every table and as a mean over the k."""
        if not self.shares:
            return f"too few pairs: no k has {LEAST_PAIRS}"
        if self.form is NONE:
            return "no form fits"
        broken = [name.replace("_", " ") for name, rule in self.rules.items() if not rule.holds]
        if broken:
            return f"exceptions to {', '.join(broken)}"
        least = min([self.mean_agreement, *(share.value for share in self.fidelity.values())])
        if least < CERTIFIED_FIDELITY:
            return f"fidelity below {100 * CERTIFIED_FIDELITY:.0f} %"
        largest = min(TESTED_GCDS, self.maximum or TESTED_GCDS)
        enough = sum(count >= LEAST_PAIRS or self.has_all_pairs(k) for k, count in self.pairs.items())
        if not self.exhaustive and enough < CERTIFIED_TESTED * largest:
            return f"too few pairs: only {enough} of {largest} k were tested with {LEAST_PAIRS} pairs"
        sure = min([self.least_mean_agreement, *(share.interval[0] for share in self.fidelity.values())])
        if sure < CERTIFIED_FIDELITY:
            return (f"too few pairs: fidelity is at least {100 * sure:.1f} % for certain, and "
                    f"{100 * CERTIFIED_FIDELITY:.0f} % is needed")
        return None

    @property
    def is_proof(self) -> bool:
        """Whether all pairs were tried and none contradicts the rules."""
        return self.exhaustive and self.certified and all(share.agree == share.n for share in self.fidelity.values())

    @property
    def mean_agreement(self) -> float:
        """The share of predictions that agree with the rules, a mean over the k tested."""
        answers = self.model.answers_to(np.array([*self.shares], dtype=np.int64)).tolist()
        agree = [0.0 if answer == UNREADABLE else s.get(answer, 0.0)
                 for s, answer in zip(self.shares.values(), answers, strict=True)]
        return sum(agree) / max(len(agree), 1)

    @property
    def least_mean_agreement(self) -> float:
        """The lower end of its 95 % interval: k with few pairs widen it, unless those are all the pairs there are."""
        if not self.sampled:
            return self.mean_agreement
        pairs = len(self.pairs) ** 2 / sum(1 / count for count in self.sampled)
        return wilson(self.mean_agreement * pairs, pairs)[0]

    @property
    def sampled(self) -> list[int]:
        """How many pairs each k has of which not all were tried."""
        return [] if self.exhaustive else [count for k, count in self.pairs.items() if not self.has_all_pairs(k)]

    def has_all_pairs(self, k: int) -> bool:
        return has_all_pairs(k, self.pairs[k], self.maximum)

    @property
    def power(self) -> Power | None:
        """What the test could have missed, by the k with fewest pairs; None if all pairs were tried."""
        return power_of(min(self.sampled), self.threshold) if self.sampled else None

    @property
    def prime_powers(self) -> dict[int, int]:
        """The learned primes, each with its highest power."""
        return self.model.prime_powers

    @property
    def labels(self) -> list[int]:
        """The elements of D, or of E: what the form knows the k by."""
        return list(self.model.labels)

    @property
    def broken(self) -> set[int]:
        """The k that are exceptions to some rule."""
        return {breach.k for rule in self.rules.values() for breach in rule.exceptions}

    @property
    def grokked(self) -> list[int]:
        """Learned primes that do not divide the base; none where no form fits, as nothing is known to be learned then."""
        return [] if self.form is NONE else [p for p in self.prime_powers if self.base % p]

    def answer(self, a: int, b: int) -> int:
        """What the rules say the model answers for (a, b)."""
        return self.model.answer(gcd(a, b))

    def _repr_html_(self) -> str:
        """What a notebook shows: the certificate."""
        from gcdformer.display.html import notebook_html
        return notebook_html(self)

    @property
    def other_labels(self) -> list[int] | None:
        """E; None where the labels are D."""
        return self.labels if self.form.set_name == "E" else None

    def to_json(self) -> dict[str, Any]:
        return {
            "base": self.base,
            "D": self.correct,
            "form": self.form.letter,
            "why": self.why,
            "certified": self.certified,
            "verdict": self.verdict,
            "domain": self.domain,
            "bands": [band.to_json() for band in self.bands],
            "exhaustive": self.exhaustive,
            "proof": self.is_proof,
            "power": None if self.power is None else self.power.to_json(),
            "undecided": self.undecided,
            "learned_prime_powers": {str(p): q for p, q in self.prime_powers.items()},
            "grokked": self.grokked,
            "rules": {name: rule.to_json() for name, rule in self.rules.items()},
            "being_learned": self.being_learned,
            "E": self.other_labels,
            "classes": [c.to_json() for c in self.classes] if self.form.has_classes else None,
            "fidelity": {name: share.to_json() for name, share in self.fidelity.items()},
            "accuracy": {"measured": self.measured_accuracy, "predicted": self.predicted_accuracy},
            "counterexamples": [example.to_json() for example in self.counterexamples],
            "mistakes": self.mistakes.to_json(),
            "unreadable": self.unreadable,
            "untested": self.untested,
            "f": {str(k): {"prediction": readable(mode(s)), "frequency": s[mode(s)]} for k, s in self.shares.items()},
        }


def explain_tables(tables: dict[str, PredictionTable], *, base: int, maximum: int | None, threshold: float = 0.9,
                   least_pairs: int = 1, exhaustive: bool = False, domain: str | None = None,
                   earlier: Earlier = no_earlier, orders: Sequence[Shares] = ()) -> Explanation:
    """Explain the tables `natural` and `stratified` of one model, or the one table `pairs`.

    f(k) and D come from `stratified` if it is there, else from `pairs`; a k with fewer than `least_pairs` is untested.
    With a `maximum` the accuracy D implies is exact for M; without, it is counted over the table's own pairs. `earlier`
    gives the shares of earlier evaluations of the same run: what does not rise is not being learned. `orders` are the shares
    for a < b and for a > b: what is right in one order only is not being learned either.
    """
    source = tables["stratified"] if "stratified" in tables else tables["pairs"]
    shares, pairs, untested = shares_of(source, least_pairs, None if exhaustive else maximum)
    complete = shares.keys() if exhaustive else {k for k in shares if has_all_pairs(k, pairs[k], maximum)}
    evidence = Evidence(base, threshold, shares, pairs, frozenset(complete), earlier, orders)
    form, why = choose_form(evidence)
    reading = form.read(evidence)
    model = reading.model
    natural = tables.get("natural", source)
    uniform = maximum is not None and "natural" in tables
    implied = (implied_accuracy(model, shares, maximum) if maximum is not None and uniform and not exhaustive
               else counted_accuracy(model, natural))
    return Explanation(
        base=base, maximum=maximum, threshold=threshold, shares=shares, pairs=pairs, correct=evidence.correct,
        undecided=evidence.undecided, form=form, why=why, model=model, rules=reading.rules, classes=evidence.classes,
        being_learned=reading.being_learned,
        fidelity={name: fidelity(table, model, exhaustive) for name, table in tables.items()},
        measured_accuracy=100.0 * natural.accuracy, predicted_accuracy=implied,
        counterexamples=find_counterexamples(tables, model, TESTED_GCDS),
        unreadable={name: unreadable_in(table) for name, table in tables.items()}, untested=untested, exhaustive=exhaustive,
        domain=domain or (f"uniform pairs of 1..{maximum:,}" if uniform else "the pairs given"),
        mistakes=find_mistakes(source, shares, TESTED_GCDS))


def shares_of(table: PredictionTable, least_pairs: int = 1,
              maximum: int | None = None) -> tuple[Shares, dict[int, int], list[int]]:
    """For each k in 1..100 its distribution of predictions and how many pairs it had; and the k with too few to judge.

    Pairs of 1..M were drawn with replacement, so no k has more than there are; and it has all of them only if so many were
    drawn that hardly one is missing.
    """
    shares: Shares = {}
    pairs: dict[int, int] = {}
    for k in table.tested():
        if k > TESTED_GCDS:
            break
        counts = table.counts_of(k)
        total = sum(counts.values())
        if total >= least_pairs:
            shares[k] = {value: count / total for value, count in counts.items()}
            pairs[k] = total
            if maximum is not None and k <= maximum and (maximum // k) ** 2 < 4 * total:
                possible = count_pairs(maximum, k)
                complete = possible == 1 or total >= DRAWS_FOR_ALL * possible
                pairs[k] = possible if complete else max(1, min(total, possible - 1))
    untested = [k for k in range(1, TESTED_GCDS + 1) if k not in shares] if least_pairs > 1 else []
    return shares, pairs, untested


def has_all_pairs(k: int, count: int, maximum: int | None) -> bool:
    """Whether every pair with GCD k was drawn, there being fewer than LEAST_PAIRS."""
    return count < LEAST_PAIRS and maximum is not None and count >= count_pairs(maximum, k)


def fidelity(table: PredictionTable, model: RuleModel, exact: bool = False) -> Fidelity:
    """Over the pairs with a GCD of 1..100: the rules say nothing of larger ones, which were not tested k by k."""
    judged = table.gcd <= TESTED_GCDS
    agree = judged & model.agrees(table.gcd, table.prediction)
    return Fidelity(int(table.count[agree].sum()), int(table.count[judged].sum()), exact)


def unreadable_in(table: PredictionTable) -> int:
    return int(table.count[(table.prediction == UNREADABLE) & (table.gcd <= TESTED_GCDS)].sum())


def implied_accuracy(model: RuleModel, shares: Shares, maximum: int) -> float:
    """Percent of the M^2 pairs on which the rule model is right: exact, by counting."""
    largest = max([*shares, *model.answers.values()], default=1)
    return exact_accuracy((k for k in range(1, min(largest, maximum) + 1) if model.answer(k) == k), maximum)


def counted_accuracy(model: RuleModel, table: PredictionTable) -> float:
    """Percent of the table's own pairs on which the rule model is right."""
    right = int(table.count[model.answers_to(table.gcd) == table.gcd].sum())
    return 100.0 * right / max(table.total, 1)
