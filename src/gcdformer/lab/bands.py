"""The bands of a run's epoch: what the rules predict for pairs of other sizes and orders.

The model is asked, so its weights must be kept. The certificate itself (views.py) does not wait for this.
"""

from __future__ import annotations

import threading
from typing import Annotated

from typing_extensions import TypedDict

from gcdformer.display.words import Mark, band_mark, band_share
from gcdformer.errors import UserError
from gcdformer.explanation.bands import BandJson, limits_text
from gcdformer.explanation.statistics import CERTIFIED_FIDELITY
from gcdformer.lab.cache import Cache, stamp
from gcdformer.lab.catalogue import ListedRun, reading
from gcdformer.lab.schema import doc
from gcdformer.runs.explain import add_run_bands, explain_run, has_weights
from gcdformer.runs.folder import RunFolder
from gcdformer.runs.run import Run

CACHED_BANDS = 64


class BandView(BandJson):
    """A set of pairs, and how the rules and the truth fare in it."""

    mark: Annotated[Mark, doc("yes, no, or wait: whether the rules predict enough of the answers; wait is undecided")]
    shown: Annotated[str, doc("the fidelity with its interval")]


class BandsView(TypedDict):
    """An epoch's certificate by bands of size and order."""

    epoch: int
    certified: bool
    domain: Annotated[str, doc("the pairs the certificate was made from")]
    limits: Annotated[str, doc("what the bands add to it: '; not below 10,000'")]
    verdict: str
    wanted: Annotated[float, doc("the fidelity from which on the rules hold in a band")]
    bands: list[BandView]


def bands_view(entry: ListedRun, epoch: int) -> BandsView:
    """The bands of an evaluated epoch, as `gcdformer explain` judges them; refused if its weights are not kept."""
    with reading(entry.path):
        run = Run(entry.path)
        run.require_gcd()
        epoch = run.epoch(str(epoch))
        if not has_weights(run, epoch):
            raise UserError(f"epoch: the weights of epoch {epoch} are not kept, so sizes and orders cannot be judged")
        explanation = add_run_bands(explain_run(run, epoch), run, epoch)
        return {"epoch": epoch, "certified": explanation.certified, "domain": explanation.domain,
                "limits": limits_text(explanation.bands), "verdict": explanation.verdict, "wanted": CERTIFIED_FIDELITY,
                "bands": [{**band.to_json(), "mark": band_mark(band), "shown": band_share(band)}
                          for band in explanation.bands]}


class Bands:
    """Bands by run and epoch, the last few. One is made at a time, with one thread: the cores belong to training."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: Cache[BandsView] = Cache(CACHED_BANDS)

    def get(self, entry: ListedRun, epoch: int) -> BandsView:
        key = (entry.path, epoch, stamp(entry.path / "config.toml"), stamp(entry.path / "checkpoints"),
               stamp(RunFolder(entry.path).predictions_path(epoch)))

        def make() -> BandsView:
            import torch

            torch.set_num_threads(1)
            return bands_view(entry, epoch)

        with self._lock:
            return self._made.get(key, make)
