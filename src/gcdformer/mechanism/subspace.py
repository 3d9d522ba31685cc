"""The smallest linear subspace at a place that carries divisibility by p, how much two of them overlap, and how its values
depend on the digits 0..B-1.

It starts as the directions in which the place's mean value differs between the residues mod p of the digit there, and is
turned by gradient descent. Linear maps only: with others everything could be found anywhere. A function of the digit that
depends only on its residue mod p is a sum of the frequencies j/p. So the share of variance that those explain is the share
between the residue classes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from gcdformer.mechanism.counterfactuals import Swaps, log_uniform, ordered
from gcdformer.mechanism.interchange import Interchange, Place
from gcdformer.mechanism.layout import Layout
from gcdformer.mechanism.result import Clock, Subspace
from gcdformer.mechanism.verdict import ENOUGH
from gcdformer.numbers.encoding import Integers, digit_counts

Basis = Mapping[str, Tensor]
CONTEXTS = 6
"""Questions for each digit at the place, all else random."""
MOST_QUESTIONS = 20_000
STEPS = 40
RATE = 0.3
"""Steps and first rate of the gradient descent that turns a subspace."""
Values = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Contexts:
    """The values at one place of many questions, and the digit there (for a final state: the whole operand)."""

    digits: Integers
    residues_of: Integers
    """What is reduced mod p: the digit's contribution to its operand."""
    values: dict[str, Tensor]
    """By hook point, (n, D)."""

    def classes(self, p: int) -> Integers:
        return self.residues_of % p


def draw_contexts(exchange: Interchange, site: str, slot: int, rng: np.random.Generator) -> Contexts:
    """Questions in which the digit at a slot takes every value, the same number of times."""
    layout = exchange.layout
    final = site.startswith("encoder.final")
    side, j = (None if final else layout.digit_of(slot)) or (0, 0)
    pairs = digit_pairs(layout, side, j, rng)
    operand = pairs[:, side]
    digits = operand // layout.base**j % layout.base
    names = exchange.parts(site)
    values = exchange.values(pairs, np.ones(len(pairs), dtype=np.int64), names)
    if final:
        return Contexts(digits, operand, {name: values[name].transpose(0, 1).flatten(1).clone() for name in names})
    token = layout.tokens(pairs)[:, slot]
    rows = np.arange(len(pairs))
    return Contexts(digits, digits * layout.base**j, {name: values[name][rows, token].clone() for name in names})


