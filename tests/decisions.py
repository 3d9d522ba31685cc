"""Models whose answers vary, and a brute force over all answers that they are compared with."""

from __future__ import annotations

from collections.abc import Callable
from subprocess import CompletedProcess

import torch

from conftest import tiny_config
from gcdformer import Config, Problem, Stream
from gcdformer.models import Seq2Seq, build_model, generate
from gcdformer.models.answer_tree import AnswerTree, Scores
from gcdformer.numbers.encoding import BEGIN, END, PAD, PLUS, Integers

Command = Callable[..., CompletedProcess[str]]
CPU = torch.device("cpu")
FAMILIES: dict[str, dict[str, object]] = {"transformer": {}, "deeper": {"encoder_layers": 1, "decoder_layers": 2},
                                          "lstm": {"family": "lstm"}, "gru": {"family": "gru"}}


def setting(base: int, family: str = "transformer", **leaves: object) -> tuple[Config, Problem, Seq2Seq]:
    """A model with weights far from their start, so that answers vary, some of them listed and some not."""
    config = tiny_config(base=base, maximum=2000, **({"outcomes": "uniform", "max_gcd": 60} | FAMILIES[family] | leaves))
    problem = Problem.of(config)
    model = build_model(config, problem, seed=1)
    generator = torch.Generator().manual_seed(base)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.4 * torch.randn(weight.shape, generator=generator))
        bias = model.get_parameter("output_bias")
        bias[[PAD, BEGIN]] -= 20.0
        bias[END] += 2.0
        bias[PLUS] += 3.0
    return config, problem, model


def inputs_of(config: Config, problem: Problem, count: int) -> tuple[Integers, Integers]:
    return problem.encode_questions(Stream.of(config, problem).examples(0, count))


@torch.no_grad()
def log_prob(model: Seq2Seq, inputs: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """ln p of whole sequences by teacher forcing."""
    given = torch.cat([torch.full((len(tokens), 1), BEGIN), tokens[:, :-1]], 1)
    each = model.project(model(inputs, given)).double().log_softmax(-1).gather(2, tokens[..., None])[..., 0]
    return (each * (tokens != PAD)).sum(1)


def brute_force(model: Seq2Seq, inputs: torch.Tensor, tree: AnswerTree, longest: int) -> tuple[Scores, Integers]:
    """The scores (n, answers + 1) of all listed answers, and of the greedy sequence if it is not listed; its tokens."""
    answers = [torch.from_numpy(row).expand(len(inputs), -1) for row in tree.answers]
    scores = [log_prob(model, inputs, row) + offset for row, offset in zip(answers, tree.offsets.tolist(), strict=True)]
    greedy = generate(model, inputs, longest)
    other = log_prob(model, inputs, greedy) + tree.least
    other[torch.from_numpy(tree.listed(greedy.numpy()))] = -torch.inf
    return torch.stack([*scores, other], 1).numpy(), greedy.numpy()


def check(got: Integers, scores: Scores, greedy: Integers, tree: AnswerTree) -> None:
    """Every answer is the best, but for rounding."""
    best = scores.max(1)
    width = tree.answers.shape[1]
    known = {answer.tobytes(): index for index, answer in enumerate(tree.answers)}
    for row, tokens in enumerate(got):
        index = known.get(tokens[:width].tobytes(), -1)
        if index < 0:
            assert (tokens == greedy[row]).all()
        assert scores[row, index] >= best[row] - 1e-3, row
