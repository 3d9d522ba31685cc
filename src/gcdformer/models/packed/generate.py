"""Greedy decoding by the packed transformer: the encoder once, then the decoder token by token with a KV cache.

The same loop for any model is in `models/generate.py`; the layers are those of `forward.py`. With a tree of answers of one
token each (`models/answer_tree.py`), their offsets are added to the logits of that token.
"""

from __future__ import annotations

from typing import final

import numpy as np
import torch

from gcdformer.models.answer_tree import AnswerTree
from gcdformer.models.packed.forward import Forward, Keys
from gcdformer.models.packed.instructions import APPEND_TO_CACHE, ARGMAX, ARGMAX_WITH_GAP, CACHED, GIVEN
from gcdformer.models.packed.program import Buffer
from gcdformer.models.packed.rows import PackedRows
from gcdformer.models.transformer import Transformer
from gcdformer.numbers.encoding import BEGIN, END, PAD, Integers, Mask

ENCODE, ADVANCE, CHOOSE, CLOSE = "encode", "advance", "choose", "close"
"""The sections of the program; the last two are ADVANCE for an answer of one token: choose it, and what comes behind it."""


@final
class PackedGenerator:
    """Answers packed rows. Reads the model's own weights; only the output bias with offsets is a copy."""

    def __init__(self, model: Transformer, tree: AnswerTree | None = None) -> None:
        self.layers = Forward(model.sizes, {name: weight.data for name, weight in model.named_parameters()})
        names = [f"decoder.{index}" for index in range(model.sizes.decoder_layers)]
        self.layers.section = ENCODE
        memory = self.layers.encode()
        memories = {name: self.layers.memory_keys(name, memory) for name in names}
        bias = self.layers.weights["output_bias"]
        self.layers.section = ADVANCE
        self.layers.emit(ARGMAX, self.emit_advance(memories), bias)
        self.tree = tree
        if tree is None:
            return
        offsets = torch.from_numpy(tree.token_offsets(len(model.output_bias))).to(model.output_bias)
        with_offsets = self.layers.program.tensor("output_bias with offsets", model.output_bias.data + offsets)
        self.is_listed = np.isin(np.arange(len(offsets)), tree.answers[:, 1])
        self.gap = self.layers.program.buffer("gap", GIVEN, 1)
        for self.layers.section, chosen in ((CHOOSE, with_offsets), (CLOSE, bias)):
            self.logits = self.emit_advance(memories)
            self.layers.emit(ARGMAX_WITH_GAP, self.logits, chosen, self.gap)

    def emit_advance(self, memories: dict[str, Keys]) -> Buffer:
        """From the newest token of every row to the logits of the next, without the bias."""
        layers = self.layers
        x, dim = layers.embed("embed_outputs", GIVEN), layers.sizes.decoder_dim
        for layer, memory in memories.items():
            name = f"{layer}.attention"
            qkv = layers.linear_with_bias(f"{name}.qkv", x)
            cache = layers.program.buffer(f"{layer}.cache", CACHED, 2 * dim)
            layers.emit(APPEND_TO_CACHE, qkv, cache, CACHED)
            mixed = layers.attend(name, qkv, Keys(cache, CACHED, 0, dim), causal=False)
            state = layers.add_norm(f"{layer}.norm_attention", x, layers.out_of(f"{name}.out", mixed), f"{name}.out")
            x = layers.rest_of_decoder_layer(layer, x, state, memory)
        return layers.logits(x)

    def run(self, section: str, inputs: PackedRows, tokens: Integers, position: int, longest: int) -> None:
        """Advance every row from its token at a position to the next, in place."""
        n, ones = len(tokens), np.ones(len(tokens), dtype=np.int64)
        given = PackedRows(tokens, position * ones, np.arange(n + 1), ones, 1)
        cached = PackedRows(tokens, given.positions, np.arange(n + 1) * longest, (position + 1) * ones, longest)
        if position == 0:
            self.layers.program.run(ENCODE, (inputs, given, cached), tokens)
        self.layers.program.run(section, (inputs, given, cached), tokens)

    def generate(self, inputs: PackedRows, longest: int) -> Integers:
        """Output tokens (N, longest) after BEGIN, END included, padded. Rows that do not end are cut at `longest`."""
        n = len(inputs.lengths)
        outputs = np.full((n, longest), PAD, dtype=np.int64)
        tokens = np.full(n, BEGIN, dtype=np.int64)
        unfinished = np.ones(n, dtype=np.bool_)
        for position in range(longest):
            self.run(ADVANCE, inputs, tokens, position, longest)
            outputs[unfinished, position] = tokens[unfinished]
            unfinished &= tokens != END
            if not unfinished.any():
                break
        return outputs

    def generate_one_token(self, inputs: PackedRows, longest: int) -> tuple[Integers, Mask]:
        """The best answers of one token as output tokens (N, longest), and which of them are proved to be the best.

        A row is proved if greedy decoding begins with the sign and the chosen token, listed and followed by END, has a lead
        over all others that the probability of END cannot eat up. ln p(END) >= -ln(1 + (V - 1) exp(-gap)), where `gap` is
        END's lead over the second largest logit; it is computed where this bound is not enough.
        """
        assert self.tree is not None and self.tree.one_token
        n = len(inputs.lengths)
        outputs = np.full((n, longest), PAD, dtype=np.int64)
        tokens = np.full(n, BEGIN, dtype=np.int64)
        gaps = []
        for position, section in enumerate((ADVANCE, CHOOSE, CLOSE)):
            self.run(section, inputs, tokens, position, longest)
            outputs[:, position] = tokens
            if section != ADVANCE:
                gaps.append(self.layers.program.values(self.gap)[:, 0].astype(np.float64))
        sign, chosen, end = outputs[:, :3].T
        possible = (sign == self.tree.sign) & self.is_listed[chosen] & (end == END)
        proved = possible & (gaps[0] > np.log1p((len(self.is_listed) - 1) * np.exp(-gaps[1])))
        left = np.flatnonzero(possible & ~proved)
        if len(left):
            logits = self.layers.program.values(self.logits)[left]
            proved[left] = gaps[0][left] > np.log(np.exp(logits - logits[:, [END]]).sum(1))  # -ln p(END); END is the largest
        return outputs, proved
