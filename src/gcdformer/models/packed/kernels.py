"""The kernels of the packed transformer, and `interpret`, which runs a program of them in one compiled call.

Rows of a batch are packed: tokens of all sequences one after another, sequence n at starts[n] .. starts[n+1], so that there
is no padding to mask or to compute. A kernel is one pass over data in the cache; it knows arrays of float32, not models. The
call releases the GIL, so that threads need not take turns in Python; nothing in it is checked, and nothing allocates.
numba compiles all of it once per machine for each width of heads and caches the result until this file changes; after a
change of vectors.py, product.py or instructions.py touch it.

Shapes: T tokens (of the side that a kernel is called for), D the width of that side, V the vocabulary, H heads of E = D / H,
S tokens on the key side. LayerNorm: `unit`, (T, D), is (x - mean) / std before gain and bias; `scale`, (T,), is 1 / std.
`grad_x` is d loss / d x and has the shape of x. The same mathematics is in `layers.py`: Embedding, SelfAttention,
CrossAttention, FeedForward and nn.LayerNorm; the loss is `interface.sequence_loss`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numba
import numpy as np
from numba import carray  # type: ignore[attr-defined]

from gcdformer.models.packed.instructions import (
    ADD,
    ADD_BIAS,
    ADD_NORM,
    APPEND_TO_CACHE,
    ARGMAX,
    ARGMAX_WITH_GAP,
    ATTENTION,
    ATTENTION_BACKWARD,
    CROSS_ENTROPY,
    EMBED,
    EMBED_BACKWARD,
    INPUTS,
    MATMUL,
    NORM_BACKWARD,
    RELU,
    RELU_BACKWARD,
    SUM_ROWS,
    ZERO,
)
from gcdformer.models.packed.product import product
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
MAXIMUM_LANES = 32
"""Running maxima side by side, so that a maximum is vectorised."""
LOWEST = F(-3e38)
"""Where a maximum starts: below all logits, but finite: fastmath lets the compiler assume that there are no infinities."""


@inlined
def normalise(total, gain, bias, epsilon, unit, scale, out, i):
    """out[i] = gain * (total - mean(total)) / sqrt(var(total) + epsilon) + bias; total (D,), unit and out (T, D)."""
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
def embed(tokens, positions, token_table, position_table, gain, bias, epsilon, total, unit, scale, out):
    """out = LayerNorm(token_table[tokens] + position_table[positions]).

    tokens, positions (T,); token_table (V, D); position_table (positions, D); `total` (D,) is scratch; out (T, D).
    """
    for i in range(tokens.shape[0]):
        token, position = tokens[i], positions[i]
        for j in range(total.shape[0]):
            total[j] = token_table[token, j] + position_table[position, j]
        normalise(total, gain, bias, epsilon, unit, scale, out, i)


@loop
def embed_backward(tokens, positions, grad, grad_token_table, grad_position_table):
    """grad_token_table[tokens] += grad; grad_position_table[positions] += grad; grad (T, D)."""
    for i in range(tokens.shape[0]):
        token, position = tokens[i], positions[i]
        for j in range(grad.shape[1]):
            grad_token_table[token, j] += grad[i, j]
            grad_position_table[position, j] += grad[i, j]


@loop
def add_norm(x, y, y_bias, gain, bias, epsilon, total, unit, scale, out):
    """out = LayerNorm(x + y + y_bias); x, y, unit, out (T, D); y_bias, gain, bias (D,); `total` (D,) is scratch."""
    for i in range(x.shape[0]):
        for j in range(total.shape[0]):
            total[j] = x[i, j] + y[i, j] + y_bias[j]
        normalise(total, gain, bias, epsilon, unit, scale, out, i)


@loop
def norm_backward(grad_out, unit, scale, gain, grad_gain, grad_bias, grad_total, grad_added_bias):
    """The backward pass of LayerNorm(total), total = x + y + added_bias; grad_out, unit, grad_total (T, D), the others (D,).

    w = grad_out * gain;  grad_total = scale * (w - mean(w) - unit * mean(w * unit)), means over D
    grad_gain += sum(grad_out * unit);  grad_bias += sum(grad_out);  grad_added_bias += sum(grad_total), sums over T
    """
    rows, dim = grad_out.shape
    for i in range(rows):
        mean, along = F(0), F(0)
        for j in range(dim):
            weighted = grad_out[i, j] * gain[j]
            mean += weighted
            along += weighted * unit[i, j]
        mean /= F(dim)
        along /= F(dim)
        factor = scale[i]
        for j in range(dim):
            grad_gain[j] += grad_out[i, j] * unit[i, j]
            grad_bias[j] += grad_out[i, j]
            value = factor * (grad_out[i, j] * gain[j] - mean - unit[i, j] * along)
            grad_total[i, j] = value
            grad_added_bias[j] += value


@loop
def add_bias(y, bias):
    """y += bias; y (T, D), bias (D,)."""
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            y[i, j] += bias[j]


@loop
def sum_rows(grad, grad_bias):
    """grad_bias += sum of grad over T; grad (T, D), grad_bias (D,)."""
    for i in range(grad.shape[0]):
        for j in range(grad.shape[1]):
            grad_bias[j] += grad[i, j]


@loop
def add(x, y):
    """x += y; both (T, D)."""
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            x[i, j] += y[i, j]


@loop
def append_to_cache(qkv, cache, starts, lengths):
    """cache[starts[n] + lengths[n] - 1] = the keys and values in qkv[n]; qkv (N, 3 D), one token each; cache (., 2 D)."""
    width = cache.shape[1]
    skipped = qkv.shape[1] - width
    for n in range(qkv.shape[0]):
        newest = starts[n] + lengths[n] - 1
        for j in range(width):
            cache[newest, j] = qkv[n, skipped + j]


@loop
def relu(y, bias):
    """y = max(y + bias, 0) in place; y (T, 4 D), bias (4 D,)."""
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            value = y[i, j] + bias[j]
            y[i, j] = value if value > F(0) else F(0)


@loop
def relu_backward(grad, y, grad_bias):
    """grad = grad * (y > 0) in place; grad_bias += sum of grad over T; grad, y (T, 4 D), grad_bias (4 D,)."""
    for i in range(grad.shape[0]):
        for j in range(grad.shape[1]):
            value = grad[i, j]
            value = value if y[i, j] > F(0) else F(0)
            grad[i, j] = value
            grad_bias[j] += value


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
    """values = exp(values) in place, for values <= 0; any length."""
    for i in range(values.shape[0]):
        values[i] = exponential(values[i])


@loop
def add_and_find_largest(row, bias, lanes):
    """row += bias; the largest value, several lanes side by side (a plain maximum is not vectorised)."""
    whole = row.shape[0] // MAXIMUM_LANES
    for lane in range(MAXIMUM_LANES):
        lanes[lane] = LOWEST
    for block in range(whole):
        for lane in range(MAXIMUM_LANES):
            value = row[block * MAXIMUM_LANES + lane] + bias[block * MAXIMUM_LANES + lane]
            row[block * MAXIMUM_LANES + lane] = value
            lanes[lane] = value if value > lanes[lane] else lanes[lane]
    largest = LOWEST
    for lane in range(MAXIMUM_LANES):
        largest = max(largest, lanes[lane])
    for j in range(whole * MAXIMUM_LANES, row.shape[0]):
        row[j] += bias[j]
        largest = max(largest, row[j])
    return largest


@loop
def cross_entropy(logits, bias, targets, loss_weight, grad_bias, lanes):
    """loss = -sum over T of log softmax(logits + bias)[target]; logits (T, V), bias (V,), targets (T,).

    logits become d (loss_weight * loss) / d logits = loss_weight * (softmax(logits + bias) - onehot(target)), in place, and
    grad_bias, (V,), gets their sum over T added.
    """
    rows, vocabulary = logits.shape
    loss = 0.0
    for i in range(rows):
        row = logits[i]
        largest = add_and_find_largest(row, bias, lanes)
        target = row[targets[i]]
        total = F(0)
        for j in range(vocabulary):
            value = exponential(row[j] - largest)
            row[j] = value
            total += value
        loss += np.log(np.float64(total)) + np.float64(largest) - np.float64(target)
        factor = loss_weight / total
        for j in range(vocabulary):
            value = row[j] * factor
            row[j] = value
            grad_bias[j] += value
        row[targets[i]] -= loss_weight
        grad_bias[targets[i]] -= loss_weight
    return loss


@loop
def argmax(logits, bias, tokens, lanes):
    """tokens = argmax over V of logits + bias; logits (T, V), bias (V,), tokens (T,)."""
    for i in range(logits.shape[0]):
        row = logits[i]
        largest = add_and_find_largest(row, bias, lanes)
        tokens[i] = 0
        for j in range(row.shape[0]):
            if row[j] == largest:
                tokens[i] = j
                break


@loop
def argmax_with_gap(logits, bias, tokens, gaps, lanes):
    """As `argmax`; gaps = the largest of logits + bias minus the second largest; gaps (T,).

    The second largest is in another lane than the largest, whose maximum is known, or in the same, or behind all lanes.
    """
    for i in range(logits.shape[0]):
        row = logits[i]
        largest = add_and_find_largest(row, bias, lanes)
        token = 0
        for j in range(row.shape[0]):
            if row[j] == largest:
                token = j
                break
        tokens[i] = token
        second, in_lanes = LOWEST, row.shape[0] // MAXIMUM_LANES * MAXIMUM_LANES
        row[token] = LOWEST
        if token < in_lanes:
            lane = token % MAXIMUM_LANES
            lanes[lane] = LOWEST
            for block in range(in_lanes // MAXIMUM_LANES):
                value = row[block * MAXIMUM_LANES + lane]
                second = value if value > second else second
        for lane in range(MAXIMUM_LANES):
            second = lanes[lane] if lanes[lane] > second else second
        for j in range(in_lanes, row.shape[0]):
            second = row[j] if row[j] > second else second
        row[token] = largest
        gaps[i] = largest - second


@loop
def attention(queries, q_stride, keys, k_stride, k_column, v_column, q_starts, k_starts, k_counts, heads, causal,
              probabilities, out, head_dim):
    """out = softmax(q k^T / sqrt(E)) v for every head and sequence; `probabilities` keeps the softmax for the backward pass.

    queries (T, q_stride), a query of head h at columns h E .. (h + 1) E; keys (S, k_stride), its keys at k_column + h E ..,
    its values at v_column + h E ..; out (T, D). All are flat, with strides; probabilities are (T of a sequence, S of it) for
    each head, one after another. `head_dim` is a tuple as long as E.
    """
    width = len(head_dim)
    factor = F(1) / np.sqrt(F(width))
    place = 0
    for n in range(q_starts.shape[0] - 1):
        q0, t_count = q_starts[n], q_starts[n + 1] - q_starts[n]
        k0, s_count = k_starts[n], k_counts[n]
        for h in range(heads):
            for t in range(t_count):
                seen = t + 1 if causal else s_count
                query = (q0 + t) * q_stride + h * width
                largest = LOWEST
                for s in range(seen):
                    score = factor * dot(queries, query, keys, (k0 + s) * k_stride + k_column + h * width, head_dim)
                    probabilities[place + s] = score
                    largest = score if score > largest else largest
                for s in range(seen):
                    probabilities[place + s] -= largest
                for s in range(seen, s_count):
                    probabilities[place + s] = F(0)
                place += s_count
    exponentials(probabilities[:place])
    place = 0
    for n in range(q_starts.shape[0] - 1):
        q0, t_count = q_starts[n], q_starts[n + 1] - q_starts[n]
        k0, s_count = k_starts[n], k_counts[n]
        for h in range(heads):
            for t in range(t_count):
                seen = t + 1 if causal else s_count
                total = F(0)
                for s in range(seen):
                    total += probabilities[place + s]
                total = F(1) / total
                mixed = ((q0 + t) * heads + h) * width
                for e in range(width):
                    out[mixed + e] = F(0)
                for s in range(seen):
                    probability = probabilities[place + s] * total
                    probabilities[place + s] = probability
                    add_scaled(out, mixed, probability, keys, (k0 + s) * k_stride + v_column + h * width, head_dim)
                place += s_count


@loop
def attention_backward(grad_out, queries, q_stride, keys, k_stride, k_column, v_column, q_starts, k_starts, k_counts, heads,
                       causal, probabilities, grad_queries, grad_keys, scores, head_dim):
    """The backward pass of `attention`, with its shapes; grad_out (T, D); `scores` (S,) is scratch.

    p the probabilities, g = grad_out v^T:  grad_v += p^T grad_out;  grad_scores = p * (g - sum over S of p g) / sqrt(E)
    grad_q += grad_scores k;  grad_k += grad_scores^T q
    """
    width = len(head_dim)
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
                    probability = probabilities[place + s]
                    value = (k0 + s) * k_stride + v_column + h * width
                    score = dot(grad_out, mixed, keys, value, head_dim)
                    add_scaled(grad_keys, value, probability, grad_out, mixed, head_dim)
                    scores[s] = score
                    along += probability * score
                for s in range(seen):
                    score = probabilities[place + s] * (scores[s] - along) * factor
                    key = (k0 + s) * k_stride + k_column + h * width
                    add_scaled(grad_queries, query, score, keys, key, head_dim)
                    add_scaled(grad_keys, key, score, queries, query, head_dim)
                place += s_count


@inlined
def flat(buffers, index):
    """All of a buffer's memory as one array."""
    address, capacity, rows, widths, counts = buffers
    return carray(pointer(address[index]), (capacity[index],))


