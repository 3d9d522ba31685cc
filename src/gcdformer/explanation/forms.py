"""The forms of rules: R, G, U, and none. Each says how it reads the tables, when it fits, and in which words.

R and G read them by the divisors in D and differ only in whether a learned prime does not divide the base. U reads them by
classes of multiples, whose labels are E. A new form is a subclass of `Form` and a place in FORMS before wider forms, since
the first that fits is taken (docs/extend.md has an example). Knows no way of showing a form.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal, final

from gcdformer.evaluation.table import UNREADABLE
from gcdformer.explanation.classes import Class, find_classes
from gcdformer.explanation.rules import (
    Rule,
    RuleModel,
    check_classes,
    check_deterministic,
    check_largest_divisor,
    check_mostly_deterministic,
    check_products,
    class_model,
    sieve_model,
)
from gcdformer.explanation.sieve import products
from gcdformer.explanation.statistics import is_above
from gcdformer.explanation.transition import Earlier, Shares, Transition, find_transition, mode, no_earlier

FITS = 0.9
"""Share of k that must obey each rule for a form to be the model's form. A rule *holds* only without exception."""
MOST_NAMED = 6
ODD_ONES = 0.03
"""Share of k that another element of their class may stand for before the form is U; fewer are exceptions to R or G."""


@dataclass(frozen=True)
class Reading:
    """A rule model of the tables, its rules checked k by k, and the k that are excused as being learned."""

    model: RuleModel
    rules: dict[str, Rule]
    being_learned: list[int]

    @property
    def weakest(self) -> tuple[str, float]:
        """The rule that the fewest k obey, and their share."""
        name = min(self.rules, key=lambda name: self.rules[name].share)
        return name, self.rules[name].share


@dataclass(frozen=True)
class Evidence:
    """What the tables show before a form is chosen: the predictions for every k tested, and the two readings of them."""

    base: int
    threshold: float
    shares: Shares
    pairs: dict[int, int]
    complete: frozenset[int] = frozenset()
    """The k of which all pairs were tried, so that nothing is undecided."""
    earlier: Earlier = no_earlier
    orders: Sequence[Shares] = ()
    """The same for the pairs a < b and for a > b, if the pairs are known."""

    @cached_property
    def membership(self) -> dict[int, bool | None]:
        """For each k: in D, out of it, or None where its 95 % interval contains the threshold."""
        right = {k: s.get(k, 0.0) for k, s in self.shares.items()}
        return {k: share >= self.threshold if k in self.complete
                else is_above(round(share * self.pairs[k]), self.pairs[k], self.threshold) for k, share in right.items()}

    @cached_property
    def undecided(self) -> list[int]:
        return [k for k, above in self.membership.items() if above is None]

    @cached_property
    def correct(self) -> list[int]:
        """D."""
        return [k for k, s in self.shares.items() if s.get(k, 0.0) >= self.threshold]

    @property
    def constant(self) -> int | None:
        """The one answer that is usual for every k, if several k were tested and it is not 1."""
        answers = {mode(s) for s in self.shares.values()}
        return next(iter(answers)) if len(answers) == 1 and len(self.shares) > 1 and answers != {1} else None

    @cached_property
    def classes(self) -> list[Class]:
        return find_classes(self.shares)

    @cached_property
    def by_divisors(self) -> Reading:
        """f(k) is the largest element of D that divides k."""
        return self.read_divisors(find_transition(self.shares, self.pairs, self.membership, frozenset(self.correct),
                                                  self.threshold, self.earlier, self.orders))

    def read_divisors(self, transition: Transition) -> Reading:
        """The same with these k excused."""
        model, undecided = sieve_model(self.correct, self.shares), frozenset(self.undecided)
        rules = {"deterministic": check_deterministic(self.shares, self.pairs, self.threshold, transition.learning,
                                                      self.complete),
                 "products": check_products(self.correct, self.shares, transition, undecided),
                 "largest_divisor": check_largest_divisor(self.shares, model, transition.learning, undecided)}
        return Reading(model, rules, sorted(transition.learning))

    @cached_property
    def by_classes(self) -> Reading:
        """k is predicted as the class of the largest label in E that divides it. Nothing is excused."""
        model, nothing = class_model(self.classes), Transition()
        rules = {"deterministic": check_mostly_deterministic(self.classes, len(self.shares), self.threshold),
                 "products": check_products(model.labels, self.shares, nothing),
                 "largest_divisor": check_largest_divisor(self.shares, model, nothing.learning),
                 "classes": check_classes(self.shares, self.classes, model)}
        return Reading(model, rules, [])


class Form(ABC):
    """A way in which a model can follow rules. Unless it says otherwise, they are those of D."""

    letter: ClassVar[str]
    title: ClassVar[str]
    set_name: ClassVar[Literal["D", "E"]] = "D"
    """What the labels of its rule model are called: D if they are the correct k, else E."""
    has_classes: ClassVar[bool] = False
    """Whether the k are told apart by class only, so that the classes are worth showing."""
    sentences: ClassVar[Mapping[str, str]] = {
        "deterministic": "one prediction f(k) for all pairs with GCD k",
        "products": "D is all products of the learned prime powers",
        "largest_divisor": "f(k) is the largest element of D that divides k",
    }
    """What each of its rules says."""

    @abstractmethod
    def read(self, evidence: Evidence) -> Reading:
        """Its rule model of the tables, with its rules."""

    @abstractmethod
    def why(self, evidence: Evidence) -> str | None:
        """Why it is the form of these tables, in a sentence; None if it is not."""

    def __str__(self) -> str:
        return self.letter


