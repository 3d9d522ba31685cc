"""One question decided under a prior, and its best answers. Needs torch; the page does the same for small models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from gcdformer.data.problem import Problem
from gcdformer.evaluation.prior import DecisionPrior
from gcdformer.models.decide import PlainPaths, generate_best, sequence_log_probs
from gcdformer.models.inspect import trace
from gcdformer.models.interface import Seq2Seq
from gcdformer.numbers.encoding import END, PAD

if TYPE_CHECKING:
    from gcdformer.lab.ask import Candidate

SHOWN = 8
SCORED_AT_ONCE = 100


class Decider:
    """A model that has been asked one question."""

    def __init__(self, model: Seq2Seq, problem: Problem, inputs: Sequence[int]) -> None:
        self.model, self.problem, self.inputs = model, problem, inputs
        self.row = torch.tensor([list(inputs)])

    def decide(self, prior: DecisionPrior | None) -> list[int]:
        """The tokens of the answer, END included if it ends: greedy without a prior."""
        longest = self.problem.longest_target
        if prior is None:
            return trace(self.model, self.inputs, longest).tokens
        tokens: list[int] = generate_best(self.model, self.row, longest, prior.tree(self.problem.base))[0].tolist()
        return tokens[:tokens.index(END) + 1] if END in tokens else [token for token in tokens if token != PAD]

    def value(self, tokens: Sequence[int]) -> int | None:
        row = np.zeros((1, self.problem.longest_target), dtype=np.int64)
        row[0, :len(tokens)] = tokens
        values, readable = self.problem.decode_answers(row)
        return int(values[0, 0]) if readable[0] else None

    @torch.inference_mode()
    def candidates(self, prior: DecisionPrior | None, offset: bool) -> list[Candidate] | None:
        """The best of the answers that a prior lists, with or without its offsets; among them the greedy one if not listed.
        None if the weights give no probabilities."""
        if prior is None:
            return None
        tree, paths = prior.tree(self.problem.base), PlainPaths(self.model, self.row)
        rows = [tree.answers[start:start + SCORED_AT_ONCE] for start in range(0, len(tree.answers), SCORED_AT_ONCE)]
        scores = np.concatenate([sequence_log_probs(paths, np.zeros(len(some), dtype=np.int64), some) for some in rows])
        answers: list[int | None] = list(prior.answers.tolist())
        scores = scores + prior.log_ratios if offset else scores
        greedy = self.decide(None)
        if self.value(greedy) not in answers:
            row = np.zeros((1, self.problem.longest_target), dtype=np.int64)
            row[0, :len(greedy)] = greedy
            answers.append(self.value(greedy))
            own = sequence_log_probs(paths, np.zeros(1, dtype=np.int64), row)
            scores = np.append(scores, own + (tree.least if offset else 0.0))
        if not np.isfinite(scores).all():
            return None
        shares = np.exp(scores - np.logaddexp.reduce(scores))
        best = np.argsort(-scores, kind="stable")[:SHOWN].tolist()
        return [{"answer": answers[place], "score": round(float(scores[place]), 5), "p": round(float(shares[place]), 5)}
                for place in best]
