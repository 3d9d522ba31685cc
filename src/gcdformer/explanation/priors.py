"""One model under several decision priors: what each does to its answers, in a few figures.

Knows explanations; how a model is asked under a prior is in `runs/priors.py`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated

from pydantic import BeforeValidator

from gcdformer.config import PRIORS, parse_prior, prior_value
from gcdformer.explanation.certificate import Explanation
from gcdformer.explanation.forms import NONE

SCANNED_EXPONENTS = tuple(str(half / 2).removesuffix(".0") for half in range(9))
"""The exponents ALPHA of the priors k^-ALPHA that are tried: 0, 0.5, ..., 4. Natural pairs have about 2."""
NATURAL_EXPONENT = 2.0
"""Two uniform integers have GCD k with a probability of about 0.61 k^-2."""


@dataclass(frozen=True)
class UnderPrior:
    """What the certificate says of the answers under one prior; shares are 0..1, accuracies percent."""

    prior: Annotated[str, BeforeValidator(parse_prior)]
    accuracy: float
    implied: float
    """The accuracy that the rules imply."""
    form: str
    certified: bool
    missing: str | None
    """What is missing for a certificate."""
    natural: float
    """Fidelity on the natural test set."""
    stratified: float
    D: list[int]

    @classmethod
    def of(cls, prior: str, explanation: Explanation) -> UnderPrior:
        fidelity = {name: round(share.value, 5) for name, share in explanation.fidelity.items()}
        return cls(prior, round(explanation.measured_accuracy, 3), round(explanation.predicted_accuracy, 3),
                   explanation.form.letter, explanation.certified, explanation.missing, fidelity["natural"],
                   fidelity["stratified"], explanation.correct)

    @property
    def has_form(self) -> bool:
        """Whether some form of rules fits."""
        return self.form != NONE.letter

    @property
    def exponent(self) -> float | None:
        """ALPHA of k^-ALPHA; None for a prior that has a name."""
        return None if self.prior in PRIORS else float(self.prior)

    def to_json(self) -> dict[str, object]:
        return asdict(self) | {"prior": prior_value(self.prior)}
