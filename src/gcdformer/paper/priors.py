"""What runs that were asked under many priors say about the claim of the decision prior.

The claim is ours: uniform outcomes break the rules only as long as the answer is chosen under the uniform prior. Runs with
other outcomes are its control: there the rules hold under both priors. Knows entries of the ledger, and trains nothing.
"""

from __future__ import annotations

from gcdformer.explanation.priors import UnderPrior
from gcdformer.paper.entry import Entry
from gcdformer.paper.evidence import Finding

LEAST_FIDELITY = 0.98
"""On natural pairs: what a certificate asks too."""
POINTS = 1.0
"""Points of accuracy up to which the model does what the rules imply."""


def was_asked(entry: Entry) -> bool:
    """Whether a run was asked under its own and the natural prior."""
    return {"training", "natural"} <= entry.under_priors.keys()


def follows_rules(figures: UnderPrior) -> bool:
    """Whether a form fits and predicts nearly all natural pairs."""
    return figures.has_form and figures.natural >= LEAST_FIDELITY


def rules_under_priors(entry: Entry) -> Finding:
    """As claimed if the rules hold under the natural prior and imply the accuracy there, and under the training's are broken
    (uniform outcomes) or hold as well (any others)."""
    own, natural = entry.under_priors["training"], entry.under_priors["natural"]
    restored = follows_rules(natural) and abs(natural.accuracy - natural.implied) <= POINTS
    held = restored and follows_rules(own) != (entry.config.data.outcomes == "uniform")
    return Finding(int(held), 1, f"under the training prior {in_words(own)}; under the natural one {in_words(natural)}")


def in_words(figures: UnderPrior) -> str:
    form = f"form {figures.form}" if figures.has_form else "no form fits"
    return (f"{figures.accuracy:.1f} % right (the rules imply {figures.implied:.1f} %), {form}, natural fidelity "
            f"{100 * figures.natural:.1f} %, {len(figures.D)} GCD{', certified' if figures.certified else ''}")
