"""The certificate: D, the form of the rules and why, fidelity with its interval, accuracy, every exception.

From prediction tables alone. Nothing is said of a k that was not tested often enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import Any

import numpy as np

from gcdformer.config import LEAST_PAIRS, TESTED_GCDS
from gcdformer.evaluation.table import UNREADABLE, PredictionTable
from gcdformer.explanation.classes import Class
from gcdformer.explanation.forms import NONE, Evidence, Form, choose_form
from gcdformer.explanation.rules import Rule, RuleModel, Shares, mode, readable, wilson
from gcdformer.explanation.sieve import learned_prime_powers
from gcdformer.numbers.theory import exact_accuracy

CERTIFIED_FIDELITY = 0.98
CERTIFIED_TESTED = 0.97
MOST_COUNTEREXAMPLES = 100
MOST_EXAMINED = 20_000


@dataclass(frozen=True)
class Fidelity:
    """Share of pairs on which model and rule model agree, with its 95 % Wilson interval."""

    agree: int
    n: int

    @property
    def value(self) -> float:
        return self.agree / self.n if self.n else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        return wilson(self.agree, self.n)

    def to_json(self) -> dict[str, Any]:
        low, high = self.interval
        return {"value": self.value, "low": low, "high": high, "n": self.n}


@dataclass(frozen=True)
class Counterexample:
    """A pair of a test set on which the model does not answer what the rules say; None stands for no integer."""

    a: int
    b: int
    gcd: int
    prediction: int | None
    rule: int | None
    set: str

    @property
    def text(self) -> str:
        """In a few words."""
        instead = "no rule says so" if self.rule is None else f"not {self.rule}"
        return f"({self.a}, {self.b}) -> {'unreadable' if self.prediction is None else self.prediction}, {instead}"

    def to_json(self) -> dict[str, Any]:
        return {"a": self.a, "b": self.b, "gcd": self.gcd, "prediction": self.prediction, "rule": self.rule, "set": self.set}


@dataclass(frozen=True)
class Explanation:
    """What a model does, as far as its tables tell."""

    base: int
    maximum: int | None
    threshold: float
    shares: Shares
    pairs: dict[int, int]
    correct: list[int]
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

    def __repr__(self) -> str:
        """One line: the form, the size of D, the fidelity, the verdict."""
        shown = ", ".join(f"{name} {100 * share.value:.2f} %" for name, share in self.fidelity.items())
        return (f"Explanation(base {self.base}, form {self.form}, {len(self.correct)} correct GCD of {len(self.shares)}, "
                f"fidelity {shown}: {self.verdict})")

    @property
    def certified(self) -> bool:
        """Whether nothing is missing for it."""
        return self.verdict == "certified"

    @property
    def verdict(self) -> str:
        """Certified, or what is missing for it: a form, rules without exception, fidelity of 98 % (in every table and as
        a mean over the k), and 30 pairs for almost every k, unless all pairs were tried."""
        broken = [name.replace("_", " ") for name, rule in self.rules.items() if not rule.holds]
        if self.form is NONE:
            return "not certified: no form fits"
        if broken:
            return f"not certified: exceptions to {', '.join(broken)}"
        if min([self.mean_agreement, *(one.value for one in self.fidelity.values())]) < CERTIFIED_FIDELITY:
            return f"not certified: fidelity below {100 * CERTIFIED_FIDELITY:.0f} %"
        largest = min(TESTED_GCDS, self.maximum or TESTED_GCDS)
        enough = sum(count >= LEAST_PAIRS for count in self.pairs.values())
        if not self.exhaustive and enough < CERTIFIED_TESTED * largest:
            return f"not certified: only {enough} of {largest} k were tested with {LEAST_PAIRS} pairs"
        return "certified"

    @property
    def mean_agreement(self) -> float:
        """The share of predictions that agree with the rules, a mean over the k tested."""
        answers = {k: self.model.answer(k) for k in self.shares}
        agree = [0.0 if answers[k] == UNREADABLE else s.get(answers[k], 0.0) for k, s in self.shares.items()]
        return sum(agree) / max(len(agree), 1)

    @property
    def prime_powers(self) -> dict[int, int]:
        """The learned primes, each with its highest power."""
        return learned_prime_powers(self.model.labels)

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
        """Learned primes that do not divide the base."""
        return [p for p in self.prime_powers if self.base % p]

    def answer(self, a: int, b: int) -> int:
        """What the rules say the model answers for (a, b)."""
        return self.model.answer(gcd(a, b))

    def _repr_html_(self) -> str:
        """What a notebook shows: the certificate."""
        from gcdformer.display.html import notebook_html
        return notebook_html(self)

    def classes_to_json(self) -> dict[str, Any]:
        """E and the classes; None where the form has none."""
        shown = self.form.has_classes
        return {"E": self.labels if shown else None, "classes": [c.to_json() for c in self.classes] if shown else None}

    def to_json(self) -> dict[str, Any]:
        return {
            "base": self.base,
            "D": self.correct,
            "form": self.form.letter,
            "why": self.why,
            "certified": self.certified,
            "verdict": self.verdict,
            "exhaustive": self.exhaustive,
            "learned_prime_powers": {str(p): q for p, q in self.prime_powers.items()},
            "grokked": self.grokked,
            "rules": {name: rule.to_json() for name, rule in self.rules.items()},
            "being_learned": self.being_learned,
            **self.classes_to_json(),
            "fidelity": {name: one.to_json() for name, one in self.fidelity.items()},
            "accuracy": {"measured": self.measured_accuracy, "predicted": self.predicted_accuracy},
            "counterexamples": [example.to_json() for example in self.counterexamples],
            "unreadable": self.unreadable,
            "untested": self.untested,
            "f": {str(k): {"prediction": readable(mode(s)), "frequency": s[mode(s)]} for k, s in self.shares.items()},
        }


def explain_tables(tables: dict[str, PredictionTable], *, base: int, maximum: int | None, threshold: float = 0.9,
                   least_pairs: int = 1, exhaustive: bool = False) -> Explanation:
    """Explain the tables `natural` and `stratified` of one model, or the one table `pairs`.

    f(k) and D come from `stratified` if it is there, else from `pairs`; a k with fewer than `least_pairs` is untested.
    With a `maximum` the accuracy D implies is exact for M; without, it is counted over the table's own pairs.
    """
    source = tables["stratified"] if "stratified" in tables else tables["pairs"]
    shares, pairs, untested = shares_of(source, least_pairs)
    evidence = Evidence(base, threshold, shares, pairs)
    form, why = choose_form(evidence)
    reading = form.read(evidence)
    model = reading.model
    natural = tables.get("natural", source)
    predicted = (implied_accuracy(model, shares, maximum) if maximum is not None and "natural" in tables
                 else counted_accuracy(model, natural))
    return Explanation(
        base, maximum, threshold, shares, pairs, evidence.correct, form, why, model, reading.rules, evidence.classes,
        reading.being_learned,
        {name: fidelity(table, model) for name, table in tables.items()}, 100.0 * natural.accuracy, predicted,
        counterexamples(tables, model), {name: unreadable_in(table) for name, table in tables.items()}, untested, exhaustive)


def shares_of(table: PredictionTable, least_pairs: int) -> tuple[Shares, dict[int, int], list[int]]:
    """For each k in 1..100 its distribution of predictions and how many pairs it had; and the k with too few to tell."""
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
    untested = [k for k in range(1, TESTED_GCDS + 1) if k not in shares] if least_pairs > 1 else []
    return shares, pairs, untested


def fidelity(table: PredictionTable, model: RuleModel) -> Fidelity:
    return Fidelity(int(table.count[model.agrees(table.gcd, table.prediction)].sum()), table.total)


def unreadable_in(table: PredictionTable) -> int:
    return int(table.count[table.prediction == UNREADABLE].sum())


def implied_accuracy(model: RuleModel, shares: Shares, maximum: int) -> float:
    """Percent of the M^2 pairs on which the rule model is right: exact, by counting."""
    largest = max([*shares, *model.answers.values()], default=1)
    return exact_accuracy((k for k in range(1, min(largest, maximum) + 1) if model.answer(k) == k), maximum)


def counted_accuracy(model: RuleModel, table: PredictionTable) -> float:
    """Percent of the table's own pairs on which the rule model is right."""
    right = int(table.count[model.answers_to(table.gcd) == table.gcd].sum())
    return 100.0 * right / max(table.total, 1)


def counterexamples(tables: dict[str, PredictionTable], model: RuleModel) -> list[Counterexample]:
    """Example pairs on which the model does not answer what the rules say, at most 100, spread over the k."""
    ranked: list[tuple[int, int, Counterexample]] = []
    seen: set[tuple[int, int]] = set()
    for name, table in tables.items():
        place: dict[int, int] = {}
        wrong = np.flatnonzero(~model.agrees(table.gcd, table.prediction)[table.example_row])[:MOST_EXAMINED]
        for index in wrong:
            row, a, b = table.example_row[index], int(table.example_a[index]), int(table.example_b[index])
            k, prediction = int(table.gcd[row]), int(table.prediction[row])
            if (a, b) not in seen:
                seen.add((a, b))
                place[k] = place.get(k, 0) + 1
                ranked.append((place[k], k, Counterexample(a, b, k, readable(prediction), readable(model.answer(k)), name)))
    ranked.sort(key=lambda item: item[:2])
    return [example for _, _, example in ranked[:MOST_COUNTEREXAMPLES]]
