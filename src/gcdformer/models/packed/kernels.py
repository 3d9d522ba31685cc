"""Compiled code of the packed transformer: loops that are one pass over data in the cache, and `interpret`, to run a tape.

Rows of a batch are packed: tokens of all rows one after another, row n at starts[n] .. starts[n+1], so that there is
no padding to hide or to compute. The loops know arrays of float32, not models. A whole tape is one call that lets other
threads run, so that they need not take turns in Python; nothing in it is checked, and nothing allocates.
numba compiles all this once a machine for each width of heads and keeps the result until this file changes; after a
change of vectors.py or operations.py touch it.

Letters: `unit` is a normalised vector before its gain and bias, `scale` what it was multiplied by to become one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numba
import numpy as np
from numba import carray  # type: ignore[attr-defined]

from gcdformer.models.packed.operations import (
    ADD,
    ADD_BIAS,
    ADD_NORM,
    ATTEND,
    ATTEND_BACK,
    CHOOSE,
    CROSS_ENTROPY,
    EMBED,
    EMBED_BACK,
    INPUTS,
    KEEP,
    NORM_BACK,
    PRODUCT,
    RELU,
    RELU_BACK,
    SUM_ROWS,
    ZERO,
)
from gcdformer.models.packed.vectors import add_scaled, dot, pointer, sgemm


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile, and keep the result on disk where there is a place for it."""
    compile_it = partial(numba.njit, nogil=True, fastmath=True, error_model="numpy")
    try:
        return compile_it(function, cache=True)
    except RuntimeError:  # neither the package's folder nor the user's cache can be written
        return compile_it(function)


loop = numba.njit(nogil=True, fastmath=True, error_model="numpy", forceinline=True)
"""A part of `interpret`, always written into it: a copy of its own would be taken in the process that compiles it, but not
in others, and the two differ in the last bits."""
inlined = numba.njit(nogil=True, inline="always")
F = np.float32
LANES = 32


@inlined
def normalise(total, gain, bias, epsilon, unit, scale, out, i):
    """Layer norm of one vector."""
    dim = total.shape[0]
    mean = F(0)
    for j in range(dim):
        mean += total[j]
    mean /= F(dim)
    square = F(0)
    for j in range(dim):
        square += (total[j] - mean) * (total[j] - mean)
    factor = F(1) / np.sqrt(square / F(dim) + epsilon)
    scale[i] = factor
    for j in range(dim):
        unit[i, j] = (total[j] - mean) * factor
    for j in range(dim):
        out[i, j] = (total[j] - mean) * factor * gain[j] + bias[j]


@loop
def embed(tokens, places, table, positions, gain, bias, epsilon, total, unit, scale, out):
    """out = norm(table[token] + positions[place]); `total` is room for one vector."""
    for i in range(tokens.shape[0]):
        token, place = tokens[i], places[i]
        for j in range(total.shape[0]):
            total[j] = table[token, j] + positions[place, j]
        normalise(total, gain, bias, epsilon, unit, scale, out, i)


@loop
def embed_back(tokens, places, change, d_table, d_positions):
    """Add each token's change to its rows of the two tables."""
    for i in range(tokens.shape[0]):
        token, place = tokens[i], places[i]
        for j in range(change.shape[1]):
            d_table[token, j] += change[i, j]
            d_positions[place, j] += change[i, j]


@loop
def add_norm(x, y, y_bias, gain, bias, epsilon, total, unit, scale, out):
    """out = norm(x + y + y_bias)."""
    for i in range(x.shape[0]):
        for j in range(total.shape[0]):
            total[j] = x[i, j] + y[i, j] + y_bias[j]
        normalise(total, gain, bias, epsilon, unit, scale, out, i)


@loop
def norm_back(change, unit, scale, gain, d_gain, d_bias, d_total, d_added_bias):
    """From the change of a norm's output to that of its input, its gain and bias, and of a bias added to its input."""
    rows, dim = change.shape
    for i in range(rows):
        mean, along = F(0), F(0)
        for j in range(dim):
            weighted = change[i, j] * gain[j]
            mean += weighted
            along += weighted * unit[i, j]
        mean /= F(dim)
        along /= F(dim)
        factor = scale[i]
        for j in range(dim):
            d_gain[j] += change[i, j] * unit[i, j]
            d_bias[j] += change[i, j]
            value = factor * (change[i, j] * gain[j] - mean - unit[i, j] * along)
            d_total[i, j] = value
            d_added_bias[j] += value


