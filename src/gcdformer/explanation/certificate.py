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
from gcdformer.explanation.classes import Class, find_classes
from gcdformer.explanation.rules import (
    Rule,
    RuleModel,
    Shares,
    Transition,
    check_classes,
    check_deterministic,
    check_largest_divisor,
    check_mostly_deterministic,
    check_products,
    class_model,
    find_transition,
    mode,
    readable,
    sieve_model,
    wilson,
)
from gcdformer.explanation.sieve import learned_prime_powers
from gcdformer.numbers.theory import exact_accuracy

FITS = 0.9
"""Share of k that must obey each rule for a form to be the model's form. A rule *holds* only without exception."""
ODD_ONES = 0.03
"""Share of k that another element of their class may stand for before the form is U; fewer are exceptions to R or G."""
CERTIFIED_FIDELITY = 0.98
CERTIFIED_TESTED = 0.97
MOST_COUNTEREXAMPLES = 100
MOST_EXAMINED = 20_000
NONE = Transition(frozenset(), frozenset())


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
class Explanation:
    """What a model does, as far as its tables tell."""

    base: int
    maximum: int | None
    threshold: float
    shares: Shares
    pairs: dict[int, int]
    correct: list[int]
    form: str
    why: str
    model: RuleModel
    rules: dict[str, Rule]
    classes: list[Class]
    being_learned: list[int]
    fidelity: dict[str, Fidelity]
    measured_accuracy: float
    predicted_accuracy: float
    counterexamples: list[dict[str, Any]]
    unreadable: dict[str, int]
    """For each table, how many answers were no integer."""
    untested: list[int]
    exhaustive: bool

    def __repr__(self) -> str:
        """One line: the form, the size of D, the fidelity, the verdict."""
        shown = ", ".join(f"{name} {100 * one.value:.2f} %" for name, one in self.fidelity.items())
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
        if self.form == "none":
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
        return learned_prime_powers(self.model.labels if self.form == "U" else self.correct)

    @property
    def grokked(self) -> list[int]:
        """Learned primes that do not divide the base."""
        return [p for p in self.prime_powers if self.base % p]

    def answer(self, a: int, b: int) -> int:
        """What the rules say the model answers for (a, b)."""
        return self.model.answer(gcd(a, b))

    def _repr_html_(self) -> str:
        """What a notebook shows: the certificate."""
        from gcdformer.explanation.html import notebook_html
        return notebook_html(self)

    def to_json(self) -> dict[str, Any]:
        return {
            "base": self.base,
            "D": self.correct,
            "form": self.form,
            "why": self.why,
            "certified": self.certified,
            "verdict": self.verdict,
            "exhaustive": self.exhaustive,
            "learned_prime_powers": {str(p): q for p, q in self.prime_powers.items()},
            "grokked": self.grokked,
            "rules": {name: rule.to_json() for name, rule in self.rules.items()},
            "being_learned": self.being_learned,
            "E": list(self.model.labels) if self.form == "U" else None,
            "classes": [c.to_json() for c in self.classes] if self.form == "U" else None,
            "fidelity": {name: one.to_json() for name, one in self.fidelity.items()},
            "accuracy": {"measured": self.measured_accuracy, "predicted": self.predicted_accuracy},
            "counterexamples": self.counterexamples,
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
    correct = [k for k, s in shares.items() if s.get(k, 0.0) >= threshold]
    sieve = sieve_model(correct, shares)
    transition = find_transition(shares, pairs, sieve, threshold)
    learning = sorted(transition.learning)
    rules = {"deterministic": check_deterministic(shares, pairs, threshold, transition.learning),
             "products": check_products(correct, shares, transition),
             "largest_divisor": check_largest_divisor(shares, sieve, transition.learning)}
    classes = find_classes(shares)
    by_class = class_model(classes)
    class_rules = {"deterministic": check_mostly_deterministic(classes, len(shares), threshold),
                   "products": check_products(by_class.labels, shares, NONE),
                   "largest_divisor": check_largest_divisor(shares, by_class, NONE.learning),
                   "classes": check_classes(shares, classes, by_class)}
    form, why = decide(base, shares, correct, rules, class_rules, by_class)
    model = sieve
    if form == "U":
        rules, model, learning = class_rules, by_class, []
    natural = tables.get("natural", source)
    predicted = (implied_accuracy(model, shares, maximum) if maximum is not None and "natural" in tables
                 else counted_accuracy(model, natural))
    return Explanation(
        base, maximum, threshold, shares, pairs, correct, form, why, model, rules, classes, learning,
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


def decide(base: int, shares: Shares, correct: list[int], rules: dict[str, Rule], class_rules: dict[str, Rule],
           by_class: RuleModel) -> tuple[str, str]:
    """The form that fits, and why in a sentence.

    R or G if D explains at least nine tenths of the k under each rule; U if the classes do, more than three in a hundred k
    are in classes predicted by another element than the smallest, and the classes explain more than D does.
    """
    if not shares:
        return "none", "no GCD was tested often enough"
    if all(mode(s) == UNREADABLE for s in shares.values()):
        return "none", "the usual answer is no integer, for every GCD tested"
    tested = len(shares)
    weakest = min(rules, key=lambda name: rules[name].share)
    class_weakest = min(class_rules, key=lambda name: class_rules[name].share)
    share, class_share = rules[weakest].share, class_rules[class_weakest].share
    elsewhere = sum(by_class.answers[e] != e for e in by_class.labels)
    some_classes = 1 < len(by_class.labels) < FITS * tested
    moved = sum(by_class.answer(k) != by_class.label(k) for k in shares)
    if some_classes and moved > ODD_ONES * tested and class_share >= FITS and class_share > share:
        return "U", (f"{len(by_class.labels)} classes of multiples are each predicted the same, {elsewhere} of them by "
                     f"another element than the smallest; {class_share:.0%} of the k obey the weakest rule, {class_weakest}")
    if correct and share >= FITS:
        held = f"the weakest rule, {weakest}, holds for {share:.0%} of the {tested} k tested"
        if all(rule.holds for rule in rules.values()):
            excused = any(rule.excused for rule in rules.values())
            held = "all three rules hold" + (" but for what is being learned" if excused else "")
        grokked = [p for p in learned_prime_powers(correct) if base % p]
        if grokked:
            verb = "do" if len(grokked) > 1 else "does"
            return "G", f"{held}; {' and '.join(map(str, grokked))} {verb} not divide {base}"
        return "R", f"{held}; every learned prime divides {base}"
    if not correct and class_share >= FITS:
        return "none", "no GCD is correct, and the k are not told apart"
    if not correct:
        return "none", f"no GCD is correct, and the classes' rule '{class_weakest}' holds for {class_share:.0%} of the k"
    return "none", (f"the rule '{weakest}' holds for only {share:.0%} of the {tested} k tested, and the classes' rule "
                    f"'{class_weakest}' for {class_share:.0%}")


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


def counterexamples(tables: dict[str, PredictionTable], model: RuleModel) -> list[dict[str, Any]]:
    """Example pairs on which the model does not answer what the rules say, at most 100, spread over the k."""
    found: list[tuple[int, int, dict[str, Any]]] = []
    seen: set[tuple[int, int]] = set()
    for name, table in tables.items():
        place: dict[int, int] = {}
        wrong = np.flatnonzero(~model.agrees(table.gcd, table.prediction)[table.example_row])[:MOST_EXAMINED]
        for index in wrong:
            row, a, b = table.example_row[index], table.example_a[index], table.example_b[index]
            k, prediction = int(table.gcd[row]), int(table.prediction[row])
            if (int(a), int(b)) not in seen:
                seen.add((int(a), int(b)))
                place[k] = place.get(k, 0) + 1
                found.append((place[k], k, {"a": int(a), "b": int(b), "gcd": k, "prediction": readable(prediction),
                                            "rule": readable(model.answer(k)), "set": name}))
    found.sort(key=lambda item: item[:2])
    return [example for _, _, example in found[:MOST_COUNTEREXAMPLES]]
