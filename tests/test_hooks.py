"""Hook points: what is cached is what the model computes, a patch does what arithmetic says, and no hook costs no bit."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from conftest import ROOT
from gcdformer import Run, UserError
from gcdformer.models import Seq2Seq, generate, sequence_loss
from gcdformer.models.hooks import Logits, has_hooks, patched, run_with_cache
from gcdformer.models.packed import can_pack
from gcdformer.models.recurrent import RecurrentState
from recomputed import recomputed_attention
from test_models import FAMILIES, model_of, problem_of, tensors

PAGE = (ROOT / "docs" / "HOOKS.md").read_text()
TRANSFORMERS = ["transformer", "uneven", "published-decoder"]


@pytest.fixture(autouse=True)
def no_gradients() -> object:
    with torch.no_grad():
        yield


def case(name: str, count: int = 12) -> tuple[Seq2Seq, torch.Tensor, torch.Tensor]:
    """A model in evaluation mode, padded inputs, and targets that begin with BEGIN."""
    problem = problem_of()
    inputs, targets = tensors(problem, count)
    return model_of(name, problem).eval(), inputs, targets[:, :-1]


def documented(recurrent: bool) -> dict[str, str]:
    rows = re.findall(r"^\| `([\w.]+)` \| ([\w ]+) \|", PAGE, re.MULTILINE)
    split = next(index for index, (name, _) in enumerate(rows) if name == "logits") + 1
    return dict(rows[split:] if recurrent else rows[:split])


@pytest.mark.parametrize("name", FAMILIES)
def test_points_are_the_documented_ones_with_their_shapes(name: str) -> None:
    model, inputs, targets = case(name)
    points = model.points()
    pages = documented(recurrent=name in ("lstm", "gru"))
    if name == "gru":
        del pages["encoder.final.cell"]
    assert {re.sub(r"\.\d+\.", ".I.", point) for point in points} == set(pages)
    assert all(points[point].shape == pages[re.sub(r"\.\d+\.", ".I.", point)] for point in points)
    logits, cache = run_with_cache(model, inputs, targets)
    assert list(cache) == list(points) and cache["logits"] is logits
    sizes = {"N": len(inputs), "S": inputs.shape[1], "T": targets.shape[1], "V": problem_of().vocabulary.size}
    for point, value in cache.items():
        letters = points[point].shape.split()
        assert value.dim() == len(letters), point
        assert all(value.shape[i] == sizes[letter] for i, letter in enumerate(letters) if letter in sizes), point
    assert not has_hooks(model)


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_cached_values_are_what_the_layers_compute(name: str) -> None:
    """Each value from the one before it, with the layers' weights."""
    model, inputs, targets = case(name)
    logits, cache = run_with_cache(model, inputs, targets)
    sides = {"encoder": ["attention", "feed_forward"], "decoder": ["attention", "cross_attention", "feed_forward"]}
    for side, parts in sides.items():
        stream = cache[f"{side}.embedding"]
        for index, layer in enumerate(getattr(model, side)):
            for part in parts:
                added = cache[f"{side}.{index}.{part}.out"]
                assert torch.equal(cache[f"{side}.{index}.residual.{part}"], getattr(layer, f"norm_{part}")(stream + added))
                stream = cache[f"{side}.{index}.residual.{part}"]
                if part != "feed_forward":
                    heads = cache[f"{side}.{index}.{part}.heads"]
                    assert torch.equal(added, getattr(layer, part).out(heads))
                    rows = cache[f"{side}.{index}.{part}.pattern"].sum(-1)
                    torch.testing.assert_close(rows, torch.ones_like(rows))
            hidden = cache[f"{side}.{index}.feed_forward.hidden"]
            before = cache[f"{side}.{index}.residual.{parts[-2]}"]
            assert torch.equal(hidden, F.relu(layer.feed_forward.up(before)))
            assert torch.equal(cache[f"{side}.{index}.feed_forward.out"], layer.feed_forward.down(hidden))
    assert torch.equal(logits, model.project(stream)) and torch.equal(logits, model.project(model(inputs, targets)))


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_patterns_are_those_computed_independently(name: str) -> None:
    model, inputs, targets = case(name)
    row, fed = [t for t in inputs[0].tolist() if t], targets[0].tolist()
    found = recomputed_attention(model, row, fed)
    logits, cache = run_with_cache(model, [row], [fed], ["*.pattern", "logits"])
    assert found is not None and not any("residual" in point for point in cache)
    torch.testing.assert_close(logits[0], found.logits)
    for index, pattern in enumerate(found.encoder):
        torch.testing.assert_close(cache[f"encoder.{index}.attention.pattern"][0], pattern)
    for index, (own, cross) in enumerate(zip(found.decoder, found.cross, strict=True)):
        torch.testing.assert_close(cache[f"decoder.{index}.attention.pattern"][0], own)
        torch.testing.assert_close(cache[f"decoder.{index}.cross_attention.pattern"][0], cross)


