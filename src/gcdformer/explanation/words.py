"""What the forms, the rules and their exceptions are called, for the terminal and the page alike."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gcdformer.explanation.certificate import Explanation
from gcdformer.explanation.rules import Rule
from gcdformer.explanation.sieve import components, prime_power, products

FORMS = {
    "R": "products of primes of the base",
    "G": "products of primes of the base and of grokked small primes",
    "U": "classes of multiples, each predicted by one of its elements",
    "none": "none of the paper's three forms",
}
RULES = {
    "deterministic": "one prediction f(k) for all pairs with GCD k",
    "products": "D is all products of the learned prime powers",
    "largest_divisor": "f(k) is the largest element of D that divides k",
}
U_RULES = {
    "deterministic": "one prediction a class, seldom two or three",
    "products": "the classes' labels E are all products of the learned prime powers",
    "largest_divisor": "k is predicted as the largest label in E that divides it",
    "classes": "every class is predicted by one of its own elements",
}


SHOWN = 12
"""Integers that a sentence lists before it only counts them."""


def rule_words(found: Explanation) -> list[tuple[str, Rule]]:
    """Each rule of the explanation with what it says, and how it stands where it neither plainly holds nor is broken."""
    words = U_RULES if found.form == "U" else RULES
    return [(words[name] + status(found, rule), rule) for name, rule in found.rules.items()]


def rule_mark(rule: Rule) -> str:
    """`yes` it holds, `wait` it holds but for k being learned, `no` it has exceptions, `none` it was not judged."""
    if not rule.judged:
        return "none"
    return "no" if rule.exceptions else "wait" if rule.excused else "yes"


def status(found: Explanation, rule: Rule) -> str:
    mark = rule_mark(rule)
    if mark == "none":
        return ": not judged, " + ("every k is being learned" if rule.excused else "no k was tested often enough")
    if mark != "wait":
        return ""
    early = [one["k"] for one in rule.excused if one.get("why") == "unexpected"]
    late = [one["k"] for one in rule.excused if one.get("why") != "unexpected"]
    parts = [numbers(late, SHOWN)] if late else []
    if early:
        missing = sorted({q for k in early for q in components(k) if q not in found.correct})
        parts.append(f"{numbers(early, SHOWN)} {'are' if len(early) > 1 else 'is'} in D before {numbers(missing)}")
    return f": holds but for {len(rule.excused)} being learned ({'; '.join(parts)})"


def numbers(values: Iterable[int], most: int | None = None) -> str:
    """Integers with commas between; if there are more than `most`, the first of them and how many there are."""
    shown = list(values)
    if most is None or len(shown) <= most:
        return ", ".join(map(str, shown))
    return ", ".join(map(str, shown[:most])) + f" … {len(shown)} in all"


def unreadable_text(found: Explanation) -> str:
    """How many answers of each table were no integer."""
    return ", ".join(f"{count:,} of {found.fidelity[name].n:,} {'' if name == 'pairs' else name + ' '}pairs"
                     for name, count in found.unreadable.items())


def shown_value(value: int | None) -> str:
    return "unreadable" if value is None else str(value)


def counterexample_text(one: dict[str, Any]) -> str:
    """A pair against the rules, in a few words."""
    instead = "no rule says so" if one["rule"] is None else f"not {one['rule']}"
    return f"({one['a']}, {one['b']}) -> {shown_value(one['prediction'])}, {instead}"


def exception_text(one: dict[str, Any]) -> str:
    """An exception to a rule, in a few words."""
    if one.get("prediction", 0) is None:
        return f"f({one['k']}) is unreadable"
    if "expected" in one and "prediction" in one:
        return f"f({one['k']}) = {one['prediction']}, not {one['expected']}"
    if "frequency" in one:
        return f"{one['k']}: {100 * one['frequency']:.0f} % {one['prediction']}, {one['values']} values"
    if one["why"] == "in the wrong class":
        return f"{one['k']} in the class of {one['class']}, not {one['expected']}"
    return f"{one['k']} {one['why']}"


def known_sets(found: Explanation) -> list[tuple[int, list[int]]] | None:
    """D (or E) as a product: for each learned prime its powers, from 1 on. None if it is no such product."""
    labels = set(found.model.labels if found.form == "U" else found.correct)
    limit = max(found.shares, default=1)
    if labels != products(found.prime_powers, limit) & set(found.shares):
        return None
    return [(p, [1, *(q for q in sorted(labels) if (prime_power(q) or (0, 0))[0] == p)]) for p in found.prime_powers]
