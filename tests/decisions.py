"""Models whose answers vary, and a brute force over all answers that they are compared with."""

from __future__ import annotations

import io
from contextlib import redirect_stderr, redirect_stdout
from subprocess import CompletedProcess

import numpy as np
import torch

from conftest import tiny_config
from gcdformer import Config, Problem, Stream
from gcdformer.cli import main
from gcdformer.models import Seq2Seq, build_model, generate, sequence_loss
from gcdformer.models.answer_tree import AnswerTree, LogScores
from gcdformer.numbers.encoding import BEGIN, PAD, Integers

CPU = torch.device("cpu")
FAMILIES: dict[str, dict[str, object]] = {"transformer": {}, "deeper": {"encoder_layers": 1, "decoder_layers": 2},
                                          "lstm": {"family": "lstm", "heads": 0}, "gru": {"family": "gru", "heads": 0}}


def setting(base: int, family: str = "transformer", steps: int = 30, **leaves: object) -> tuple[Config, Problem, Seq2Seq]:
    """A model with weights far from their start and a little training, so that answers vary, some listed and some not."""
    config = tiny_config(base=base, maximum=2000, **({"outcomes": "uniform", "max_gcd": 60} | FAMILIES[family] | leaves))
    problem = Problem.of(config)
    model = build_model(config, problem, seed=1)
    generator = torch.Generator().manual_seed(base)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.4 * torch.randn(weight.shape, generator=generator))
        model.get_parameter("output_bias")[[PAD, BEGIN]] -= 20.0
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(steps):
        batch = problem.encode_batch(Stream.of(config, problem).examples(32 * step, 32 * step + 32))
        optimizer.zero_grad()
        sequence_loss(model, torch.from_numpy(batch.inputs), torch.from_numpy(batch.targets)).backward()
        optimizer.step()
    return config, problem, model


def inputs_of(config: Config, problem: Problem, count: int) -> tuple[Integers, Integers]:
    return problem.encode_questions(Stream.of(config, problem).examples(0, count))


@torch.no_grad()
def log_prob(model: Seq2Seq, inputs: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """ln p of whole sequences by teacher forcing."""
    given = torch.cat([torch.full((len(tokens), 1), BEGIN), tokens[:, :-1]], 1)
    each = model.project(model(inputs, given)).double().log_softmax(-1).gather(2, tokens[..., None])[..., 0]
    return (each * (tokens != PAD)).sum(1)


def brute_force(model: Seq2Seq, inputs: torch.Tensor, tree: AnswerTree, longest: int) -> tuple[LogScores, Integers]:
    """ln p (n, answers + 1) of all listed answers, and of the greedy sequence if it is not listed; its tokens."""
    every = [log_prob(model, inputs, torch.from_numpy(row).expand(len(inputs), -1)) for row in tree.answers]
    greedy = generate(model, inputs, longest)
    other = log_prob(model, inputs, greedy)
    other[torch.from_numpy(tree.listed(greedy.numpy()))] = -torch.inf
    return torch.stack([*every, other], 1).numpy(), greedy.numpy()


def with_offsets(logs: LogScores, tree: AnswerTree) -> LogScores:
    """The scores of all that competes."""
    return np.asarray(logs + np.append(tree.offsets, tree.least))


def check(got: Integers, logs: LogScores, greedy: Integers, tree: AnswerTree) -> None:
    """Every answer is the best, but for rounding."""
    scores, number = with_offsets(logs, tree), tree.number_of(got)
    assert (got[number < 0] == greedy[number < 0]).all()
    np.testing.assert_allclose(scores[np.arange(len(got)), number], scores.max(1), atol=1e-3)


def call(*words: object) -> CompletedProcess[str]:
    """The command line, in this process."""
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as errors:
        code = main([str(word) for word in words])
    return CompletedProcess(words, code, out.getvalue(), errors.getvalue())
