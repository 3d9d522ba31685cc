"""Why the model answered what it answered, in one sentence: from the rules, the GCD and the prediction. Pure words."""

from __future__ import annotations

from math import gcd, prod

from gcdformer.config import TESTED_GCDS
from gcdformer.evaluation.table import readable
from gcdformer.explanation.certificate import Explanation
from gcdformer.explanation.sieve import components, prime_power
from gcdformer.explanation.transition import mode
from gcdformer.numbers.theory import prime_factors


def reason(explanation: Explanation, a: int, b: int, prediction: int | None) -> str:
    """One sentence. `prediction` is None if the answer was no integer."""
    k = gcd(a, b)
    rule = readable(explanation.model.answer(k))
    if prediction is None and rule is None:
        return f"The model gives an unreadable answer, which no rule explains; the true GCD is {k}."
    if prediction == rule:
        return as_the_rules_say(explanation, k, rule)
    if prediction == k:
        return f"The model is right: the GCD is {k}. {what_the_rules_say(explanation, k, rule)}{on_the_way(explanation, k)}."
    return (f"The model gives {shown(prediction)}, against its own rules. {what_the_rules_say(explanation, k, rule)}"
            f"{on_the_way(explanation, k)}; the true GCD is {k}.")


def shown(value: int | None) -> str:
    return "an unreadable answer" if value is None else str(value)


def as_the_rules_say(explanation: Explanation, k: int, rule: int | None) -> str:
    end = "." if rule == k else f"; the true GCD is {k}."
    if explanation.form.set_name == "E":
        label = explanation.model.label(k)
        return (f"The GCD {k} lies in the class of {label}, the largest label in E that divides a and b, and pairs of that "
                f"class get {shown(rule)}{end}")
    if rule is None or not any(k % d == 0 for d in explanation.model.labels):
        return f"No element of D divides a and b, so the model gives the answer it has for coprime pairs, {shown(rule)}{end}"
    start = f"a and b are both divisible by {rule}, the largest element of D that divides them"
    if rule == 1:
        start = "Of the elements of D only 1 divides both a and b"
    if rule == k:
        return f"{start}, and it is their GCD."
    return f"{start}; the true GCD is {k}, but {missing(explanation, k, rule)}."


def what_the_rules_say(explanation: Explanation, k: int, rule: int | None) -> str:
    known = explanation.form.set_name
    if not any(k % d == 0 for d in explanation.model.labels):
        return f"No element of {known} divides a and b, so the rules say {shown(rule)}"
    label = explanation.model.label(k)
    return f"The largest element of {known} that divides a and b is {label}, so the rules say {shown(rule)}"


def missing(explanation: Explanation, k: int, answer: int) -> str:
    """What D lacks of k, so that its largest divisor in D is only `answer`.

    For each prime, the highest power that any divisor of k in D has. Their product is `answer`, or is said not to be in D.
    """
    divisors = [d for d in explanation.correct if k % d == 0]
    reached: dict[int, int] = {}
    parts: list[str] = []
    for p, exponent in prime_factors(k).items():
        need = p**exponent
        have = reached[p] = max(gcd(d, need) for d in divisors)
        if have == 1:
            parts.append(f"{p} is not learned yet")
        elif have < need:
            parts.append(f"of {need} only {have} is learned{only_within(explanation, divisors, have)}")
    together = prod(reached.values())
    if together != answer:
        parts.append(lacking(explanation, together))
    return " and ".join(parts)


def only_within(explanation: Explanation, divisors: list[int], power: int) -> str:
    """For a prime power that D has in a product but not by itself: where, and how far it is."""
    if power in explanation.correct:
        return ""
    within = next(d for d in divisors if d % power == 0)
    own = explanation.shares.get(power)
    far = "" if own is None else f": {100 * own.get(power, 0.0):.0f} % of the pairs with GCD {power} are answered {power}"
    return f" (within {within}; {power} itself is not in D yet{far})"


def lacking(explanation: Explanation, k: int) -> str:
    if k > TESTED_GCDS:
        return f"D is only measured up to {TESTED_GCDS}"
    if all(q in explanation.correct for q in components(k)):
        return f"{k} itself is not in D, although its prime powers are"
    return f"{k} itself is not in D"


def on_the_way(explanation: Explanation, k: int) -> str:
    """How often such pairs got what they got, where that explains a disagreement."""
    shares = explanation.shares.get(k)
    if shares is None:
        return ""
    usual, right = shares[mode(shares)], shares.get(k, 0.0)
    if k in explanation.being_learned:
        return f", but {k} is being learned: {100 * right:.0f} % of the pairs with GCD {k} are answered {k}"
    if prime_power(k) and 0.05 <= right < explanation.threshold:
        return f", but {100 * right:.0f} % of the pairs with GCD {k} are already answered {k}"
    return f"; {100 * usual:.0f} % of the pairs with GCD {k} get {shown(readable(mode(shares)))}"
