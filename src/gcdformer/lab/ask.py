"""Asks a run's model: tokens, the distribution at each step, the prediction, the truth, and the reason.

A few models and explanations are cached. Torch is imported by `warm_up`, or at a question that comes before it.
"""

from __future__ import annotations

import random
import threading
from contextlib import suppress
from math import gcd
from typing import TYPE_CHECKING, Annotated

import numpy as np
from typing_extensions import TypedDict

from gcdformer.display.reasons import reason, shown
from gcdformer.errors import UserError
from gcdformer.evaluation.table import readable
from gcdformer.explanation import Explanation
from gcdformer.lab.cache import Cache, stamp
from gcdformer.lab.catalogue import Catalogue, ListedRun, reading
from gcdformer.lab.priors import chosen_prior, offered_prior
from gcdformer.lab.schema import doc
from gcdformer.lab.views import askable_epochs, explain_epoch, require_gcd
from gcdformer.numbers.encoding import BEGIN, DIGIT_0, END, Vocabulary
from gcdformer.numbers.theory import totient_sums
from gcdformer.runs.folder import RunFolder
from gcdformer.runs.run import Run

if TYPE_CHECKING:
    from torch import Tensor

    from gcdformer.evaluation.predictor import Predictor

SHOWN_TOKENS = 8
NOT_A_GCD = "ask: only models of task 'gcd' can be asked here, not '{task}'"
CACHED_MODELS = 6
CACHED_EXPLANATIONS = 64
MOST_ATTENTION = 64
"""Heads, over all layers, of which attention is sent."""
Pattern = list[list[list[list[float]]]]
"""Attention by layer, head, query and key."""


class Likely(TypedDict):
    word: str
    p: float


class DecoderStep(TypedDict):
    chosen: str
    likely: Annotated[list[Likely], doc("the likeliest tokens, best first")]


class AttentionView(TypedDict):
    encoder: Pattern
    decoder: Pattern
    cross: Pattern


class Candidate(TypedDict):
    answer: int | None
    score: Annotated[float, doc("ln of its probability, plus the prior's offset")]
    p: Annotated[float, doc("as a share of all listed answers")]


class Asked(TypedDict):
    """A question to a model, and all that is shown of its answer."""

    run: str
    epoch: int
    a: int
    b: int
    base: int
    prediction: int | None
    truth: int
    right: bool
    rule: int | None
    reason: str
    input: list[str]
    output: list[str]
    value_of: str | None
    steps: list[DecoderStep]
    attention: Annotated[AttentionView | None, doc("null for recurrent models")]
    own: Annotated[int | None, doc("the prediction under the run's own prior")]
    candidates: Annotated[list[Candidate] | None, doc("the best answers under the prior; null if none is offered")]


class Surprise(TypedDict):
    epoch: int
    a: int | None
    b: int | None
    known: Annotated[int, doc("how many such pairs are known")]


