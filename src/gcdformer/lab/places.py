"""The mechanism of a run's model as the page shows it: `mechanism.json` beside the run, if it belongs to weights that are
kept.

Only read, without torch: `gcdformer mechanism RUN` makes it. `flip_view` uses it on one question, with torch.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

from typing_extensions import TypedDict

from gcdformer.display.mechanism import sentences
from gcdformer.errors import UserError
from gcdformer.lab.bands import bands_view
from gcdformer.lab.catalogue import ListedRun, reading
from gcdformer.lab.schema import doc
from gcdformer.mechanism.result import Mechanism
from gcdformer.runs.explain import has_weights
from gcdformer.runs.folder import weights_digest
from gcdformer.runs.mechanism import flip_in_run, saved_mechanism
from gcdformer.runs.run import Run


class MechanismView(TypedDict):
    """Where in the network each learned prime is carried, as far as it is known."""

    run: str
    command: Annotated[str, doc("makes it, or makes it anew")]
    missing: Annotated[str | None, doc("why there is none to show")]
    sentences: Annotated[list[str], doc("what was found, in words")]
    mechanism: Mechanism | None


class Flipped(TypedDict):
    """One question whose divisibility by p was flipped inside the network."""

    epoch: int
    p: int
    a: int
    b: int
    swapped: Annotated[int, doc("the operand whose values were put in")]
    site: str
    places: Annotated[list[str], doc("the positions at which they were put in")]
    before: Annotated[int, doc("what the rules say for (a, b)")]
    expected: Annotated[int, doc("what the rules say for the swapped pair")]
    answer: Annotated[int | None, doc("what came out")]


def mechanism_view(entry: ListedRun) -> dict[str, Any]:
    """A `MechanismView` as it is sent: the saved mechanism with its sentences; or why there is none."""
    with reading(entry.path):
        mechanism, missing = checked_mechanism(entry)
        return {"run": entry.id, "command": mechanism_command(entry), "missing": missing,
                "sentences": [] if mechanism is None else sentences(mechanism),
                "mechanism": None if mechanism is None else mechanism.to_json()}


def mechanism_command(entry: ListedRun) -> str:
    return shlex.join(["gcdformer", "mechanism", f"runs/{entry.path.name}"])


def flip_view(entry: ListedRun, p: int, a: int, b: int) -> Flipped:
    """Divisibility of a by p flipped inside the network: what the rules predict, and what comes out. Needs torch."""
    with reading(entry.path):
        mechanism, missing = checked_mechanism(entry)
        if mechanism is None or mechanism.epoch is None:
            raise UserError(f"flip: it is not known where p is carried. {missing}")
        flipped = flip_in_run(Run(entry.path), mechanism, p, a, b)
        whole = next(prime.whole for prime in mechanism.primes if prime.p == p)
        return {"epoch": mechanism.epoch, "p": p, "a": a, "b": b, "swapped": flipped.swapped, "site": whole.site,
                "places": (["final state"] if whole.site.startswith("encoder.final")
                           else [mechanism.positions[position] for position in sorted(whole.positions)]),
                "before": flipped.before, "expected": flipped.expected, "answer": flipped.answer}


def more_files(entry: ListedRun, checkpoints: Sequence[int]) -> Iterator[tuple[str, Mapping[str, object]]]:
    """What an exported page has of a run beside its views: the bands of these epochs with weights, the mechanism.

    What cannot be read says so on the page, without a path of this machine, and does not stop the export.
    """
    for epoch in checkpoints:
        try:
            yield f"bands/{epoch}.json", bands_view(entry, epoch)
        except UserError:
            yield f"bands/{epoch}.json", {"error": f"The weights of epoch {epoch} are not as gcdformer writes them."}
    try:
        yield "mechanism.json", mechanism_view(entry)
    except UserError:
        words = mechanism_command(entry)
        yield "mechanism.json", {"run": entry.id, "command": words, "missing": "The one that was made is damaged.",
                                 "sentences": [], "mechanism": None}


def checked_mechanism(entry: ListedRun) -> tuple[Mechanism | None, str | None]:
    """The saved mechanism if it is that of weights that are kept, else why not."""
    run = Run(entry.path)
    mechanism = saved_mechanism(run)
    if mechanism is None:
        return None, "Nobody has looked yet."
    if mechanism.epoch is None or not has_weights(run, mechanism.epoch):
        return None, f"The one that was made is of epoch {mechanism.epoch}, whose weights are not kept."
    step = mechanism.epoch * run.config.training.steps_per_epoch
    if weights_digest(run.path, step) != mechanism.weights_sha256:
        return None, f"The one that was made is of other weights than those of epoch {mechanism.epoch}."
    return mechanism, None