@inlined
def matrix(buffers, index):
    """As many rows of a buffer as the batch has."""
    address, capacity, rows, widths, counts = buffers
    return carray(pointer(address[index]), (counts[rows[index]], widths[index]))


@inlined
def matmul(buffers, out, x, y, x_transposed, y_transposed, accumulate, gemm, scratch):
    """out = x y, or out += x y; x or y may be transposed. By BLAS, whose address `gemm` is, or without it if that is 0."""
    address, capacity, rows, widths, counts = buffers
    inner = counts[rows[x]] if x_transposed else widths[x]
    if gemm == 0:
        product(x_transposed, y_transposed, counts[rows[out]], widths[out], inner, address[x], widths[x], address[y],
                widths[y], accumulate, address[out], widths[out], scratch)
    else:
        sgemm(gemm, x_transposed, y_transposed, counts[rows[out]], widths[out], inner, address[x], widths[x], address[y],
              widths[y], accumulate, address[out], widths[out])


@compiled
def interpret(instructions, buffers, tokens, positions, starts, lengths, targets, loss_weight, epsilon, lanes, scores, gemm,
              scratch, encoder_head_dim, decoder_head_dim):
    """Run the instructions in order; the summed loss, if they compute one.

    instructions (n, INSTRUCTION_LENGTH); `buffers` is the address, capacity, kind of rows and width of each buffer, and the
    rows of each kind; `tokens`, `positions`, `starts`, `lengths` have an array for each side; targets (T,).
    """
    loss = 0.0
    widths = buffers[3]
    for number in range(instructions.shape[0]):
        row = instructions[number]
        code, a, b, c, d, e, f, g, h = row[0], row[1], row[2], row[3], row[4], row[5], row[6], row[7], row[8]
        if code == MATMUL:
            matmul(buffers, a, b, c, d, e, f, gemm, scratch)
        elif code == ADD_BIAS:
            add_bias(matrix(buffers, a), flat(buffers, b))
        elif code == SUM_ROWS:
            sum_rows(matrix(buffers, a), flat(buffers, b))
        elif code == RELU:
            relu(matrix(buffers, a), flat(buffers, b))
        elif code == RELU_BACKWARD:
            relu_backward(matrix(buffers, a), matrix(buffers, b), flat(buffers, c))
        elif code == ADD_NORM:
            add_norm(matrix(buffers, a), matrix(buffers, b), flat(buffers, c), flat(buffers, d), flat(buffers, e), epsilon,
                     flat(buffers, f), matrix(buffers, g), flat(buffers, h), matrix(buffers, row[9]))
        elif code == NORM_BACKWARD:
            norm_backward(matrix(buffers, a), matrix(buffers, b), flat(buffers, c), flat(buffers, d), flat(buffers, e),
                          flat(buffers, f), matrix(buffers, g), flat(buffers, h))
        elif code == ATTENTION:
            query_side, key_side, heads, causal = a, b, c, d == 1
            if query_side == INPUTS:
                attention(flat(buffers, e), widths[e], flat(buffers, f), widths[f], g, h, starts[query_side],
                          starts[key_side], lengths[key_side], heads, causal, flat(buffers, row[9]),
                          flat(buffers, row[10]), encoder_head_dim)
            else:
                attention(flat(buffers, e), widths[e], flat(buffers, f), widths[f], g, h, starts[query_side],
                          starts[key_side], lengths[key_side], heads, causal, flat(buffers, row[9]),
                          flat(buffers, row[10]), decoder_head_dim)
        elif code == ATTENTION_BACKWARD:
            query_side, key_side, heads, causal = a, b, c, d == 1
            if query_side == INPUTS:
                attention_backward(flat(buffers, row[10]), flat(buffers, e), widths[e], flat(buffers, f), widths[f], g, h,
                                   starts[query_side], starts[key_side], lengths[key_side], heads, causal,
                                   flat(buffers, row[9]), flat(buffers, row[11]), flat(buffers, row[12]), scores,
                                   encoder_head_dim)
            else:
                attention_backward(flat(buffers, row[10]), flat(buffers, e), widths[e], flat(buffers, f), widths[f], g, h,
                                   starts[query_side], starts[key_side], lengths[key_side], heads, causal,
                                   flat(buffers, row[9]), flat(buffers, row[11]), flat(buffers, row[12]), scores,
                                   decoder_head_dim)
        elif code == EMBED:
            embed(tokens[a], positions[a], matrix(buffers, b), matrix(buffers, c), flat(buffers, d), flat(buffers, e),
                  epsilon, flat(buffers, f), matrix(buffers, g), flat(buffers, h), matrix(buffers, row[9]))
        elif code == EMBED_BACKWARD:
            embed_backward(tokens[a], positions[a], matrix(buffers, b), matrix(buffers, c), matrix(buffers, d))
        elif code == CROSS_ENTROPY:
            loss += cross_entropy(matrix(buffers, a), flat(buffers, b), targets, loss_weight, flat(buffers, c), lanes)
        elif code == ARGMAX:
            argmax(matrix(buffers, a), flat(buffers, b), targets, lanes)
        elif code == ARGMAX_WITH_GAP:
            argmax_with_gap(matrix(buffers, a), flat(buffers, b), targets, flat(buffers, c), lanes)
        elif code == ZERO:
            values = matrix(buffers, a)
            values[:, :] = F(0)
        elif code == ADD:
            add(matrix(buffers, a), matrix(buffers, b))
        elif code == APPEND_TO_CACHE:
            append_to_cache(matrix(buffers, a), matrix(buffers, b), starts[c], lengths[c])
    return loss


def were_compiled(encoder_head_dim: int, decoder_head_dim: int) -> bool:
    """Whether an earlier process left the loops for these widths of heads on disk."""
    try:
        index = interpret._cache._cache_file._load_index()  # type: ignore[attr-defined]
    except AttributeError:  # there is no place for them
        return False
    return any([kind.count for kind in signature[-2:]] == [encoder_head_dim, decoder_head_dim] for signature, *_ in index)
