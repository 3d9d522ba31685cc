"""The best of many listed answers, each with an offset to its log-probability: an exact best-first search.

    answer = argmax over listed answers s of  ln p(s | x) + offset(s)

The score of a prefix, its log-probability plus the largest offset below it, is never below that of an answer it leads to.
So the prefix with the highest score is looked at first, and the search ends when an answer has the highest score; usually
few prefixes are looked at. The sequence that greedy decoding gives competes too if it is not listed, with the smallest
offset of all: whatever the offsets say about listed answers, they give no reason to prefer another one. Rows of a batch are
searched side by side. Knows token ids, not integers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from gcdformer.models.answer_tree import AnswerTree, LogScores
from gcdformer.models.generate import generate
from gcdformer.models.interface import Seq2Seq
from gcdformer.numbers.encoding import BEGIN, END, PAD, Integers, Mask

LogProbs = npt.NDArray[np.float32]
OUTSIDE, LISTED = -1, -2
"""Where the greedy sequence is if at no node: it has left the tree, or is a listed answer."""


class Paths(ABC):
    """A model that has read a batch of inputs, and says what follows a prefix of the output."""

    @abstractmethod
    def log_probs(self, rows: Integers, paths: Integers, lengths: Integers, last: int = 1) -> LogProbs:
        """(n, last, V): ln p of the next token after each of the last tokens of a path, for some rows of the batch.

        A path is BEGIN and a prefix, padded to the longest: (n, T) with lengths (n,).
        """

    @abstractmethod
    def greedy(self, rows: Integers, longest: int) -> Integers:
        """The sequences (n, longest) that greedy decoding gives for some rows."""


class PlainPaths(Paths):
    """Any model, by one pass over each path: a state has no room for rows of different lengths."""

    def __init__(self, model: Seq2Seq, inputs_NS: Tensor) -> None:
        self.model, self.inputs, self.state = model, inputs_NS, model.encode(inputs_NS)

    def log_probs(self, rows: Integers, paths: Integers, lengths: Integers, last: int = 1) -> LogProbs:
        device = self.inputs.device
        longest = int(lengths.max(initial=1))
        states, _ = self.model.advance(self.state.select(torch.from_numpy(rows).to(device)),
                                       torch.from_numpy(paths[:, :longest]).to(device))
        places = torch.from_numpy(lengths[:, None] - last + np.arange(last)).to(device)
        chosen = states.gather(1, places[..., None].expand(-1, -1, states.shape[2]))
        log_probs: LogProbs = self.model.project(chosen).float().log_softmax(-1).cpu().numpy()
        return log_probs

    def greedy(self, rows: Integers, longest: int) -> Integers:
        chosen = self.inputs[torch.from_numpy(rows).to(self.inputs.device)]
        tokens: Integers = generate(self.model, chosen, longest).cpu().numpy()
        return tokens


@torch.inference_mode()
def generate_best(model: Seq2Seq, inputs_NS: Tensor, longest: int, tree: AnswerTree) -> Integers:
    """The best answers as output tokens (n, longest) after BEGIN, END included, padded."""
    if not tree.one_token or longest < 3 or not len(inputs_NS):
        return Search(PlainPaths(model, inputs_NS), tree, len(inputs_NS), longest).run()
    outputs, proved = choose_one_token(model, inputs_NS, longest, tree)
    rest = np.flatnonzero(~proved)
    if len(rest):
        left = inputs_NS[torch.from_numpy(rest).to(inputs_NS.device)]
        outputs[rest] = Search(PlainPaths(model, left), tree, len(rest), longest).run()
    return outputs


def choose_one_token(model: Seq2Seq, inputs_NS: Tensor, longest: int, tree: AnswerTree) -> tuple[Integers, Mask]:
    """Answers of one token between the sign and END, and which are proved to be the best: those whose lead over all other
    tokens the probability of END cannot eat up, and before which greedy decoding has the sign.

    ln p(END) >= -ln(1 + (V - 1) exp(-gap)), where `gap` is END's lead; it is computed where this bound is not enough.
    """
    n, device = len(inputs_NS), inputs_NS.device
    state = model.encode(inputs_NS)

    def following(tokens: Tensor | int) -> Tensor:
        nonlocal state
        given = torch.full((n, 1), tokens, device=device) if isinstance(tokens, int) else tokens
        states, state = model.advance(state, given)
        return model.project(states[:, -1]).float()

    proved = lead_of(tree.sign, following(BEGIN)) > 0
    logits = following(tree.sign)
    logits += torch.from_numpy(tree.token_offsets(logits.shape[1])).to(logits)
    largest, chosen = logits.max(-1, keepdim=True)
    proved &= torch.isin(chosen[:, 0], torch.from_numpy(tree.answers[:, 1]).to(device))
    lead = largest[:, 0] - logits.scatter_(1, chosen, -torch.inf).amax(-1)
    logits = following(chosen)
    gap = lead_of(END, logits)  # the logit of END is out of the way now
    proved &= gap > 0
    certain = lead > torch.log1p((logits.shape[1] - 1) * torch.exp(-gap))
    left = torch.nonzero(proved & ~certain)[:, 0]
    others = logits[left]
    log_odds = others.logsumexp(-1) - others.amax(-1) - gap[left]  # of all other tokens against END
    certain[left] = lead[left] > torch.nn.functional.softplus(log_odds)
    outputs = np.full((n, longest), PAD, dtype=np.int64)
    outputs[:, :3] = [tree.sign, PAD, END]
    outputs[:, 1] = chosen[:, 0].cpu().numpy()
    return outputs, (proved & certain).cpu().numpy()


def lead_of(token: int, logits: Tensor) -> Tensor:
    """How far a token's logit is above all others of its row, negative if it is not; in `logits` it becomes -inf."""
    own = logits[:, token].clone()
    logits[:, token] = -torch.inf
    return own - logits.amax(-1)


