"""What a subspace looks like over the digits 0..B-1: how much of it is a function of the residue mod p, and its plane.

A function of the digit that depends only on its residue mod p is a sum of the frequencies j/p. So the share of variance that
those explain is the share between the residue classes.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from gcdformer.mechanism.result import Clock
from gcdformer.mechanism.subspace import Basis, Contexts, basis_of
from gcdformer.numbers.encoding import Integers

Values = npt.NDArray[np.float64]


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
