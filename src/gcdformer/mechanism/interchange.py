"""Interchange: decode questions greedily while values at one place come from other questions.

A place is a hook point with some positions, perhaps one head of it, perhaps a linear subspace of it. Rows of a batch are
(place, swap), so that many places share a forward pass. Knows token rows and hook points, not divisors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor

from gcdformer.data.problem import Problem, framed
from gcdformer.evaluation.table import UNREADABLE
from gcdformer.mechanism.counterfactuals import Swaps
from gcdformer.mechanism.layout import Layout
from gcdformer.models import Seq2Seq, generate
from gcdformer.models.answer_tree import AnswerTree
from gcdformer.models.hooks import Cache, Logits, Patch, patched, run_with_cache
from gcdformer.models.transformer import Transformer
from gcdformer.numbers.encoding import END, PAD, Integers, encode

ROWS = 3072
"""Rows decoded together: what fits a CPU's caches."""
DIGIT = 1
"""The output position of an answer of one digit: the sign comes first."""


@dataclass(frozen=True, eq=False)
class Place:
    """A hook point at some input slots (encoder) or output positions (decoder)."""

    site: str
    slots: tuple[int, ...]
    head: int | None = None
    basis: Mapping[str, Tensor] | None = None
    """By hook point, orthonormal columns (D, rank): only this subspace is exchanged."""


@dataclass(frozen=True, eq=False)
class Moved:
    """What became of a place's swaps: for each swap that has the place, its number and the answer under the patch."""

    swaps: Integers
    answers: Integers

    def agree(self, wanted: Integers) -> npt.NDArray[np.bool_]:
        """Where the answer is that one."""
        return np.asarray((self.answers == wanted[self.swaps]) & (self.answers != UNREADABLE))


@dataclass(frozen=True)
class Sites:
    """The hook points of a model at which values are exchanged, in the order of the forward pass."""

    encoder: list[str]
    decoder: list[str]
    heads: dict[str, int]
    """Sites that have heads, and how many."""
    final: bool
    """Whether the encoder leaves one final state, as LSTM and GRU do, and no value by position."""

    @property
    def last(self) -> str:
        """The end of the encoder."""
        return self.encoder[-1]

    @classmethod
    def of(cls, model: Seq2Seq) -> Sites:
        points = {name: point for name, point in model.points().items() if not point.read_only}
        queries = {name: point.shape.replace("H ", "").split()[:2] for name, point in points.items() if name != "logits"}
        encoder = [name for name, letters in queries.items() if letters == ["N", "S"]]
        decoder = [name for name, letters in queries.items() if letters == ["N", "T"]]
        final = "encoder.final.hidden" in points
        heads = {}
        if isinstance(model, Transformer):
            sizes = model.sizes
            heads = {name: sizes.encoder_heads if name in encoder else sizes.decoder_heads
                     for name in (*encoder, *decoder) if name.endswith((".heads", ".pattern"))}
        return cls(encoder + ["encoder.final.hidden"] * final, decoder, heads, final)


@dataclass(frozen=True, eq=False)
class Source:
    """Questions with the values of the questions whose values are put into them."""

    inputs: Tensor
    tokens: Integers
    """The token index of every slot (n, slots)."""
    values: Cache
    outputs: Integers
    """How many output positions each source has."""