class Sieve(Form):
    """The forms that hold by the divisors in D: R and G. Abstract: they differ in `why`."""

    def read(self, evidence: Evidence) -> Reading:
        return evidence.by_divisors

    def grokked(self, evidence: Evidence) -> list[int]:
        """Learned primes that do not divide the base."""
        return [p for p in evidence.by_divisors.model.prime_powers if evidence.base % p]

    def held(self, evidence: Evidence) -> str | None:
        """How far the rules hold; None if too few k obey one of them, or if one answer is given whatever the GCD."""
        reading = evidence.by_divisors
        weakest, share = reading.weakest
        if not evidence.correct or share < FITS or evidence.constant is not None:
            return None
        if not all(rule.holds for rule in reading.rules.values()):
            return f"the weakest rule, {weakest}, holds for {share:.0%} of the {len(evidence.shares)} k tested"
        excused = any(rule.excused for rule in reading.rules.values())
        undecided = any(rule.undecided for rule in reading.rules.values())
        but = " and ".join(["what is being learned"] * excused + ["what is undecided"] * undecided)
        return "all three rules hold" + (f" but for {but}" if but else "")

    def also(self, evidence: Evidence) -> str:
        """What else is in D than products of learned prime powers."""
        expected = products(evidence.by_divisors.model.prime_powers, max(evidence.shares))
        others = [str(d) for d in evidence.correct if d not in expected]
        if not others:
            return ""
        which = "which is no product" if len(others) == 1 else "which are no products"
        return f", but D also has {', '.join(others)}, {which} of learned prime powers"


@final
class BasePrimes(Sieve):
    """R: every learned prime divides the base."""

    letter = "R"
    title = "products of primes of the base"

    def why(self, evidence: Evidence) -> str | None:
        held = self.held(evidence)
        if held is None or self.grokked(evidence):
            return None
        learned, also = evidence.by_divisors.model.prime_powers, self.also(evidence)
        if not learned:
            return f"{held}; no prime is learned by itself{also}"
        return f"{held}; every {'prime learned by itself' if also else 'learned prime'} divides {evidence.base}{also}"


@final
class GrokkedPrimes(Sieve):
    """G: some learned prime does not divide the base."""

    letter = "G"
    title = "products of primes of the base and of grokked small primes"

    def why(self, evidence: Evidence) -> str | None:
        held, grokked = self.held(evidence), self.grokked(evidence)
        if held is None or not grokked:
            return None
        verb = "do" if len(grokked) > 1 else "does"
        which = " and ".join(map(str, grokked)) if len(grokked) <= MOST_NAMED else f"{len(grokked)} learned primes"
        return f"{held}; {which} {verb} not divide {evidence.base}{self.also(evidence)}"


@final
class UniformClasses(Form):
    """U: the k fall into classes of multiples, more than three in a hundred in classes that are predicted by another element
    than the smallest, and the classes explain more than D does."""

    letter = "U"
    title = "classes of multiples, each predicted by one of its elements"
    set_name = "E"
    has_classes = True
    sentences = {
        "deterministic": "one prediction a class, seldom two or three",
        "products": "the classes' labels E are all products of the learned prime powers",
        "largest_divisor": "k is predicted as the largest label in E that divides it",
        "classes": "every class is predicted by one of its own elements",
    }

    def read(self, evidence: Evidence) -> Reading:
        return evidence.by_classes

    def why(self, evidence: Evidence) -> str | None:
        model, tested = evidence.by_classes.model, len(evidence.shares)
        weakest, share = evidence.by_classes.weakest
        moved = sum(model.answer(k) != model.label(k) for k in evidence.shares)
        if (not 1 < len(model.labels) < FITS * tested or moved <= ODD_ONES * tested or share < FITS
                or share <= evidence.by_divisors.weakest[1]):
            return None
        elsewhere = sum(model.answers[label] != label for label in model.labels)
        return (f"{len(model.labels)} classes of multiples are each predicted the same, {elsewhere} of them by another "
                f"element than the smallest; {share:.0%} of the k obey the weakest rule, {weakest}")


@final
class NoForm(Form):
    """None of the others; the rules of D are shown with all that breaks them, and nothing is excused."""

    letter = "none"
    title = "none of the paper's three forms"

    def read(self, evidence: Evidence) -> Reading:
        return evidence.read_divisors(Transition())

    def why(self, evidence: Evidence) -> str:
        if not evidence.shares:
            return "no GCD was tested often enough"
        if all(mode(s) == UNREADABLE for s in evidence.shares.values()):
            return "the usual answer is no integer, for every GCD tested"
        if evidence.constant is not None:
            return f"the usual answer is {evidence.constant}, whatever the GCD: nothing is told apart"
        weakest, share = evidence.by_divisors.weakest
        class_weakest, class_share = evidence.by_classes.weakest
        if not evidence.correct and class_share >= FITS:
            return "no GCD is correct, and the k are not told apart"
        if not evidence.correct:
            return f"no GCD is correct, and the classes' rule '{class_weakest}' holds for {class_share:.0%} of the k"
        right = sum(s.get(k, 0.0) for k, s in evidence.shares.items()) / len(evidence.shares)
        mostly = f"{right:.0%} of the answers are right, a mean over the k, but not by a sieve: " if right > 0.5 else ""
        return (f"{mostly}the rule '{weakest}' holds for only {share:.0%} of the {len(evidence.shares)} k tested, and the "
                f"classes' rule '{class_weakest}' for {class_share:.0%}")


R, G, U, NONE = BasePrimes(), GrokkedPrimes(), UniformClasses(), NoForm()
FORMS: tuple[Form, ...] = (U, G, R, NONE)
"""In the order in which they are tried; the last one always fits."""


def choose_form(evidence: Evidence) -> tuple[Form, str]:
    """The first form that fits, and why."""
    return next((form, why) for form in FORMS if (why := form.why(evidence)) is not None)
