"""The packed transformer against autograd on the plain one: loss, gradient, answers, many steps, any number of threads."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import tiny_config
from gcdformer import Config, Problem, Stream, train
from gcdformer.data.problem import Batch
from gcdformer.evaluation.predictor import Predictor
from gcdformer.models import generate
from gcdformer.models.packed import PackedRows, can_pack
from gcdformer.models.packed import program as packed_program
from gcdformer.models.packed.generate import PackedGenerator
from gcdformer.models.packed.product import PANEL, product
from gcdformer.models.transformer import Transformer
from gcdformer.runs.checkpoint import load_checkpoint
from gcdformer.runs.folder import checkpoint_steps
from gcdformer.training.backends import AutogradBackend, PackedBackend
from gcdformer.training.learner import Learner, new_model, start_model
from gcdformer.training.optimizer import nearly_orthogonal

CPU = torch.device("cpu")
# A pair of widths of heads, the encoder's and the decoder's, takes ten seconds to compile: (16, 16), (8, 8) and (12, 3).
SHAPES: dict[str, dict[str, object]] = {
    "base 1000": dict(base=1000, maximum=10**6, dim=64, heads=4),
    "base 2, long rows": dict(base=2, maximum=10**6),
    "uneven": dict(base=10, maximum=10**5, encoder_layers=2, decoder_layers=3, encoder_dim=24, decoder_dim=33,
                   encoder_heads=2, decoder_heads=11),
    "queries from the input": dict(base=30, layers=2, cross_query="input"),
    "one head, odd width": dict(base=7, encoder_dim=12, decoder_dim=9, encoder_heads=1, decoder_heads=3),
    "two answers": dict(base=10, task="simplification", maximum=1000),
}


def setting(name: str) -> tuple[Config, Problem]:
    config = tiny_config(**SHAPES[name])
    return config, Problem.of(config)


def model_of(config: Config, problem: Problem) -> Transformer:
    """With weights far from their start, so that biases and gains matter."""
    model = new_model(config, problem)
    assert isinstance(model, Transformer)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.1 * torch.randn(weight.shape, generator=generator))
    return model


def batch_of(config: Config, problem: Problem, count: int) -> Batch:
    return problem.encode_batch(Stream.of(config, problem).examples(0, count))


def assert_close(got: dict[str, torch.Tensor], wanted: dict[str, torch.Tensor], tolerance: float = 2e-5) -> None:
    assert got.keys() == wanted.keys()
    for name, value in wanted.items():
        scale = max(float(value.abs().max()), 1e-6)
        assert float((got[name] - value).abs().max()) <= tolerance * scale, name


@pytest.mark.parametrize("name", SHAPES)
def test_gradient_is_autograds(name: str) -> None:
    config, problem = setting(name)
    batch = batch_of(config, problem, 50)
    plain = AutogradBackend(model_of(config, problem), config.training, CPU)
    packed = PackedBackend(model_of(config, problem), config.training, threads=2)
    share = 1 / batch.target_tokens
    for add in (False, True):  # the second time it is added to the first
        loss = plain.backward(batch, share, add=add)
        assert packed.backward(packed.encode(batch), share, add=add) == pytest.approx(loss, rel=1e-5)
    wanted = {name: weight.grad for name, weight in plain.model.named_parameters() if weight.grad is not None}
    assert_close(packed.total.tensors, wanted)


@pytest.mark.parametrize("wide", [False, True], ids=["by BLAS", "by our own"])
def test_gradient_by_either_matrix_product(wide: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever of the two this CPU takes, the other one gives the same."""
    monkeypatch.setattr(packed_program, "beats_blas", lambda: wide)
    test_gradient_is_autograds("uneven")


@numba.njit
def product_of(*args):  # type: ignore[no-untyped-def]
    product(*args)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 30), st.integers(1, 70), st.integers(1, 40), st.booleans(), st.booleans(), st.booleans(),
       st.integers(0, 2**32 - 1))