@loop
def add_bias(y, bias):
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            y[i, j] += bias[j]


@loop
def sum_rows(change, d_bias):
    for i in range(change.shape[0]):
        for j in range(change.shape[1]):
            d_bias[j] += change[i, j]


@loop
def add(x, y):
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            x[i, j] += y[i, j]


@loop
def keep(qkv, past, starts, lengths):
    """Copy the last columns of row n to the newest place of row n of the past."""
    width = past.shape[1]
    skipped = qkv.shape[1] - width
    for n in range(qkv.shape[0]):
        place = starts[n] + lengths[n] - 1
        for j in range(width):
            past[place, j] = qkv[n, skipped + j]


@loop
def relu(y, bias):
    """y = max(y + bias, 0) in place."""
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            value = y[i, j] + bias[j]
            y[i, j] = value if value > F(0) else F(0)


@loop
def relu_back(change, y, d_bias):
    """Change of the ReLU's input, in place, and of the bias."""
    for i in range(change.shape[0]):
        for j in range(change.shape[1]):
            value = change[i, j]
            value = value if y[i, j] > F(0) else F(0)
            change[i, j] = value
            d_bias[j] += value


@inlined
def exponential(x):
    """exp(x) for x <= 0 to the last bit or two; a polynomial, so that the loop around it is vectorised."""
    x = x if x > F(-87) else F(-87)
    n = np.floor(x * F(1.44269504) + F(0.5))
    r = x - n * F(0.693359375) - n * F(-2.12194440e-4)
    p = F(1.9875691500e-4)
    p = p * r + F(1.3981999507e-3)
    p = p * r + F(8.3334519073e-3)
    p = p * r + F(4.1665795894e-2)
    p = p * r + F(1.6666665459e-1)
    p = p * r + F(5.0000001201e-1)
    p = p * r * r + r + F(1)
    return p * np.int32((np.int32(n) + np.int32(127)) << np.int32(23)).view(np.float32)


@loop
def exponentials(values):
    for i in range(values.shape[0]):
        values[i] = exponential(values[i])


@loop
def add_and_find_largest(row, bias, lanes):
    """row += bias; the largest value, several lanes side by side (a plain maximum is not vectorised)."""
    whole = row.shape[0] // LANES
    for lane in range(LANES):
        lanes[lane] = F(-3e38)
    for block in range(whole):
        for lane in range(LANES):
            value = row[block * LANES + lane] + bias[block * LANES + lane]
            row[block * LANES + lane] = value
            lanes[lane] = value if value > lanes[lane] else lanes[lane]
    largest = F(-3e38)
    for lane in range(LANES):
        largest = max(largest, lanes[lane])
    for j in range(whole * LANES, row.shape[0]):
        row[j] += bias[j]
        largest = max(largest, row[j])
    return largest


@loop
def cross_entropy(logits, bias, wanted, share, d_bias, lanes):
    """Sum of -log softmax(logits + bias)[wanted]; logits become its change times `share`, in place."""
    rows, words = logits.shape
    loss = 0.0
    for i in range(rows):
        row = logits[i]
        largest = add_and_find_largest(row, bias, lanes)
        there = row[wanted[i]]
        total = F(0)
        for j in range(words):
            value = exponential(row[j] - largest)
            row[j] = value
            total += value
        loss += np.log(np.float64(total)) + np.float64(largest) - np.float64(there)
        factor = share / total
        for j in range(words):
            value = row[j] * factor
            row[j] = value
            d_bias[j] += value
        row[wanted[i]] -= share
        d_bias[wanted[i]] -= share
    return loss


@loop
def choose(logits, bias, words, lanes):
    """words[i] = the word of the largest logit + bias."""
    for i in range(logits.shape[0]):
        row = logits[i]
        largest = add_and_find_largest(row, bias, lanes)
        words[i] = 0
        for j in range(row.shape[0]):
            if row[j] == largest:
                words[i] = j
                break


