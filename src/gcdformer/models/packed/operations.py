"""The words in which a tape is written: what can be done with rooms, and whose tokens they hold."""

from __future__ import annotations

INPUTS, GIVEN, PAST = 0, 1, 2
"""Sides: the encoder's tokens, those the decoder is given, and those whose keys are kept while it answers."""

PRODUCT = 0
"""out, x, y, x turned, y turned, added: out = x y, or out += x y"""
ADD_BIAS = 1
"""y, bias: y += bias"""
SUM_ROWS = 2
"""change, d_bias: d_bias += the sum of the rows of change"""
RELU = 3
"""y, bias: y = max(y + bias, 0)"""
RELU_BACK = 4
"""change, y, d_bias"""
ADD_NORM = 5
"""x, y, y's bias, gain, bias, total, unit, scale, out: out = norm(x + y + y's bias)"""
NORM_BACK = 6
"""change, unit, scale, gain, d_gain, d_bias, d_total, d_bias of what was added"""
ATTEND = 7
"""asking side, asked side, heads, causal, queries, keys, where keys and values start in a row, shares, out"""
ATTEND_BACK = 8
"""the same, with change instead of out, then d_queries, d_keys"""
EMBED = 9
"""side, table, positions, gain, bias, total, unit, scale, out"""
EMBED_BACK = 10
"""side, change, d_table, d_positions"""
CROSS_ENTROPY = 11
"""logits, bias, d_bias: the loss; logits become their change"""
CHOOSE = 12
"""logits, bias: `wanted` becomes the word of the largest logit in each row"""
ZERO = 13
"""room: all zero"""
ADD = 14
"""x, y: x += y"""
KEEP = 15
"""qkv, past, side: the last columns of row n become the newest of row n of the past"""

NUMBERS = 13
"""How long a line is: the operation and what it works on."""