def test_our_own_matrix_product(rows: int, columns: int, inner: int, x_transposed: bool, y_transposed: bool,
                                accumulate: bool, seed: int) -> None:
    """Sums of products of small integers are exact, and nothing beside the result is written."""
    rng = np.random.default_rng(seed)
    x, y = rng.integers(-9, 10, (rows, inner)), rng.integers(-9, 10, (inner, columns))
    before = rng.integers(-9, 10, rows * columns + 1)
    stored = [np.ascontiguousarray(matrix.T if is_transposed else matrix, dtype=np.float32)
              for matrix, is_transposed in ((x, x_transposed), (y, y_transposed))]
    out = before.astype(np.float32)
    scratch = torch.zeros((inner + rows) * PANEL + 16)
    aligned = -(-scratch.data_ptr() // 64) * 64
    product_of(int(x_transposed), int(y_transposed), rows, columns, inner, stored[0].ctypes.data, stored[0].shape[1],
               stored[1].ctypes.data, stored[1].shape[1], int(accumulate), out.ctypes.data, columns, aligned)
    wanted = (x @ y).ravel() + (before[:-1] if accumulate else 0)
    np.testing.assert_array_equal(out, [*wanted, before[-1]])


@settings(max_examples=10, deadline=None)
@given(st.lists(st.integers(2, 60), min_size=2, max_size=5))
def test_buffers_that_had_other_batches_change_no_bit(sizes: list[int]) -> None:
    config, problem = setting("uneven")
    used = PackedBackend(model_of(config, problem), config.training, threads=2)
    for size in sizes:
        batch = used.encode(batch_of(config, problem, size))
        fresh = PackedBackend(model_of(config, problem), config.training, threads=2)
        assert used.backward(batch, 0.01) == fresh.backward(batch, 0.01)
        assert torch.equal(used.total.flat, fresh.total.flat)


@pytest.mark.parametrize("name", SHAPES)
def test_answers_are_those_of_the_plain_decoder(name: str) -> None:
    config, problem = setting(name)
    model, batch = model_of(config, problem), batch_of(config, problem, 60)
    wanted = generate(model, torch.from_numpy(batch.inputs), problem.longest_target).numpy()
    got = PackedGenerator(model).generate(PackedRows.of(batch.inputs, batch.input_lengths), problem.longest_target)
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("threads", [1, 3])
def test_predictor_answers_the_same_on_any_number_of_threads(threads: int) -> None:
    config, problem = setting("uneven")
    model = model_of(config, problem)
    questions = Stream.of(config, problem).examples(0, 3000)
    inputs, _ = problem.encode_questions(questions)
    wanted = generate(model, torch.from_numpy(inputs), problem.longest_target).numpy()
    seen: list[int] = []
    predictor = Predictor(model, problem, CPU, on_batch=seen.append, threads=threads)
    np.testing.assert_array_equal(predictor.tokens(questions), wanted)
    assert seen == sorted(seen) and seen[-1] == 3000


def test_a_batch_that_fails_ends_the_evaluation(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(generator: PackedGenerator, rows: PackedRows, longest: int) -> None:
        raise MemoryError("no room")

    config, problem = setting("uneven")
    predictor = Predictor(model_of(config, problem), problem, CPU, threads=2)
    monkeypatch.setattr(PackedGenerator, "generate", fail)
    with pytest.raises(MemoryError, match="no room"):
        predictor.tokens(Stream.of(config, problem).examples(0, 6000))


def learned(config: Config, problem: Problem, steps: int) -> tuple[list[float], dict[str, torch.Tensor]]:
    learner = Learner(config, problem, new_model(config, problem), CPU)
    losses = [learner.learn(step)[0] for step in range(steps)]
    return losses, dict(learner.model.state_dict()) | learner.backend.optimizer_tensors()


@pytest.mark.parametrize("optimizer", ["adam", "muon"])
def test_forty_steps_are_autograds_within_rounding(optimizer: str) -> None:
    config = tiny_config(dim=32, weight_decay=0.1, clip=0.5, lr=1e-3, epsilon=1e-4, optimizer=optimizer)
    problem = Problem.of(config)
    losses, weights = learned(config, problem, 40)
    plain_losses, plain_weights = learned(config.replace(backend="autograd"), problem, 40)
    np.testing.assert_allclose(losses, plain_losses, rtol=1e-4)
    assert losses[-1] < losses[0] - 0.5
    assert_close(weights, plain_weights, 1e-2)


@pytest.mark.parametrize("optimizer", ["adam", "muon"])
def test_the_number_of_threads_does_not_change_a_bit(optimizer: str) -> None:
    config = tiny_config(batch_size=300, optimizer=optimizer)
    problem = Problem.of(config)
    losses, weights = learned(config, problem, 12)
    for threads in (2, 4):
        other_losses, other_weights = learned(config.replace(threads=threads), problem, 12)
        assert losses == other_losses
        assert all(torch.equal(weights[name], other_weights[name]) for name in weights)


@pytest.mark.processes
def test_the_process_that_compiles_gets_the_bits_of_those_after_it(tmp_path: Path) -> None:
    script = """
import hashlib, sys
import torch
from gcdformer import Config, Problem
from gcdformer.training.learner import Learner
from gcdformer.training.learner import new_model
config = Config().derive(base=10, maximum=1000, dim=20, heads=2, schedule="constant")
problem = Problem.of(config)
learner = Learner(config, problem, new_model(config, problem), torch.device("cpu"))
for step in range(20):
    learner.learn(step)
print(hashlib.sha256(b"".join(weight.detach().numpy().tobytes() for weight in learner.model.parameters())).hexdigest())
"""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", script]
    seen = [subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout for _ in range(2)]
    assert any(tmp_path.rglob("kernels.interpret-*.nbi")) and seen[0] == seen[1] != ""


@pytest.mark.parametrize("optimizer", ["adam", "muon"])
def test_one_backend_goes_on_with_the_others_checkpoint(optimizer: str, tmp_path: Path) -> None:
    config = tiny_config(max_epochs=2, epsilon=1e-4, optimizer=optimizer)
    for name, first, then in (("a", "auto", "autograd"), ("b", "autograd", "auto"), ("c", "auto", "auto")):
        train(config.replace(max_epochs=1, backend=first), tmp_path / name)
        train(config.replace(backend=then), tmp_path / name)
    found = {name: load_checkpoint(tmp_path / name, checkpoint_steps(tmp_path / name)[-1]) for name in "abc"}
    assert_close(found["a"].model, found["c"].model, 1e-2)
    assert_close(found["b"].model, found["c"].model, 1e-2)
    assert found["a"].optimizer.keys() == found["c"].optimizer.keys()
    at_once = train(config, tmp_path / "d")
    last = load_checkpoint(at_once.path, checkpoint_steps(at_once.path)[-1])
    for kind in ("model", "optimizer"):
        got, wanted = getattr(found["c"], kind), getattr(last, kind)
        assert got.keys() == wanted.keys() and all(torch.equal(got[name], wanted[name]) for name in wanted)


def test_muon_makes_all_singular_values_alike() -> None:
    generator = torch.Generator().manual_seed(0)
    matrices = torch.randn(3, 16, 40, generator=generator) * torch.logspace(0, -1.5, 16)[:, None]
    values = torch.linalg.svdvals(nearly_orthogonal(matrices))
    assert float(values.min()) > 0.4 and float(values.max()) < 1.4
    u, _, v = torch.linalg.svd(matrices, full_matrices=False)
    assert float((nearly_orthogonal(matrices) - u @ v).abs().max()) < 0.25


def test_which_models_it_is_for(monkeypatch: pytest.MonkeyPatch) -> None:
    config, problem = setting("uneven")
    assert can_pack(new_model(config, problem), CPU, "float32")
    assert not can_pack(new_model(config, problem), CPU, "bf16")
    assert not can_pack(new_model(config, problem), torch.device("meta"), "float32")
    recurrent = tiny_config(family="gru", heads=0)
    assert not can_pack(new_model(recurrent, problem), CPU, "float32")
    monkeypatch.setattr("gcdformer.models.packed.choice.sgemm_address", lambda: None)  # a torch that shows no sgemm
    assert not can_pack(new_model(config, problem), CPU, "float32")


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(1, 7), min_size=1, max_size=9), st.data())
def test_parts_of_packed_rows_are_those_rows(lengths: list[int], data: st.DataObject) -> None:
    rows = np.zeros((len(lengths), max(lengths)), dtype=np.int64)
    for index, length in enumerate(lengths):
        rows[index, :length] = 10 * index + np.arange(length) + 5
    first = data.draw(st.integers(0, len(lengths) - 1))
    last = data.draw(st.integers(first + 1, len(lengths)))
    part = PackedRows.of(rows, np.array(lengths)).part(first, last)
    got = [list(part.tokens[a:b]) for a, b in zip(part.starts[:-1], part.starts[1:], strict=True)]
    assert got == [list(rows[n, :lengths[n]]) for n in range(first, last)]
    assert list(part.positions) == [place for n in range(first, last) for place in range(lengths[n])]