@loop
def attend(queries, q_stride, keys, k_stride, k_part, v_part, q_starts, k_starts, k_counts, heads, causal, shares, out,
           like):
    """Every query of a row looks at the row's keys; `shares` keeps the softmax for the way back.

    Arrays are flat: token i has `stride` numbers, its keys at `k_part`, its values at `v_part`. `like` is as long as a head.
    """
    width = len(like)
    factor = F(1) / np.sqrt(F(width))
    place = 0
    for n in range(q_starts.shape[0] - 1):
        q0, t_count = q_starts[n], q_starts[n + 1] - q_starts[n]
        k0, s_count = k_starts[n], k_counts[n]
        for h in range(heads):
            for t in range(t_count):
                seen = t + 1 if causal else s_count
                query = (q0 + t) * q_stride + h * width
                largest = F(-3e38)
                for s in range(seen):
                    score = factor * dot(queries, query, keys, (k0 + s) * k_stride + k_part + h * width, like)
                    shares[place + s] = score
                    largest = score if score > largest else largest
                for s in range(seen):
                    shares[place + s] -= largest
                for s in range(seen, s_count):
                    shares[place + s] = F(0)
                place += s_count
    exponentials(shares[:place])
    place = 0
    for n in range(q_starts.shape[0] - 1):
        q0, t_count = q_starts[n], q_starts[n + 1] - q_starts[n]
        k0, s_count = k_starts[n], k_counts[n]
        for h in range(heads):
            for t in range(t_count):
                seen = t + 1 if causal else s_count
                total = F(0)
                for s in range(seen):
                    total += shares[place + s]
                total = F(1) / total
                mixed = ((q0 + t) * heads + h) * width
                for e in range(width):
                    out[mixed + e] = F(0)
                for s in range(seen):
                    share = shares[place + s] * total
                    shares[place + s] = share
                    add_scaled(out, mixed, share, keys, (k0 + s) * k_stride + v_part + h * width, like)
                place += s_count


@loop
def attend_back(change, queries, q_stride, keys, k_stride, k_part, v_part, q_starts, k_starts, k_counts, heads, causal,
                shares, d_queries, d_keys, scores, like):
    """Changes of queries, keys and values, added to what is there; `scores` is room for one row."""
    width = len(like)
    factor = F(1) / np.sqrt(F(width))
    place = 0
    for n in range(q_starts.shape[0] - 1):
        q0, t_count = q_starts[n], q_starts[n + 1] - q_starts[n]
        k0, s_count = k_starts[n], k_counts[n]
        for h in range(heads):
            for t in range(t_count):
                seen = t + 1 if causal else s_count
                mixed, query = ((q0 + t) * heads + h) * width, (q0 + t) * q_stride + h * width
                along = F(0)
                for s in range(seen):
                    share = shares[place + s]
                    content = (k0 + s) * k_stride + v_part + h * width
                    score = dot(change, mixed, keys, content, like)
                    add_scaled(d_keys, content, share, change, mixed, like)
                    scores[s] = score
                    along += share * score
                for s in range(seen):
                    score = shares[place + s] * (scores[s] - along) * factor
                    key = (k0 + s) * k_stride + k_part + h * width
                    add_scaled(d_queries, query, score, keys, key, like)
                    add_scaled(d_keys, key, score, queries, query, like)
                place += s_count


@inlined
def flat(rooms, room):
    """All of a room's memory as one array."""
    address, capacity, rows, widths, counts = rooms
    return carray(pointer(address[room]), (capacity[room],))


@inlined
def matrix(rooms, room):
    """As many rows of a room as the batch has."""
    address, capacity, rows, widths, counts = rooms
    return carray(pointer(address[room]), (counts[rows[room]], widths[room]))


@inlined
def product(rooms, out, x, y, x_turned, y_turned, added, gemm):
    address, capacity, rows, widths, counts = rooms
    inner = counts[rows[x]] if x_turned else widths[x]
    sgemm(gemm, x_turned, y_turned, counts[rows[out]], widths[out], inner, address[x], widths[x], address[y], widths[y],
          added, address[out], widths[out])