def digit_pairs(layout: Layout, side: int, j: int, rng: np.random.Generator) -> Integers:
    """Pairs whose operand on this side has each digit at place j about equally often; the rest is log-uniform."""
    base, place = layout.base, layout.base**j
    count = min(CONTEXTS * base, max(MOST_QUESTIONS, base))
    wanted = np.arange(4 * count) % base
    limits = np.full(len(wanted), layout.largest)
    operand, partner = log_uniform(limits, rng), log_uniform(limits, rng)
    long_enough = digit_counts(operand, base) > j
    operand = operand + (wanted - operand // place % base) * place
    good = long_enough & (operand >= place) & (operand <= layout.largest)
    return ordered(operand[good], partner[good], side)[:count]


def directions(values_ND: Tensor, classes: Integers, digits: Integers) -> Tensor:
    """Orthonormal columns (D, D): first those in which the means of the classes differ, then those of the digits."""
    centred = (values_ND - values_ND.mean(0)).double()
    first = principal(class_means(centred, classes))
    rest = class_means(centred, digits)
    rest = rest - rest @ first @ first.T
    everything = torch.cat([first, principal(rest), torch.eye(centred.shape[1], dtype=torch.float64)], dim=1)
    columns: Tensor = torch.linalg.qr(everything)[0]
    return columns.float()


def class_means(values_ND: Tensor, classes: Integers) -> Tensor:
    """A row for each class: its mean, weighted by the root of its size."""
    names, index = np.unique(classes, return_inverse=True)
    sums = values_ND.new_zeros(len(names), values_ND.shape[1]).index_add_(0, torch.from_numpy(index), values_ND)
    counts = torch.from_numpy(np.bincount(index)).to(values_ND.dtype)
    return sums / counts.sqrt()[:, None]


def principal(rows_ND: Tensor) -> Tensor:
    """Right singular vectors (D, rank) of the rows, the strongest first; those of no size are left out."""
    vectors: Tensor
    _, sizes, vectors = torch.linalg.svd(rows_ND, full_matrices=False)
    return vectors[sizes > 1e-6 * sizes.max().clamp_min(1e-30)].T


def basis_of(contexts: Contexts, classes: Integers, rank: int | None = None) -> Basis:
    """The first directions by hook point; all of them without a rank."""
    return {name: directions(values, classes, contexts.digits)[:, :rank] for name, values in contexts.values.items()}


def find_subspace(exchange: Interchange, place: Place, swaps: Swaps, contexts: Contexts, p: int,
                  rng: np.random.Generator) -> tuple[Subspace, Basis]:
    """The smallest rank of 1, 2, 4, … that is enough on every other swap, judged on the rest."""
    start = basis_of(contexts, contexts.classes(p))
    width = max(columns.shape[1] for columns in start.values())
    find, judge = swaps.take(slice(0, None, 2)), swaps.take(slice(1, None, 2))
    whole = shares(exchange, find, [place])[0]
    tried: dict[int, Place] = {}
    rank = 1
    while rank < width:
        tried[rank] = fit(exchange, cut(place, start, rank), find)
        if shares(exchange, find, [tried[rank]])[0] >= ENOUGH * whole:
            break
        rank *= 2
    if rank >= width:
        rank = width
        tried[rank] = cut(place, start, width)
    mixed, mixed_find = permuted(judge, rng), permuted(find, rng)
    control = 0.0
    if len(mixed) and len(mixed_find) and rank < width:
        control = shares(exchange, mixed, [fit(exchange, cut(place, start, rank), mixed_find)])[0]
    judged_whole, *judged = shares(exchange, judge, [place, *tried.values()])
    by_rank = {rank * len(start): share for rank, share in zip(tried, judged, strict=True)}
    basis = tried[rank].basis
    assert basis is not None
    return Subspace(rank * len(start), width * len(start), judged_whole, judged[-1], control, len(mixed), by_rank), basis


def fit(exchange: Interchange, place: Place, swaps: Swaps) -> Place:
    """The subspace turned so that its swap makes the rules' answers for the swapped pairs likely.

    Gradient descent over orthonormal Q (D, rank): Q <- qr(Q - rate G / |G|), where G is the gradient of the cross-entropy of
    those answers under the patch, and the rate falls to zero.
    """
    assert place.basis is not None
    basis = dict(place.basis)
    source, targets = exchange.source(swaps, [place]), exchange.targets(swaps.after)
    for step in range(STEPS):
        free = {name: columns.detach().requires_grad_() for name, columns in basis.items()}
        loss = exchange.loss(source, Place(place.site, place.slots, basis=free), targets)
        gradients = torch.autograd.grad(loss, list(free.values()))
        length = torch.stack([gradient.norm() for gradient in gradients]).norm().clamp_min(1e-12)
        size = RATE * (1 - step / STEPS) / float(length)
        for (name, columns), gradient in zip(free.items(), gradients, strict=True):
            basis[name] = torch.linalg.qr(columns.detach() - size * gradient)[0]
    return Place(place.site, place.slots, basis=basis)


def permuted(swaps: Swaps, rng: np.random.Generator) -> Swaps:
    """The swaps with their wanted answers permuted; those that get their own or stay are left out."""
    after = rng.permutation(swaps.after)
    wrong = (after != swaps.after) & (after != swaps.before)
    return Swaps(swaps.pairs, swaps.sources, swaps.before, after).take(wrong)


def cut(place: Place, basis: Basis, rank: int) -> Place:
    """The place, of which only the first directions are exchanged."""
    return Place(place.site, place.slots, basis={name: columns[:, :rank].contiguous() for name, columns in basis.items()})


def shares(exchange: Interchange, swaps: Swaps, places: list[Place]) -> list[float]:
    """For each place the share of answers that become the rules' answer for the swapped pair."""
    return [float(moved.agree(swaps.after).mean()) if len(moved.swaps) else 0.0 for moved in exchange.answers(swaps, places)]


def overlap(first: Basis, second: Basis) -> float:
    """The mean squared cosine of the principal angles: 1 if the smaller subspace lies in the other, 0 if orthogonal."""
    squares: npt.NDArray[np.float64] = np.array([float((first[name].T @ second[name]).square().sum()) for name in first])
    least = sum(min(first[name].shape[1], second[name].shape[1]) for name in first)
    return float(squares.sum() / max(least, 1))


def read_clock(contexts: Contexts, p: int, basis: Basis) -> Clock:
    """The mean value of each digit within the subspace, and how much the residues explain. Where the subspace has only one
    direction, the picture has a second: the next in which the residues differ."""
    digits, values = digit_means(contexts, basis)
    residues = digits % p
    frequency, frequency_share = best_frequency(values, residues, p)
    wide = basis_of(contexts, contexts.classes(p), 2)
    pictured = {name: columns if columns.shape[1] > 1 else torch.linalg.qr(torch.cat([columns, wide[name]], dim=1))[0][:, :2]
                for name, columns in basis.items()}
    points = in_plane(digit_means(contexts, pictured)[1], residues)
    return Clock(between(values, residues), between(values, (residues == 0).astype(np.int64)), chance_share(residues),
                 frequency, frequency_share,
                 [int(digit) for digit in digits], [(round(float(x), 4), round(float(y), 4)) for x, y in points],
                 [int(residue) for residue in residues])


def chance_share(classes: Integers) -> float:
    """The share of variance that as many random classes would explain."""
    return (len(np.unique(classes)) - 1) / max(len(classes) - 1, 1)


def residue_share(contexts: Contexts, p: int) -> tuple[float, float]:
    """How much of all the variance of the place over the digits their residues explain, and what chance would."""
    values = np.concatenate([value.numpy() for value in contexts.values.values()], axis=1)
    digits, means = by_class(values, contexts.digits)
    residues = digits % p
    return between(means, residues), chance_share(residues)


def digit_means(contexts: Contexts, basis: Basis) -> tuple[Integers, Values]:
    """The digits that occur, and their mean values in the subspace's own coordinates."""
    inside = torch.cat([values @ basis[name] for name, values in contexts.values.items()], dim=1).numpy()
    return by_class(inside, contexts.digits)


def by_class(values: npt.NDArray[np.floating], classes: Integers) -> tuple[Integers, Values]:
    names, index = np.unique(classes, return_inverse=True)
    sums = np.zeros((len(names), values.shape[1]))
    np.add.at(sums, index, values)
    return names, sums / np.bincount(index)[:, None]


def between(values: Values, classes: Integers) -> float:
    """The share of the variance that lies between the classes."""
    centred = values - values.mean(0)
    total = float((centred**2).sum())
    names, means = by_class(centred, classes)
    sizes = np.array([(classes == name).sum() for name in names])
    return float((sizes[:, None] * means**2).sum()) / total if total > 0 else 0.0


def best_frequency(values: Values, residues: Integers, p: int) -> tuple[int, float]:
    """The frequency j/p that explains most of the variance by itself, and how much."""
    centred = values - values.mean(0)
    total = float((centred**2).sum())
    best = (1, 0.0)
    for j in range(1, p // 2 + 1):
        angle = 2 * np.pi * j * residues / p
        waves = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        waves -= waves.mean(0)
        fitted = waves @ np.linalg.lstsq(waves, centred, rcond=None)[0]
        share = float((fitted**2).sum()) / total if total > 0 else 0.0
        best = max(best, (j, share), key=lambda item: item[1])
    return best


def in_plane(values: Values, classes: Integers) -> Values:
    """The values in the plane in which the means of the classes lie furthest apart, scaled to unit size."""
    centred = values - values.mean(0)
    _, means = by_class(centred, classes)
    plane = np.linalg.svd(means, full_matrices=True)[2][:2].T
    points = centred @ plane
    return np.asarray(points / max(float(np.abs(points).max()), 1e-12))