@pytest.mark.parametrize("name", ["lstm", "gru"])
def test_recurrent_values(name: str) -> None:
    model, inputs, targets = case(name)
    logits, cache = run_with_cache(model, inputs, targets)
    state = model.encode(inputs)
    assert isinstance(state, RecurrentState)
    finals = [cache["encoder.final.hidden"], *([cache["encoder.final.cell"]] if name == "lstm" else [])]
    assert all(torch.equal(a, b) for a, b in zip(finals, state.hidden, strict=True))
    last = (inputs != 0).sum(1) - 1
    assert torch.equal(cache["encoder.states"][torch.arange(len(inputs)), last], finals[0][-1])
    assert torch.equal(cache["decoder.read"], model.get_submodule("read")(cache["decoder.states"]))
    assert torch.equal(logits, model.project(cache["decoder.read"]))
    with pytest.raises(UserError, match="encoder.states: can be read but not patched"), \
            patched(model, {"encoder.states": torch.zeros_like}):
        pass


CUTS = {"transformer": ["encoder.1.residual.feed_forward"], "uneven": ["encoder.0.residual.feed_forward"],
        "published-decoder": ["encoder.1.residual.feed_forward"], "lstm": ["encoder.final.hidden", "encoder.final.cell"],
        "gru": ["encoder.final.hidden"]}


@pytest.mark.parametrize("name", FAMILIES)
def test_a_patch_at_the_bottleneck_gives_the_other_questions_logits(name: str) -> None:
    """All that the decoder knows of a question passes these points: replace them, and it answers the other question."""
    model, inputs, targets = case(name)
    lengths = (inputs != 0).sum(1)
    usual = int(lengths.mode().values)
    alike = inputs[lengths == usual, :usual]
    one, other, fed = alike[:1], alike[1:2], targets[:1]
    assert len(other) and not torch.equal(one, other)
    first, _ = run_with_cache(model, one, fed)
    wanted, cache = run_with_cache(model, other, fed)
    moved, seen = run_with_cache(model, one, fed, patches={point: cache[point] for point in CUTS[name]})
    assert torch.equal(moved, wanted) and not torch.equal(moved, first)
    assert all(torch.equal(seen[point], cache[point]) for point in CUTS[name])
    longest = problem_of().longest_target
    with patched(model, {point: cache[point] for point in CUTS[name]}):
        assert torch.equal(generate(model, one, longest), generate(model, other, longest))


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_a_patched_pattern_reads_the_chosen_key(name: str) -> None:
    model, inputs, targets = case(name)
    _, cache = run_with_cache(model, inputs, targets)

    def first_key_only(pattern: torch.Tensor) -> torch.Tensor:
        return F.one_hot(torch.zeros(pattern.shape[:-1], dtype=torch.long), pattern.shape[-1]).float()

    _, changed = run_with_cache(model, inputs, targets, patches={"decoder.0.cross_attention.pattern": first_key_only})
    memory = cache[f"encoder.{len(model.get_submodule('encoder')) - 1}.residual.feed_forward"]  # type: ignore[arg-type]
    cross = model.get_submodule("decoder.0.cross_attention")
    _, values = cross.keys_values(memory)  # type: ignore[operator]
    expected = values[:, :, :1].transpose(1, 2).flatten(2).expand_as(changed["decoder.0.cross_attention.heads"])
    torch.testing.assert_close(changed["decoder.0.cross_attention.heads"], expected)
    assert torch.equal(changed["decoder.0.residual.attention"], cache["decoder.0.residual.attention"])
    assert not torch.equal(changed["logits"], cache["logits"])