@compiled
def interpret(tape, rooms, tokens, places, starts, lengths, wanted, share, epsilon, lanes, scores, gemm, encoder_head,
              decoder_head):
    """The loss, if the tape computes one. `tokens`, `places`, `starts`, `lengths` have an array for each side,
    `rooms` the address, capacity, kind of rows and width of each room, and the rows of each kind."""
    loss = 0.0
    widths = rooms[3]
    for number in range(tape.shape[0]):
        line = tape[number]
        what, a, b, c, d, e, f, g, h = line[0], line[1], line[2], line[3], line[4], line[5], line[6], line[7], line[8]
        if what == PRODUCT:
            product(rooms, a, b, c, d, e, f, gemm)
        elif what == ADD_BIAS:
            add_bias(matrix(rooms, a), flat(rooms, b))
        elif what == SUM_ROWS:
            sum_rows(matrix(rooms, a), flat(rooms, b))
        elif what == RELU:
            relu(matrix(rooms, a), flat(rooms, b))
        elif what == RELU_BACK:
            relu_back(matrix(rooms, a), matrix(rooms, b),
                              flat(rooms, c))
        elif what == ADD_NORM:
            add_norm(matrix(rooms, a), matrix(rooms, b),
                             flat(rooms, c), flat(rooms, d), flat(rooms, e), epsilon,
                             flat(rooms, f), matrix(rooms, g),
                             flat(rooms, h), matrix(rooms, line[9]))
        elif what == NORM_BACK:
            norm_back(matrix(rooms, a), matrix(rooms, b),
                              flat(rooms, c), flat(rooms, d), flat(rooms, e),
                              flat(rooms, f), matrix(rooms, g),
                              flat(rooms, h))
        elif what == ATTEND:
            asking, asked, heads, causal = a, b, c, d == 1
            if asking == INPUTS:
                attend(flat(rooms, e), widths[e], flat(rooms, f), widths[f], g, h,
                               starts[asking], starts[asked], lengths[asked], heads, causal,
                               flat(rooms, line[9]), flat(rooms, line[10]), encoder_head)
            else:
                attend(flat(rooms, e), widths[e], flat(rooms, f), widths[f], g, h,
                               starts[asking], starts[asked], lengths[asked], heads, causal,
                               flat(rooms, line[9]), flat(rooms, line[10]), decoder_head)
        elif what == ATTEND_BACK:
            asking, asked, heads, causal = a, b, c, d == 1
            if asking == INPUTS:
                attend_back(flat(rooms, line[10]), flat(rooms, e), widths[e],
                                    flat(rooms, f), widths[f], g, h, starts[asking], starts[asked],
                                    lengths[asked], heads, causal, flat(rooms, line[9]),
                                    flat(rooms, line[11]), flat(rooms, line[12]), scores,
                                    encoder_head)
            else:
                attend_back(flat(rooms, line[10]), flat(rooms, e), widths[e],
                                    flat(rooms, f), widths[f], g, h, starts[asking], starts[asked],
                                    lengths[asked], heads, causal, flat(rooms, line[9]),
                                    flat(rooms, line[11]), flat(rooms, line[12]), scores,
                                    decoder_head)
        elif what == EMBED:
            embed(tokens[a], places[a], matrix(rooms, b),
                          matrix(rooms, c), flat(rooms, d), flat(rooms, e),
                          epsilon, flat(rooms, f), matrix(rooms, g),
                          flat(rooms, h), matrix(rooms, line[9]))
        elif what == EMBED_BACK:
            embed_back(tokens[a], places[a], matrix(rooms, b),
                               matrix(rooms, c), matrix(rooms, d))
        elif what == CROSS_ENTROPY:
            loss += cross_entropy(matrix(rooms, a), flat(rooms, b), wanted,
                                          share, flat(rooms, c), lanes)
        elif what == CHOOSE:
            choose(matrix(rooms, a), flat(rooms, b), wanted, lanes)
        elif what == ZERO:
            values = matrix(rooms, a)
            values[:, :] = F(0)
        elif what == ADD:
            add(matrix(rooms, a), matrix(rooms, b))
        elif what == KEEP:
            keep(matrix(rooms, a), matrix(rooms, b), starts[c],
                         lengths[c])
    return loss


def were_compiled(encoder_head: int, decoder_head: int) -> bool:
    """Whether an earlier process left the loops for these widths of heads on disk."""
    try:
        index = interpret._cache._cache_file._load_index()  # type: ignore[attr-defined]
    except AttributeError:  # there is no place for them
        return False
    return any([kind.count for kind in signature[-2:]] == [encoder_head, decoder_head] for signature, *_ in index)