class Search:
    """The scores of a batch of rows, which rise to answers. A row leaves the tables when it is decided."""

    def __init__(self, paths: Paths, tree: AnswerTree, count: int, longest: int) -> None:
        self.paths, self.tree, self.longest = paths, tree, longest
        self.outputs = np.full((count, longest), PAD, dtype=np.int64)
        self.rows = np.arange(count)
        """The row of the batch that each row of the tables below is."""
        self.scores = np.full((count, tree.slots), -np.inf)
        self.place = np.zeros(count, dtype=np.int64)
        """The node at which the greedy sequence is, as far as it is known; OUTSIDE, or LISTED."""
        self.greedy: LogScores = np.zeros(count)
        """ln p of the greedy sequence as far as it is known."""
        self.finished = np.zeros(count, dtype=np.bool_)
        self.greedy_tokens = np.full((count, longest), PAD, dtype=np.int64)

    def run(self) -> Integers:
        """The tokens of the best answers."""
        if len(self.rows):
            self.start()
        while len(self.rows):
            best = self.scores.argmax(1)
            answers = np.flatnonzero((best >= self.tree.nodes) & (best < self.tree.other))
            width = self.tree.answers.shape[1]
            self.outputs[self.rows[answers], :width] = self.tree.answers[best[answers] - self.tree.nodes]
            others = np.flatnonzero(best == self.tree.other)
            known = others[self.finished[others]]
            self.outputs[self.rows[known]] = self.greedy_tokens[known]
            self.finish_greedy(others[~self.finished[others]])
            nodes = np.flatnonzero(best < self.tree.nodes)
            self.expand(nodes, best[nodes])
            if len(answers) or len(known):
                left = np.ones(len(self.rows), dtype=np.bool_)
                left[answers] = left[known] = False
                self.keep(np.flatnonzero(left))
        return self.outputs

    def keep(self, chosen: Integers) -> None:
        """Drop all other rows of the tables."""
        for name in ("rows", "scores", "place", "greedy", "finished", "greedy_tokens"):
            setattr(self, name, getattr(self, name)[chosen])

    def start(self) -> None:
        """Look at the empty prefix and the sign, in one pass, for every row."""
        tree, count = self.tree, len(self.rows)
        every, paths = np.arange(count), np.repeat(tree.paths[1:2], count, axis=0)
        first, second = self.paths.log_probs(self.rows, paths, np.full(count, 2), 2).transpose(1, 0, 2)
        sign = first[:, tree.sign].astype(np.float64)
        self.scores[:, tree.first_slots] = sign[:, None] + second[:, tree.first_tokens] + tree.bounds[tree.first_slots]
        token = first.argmax(1)
        self.follow(every[token != tree.sign], np.full(count, OUTSIDE)[token != tree.sign],
                    first.max(1)[token != tree.sign])
        signed = every[token == tree.sign]
        self.greedy[signed] = sign[signed]
        best = second.argmax(1)
        slots = np.full(second.shape[1], tree.slots - 1)
        slots[tree.first_tokens] = tree.first_slots
        self.follow(signed, self.at(slots[best[signed]]), second[signed, best[signed]])

    def at(self, slots: Integers) -> Integers:
        """Where a greedy sequence is that goes to these slots."""
        return np.where(slots < self.tree.nodes, slots, np.where(slots < self.tree.other, LISTED, OUTSIDE))

    def follow(self, rows: Integers, places: Integers, gained: npt.NDArray[np.floating]) -> None:
        """The greedy sequences of some rows continue at these places."""
        self.place[rows] = places
        self.greedy[rows] += gained
        self.scores[rows, self.tree.other] = np.where(places == LISTED, -np.inf, self.greedy[rows] + self.tree.least)

    def expand(self, rows: Integers, nodes: Integers) -> None:
        """Look at a node of each of these rows: its slot is closed, those of its children open."""
        if not len(rows):
            return
        tree = self.tree
        logs = self.paths.log_probs(self.rows[rows], tree.paths[nodes], tree.lengths[nodes])[:, 0]
        prefix = self.scores[rows, nodes] - tree.bounds[nodes]
        self.scores[rows, nodes] = -np.inf
        tokens, slots = tree.next_tokens[nodes], tree.next_slots[nodes]
        scores = prefix[:, None] + np.take_along_axis(logs, tokens, 1) + tree.bounds[slots]
        self.scores[rows[:, None], slots] = scores
        self.scores[rows, -1] = -np.inf  # the padding's, which a score that is no number would open
        here = np.flatnonzero(self.place[rows] == nodes)
        if len(here):
            best = logs[here].argmax(1)
            matching = tokens[here] == best[:, None]
            reached = np.where(matching & (slots[here] < tree.other), slots[here], -1).max(1)
            self.follow(rows[here], self.at(np.where(reached < 0, tree.slots - 1, reached)), logs[here, best])

    def finish_greedy(self, rows: Integers) -> None:
        """Decode the greedy sequences of some rows to their ends, and score them as a whole."""
        if not len(rows):
            return
        tokens = self.paths.greedy(self.rows[rows], self.longest)
        self.greedy_tokens[rows], self.finished[rows] = tokens, True
        totals = np.where(self.tree.listed(tokens), -np.inf, sequence_log_probs(self.paths, self.rows[rows], tokens))
        self.greedy[rows] = totals
        self.scores[rows, self.tree.other] = totals + self.tree.least


