"""A model from a configuration, its parameter count without allocating it, and the arithmetic of an example.

`FAMILIES` is the table of model families; nothing else asks which one a model is of, but for the packed transformer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from gcdformer.config import Config, ModelSection
from gcdformer.data import Problem
from gcdformer.models.interface import Seq2Seq
from gcdformer.models.recurrent import Recurrent
from gcdformer.models.transformer import Transformer


@dataclass(frozen=True)
class FamilyCode:
    """A family of models: how one is built, and the weights that a token meets in a multiply-add, (input, output)."""

    build: Callable[[ModelSection, Problem], Seq2Seq]
    weights_per_token: Callable[[ModelSection, int], tuple[int, int]]


def build_transformer(sizes: ModelSection, problem: Problem) -> Seq2Seq:
    return Transformer(sizes, problem.vocabulary.size, sizes.positions or problem.longest_input,
                       sizes.positions or problem.longest_target)


def transformer_weights(sizes: ModelSection, vocabulary: int) -> tuple[int, int]:
    d, e = sizes.decoder_dim, sizes.encoder_dim
    return (sizes.encoder_layers * 12 * e * e + sizes.decoder_layers * 2 * e * d,
            sizes.decoder_layers * 14 * d * d + d * vocabulary)


def build_recurrent(sizes: ModelSection, problem: Problem) -> Seq2Seq:
    return Recurrent(sizes, problem.vocabulary.size)


def recurrent_weights(sizes: ModelSection, vocabulary: int) -> tuple[int, int]:
    gates = 4 if sizes.family == "lstm" else 3
    hidden = sizes.hidden_dim or sizes.encoder_dim
    deeper = (sizes.encoder_layers - 1) * 2 * hidden
    return (gates * hidden * (sizes.encoder_dim + hidden + deeper),
            gates * hidden * (sizes.decoder_dim + hidden + deeper) + (hidden + vocabulary) * sizes.decoder_dim)


FAMILIES = {
    "transformer": FamilyCode(build_transformer, transformer_weights),
    "lstm": FamilyCode(build_recurrent, recurrent_weights),
    "gru": FamilyCode(build_recurrent, recurrent_weights),
}
"""The families by the names that `model.family` may have."""


def build_model(config: Config, problem: Problem, *, seed: int | None = None) -> Seq2Seq:
    """The model of a configuration; with a seed its weights are set, without one they are left as they are allocated."""
    sizes = config.model
    model = FAMILIES[sizes.family].build(sizes, problem)
    for module in model.modules():
        if isinstance(module, torch.nn.LayerNorm):
            module.eps = sizes.norm_epsilon
    if seed is not None:
        model.initialise(torch.Generator().manual_seed(seed))
    return model


def count_parameters(config: Config, problem: Problem) -> int:
    """Trainable parameters; the model is only described, so that 714 million cost nothing."""
    return sum(weight.numel() for weight in described_model(config, problem).parameters())


def described_model(config: Config, problem: Problem) -> Seq2Seq:
    """The model with the names, shapes and types of its weights, but no memory for them."""
    with torch.device("meta"), LeftUnfilled():
        return build_model(config, problem)


class LeftUnfilled(TorchFunctionMode):
    """Layers do not fill their weights when made: weights without memory have no use for it, and torch would import 850
    modules, a second's work, to fill them."""

    FILLING = frozenset({"normal_", "uniform_", "fill_", "zero_", "ones_", "zeros_", "constant_", "kaiming_uniform_",
                         "xavier_uniform_"})

    def __torch_function__(self, func: Any, types: Any, args: tuple[Any, ...] = (),
                           kwargs: dict[str, Any] | None = None) -> Any:
        kwargs = kwargs or {}
        if getattr(func, "__name__", "") in self.FILLING:
            return kwargs["tensor"] if "tensor" in kwargs else args[0]
        return func(*args, **kwargs)


def flops_per_example(sizes: ModelSection, vocabulary: int, input_tokens: float, output_tokens: float) -> float:
    """Training FLOPs of an example: 6 for each multiply-add weight and unpadded token it meets (2 forward, 4 back).

    Embeddings are look-ups and cost nothing; attention scores, norms and softmax are not counted.
    """
    on_inputs, on_outputs = FAMILIES[sizes.family].weights_per_token(sizes, vocabulary)
    return 6.0 * (on_inputs * input_tokens + on_outputs * output_tokens)
