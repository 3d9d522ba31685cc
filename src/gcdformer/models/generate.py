"""The one decoder loop: greedy or beam, with the state carried along, for every family of models."""

from __future__ import annotations

import torch
from torch import Tensor

from gcdformer.models.interface import Seq2Seq
from gcdformer.numbers.encoding import BEGIN, END, PAD


@torch.inference_mode()
def generate(model: Seq2Seq, inputs_NS: Tensor, longest: int, beam: int = 1) -> Tensor:
    """Output tokens (N, longest) after BEGIN, END included, padded. Rows that do not end are cut at `longest`."""
    if beam > 1:
        return beam_search(model, inputs_NS, longest, beam)
    n = inputs_NS.shape[0]
    outputs = torch.full((n, longest), PAD, dtype=torch.int64, device=inputs_NS.device)
    rows = torch.arange(n, device=inputs_NS.device)
    tokens = torch.full((n, 1), BEGIN, dtype=torch.int64, device=inputs_NS.device)
    state = model.encode(inputs_NS)
    for position in range(longest):
        states, state = model.advance(state, tokens)
        tokens = model.project(states[:, -1]).argmax(-1, keepdim=True)
        outputs[rows, position] = tokens[:, 0]
        going = tokens[:, 0] != END
        if not bool(going.all()):
            keep = going.nonzero()[:, 0]
            if not len(keep):
                break
            rows, tokens, state = rows[keep], tokens[keep], state.select(keep)
    return outputs


def beam_search(model: Seq2Seq, inputs_NS: Tensor, longest: int, beam: int) -> Tensor:
    """The sequence of highest total log-probability among the `beam` best prefixes at each position."""
    n, device = inputs_NS.shape[0], inputs_NS.device
    state = model.encode(inputs_NS).select(torch.arange(n, device=device).repeat_interleave(beam))
    outputs = torch.full((n, beam, longest), PAD, dtype=torch.int64, device=device)
    scores = torch.full((n, beam), float("-inf"), device=device)
    scores[:, 0] = 0.0
    tokens = torch.full((n * beam, 1), BEGIN, dtype=torch.int64, device=device)
    ended = torch.zeros(n, beam, dtype=torch.bool, device=device)
    for position in range(longest):
        states, state = model.advance(state, tokens)
        steps = model.project(states[:, -1]).float().log_softmax(-1).view(n, beam, -1)
        steps = steps.masked_fill(ended[..., None], float("-inf"))
        steps[..., PAD] = torch.where(ended, 0.0, float("-inf"))
        size = steps.shape[-1]
        scores, best = (scores[..., None] + steps).flatten(1).topk(beam, dim=1)
        source, chosen = best // size, best % size
        outputs = outputs.gather(1, source[..., None].expand(-1, -1, longest))
        outputs[:, :, position] = chosen
        ended = ended.gather(1, source) | (chosen == END)
        if bool(ended.all()):
            break
        state = state.select((source + torch.arange(n, device=device)[:, None] * beam).flatten())
        tokens = chosen.view(-1, 1)
    return outputs[:, 0]