def sequence_log_probs(paths: Paths, rows: Integers, tokens: Integers) -> LogScores:
    """ln p of whole output sequences (n, longest), END included, for some rows of a batch."""
    lengths = (tokens != PAD).cumsum(1).argmax(1) + 1
    given = np.concatenate([np.full((len(rows), 1), BEGIN), tokens[:, :-1]], axis=1)
    totals = np.zeros(len(rows))
    for length in np.unique(lengths).tolist():
        some = np.flatnonzero(lengths == length)
        logs = paths.log_probs(rows[some], given[some], np.full(len(some), length), length)
        totals[some] = np.take_along_axis(logs, tokens[some, :length, None], 2).sum((1, 2))
    return totals


def log_evidence(paths: Paths, tree: AnswerTree, count: int, tolerance: float) -> LogScores:
    """ln of the sum over all sequences s of p(s | x) exp(offset(s)), for each row of a batch, to a relative tolerance.

    A prefix that was not looked at adds between exp(least) and exp(its bound) times its probability. The one with the
    largest score is looked at next, until the bounds of the sum are close.
    """
    search, evidence = Search(paths, tree, count, 1), np.zeros(count)
    if count:
        search.start()
    least, bounds = np.exp(tree.least), tree.bounds[:tree.other]
    while len(search.rows):
        weights = np.exp(search.scores[:, :tree.other])
        shares = weights / np.exp(bounds)
        high = weights.sum(1) + np.maximum(0.0, 1 - shares.sum(1)) * least
        uncertain = (weights - shares * least)[:, :tree.nodes].sum(1)
        decided = ~(uncertain > tolerance * high)
        evidence[search.rows[decided]] = np.log(high - uncertain / 2)[decided]
        search.keep(np.flatnonzero(~decided))
        if len(search.rows):
            search.expand(np.arange(len(search.rows)), search.scores[:, :tree.nodes].argmax(1))
    return evidence