@dataclass(frozen=True, eq=False)
class Interchange:
    """A model whose values can be exchanged between questions of one layout."""

    model: Seq2Seq
    problem: Problem
    layout: Layout
    tree: AnswerTree | None = None
    """Answers of one digit with the offsets of a decision prior; without it answers are decided as the model has learned."""

    @cached_property
    def offsets(self) -> Tensor | None:
        """What the prior adds to the logits (V,) of an answer's digit."""
        if self.tree is None:
            return None
        return torch.from_numpy(self.tree.token_offsets(self.problem.vocabulary.size)).to(self.device, torch.float32)

    @cached_property
    def sites(self) -> Sites:
        return Sites.of(self.model)

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device

    @torch.no_grad()
    def values(self, pairs: Integers, answers: Integers, names: Sequence[str]) -> Cache:
        """The values at some points while the model answers these questions so."""
        inputs = self.problem.encode_questions(pairs)[0]
        return run_with_cache(self.model, inputs, self.targets(answers)[:, :-1], names)[1]

    def targets(self, answers: Integers) -> Tensor:
        """Answers as target tokens (n, T), from BEGIN to END, padded."""
        return torch.from_numpy(framed(*encode(np.maximum(answers, 0)[:, None], self.problem.base))[0]).to(self.device)

    def loss(self, source: Source, place: Place, targets: Tensor) -> Tensor:
        """The cross-entropy of these answers while a place of the encoder is exchanged; differentiable by its basis."""
        rows = np.arange(len(source.tokens))
        with patched(self.model, {name: self.encoder_patch(name, [(place, rows)], source, rows)
                                  for name in self.parts(place.site)}):
            logits = Logits(self.model)(source.inputs, targets[:, :-1])
        if self.offsets is not None:
            logits[:, DIGIT] += self.offsets
        return F.cross_entropy(logits.flatten(0, 1), targets[:, 1:].flatten(), ignore_index=PAD)

    def source(self, swaps: Swaps, places: Sequence[Place]) -> Source:
        names = [name for site in {place.site for place in places} for name in self.parts(site)]
        inputs = torch.from_numpy(self.problem.encode_questions(swaps.pairs)[0]).to(self.device)
        outputs = encode(np.maximum(swaps.after, 0)[:, None], self.problem.base)[1] + 1
        return Source(inputs, self.layout.tokens(swaps.pairs), self.values(swaps.sources, swaps.after, names),
                      outputs)

    def parts(self, site: str) -> list[str]:
        """The points of a site: an LSTM's final state has two, which make one place."""
        both = ["encoder.final.hidden", "encoder.final.cell"]
        return [name for name in both if name in self.model.points()] if site in both else [site]

    def answers(self, swaps: Swaps, places: Sequence[Place]) -> list[Moved]:
        """What the model answers, for every place and swap."""
        if not len(swaps):
            return [Moved(np.zeros(0, np.int64), np.zeros(0, np.int64)) for _ in places]
        source = self.source(swaps, places)
        row_place, row_swap = self.rows(source, places)
        answers = np.empty(len(row_place), dtype=np.int64)
        for start in range(0, len(row_place), ROWS):
            part = slice(start, start + ROWS)
            answers[part] = self.read(self.decode(source, places, row_place[part], row_swap[part]))
        return [Moved(row_swap[row_place == number], answers[row_place == number]) for number in range(len(places))]

    @torch.inference_mode()
    def predict(self, pairs: Integers) -> Integers:
        """The answers without a patch, decoded greedily."""
        inputs = torch.from_numpy(self.problem.encode_questions(pairs)[0]).to(self.device)
        with patched(self.model, {"logits": RowsLeft(len(pairs), self).observe}):
            return self.read(generate(self.model, inputs, self.problem.longest_target).cpu().numpy())

    def read(self, outputs: Integers) -> Integers:
        """Output tokens as integers."""
        values, readable = self.problem.decode_answers(outputs)
        return np.where(readable, values[:, 0], UNREADABLE)

    def rows(self, source: Source, places: Sequence[Place]) -> tuple[Integers, Integers]:
        """The numbers of place and swap of every row; a swap whose question lacks the place has none."""
        numbers: list[tuple[Integers, Integers]] = []
        for number, place in enumerate(places):
            if place.site in self.sites.decoder:
                swap = np.flatnonzero(source.outputs > min(place.slots))
            elif place.site.startswith("encoder.final"):
                swap = np.arange(len(source.tokens))
            else:
                swap = np.flatnonzero((source.tokens[:, list(place.slots)] >= 0).any(1))
            numbers.append((np.full(len(swap), number), swap))
        place_numbers, swaps = zip(*numbers, strict=True)
        return np.concatenate(place_numbers), np.concatenate(swaps)

    @torch.inference_mode()
    def decode(self, source: Source, places: Sequence[Place], row_place: Integers, row_swap: Integers) -> Integers:
        """Output tokens of rows, decoded greedily, each with its own place patched."""
        rows_left = RowsLeft(len(row_place), self)
        patches: dict[str, Patch] = {"logits": rows_left.observe}
        for site in dict.fromkeys(places[number].site for number in np.unique(row_place)):
            own = [(place, np.flatnonzero(row_place == number)) for number, place in enumerate(places) if place.site == site]
            for name in self.parts(site):
                patches[name] = (self.decoder_patch(name, own, source, row_swap, rows_left) if site in self.sites.decoder
                                 else self.encoder_patch(name, own, source, row_swap))
        was_training = self.model.training
        self.model.eval()
        with patched(self.model, patches):
            outputs: Integers = generate(self.model, source.inputs[row_swap], self.problem.longest_target).cpu().numpy()
        self.model.train(was_training)
        return outputs

    def encoder_patch(self, name: str, own: list[tuple[Place, Integers]], source: Source, row_swap: Integers) -> Patch:
        def patch(value: Tensor) -> Tensor:
            value = value.clone()
            for place, rows in own:
                swap = row_swap[rows]
                if name.startswith("encoder.final"):
                    new = mixed(value[:, rows], source.values[name][:, swap], place, name, None)
                    value[:, rows] = new
                    continue
                for slot in place.slots:
                    token = source.tokens[swap, slot]
                    has = token >= 0
                    at, where = at_query(name, rows[has], token[has]), at_query(name, swap[has], token[has])
                    value[at] = mixed(value[at], source.values[name][where], place, name, self.sites.heads.get(name))
            return value

        return patch

    def decoder_patch(self, name: str, own: list[tuple[Place, Integers]], source: Source, row_swap: Integers,
                      rows_left: RowsLeft) -> Patch:
        def patch(value: Tensor) -> Tensor:
            value = value.clone()
            step = rows_left.step
            for place, rows in own:
                if step not in place.slots:
                    continue
                wanted = torch.from_numpy(rows[source.outputs[row_swap[rows]] > step]).to(self.device)
                at = torch.isin(rows_left.rows, wanted).nonzero()[:, 0]
                swap = row_swap[rows_left.rows[at].cpu().numpy()]
                here = at_query(name, at.cpu().numpy(), np.zeros(len(at), dtype=np.int64))
                new = source.values[name][at_query(name, swap, np.full(len(swap), step))][..., :value.shape[-1]]
                value[here] = mixed(value[here], new, place, name, self.sites.heads.get(name))
            return value

        return patch


