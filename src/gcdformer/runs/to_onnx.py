"""A transformer as an ONNX graph, tried with onnxruntime before it is handed out.

The graph is the forward pass under teacher forcing: input tokens and the output tokens so far to logits. Greedy decoding is
a loop around it. Recurrent models are not exported: they read packed rows, which ONNX does not know.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

import numpy as np
import torch
from torch import Tensor

from gcdformer.errors import MissingExtra, UserError
from gcdformer.evaluation.predictor import Predictor
from gcdformer.models.hooks import Logits
from gcdformer.models.transformer import Transformer
from gcdformer.numbers.encoding import PAD

TOLERANCE = 1e-4
SHAPES = ((3, 4), (1, 1), (2, 2))
"""Rows and output tokens with which the graph is tried, beside those it was traced with."""


def to_onnx(predictor: Predictor) -> bytes:
    """The graph as a file's bytes; a `UserError` if it cannot be made, or does not compute what the model does."""
    if not isinstance(predictor.model, Transformer):
        raise UserError("onnx: for family 'transformer'; recurrent models are not exported")
    try:
        import onnx  # noqa: F401
        import onnxruntime
    except ImportError as error:
        raise MissingExtra(str(error.name), "onnx") from None
    module = Logits(predictor.model).eval()
    names = ["inputs", "outputs"]
    axes = {"inputs": {0: "rows", 1: "input"}, "outputs": {0: "rows", 1: "output"}, "logits": {0: "rows", 1: "output"}}
    with warnings.catch_warnings(), torch.no_grad(), TemporaryDirectory() as work:
        warnings.simplefilter("ignore")  # the exporter's own; what matters is tried below
        place = Path(work) / "model.onnx"
        torch.onnx.export(module, example(predictor, 4, 3), place, input_names=names, output_names=["logits"],
                          dynamic_axes=axes, dynamo=False)
        graph = place.read_bytes()
    session = onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"])
    for rows, length in SHAPES:
        tokens = example(predictor, rows, min(length, predictor.problem.longest_target))
        found = session.run(None, dict(zip(names, (part.numpy() for part in tokens), strict=True)))[0]
        with torch.no_grad():
            wanted = cast(Tensor, module(*tokens)).numpy()
        if found.shape != wanted.shape or float(np.abs(found - wanted).max()) > TOLERANCE:
            raise UserError("onnx: onnxruntime does not compute what the model does; the graph is not written")
    return graph


def example(predictor: Predictor, rows: int, length: int) -> tuple[Tensor, Tensor]:
    """Some input rows, all but one padded if there are several, and some output tokens."""
    problem = predictor.problem
    rng = np.random.default_rng(rows)
    vocabulary = problem.vocabulary.size
    inputs = rng.integers(3, vocabulary, (rows, problem.longest_input))
    inputs[1:, -1] = PAD
    return torch.from_numpy(inputs), torch.from_numpy(rng.integers(1, vocabulary, (rows, length)))
