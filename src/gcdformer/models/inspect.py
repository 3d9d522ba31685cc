"""What a model does with one question: the distribution at each step of greedy decoding, and who attends to whom.

Knows token ids, not integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import torch
from torch import Tensor

from gcdformer.models.hooks import run_with_cache
from gcdformer.models.interface import Seq2Seq
from gcdformer.models.transformer import Transformer
from gcdformer.numbers.encoding import BEGIN, END

Pattern = Tensor
"""One layer's attention, (heads, queries, keys), rows summing to one."""


@dataclass(frozen=True)
class Trace:
    """Greedy decoding of one row: the tokens chosen, and the distribution over the vocabulary each was chosen from."""

    tokens: list[int]
    distributions: list[Tensor]


@dataclass(frozen=True)
class Attention:
    """A transformer's forward over one row: attention of every layer, and the logits they lead to, (T, V)."""

    encoder: list[Pattern]
    decoder: list[Pattern]
    cross: list[Pattern]
    logits: Tensor


@torch.inference_mode()
def trace(model: Seq2Seq, inputs: Sequence[int], longest: int, forced: Sequence[int] | None = None) -> Trace:
    """Decode one unpadded row as `generate` does, or to the tokens `forced`, and keep the distributions."""
    device = next(model.parameters()).device
    state = model.encode(torch.tensor([list(inputs)], device=device))
    token = BEGIN
    tokens: list[int] = []
    distributions: list[Tensor] = []
    while len(tokens) < longest and token != END:
        states, state = model.advance(state, torch.tensor([[token]], device=device))
        logits = model.project(states[0, -1]).float()
        token = int(logits.argmax()) if forced is None else forced[len(tokens)]
        tokens.append(token)
        distributions.append(logits.softmax(-1))
    return Trace(tokens, distributions)


@torch.inference_mode()
def attention(model: Seq2Seq, inputs: Sequence[int], outputs: Sequence[int]) -> Attention | None:
    """Attention of a transformer that reads `inputs` and is fed `outputs` (BEGIN first); None for recurrent models.

    The model has hooks meanwhile: no other thread may run it.
    """
    if not isinstance(model, Transformer):
        return None
    logits, cache = run_with_cache(model, [list(inputs)], [list(outputs)], "*.pattern")

    def layers(names: str) -> list[Pattern]:
        return [values[0] for name, values in cache.items() if fnmatchcase(name, names)]

    return Attention(layers("encoder.*.attention.pattern"), layers("decoder.*.attention.pattern"),
                     layers("decoder.*.cross_attention.pattern"), logits[0])