@contextmanager
def one_thread() -> Iterator[None]:
    """Matrix products within use one thread. They are small: threads of their own would mostly wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class RowsLeft:
    """Which rows the decoder loop still has, and at which step it is: rows that have ended are dropped by it."""

    def __init__(self, count: int, exchange: Interchange) -> None:
        self.rows = torch.arange(count, device=exchange.device)
        self.step = 0
        self.offsets = exchange.offsets

    def observe(self, logits_NV: Tensor) -> Tensor:
        """Called with the logits of every step: adds what the prior adds."""
        if self.step == DIGIT and self.offsets is not None:
            logits_NV = logits_NV + self.offsets
        self.rows = self.rows[logits_NV.argmax(-1) != END]
        self.step += 1
        return logits_NV


def at_query(name: str, rows: Integers, positions: Integers) -> tuple[Integers | slice, ...]:
    """The index of values (n, D) at some positions of some rows; of a pattern, what its heads attend to there (n, H, S)."""
    return (rows, slice(None), positions) if name.endswith(".pattern") else (rows, positions)


def mixed(value: Tensor, new: Tensor, place: Place, name: str, heads: int | None) -> Tensor:
    """The value with the place's part of the new one: all of it, a head, or a subspace."""
    if place.basis is not None:
        basis = place.basis[name]
        if value.dim() == 3:  # the final state of a recurrent model, (layers, rows, D): all layers make one space
            moved = (new - value).transpose(0, 1).flatten(1) @ basis @ basis.T
            return value + moved.view(value.shape[1], value.shape[0], -1).transpose(0, 1)
        return value + (new - value) @ basis @ basis.T
    if place.head is not None:
        assert heads is not None
        width = value.shape[-1] // heads
        columns = slice(place.head * width, (place.head + 1) * width)
        own = (slice(None), place.head) if name.endswith(".pattern") else (slice(None), columns)
        value = value.clone()
        value[own] = new[own]
        return value
    return new
