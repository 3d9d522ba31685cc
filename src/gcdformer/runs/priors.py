"""A run's weights asked under many priors, and the figures beside the run: `priors.json`, with the checksum of the weights.

Reading saved figures needs no torch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from gcdformer.explanation.priors import SCANNED_EXPONENTS, UnderPrior
from gcdformer.runs.explain import explain_under_prior
from gcdformer.runs.files import read_json, write_json
from gcdformer.runs.folder import weights_digest
from gcdformer.runs.run import Run

NAME = "priors.json"
PAIRS = 30_000
"""Pairs of each test set at most: 300 for each k, below which the noise of a share shows."""
SCANNED_PRIORS = ("training", "natural", *SCANNED_EXPONENTS)
"""What is tried: the two that have a name in a comparison, and the exponents between and beyond them."""


@dataclass(frozen=True)
class PriorScan:
    """What a checkpoint's model does under each of some priors."""

    epoch: int
    weights_sha256: str
    under: tuple[UnderPrior, ...]

    def to_json(self) -> dict[str, object]:
        return {"epoch": self.epoch, "weights_sha256": self.weights_sha256,
                "under": [figures.to_json() for figures in self.under]}


ADAPTER = TypeAdapter(PriorScan)


def scan_priors(run: Run | str | Path, *, checkpoint: str | int = "last", priors: Sequence[str] = SCANNED_PRIORS,
                on_step: Callable[[int, int], None] = lambda done, total: None) -> PriorScan:
    """The certificate of the same weights under each prior, on the run's test sets up to PAIRS, answered afresh."""
    run = run if isinstance(run, Run) else Run(run)
    run.require_gcd()
    step = run.checkpoint_step(str(checkpoint))
    under = []
    for number, prior in enumerate(priors):
        def on_batch(done: int, total: int, before: int = number) -> None:
            on_step(before * total + done, len(priors) * total)

        under.append(UnderPrior.of(prior, explain_under_prior(run, checkpoint, prior, on_batch, PAIRS)))
    return PriorScan(run.epoch(str(checkpoint)), weights_digest(run.path, step), tuple(under))


def write_scan(run: Run, scan: PriorScan) -> Path:
    write_json(run.path / NAME, scan.to_json())
    return run.path / NAME


def saved_scan(run: Run) -> PriorScan | None:
    """The one beside the run; None if there is none."""
    return read_json(run.path / NAME, ADAPTER, f"gcdformer explain {run.path} --over-priors")
