"""An epoch of a run under another decision prior: the same weights answer the run's own test sets again.

That takes seconds for a small model and much longer for a large one, so it is done in the background, and whoever asks
learns how far it is. What the run itself has recorded is in views.py, which needs no model.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Annotated

from typing_extensions import TypedDict

from gcdformer.config import checked_prior
from gcdformer.errors import UserError
from gcdformer.lab.cache import stamp
from gcdformer.lab.catalogue import Catalogue, ListedRun, reading
from gcdformer.lab.priors import offered_priors
from gcdformer.lab.schema import EpochDetails, doc
from gcdformer.lab.views import epoch_details, epoch_view
from gcdformer.runs.explain import OnBatch, explain_evaluation, has_weights, tables_under_prior
from gcdformer.runs.folder import RunFolder
from gcdformer.runs.run import Run

CACHED = 64
WAIT = 1.0
"""Seconds that an asker waits for the end before it is told how far the work is."""
ABANDONED_AFTER = 15.0
"""Seconds without anyone asking after which the work stops: the cores belong to training."""


class DecidedView(TypedDict):
    """An epoch under a prior, or how far it is."""

    epoch: int
    prior: str
    done: Annotated[float, doc("share of the test pairs that are answered")]
    details: Annotated[EpochDetails | None, doc("null until all are")]


class Abandoned(Exception):
    """Nobody waits for this any more."""


def decided_view(catalogue: Catalogue, entry: ListedRun, epoch: int, prior: str,
                 on_batch: OnBatch = lambda done, total: None) -> EpochDetails:
    """An evaluated epoch under a prior that is not the run's own, as `gcdformer explain --prior` judges it; refused if its
    weights are not kept."""
    with reading(entry.path):
        config = catalogue.config(entry)
        refusal = offered_priors(config)["refusal"]
        if refusal:
            raise UserError(f"prior: {refusal}")
        run = Run(entry.path)
        run.require_gcd()
        if not has_weights(run, epoch):
            raise UserError(f"epoch: the weights of epoch {epoch} are not kept, so it cannot be asked under another prior")
        tables = tables_under_prior(run, epoch, prior, on_batch)
        return epoch_details(epoch, prior, tables, explain_evaluation(config, tables))


def decided_files(catalogue: Catalogue, entry: ListedRun,
                  checkpoints: Sequence[int]) -> Iterator[tuple[str, Mapping[str, object]]]:
    """What an exported page has of this: these epochs with weights, under every prior that is offered but the run's own."""
    priors = offered_priors(catalogue.config(entry))
    for epoch in checkpoints:
        for name in (offered["name"] for offered in priors["offered"] if offered["name"] != priors["own"]):
            path = f"decided/{epoch}-{name}.json"
            try:
                details = decided_view(catalogue, entry, epoch, name)
                yield path, {"epoch": epoch, "prior": name, "done": 1.0, "details": details}
            except UserError:
                yield path, {"error": f"The model of epoch {epoch} could not be asked again when this page was made."}


class Job:
    """One epoch under one prior: how far it is, when somebody last asked."""

    def __init__(self) -> None:
        self.done = 0.0
        self.asked = time.monotonic()
        self.future: Future[EpochDetails] = Future()


class Decisions:
    """Epochs under other priors, the last few. One is made at a time, with one thread: the cores belong to training."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue
        self._lock = threading.Lock()
        self._jobs: OrderedDict[Hashable, Job] = OrderedDict()
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="decided")
        self._closed = False

    def get(self, entry: ListedRun, epoch: int, prior: str) -> DecidedView:
        name = checked_prior(prior)
        with reading(entry.path):
            if name == self.catalogue.config(entry).evaluation.prior:
                return {"epoch": epoch, "prior": name, "done": 1.0, "details": epoch_view(self.catalogue, entry, epoch)}
        job = self.job(entry, epoch, name)
        wait([job.future], WAIT)
        details = None
        if job.future.done():
            try:
                details = job.future.result()
            except Abandoned:
                job.done = 0.0  # begun again by the next to ask
        return {"epoch": epoch, "prior": name, "done": job.done, "details": details}

    def job(self, entry: ListedRun, epoch: int, prior: str) -> Job:
        """The job that makes it or has made it; a new one if there is none, or the last one failed."""
        key = (entry.path, epoch, prior, stamp(entry.path / "config.toml"), stamp(entry.path / "checkpoints"),
               stamp(RunFolder(entry.path).predictions_path(epoch)))
        with self._lock:
            job = self._jobs.get(key)
            if job is None or (job.future.done() and job.future.exception() is not None):
                job = self._jobs[key] = Job()
                job.future = self._worker.submit(self.make, job, entry, epoch, prior)
            job.asked = time.monotonic()
            self._jobs.move_to_end(key)
            while len(self._jobs) > CACHED:
                self._jobs.popitem(last=False)
            return job

    def make(self, job: Job, entry: ListedRun, epoch: int, prior: str) -> EpochDetails:
        import torch

        def on_batch(done: int, total: int) -> None:
            if self._closed or time.monotonic() - job.asked > ABANDONED_AFTER:
                raise Abandoned
            job.done = done / total

        on_batch(0, 1)
        torch.set_num_threads(1)
        details = decided_view(self.catalogue, entry, epoch, prior, on_batch)
        job.done = 1.0
        return details

    def close(self) -> None:
        """Stop what is being made."""
        self._closed = True
        self._worker.shutdown(wait=False)