class Asker:
    """The models of a catalogue's runs, ready to be asked."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue
        self._models: Cache[Predictor] = Cache(CACHED_MODELS)
        self._explanations: Cache[Explanation] = Cache(CACHED_EXPLANATIONS)
        self._asking = threading.Lock()
        """Attention is read by hooks, which would also see another question to the same model."""

    def warm_up(self, run: str) -> None:
        """Load what the first question to this run needs, by asking one. One thread: the cores belong to training."""
        import torch

        torch.set_num_threads(1)
        totient_sums(1_000_000)
        with suppress(UserError):  # a run that cannot be asked says so to whoever asks it
            self.ask(self.catalogue.find(run), 1, 1, None)

    def ask(self, entry: ListedRun, a: int, b: int, epoch: int | None, prior: str | None = None,
            share: float = 1.0) -> Asked:
        """Everything the page shows of one question; the newest epoch with weights if none is named. Decided under a prior,
        a share of the way from the training's; under the run's own if none is named."""
        require_gcd(self.catalogue, entry, NOT_A_GCD)
        chosen = self.epoch_with_weights(entry, epoch)
        predictor = self.predictor(entry, chosen)
        problem = predictor.problem
        problem.check_questions(np.array([[a, b]], dtype=np.int64))
        from gcdformer.lab.decide import Decider
        from gcdformer.models.inspect import attention, trace
        config, vocabulary = self.catalogue.config(entry), problem.vocabulary
        step = chosen * config.training.steps_per_epoch
        inputs = problem.encode_questions(np.array([[a, b]], dtype=np.int64))[0][0].tolist()
        decider = Decider(predictor.model, problem, inputs)
        under = predictor.prior if prior is None else chosen_prior(config, problem, step, prior, share)
        with self._asking:
            own = decider.decide(predictor.prior)
            tokens = own if prior is None else decider.decide(under)
            decoded = trace(predictor.model, inputs, problem.longest_target, tokens)
            patterns = attention(predictor.model, inputs, [BEGIN, *tokens[:-1]])
            candidates = decider.candidates(under or offered_prior(config, problem, step), under is not None)
        prediction, usual = decider.value(tokens), decider.value(own)
        explanation = self.explanation(entry, chosen)
        k = gcd(a, b)
        return {
            "run": entry.id, "epoch": chosen, "a": a, "b": b, "base": problem.base, "prediction": prediction, "truth": k,
            "right": prediction == k, "rule": readable(explanation.model.answer(k)),
            "reason": reason(explanation, a, b, prediction) if prediction == usual else other_prior(k, prediction, usual),
            "input": [vocabulary.symbol(token) for token in inputs],
            "output": [vocabulary.symbol(token) for token in tokens],
            "value_of": places(tokens, problem.base),
            "steps": [step_view(vocabulary, token, distribution)
                      for token, distribution in zip(tokens, decoded.distributions, strict=True)],
            "attention": None if patterns is None else {
                "encoder": pattern_view(patterns.encoder), "decoder": pattern_view(patterns.decoder),
                "cross": pattern_view(patterns.cross)},
            "own": usual,
            "candidates": candidates,
        }

    def surprise(self, entry: ListedRun, epoch: int | None) -> Surprise:
        """A pair on which the model disagrees with its rules, from the test sets of that epoch; nulls if none is known."""
        require_gcd(self.catalogue, entry, NOT_A_GCD)
        chosen = self.epoch_with_weights(entry, epoch)
        known = self.explanation(entry, chosen).counterexamples
        if not known:
            return {"epoch": chosen, "a": None, "b": None, "known": 0}
        example = random.choice(known)
        return {"epoch": chosen, "a": example.a, "b": example.b, "known": len(known)}

    def epoch_with_weights(self, entry: ListedRun, epoch: int | None) -> int:
        with reading(entry.path):
            config = self.catalogue.config(entry)
            known = askable_epochs(entry, config.training.steps_per_epoch, len(RunFolder(entry.path).metrics()))
        if not known:
            raise UserError("ask: this run has no evaluated epoch with weights yet")
        if epoch is not None and epoch not in known:
            raise UserError(f"epoch: its weights are not kept; those of {', '.join(map(str, known))} are")
        return known[-1] if epoch is None else epoch

    def predictor(self, entry: ListedRun, epoch: int) -> Predictor:
        def make() -> Predictor:
            with reading(entry.path):
                return Run(entry.path).predictor(epoch)

        return self._models.get((entry.path, epoch, stamp(entry.path / "config.toml")), make)

    def explanation(self, entry: ListedRun, epoch: int) -> Explanation:
        mark = stamp(RunFolder(entry.path).predictions_path(epoch))
        return self._explanations.get((entry.path, epoch, mark), lambda: explain_epoch(self.catalogue, entry, epoch)[1])


def other_prior(k: int, prediction: int | None, usual: int | None) -> str:
    """Why an answer differs from the run's own."""
    end = ", and that is the GCD." if prediction == k else f"; the true GCD is {k}."
    return f"Under this prior the model gives {shown(prediction)} instead of {shown(usual)}{end}"


def places(tokens: list[int], base: int) -> str | None:
    """The answer's digits as a sum of powers of the base: `1 x 30 + 10`. None if there is only one digit or no integer."""
    digits = [token - DIGIT_0 for token in tokens[1:-1]] if len(tokens) > 3 and tokens[-1] == END else []
    if len(digits) < 2 or min(digits) < 0:
        return None
    powers = range(len(digits) - 1, -1, -1)
    return " + ".join(f"{d} × {base**e}" if e else str(d) for d, e in zip(digits, powers, strict=True))


def step_view(vocabulary: Vocabulary, token: int, distribution: Tensor) -> DecoderStep:
    """The token chosen, and the likeliest ones with their probabilities."""
    best = distribution.topk(min(SHOWN_TOKENS, len(distribution)))
    likely: list[Likely] = [{"word": vocabulary.symbol(int(index)), "p": round(float(p), 5)}
              for p, index in zip(best.values, best.indices, strict=True)]
    return {"chosen": vocabulary.symbol(token), "likely": likely}


def pattern_view(layers: list[Tensor]) -> Pattern:
    heads = MOST_ATTENTION // max(len(layers), 1) or 1
    return [[[[round(float(x), 4) for x in row] for row in head] for head in layer[:heads].tolist()] for layer in layers]
