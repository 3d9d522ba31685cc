"""What the forms, the rules and their exceptions are called, for the terminal and the page alike."""

from __future__ import annotations

from typing import Any

from gcdformer.explanation.certificate import Explanation
from gcdformer.explanation.rules import Rule
from gcdformer.explanation.sieve import prime_power, products

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


def rule_words(found: Explanation) -> list[tuple[str, Rule]]:
    """Each rule of the explanation with what it says."""
    words = U_RULES if found.form == "U" else RULES
    return [(words[name], rule) for name, rule in found.rules.items()]


def exception_text(one: dict[str, Any]) -> str:
    """An exception to a rule, in a few words."""
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
