"""Training and asking on any device (`pytest --device cuda`), and what can be known of accelerators without one.

torch's meta device has shapes but no values. So a tensor made on the wrong device fails there, and so does all that makes
the host wait for the device: both are found without a GPU. Where values are needed, the path of accelerators runs on a CPU.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from conftest import tiny_config
from gcdformer import Config, Problem, train
from gcdformer.models import build_model, sequence_loss
from gcdformer.models.inspect import attention, trace
from gcdformer.numbers.encoding import BEGIN
from gcdformer.runs.folder import checkpoint_steps
from gcdformer.training.learner import AHEAD, Diverged, Learner, new_model
from test_training import StopAfter, fingerprint

FAMILIES: list[dict[str, object]] = [{}, {"family": "lstm", "heads": 0}, {"family": "gru", "heads": 0}]
VARIANTS = [*FAMILIES, {"optimizer": "muon", "weight_decay": 0.1}, {"accumulate": 2}, {"precision": "bf16"}]
META = torch.device("meta")


def named(leaves: dict[str, object]) -> str:
    return ",".join(f"{name}={value}" for name, value in leaves.items()) or "default"


def learner_of(config: Config, device: torch.device) -> Learner:
    problem = Problem.of(config)
    return Learner(config, problem, new_model(config, problem), device)


@pytest.fixture
def like_an_accelerator(monkeypatch: pytest.MonkeyPatch) -> None:
    """The host never looks at a value, as on an accelerator."""
    for place in ("models.interface", "models.transformer", "training.backends"):
        monkeypatch.setattr(f"gcdformer.{place}.can_look", lambda tensor: False)


@pytest.mark.parametrize("leaves", [{}, {"optimizer": "muon"}, {"weight_decay": 0.1, "clip": 0}, {"accumulate": 2},
                                    {"cross_query": "input"}], ids=named)
def test_a_step_of_a_transformer_stays_on_its_device_and_waits_for_nothing(leaves: dict[str, object]) -> None:
    learner = learner_of(tiny_config(**leaves), META)
    for step in range(3):
        batch = learner.batch(step)
        loss = learner.backward(batch)
        norm = learner.backend.clip(learner.training.clip)
        learner.backend.update(1e-3)
        assert isinstance(loss, torch.Tensor) and isinstance(norm, torch.Tensor)
        assert loss.device == norm.device == META
    state = learner.backend.optimizer_tensors()
    assert all(value.device == META for key, value in state.items() if not key.startswith("step/"))


def test_the_meta_device_tells() -> None:
    """What the test above relies on."""
    there = torch.ones(3, device=META)
    for wait in (lambda: bool(there.any()), lambda: float(there.sum()), lambda: there[there > 0], there.cpu):
        with pytest.raises((RuntimeError, NotImplementedError)):
            wait()
    with pytest.raises(RuntimeError):
        there + torch.ones(3)


@pytest.mark.parametrize("leaves", FAMILIES, ids=named)
def test_decoder_states_and_loss_are_made_on_the_device(leaves: dict[str, object]) -> None:
    """Recurrent models with inputs of one length only: for others the host has to know the lengths."""
    problem = Problem.of(tiny_config())
    model = build_model(tiny_config(**leaves), problem).to(META)
    inputs, targets = (torch.ones(4, n, dtype=torch.int64, device=META) for n in (5, 4))
    if leaves:
        states, state = model.advance(start_state(model), targets)
    else:
        state = model.encode(inputs)
        states, state = model.advance(state, targets)
        assert sequence_loss(model, inputs, targets).device == META
    more, _ = model.advance(state.select(torch.zeros(2, dtype=torch.int64, device=META)), targets[:2, :1])
    assert states.device == model.project(more).device == META


def start_state(model: torch.nn.Module) -> object:
    from gcdformer.models.recurrent import RecurrentState
    encoder = model.encoder
    parts = 2 if isinstance(encoder, torch.nn.LSTM) else 1
    hidden = torch.zeros(encoder.num_layers, 4, encoder.hidden_size, device=META)
    return RecurrentState((hidden,) * parts)


@pytest.mark.usefixtures("like_an_accelerator")
@pytest.mark.parametrize("leaves", VARIANTS, ids=named)
def test_the_path_of_accelerators_takes_the_same_steps(leaves: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    cpu, steps, reads = torch.device("cpu"), 2 * AHEAD + 5, []
    config = tiny_config(backend="autograd", clip=0.5, **leaves)
    read = Learner.read_losses
    monkeypatch.setattr(Learner, "read_losses", lambda self: (reads.append(len(self._unread)), read(self))[1])
    deferred = learner_of(config, cpu)
    for step in range(steps):
        deferred.learn(step)
    assert reads == [1, AHEAD, AHEAD], "the first loss, then many at a time"
    losses = deferred.new_losses(wait=True)
    monkeypatch.undo()
    plain = learner_of(config, cpu)
    tolerance = dict(rtol=0.02, atol=0.02) if leaves.get("precision") else dict(rtol=2e-4, atol=1e-5)
    np.testing.assert_allclose(losses, [plain.learn(step)[0] for step in range(steps)], **tolerance)


@pytest.mark.usefixtures("like_an_accelerator")
@pytest.mark.parametrize("minutes", [1e-9, 10], ids=["saved each step", "saved each epoch"])
@pytest.mark.parametrize("bad", [3, AHEAD + 2])
def test_divergence_is_named_by_its_step_and_nothing_is_saved_after_it(bad: int, minutes: float, tmp_path: Path,
                                                                       monkeypatch: pytest.MonkeyPatch) -> None:
    backward = Learner.backward
    taken = []

    def spoil(self: Learner, batch: object) -> object:
        taken.append(None)
        return backward(self, batch) * (math.nan if len(taken) == bad + 1 else 1.0)

    monkeypatch.setattr(Learner, "backward", spoil)
    config = tiny_config(backend="autograd", epoch_size=16 * 100, checkpoint_minutes=minutes)
    with pytest.raises(Diverged, match=f"the loss is nan at step {bad}$"):
        train(config, tmp_path / "run", progress=False)
    steps = checkpoint_steps(tmp_path / "run")
    assert steps == ([] if minutes == 10 else list(range(bad + 1))[-len(steps):]) and len(taken) <= bad + AHEAD + 1


@pytest.mark.usefixtures("like_an_accelerator")
def test_a_norm_is_read_at_once_where_the_loss_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """As among several ranks, which add their losses."""
    learner, backward = learner_of(tiny_config(backend="autograd"), torch.device("cpu")), Learner.backward
    monkeypatch.setattr(Learner, "backward", lambda self, batch: float(backward(self, batch)))
    learner.learn(0)
    monkeypatch.setattr(learner.backend, "clip", lambda largest: torch.tensor(math.inf))
    with pytest.raises(Diverged, match="the norm of the gradient is inf at step 1$"):
        learner.learn(1)


@pytest.mark.usefixtures("like_an_accelerator")
def test_a_run_on_the_path_of_accelerators_resumes_bit_for_bit(tmp_path: Path) -> None:
    config = tiny_config(backend="autograd", epoch_size=16 * 45, max_epochs=2)
    whole = train(config, tmp_path / "whole", progress=False)
    train(config, tmp_path / "parts", StopAfter(38))
    train(config, tmp_path / "parts", StopAfter(71))
    assert fingerprint(train(config, tmp_path / "parts", progress=False)) == fingerprint(whole)
    cpu = train(config.replace(backend="auto"), tmp_path / "cpu", progress=False)
    assert whole.metrics[-1]["loss"] == pytest.approx(cpu.metrics[-1]["loss"], rel=1e-3)


def on(device: torch.device, **leaves: object) -> Config:
    return tiny_config(device=str(device), backend="autograd", **leaves)


@pytest.mark.parametrize("leaves", VARIANTS, ids=named)
def test_a_run_on_a_device_resumes_bit_for_bit_and_answers_as_on_a_cpu(leaves: dict[str, object], device: torch.device,
                                                                       tmp_path: Path) -> None:
    config = on(device, **leaves)
    whole = train(config, tmp_path / "whole", progress=False)
    train(config, tmp_path / "parts", StopAfter(7))
    parts = train(config, tmp_path / "parts", progress=False)
    assert fingerprint(parts) == fingerprint(whole)
    operands = np.random.default_rng(0).integers(1, 1001, (2, 300))
    here, there = (whole.predictor(device=place).predict(*operands) for place in ("cpu", str(device)))
    assert (here == there).mean() > 0.98, "near ties may be decided otherwise"


def test_a_run_moves_to_a_device_and_back(device: torch.device, tmp_path: Path) -> None:
    """Weights, optimiser and place in the stream are kept; the steps are the same but for rounding."""
    train(tiny_config(max_epochs=1), tmp_path / "moved", progress=False)
    train(on(device, max_epochs=2), tmp_path / "moved", progress=False)
    moved = train(tiny_config(max_epochs=3), tmp_path / "moved", progress=False)
    stayed = train(tiny_config(max_epochs=3), tmp_path / "stayed", progress=False)
    for have, want in zip(moved.metrics, stayed.metrics, strict=True):
        assert (have["step"], have["examples"]) == (want["step"], want["examples"])
        assert have["loss"] == pytest.approx(want["loss"], rel=1e-2)


def test_a_model_is_inspected_where_it_is(device: torch.device) -> None:
    problem = Problem.of(tiny_config())
    model = new_model(tiny_config(), problem).to(device)
    found = trace(model, [3, 6, 7], 4)
    seen = attention(model, [3, 6, 7], [BEGIN, *found.tokens[:-1]])
    assert seen is not None and seen.logits.argmax(-1).tolist() == found.tokens
