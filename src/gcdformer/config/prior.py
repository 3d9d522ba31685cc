"""The decision prior as a configuration, a flag and JSON have it: a name, or the exponent of k^-ALPHA.

Knows words, no distribution.
"""

from __future__ import annotations

from typing import Any

from gcdformer.errors import UserError

PRIORS = ("training", "natural", "uniform")
"""Decision priors by name; any other is the exponent of k^-ALPHA."""
LARGEST_EXPONENT = 10.0


def parse_prior(given: Any) -> str:
    """A decision prior in its one form: a name, or an exponent in as few digits as it has."""
    text = given.strip() if isinstance(given, str) else given
    if text in PRIORS:
        return str(text)
    try:
        exponent = float("nan") if isinstance(text, bool) or "_" in str(text) else float(text)
    except (TypeError, ValueError):
        exponent = float("nan")
    if not 0 <= exponent <= LARGEST_EXPONENT:
        raise ValueError(f"prior: one of {', '.join(PRIORS)}, or the exponent ALPHA of k^-ALPHA from 0 to "
                         f"{LARGEST_EXPONENT:g}, got '{str(given)[:50]}'")
    return repr(exponent).removesuffix(".0")


def checked_prior(given: Any) -> str:
    """The same for a flag or an argument; a `UserError` says what would be right."""
    try:
        return parse_prior(given)
    except ValueError as error:
        raise UserError(str(error)) from None


def prior_value(prior: str) -> str | float:
    """A decision prior as JSON says it: a word, or a number."""
    return prior if prior in PRIORS else float(prior)


def prior_in_words(prior: str) -> str:
    """A decision prior in a sentence."""
    return f"the {prior} prior" if prior in PRIORS else f"the prior k^-{prior}"