@pytest.mark.parametrize("backend", ["auto", "autograd"])
@pytest.mark.parametrize("threads", [1, 2])
def test_the_momentum_of_a_dead_unit_ends_at_zero(threads: int, backend: str) -> None:
    """Denormal numbers made a step four times as long in a run of ten million examples."""
    config = tiny_config(optimizer="muon", threads=threads, backend=backend)
    problem = Problem.of(config)
    learner = Learner(config, problem, start_model(config, problem), torch.device("cpu"))
    learner.learn(0)
    with torch.no_grad():
        learner.model.get_parameter("encoder.0.feed_forward.up.bias")[0] = -1e6  # dead: its gradient is zero
    learner.learn(1)
    tensors = learner.backend.optimizer_tensors()
    for name in ("up", "down"):
        momentum = tensors[f"momentum/encoder.0.feed_forward.{name}.weight"]
        (momentum[0] if name == "up" else momentum[:, 0]).fill_(1e-39)
    learner.backend.load_optimizer(tensors)
    learner.learn(2)
    for key, value in learner.backend.optimizer_tensors().items():
        assert not ((value != 0) & (value.abs() < torch.finfo(torch.float32).tiny)).any(), key
    assert torch.full((1,), 1e-39).mul(0.95).item() != 0  # nobody else's arithmetic is changed
