"""The instructions of a program: what is computed, from which buffers, and whose tokens their rows stand for.

Each is followed by its operands, in order, and its equation. The kernel of the same name in `kernels.py` runs it.
"""

from __future__ import annotations

INPUTS, GIVEN, CACHED = 0, 1, 2
"""Sides: the encoder's tokens, those the decoder is given, and those whose keys and values are in the KV cache."""

MATMUL = 0
"""out, x, y, x transposed, y transposed, accumulate: out = x y, or out += x y"""
ADD_BIAS = 1
"""y, bias: y += bias"""
SUM_ROWS = 2
"""grad, grad_bias: grad_bias += sum over rows of grad"""
RELU = 3
"""y, bias: y = max(y + bias, 0)"""
RELU_BACKWARD = 4
"""grad, y, grad_bias: grad = grad * (y > 0); grad_bias += sum over rows of grad"""
ADD_NORM = 5
"""x, y, y_bias, gain, bias, total, unit, scale, out: out = LayerNorm(x + y + y_bias)"""
NORM_BACKWARD = 6
"""grad_out, unit, scale, gain, grad_gain, grad_bias, grad_total, grad_added_bias"""
ATTENTION = 7
"""query side, key side, heads, causal, queries, keys, column of the keys, column of the values, probabilities, out"""
ATTENTION_BACKWARD = 8
"""the same with grad_out for out, then grad_queries, grad_keys"""
EMBED = 9
"""side, token_table, position_table, gain, bias, total, unit, scale, out: out = LayerNorm(token + position)"""
EMBED_BACKWARD = 10
"""side, grad, grad_token_table, grad_position_table"""
CROSS_ENTROPY = 11
"""logits, bias, grad_bias: the loss; logits become their own gradient"""
ARGMAX = 12
"""logits, bias: `targets` becomes the token of the largest logit in each row"""
ZERO = 13
"""x: x = 0"""
ADD = 14
"""x, y: x += y"""
APPEND_TO_CACHE = 15
"""qkv, cache, side: the keys and values of row n are appended to row n of the KV cache"""
ARGMAX_WITH_GAP = 16
"""logits, bias, gap: as ARGMAX; gap = the largest logit minus the second largest, of each row"""

INSTRUCTION_LENGTH = 13
"""Integers in an instruction: its code and its operands, padded with 0."""
