"""The mechanism of a run's model, beside the run: `mechanism.json`, with the checksum of the weights it belongs to.

Reading a saved one needs no torch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gcdformer.config import checked_prior, prior_value
from gcdformer.errors import UserError
from gcdformer.explanation import Explanation
from gcdformer.mechanism.result import ADAPTER, Example, Mechanism, Moment
from gcdformer.runs.explain import explain_run, explain_under_prior
from gcdformer.runs.files import read_json, write_json
from gcdformer.runs.folder import epochs_with_weights, weights_digest
from gcdformer.runs.run import Run

if TYPE_CHECKING:
    from gcdformer.evaluation.predictor import Predictor

NAME = "mechanism.json"
PAIRS = 100
"""Pairs for each prime, side and direction."""
Step = Callable[[int, int], None]


def mechanism(run: Run | str | Path, *, checkpoint: str | int = "last", pairs: int = PAIRS, seed: int = 0,
              through_training: bool = False, prior: str | float | None = None,
              on_step: Step = lambda done, total: None) -> Mechanism:
    """Which places of a run's network carry each learned prime, found by interchange, with controls.

    With `through_training` also when each place appeared, as far as checkpoints were kept. Answers are decided under
    `prior`, the run's own if none is given.
    """
    run = run if isinstance(run, Run) else Run(run)
    if not run.problem.task.has_gcd:
        raise UserError(f"{run.path}: the mechanism is that of task 'gcd', not '{run.config.task.task}'")
    epoch = run.epoch(str(checkpoint))
    step = run.checkpoint_step(str(checkpoint))
    chosen = run.config.evaluation.prior if prior is None else checked_prior(prior)
    predictor = run.predictor(checkpoint, prior=chosen)
    from gcdformer.mechanism.analysis import require_one_digit
    from gcdformer.mechanism.interchange import one_thread
    from gcdformer.mechanism.locate import analyse
    require_one_digit(predictor)
    explanation = explained(run, epoch, chosen)
    with one_thread():
        result = analyse(predictor, explanation, pairs=pairs, seed=seed, on_step=on_step)
        history = (follow_training(run, result, predictor, explanation, epoch, chosen, pairs, on_step) if through_training
                   else {})
    return replace(result, epoch=epoch, weights_sha256=weights_digest(run.path, step), through_training=history,
                   prior=prior_value(chosen))


def explained(run: Run, epoch: int, prior: str) -> Explanation:
    """The rules of an epoch under a prior: from the saved tables if it is the run's own."""
    return explain_run(run, epoch) if prior == run.config.evaluation.prior else explain_under_prior(run, epoch, prior)


def flip_in_run(run: Run, result: Mechanism, p: int, a: int, b: int) -> Example:
    """Flip divisibility of a by a learned prime inside the network: what the rules predict, and what comes out."""
    import numpy as np

    from gcdformer.mechanism.analysis import prepare
    from gcdformer.mechanism.locate import flip
    prime = next((prime for prime in result.primes if prime.p == p), None)
    if prime is None:
        known = ", ".join(str(prime.p) for prime in result.primes)
        raise UserError(f"{p}: not a prime whose place is known; they are {known}")
    epoch, prior = result.epoch or run.epoch(), checked_prior(result.prior)
    analysis = prepare(run.predictor(epoch, prior=prior), explained(run, epoch, prior), PAIRS, result.seed)
    return flip(analysis.exchange, analysis.rules, prime, a, b, np.random.default_rng(result.seed))


def follow_training(run: Run, result: Mechanism, predictor: Predictor, explanation: Explanation, epoch: int, prior: str,
                    pairs: int, on_step: Step) -> dict[int, list[Moment]]:
    """The final place of each prime at every checkpoint that was kept, up to the epoch of this model and its rules."""
    from gcdformer.mechanism.analysis import prepare
    final = prepare(predictor, explanation, pairs, result.seed)
    swaps = {prime.p: final.draw(final.rules, prime.p, 0).swaps for prime in result.primes}
    known = {int(line["epoch"]): set(line["D"]) for line in run.metrics}
    is_own = prior == run.config.evaluation.prior
    saved = epochs_with_weights(run.path, run.config.training.steps_per_epoch)
    epochs = [earlier for earlier in saved if earlier <= epoch and earlier in known]
    moments: dict[int, list[Moment]] = {prime.p: [] for prime in result.primes}
    for number, earlier in enumerate(epochs):
        on_step(number, len(epochs))
        analysis = prepare(run.predictor(earlier, prior=prior), explanation, pairs, result.seed)
        correct = known[earlier] if is_own else set(explained(run, earlier, prior).correct)
        for prime in result.primes:
            moments[prime.p].append(analysis.moment(prime, swaps[prime.p], earlier, learned=prime.p in correct))
    return moments


def write_mechanism(path: Path, result: Mechanism) -> None:
    write_json(path, result.to_json())


def saved_mechanism(run: Run, epoch: int | None = None) -> Mechanism | None:
    """The one beside the run; None if there is none, or if it is of another epoch than this."""
    result = read_json(run.path / NAME, ADAPTER, f"gcdformer mechanism {run.path}")
    return result if result is not None and epoch in (None, result.epoch) else None