def test_a_patch_of_the_stream_moves_the_logits_by_what_the_projection_says() -> None:
    model, inputs, targets = case("transformer")
    before, _ = run_with_cache(model, inputs, targets, "logits")
    step = torch.randn(16, generator=torch.Generator().manual_seed(0))
    after, _ = run_with_cache(model, inputs, targets, "logits", {"decoder.1.residual.feed_forward": lambda x: x + step})
    along = step @ model.get_submodule("embed_outputs.tokens").weight.T  # type: ignore[operator, union-attr]
    torch.testing.assert_close(after - before, along.expand_as(before), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", FAMILIES)
def test_no_hook_no_change(name: str) -> None:
    """Loss and gradients have the same bits before, with a patch that changes nothing, and after."""
    problem = problem_of()
    inputs, targets = tensors(problem, 12)

    def gradients(model: Seq2Seq) -> list[torch.Tensor]:
        model.zero_grad()
        with torch.enable_grad():
            sequence_loss(model, inputs, targets).backward()
        return [weight.grad.clone() for weight in model.parameters() if weight.grad is not None]

    model = model_of(name, problem)
    before = gradients(model)
    writable = [point for point, where in model.points().items() if not where.read_only]
    with patched(model, {point: lambda value: value.clone() for point in writable}):
        assert has_hooks(model)
        during = gradients(model)
    assert not has_hooks(model)
    for others in (during, gradients(model)):
        assert len(before) == len(others) > 10 and all(torch.equal(a, b) for a, b in zip(before, others, strict=True))


def test_attention_has_the_bits_of_a_plain_softmax(monkeypatch: pytest.MonkeyPatch) -> None:
    model, inputs, targets = case("transformer")
    expected = model(inputs, targets)
    monkeypatch.setattr(torch.nn.Softmax, "forward", lambda self, scores: scores.softmax(-1))
    assert torch.equal(model(inputs, targets), expected)


def test_gradients_reach_cached_values() -> None:
    model, inputs, targets = case("transformer")
    with torch.enable_grad():
        logits, cache = run_with_cache(model, inputs, targets, "encoder.0.attention.pattern")
        (gradient,) = torch.autograd.grad(logits.logsumexp(-1).sum(), [cache["encoder.0.attention.pattern"]])
    assert float(gradient.abs().sum()) > 0


def test_mistakes_are_told_in_a_line_and_leave_no_hook() -> None:
    model, inputs, targets = case("transformer")
    with pytest.raises(UserError, match="none is called 'encoder.7.\\*'; they are encoder.embedding, "):
        run_with_cache(model, inputs, targets, "encoder.7.*")
    with pytest.raises(UserError, match="none is called 'resid'"), \
            patched(model, {"logits": torch.zeros_like, "resid": torch.zeros_like}):
        pass
    with pytest.raises(UserError, match=r"encoder.embedding: a patch of shape \(12, \d+, 16\), got \(3,\)"):
        run_with_cache(model, inputs, targets, patches={"encoder.embedding": torch.zeros(3)})
    assert not has_hooks(model)


def test_a_patch_reaches_many_predictions_too(trained: Run) -> None:
    """The packed decoder, which knows no hooks, steps aside while the model has some."""
    predictor = trained.predictor()
    a, b = np.arange(1, 401), np.arange(2, 402)
    before = predictor.predict(a, b)
    bias = torch.zeros(trained.problem.vocabulary.size)
    bias[-1] = 1e9
    with patched(predictor.model, {"logits": lambda logits: logits + bias}):
        assert not can_pack(predictor.model, predictor.device, "float32")
        tokens = predictor.tokens(np.stack([a, b], axis=1))
    assert (tokens == len(bias) - 1).all()
    assert can_pack(predictor.model, predictor.device, "float32")
    assert (predictor.predict(a, b) == before).all()


@pytest.mark.parametrize("name", ["uneven", "lstm"])
def test_nnsight_finds_the_same_values(name: str) -> None:
    nnsight = pytest.importorskip("nnsight", reason="pip install 'gcdformer[dev]'")
    model, inputs, targets = case(name)
    logits, cache = run_with_cache(model, inputs, targets)
    traced = nnsight.NNsight(Logits(model))
    if name == "lstm":
        with traced.trace(inputs, targets):
            states = traced.model.decoder.output[0].save()
            found = traced.output.save()
        assert torch.equal(states, cache["decoder.states"]) and torch.equal(found, logits)
        return
    with traced.trace(inputs, targets):
        stream = traced.model.encoder[0].norm_feed_forward.output.save()
        pattern = traced.model.decoder[1].cross_attention.pattern.output.save()
        inner = traced.model.logits.output.save()
        found = traced.output.save()
    assert torch.equal(stream, cache["encoder.0.residual.feed_forward"])
    assert torch.equal(pattern, cache["decoder.1.cross_attention.pattern"])
    assert torch.equal(found, logits) and torch.equal(inner, logits)
    with traced.trace(inputs, targets):
        traced.model.encoder[0].norm_feed_forward.output[:] = 0
        edited = traced.output.save()
    ours, _ = run_with_cache(model, inputs, targets, "logits", {"encoder.0.residual.feed_forward": torch.zeros_like})
    assert torch.equal(edited, ours) and not torch.equal(edited, logits)
    assert torch.equal(Logits(model)(inputs, targets), logits)


def test_the_page_runs(trained: Run, tmp_path: Path) -> None:
    pytest.importorskip("nnsight", reason="pip install 'gcdformer[dev]'")
    code = "\n".join(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL))
    assert "runs/base-30" in code and "NNsight" in code
    (tmp_path / "page.py").write_text(code.replace("runs/base-30", str(trained.path)))
    names = runpy.run_path(str(tmp_path / "page.py"))
    assert torch.equal(names["stream"], names["cache"]["encoder.0.residual.feed_forward"])
    assert names["run_without_encoder"].shape == (1,)
