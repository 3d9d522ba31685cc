"""The model in the browser against torch, in a real Chromium: answers, logits, hook points, patches, priors, refusals."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save

from browser_models import FAMILIES, Case, Checks, case_of, questions
from gcdformer import Config, Problem
from gcdformer.lab.weights import half_weights
from gcdformer.models import build_model, generate
from gcdformer.models.hooks import Logits, patched, run_with_cache
from gcdformer.numbers.encoding import BEGIN, DIGIT_0, END, PAD, PLUS, encode_row
from lab_browser import Tab, needs_browser, open_browser  # noqa: F401 - a fixture
from recomputed import recomputed_attention

pytestmark = [needs_browser, pytest.mark.processes]
BASES = (2, 10, 30, 420, 1000)
PAIRS_PER_CASE = 500
CLOSE = 1e-3


@pytest.fixture(scope="module")
def checks(browser: Any) -> Iterator[Checks]:
    with Tab(browser) as tab:
        found = Checks(tab)
        found.open()
        yield found
        assert not tab.problems, tab.problems


@pytest.fixture(scope="module")
def models(checks: Checks) -> dict[str, Case]:
    """A model of each family in base 10."""
    return {family: checks.add(case_of(family, 10)) for family in FAMILIES}


def values_of(found: dict[str, Any]) -> torch.Tensor:
    return torch.tensor(found["values"]).view(found["shape"])


def one_row(name: str, value: torch.Tensor) -> torch.Tensor:
    """A point's value in a batch of one, without its N."""
    return value.squeeze(1 if ".final." in name else 0)


def assert_close(found: dict[str, Any], expected: dict[str, torch.Tensor]) -> None:
    assert list(found) == list(expected)
    for name, value in expected.items():
        mine = values_of(found[name])
        assert mine.shape == one_row(name, value).shape, name
        assert float((mine - one_row(name, value)).abs().max()) < CLOSE, name


@pytest.mark.parametrize("family", FAMILIES)
def test_ten_thousand_pairs_in_five_bases(family: str, checks: Checks) -> None:
    readable = 0
    for base in BASES:
        case = checks.add(case_of(family, base, seed=base))
        found, tokens, answers = checks.compare(case, PAIRS_PER_CASE)
        assert found["differ"] == [] and found["worst"] < CLOSE and found["near"] <= 5, (case.name, found)
        assert len({tuple(row) for row in tokens}) >= 10, "answers that vary"
        readable += sum(answer is not None for answer in answers)
    assert readable >= 300, readable


@pytest.mark.parametrize("family", FAMILIES)
def test_half_precision(family: str, checks: Checks, tmp_path: Path) -> None:
    case = case_of(family, 30)
    halved = Case(f"half-{case.name}", case.config, case.problem, case.model)
    path = tmp_path / "model.safetensors"
    path.write_bytes(save(case.model.state_dict()))
    halves = {name: weight.half() for name, weight in case.model.state_dict().items()}
    case.model.load_state_dict({name: weight.float() for name, weight in halves.items()})
    checks.add(halved, half_weights(path))
    found, _, _ = checks.compare(halved, 100)
    assert found["differ"] == [] and found["worst"] < CLOSE and found["near"] <= 2, found


@pytest.mark.parametrize("family", FAMILIES)
def test_hook_points(family: str, checks: Checks, models: dict[str, Case]) -> None:
    case = models[family]
    points = case.model.points()
    assert checks.run("points", case.name) == [
        {"name": name, "shape": " ".join(letter for letter in point.shape.split() if letter != "N"),
         "readOnly": point.read_only} for name, point in points.items()]
    for a, b in questions(case.problem, 4).tolist():
        inputs = case.problem.encode_questions(np.array([[a, b]]))[0]
        asked = checks.run("ask", case.name, a, b, {"trace": True})
        assert asked["input"] == inputs[0].tolist()
        fed = [BEGIN, *asked["tokens"][:-1]]
        with torch.no_grad():
            logits, cache = run_with_cache(case.model, inputs, [fed])
        assert_close(checks.run("forward", case.name, asked["input"], fed, "*", {}), cache)
        assert_close(asked["cache"], cache)
        for step, row in zip(asked["steps"], logits[0], strict=True):
            best = row.softmax(-1).topk(8)
            assert [entry["p"] for entry in step["likely"]] == pytest.approx(best.values.tolist(), abs=1e-4)
            assert step["word"] == case.problem.vocabulary.symbol(step["token"])
        patterns = recomputed_attention(case.model, asked["input"], fed)
        if patterns is None:
            assert asked["attention"] is None
            continue
        for side in ("encoder", "decoder", "cross"):
            torch.testing.assert_close(torch.tensor(asked["attention"][side]), torch.stack(getattr(patterns, side)),
                                       atol=CLOSE, rtol=0)


@pytest.mark.parametrize("family", FAMILIES)
def test_patches_do_what_they_do_in_torch(family: str, checks: Checks, models: dict[str, Case]) -> None:
    """A function at every point, in teacher forcing and in decoding; and the value of another question, as an array."""
    case = models[family]
    pair, other = [160, 120], [990, 735]
    inputs, others = (torch.from_numpy(case.problem.encode_questions(np.array([row]))[0]) for row in (pair, other))
    fed = [BEGIN, PLUS, DIGIT_0 + 4]
    with torch.no_grad():
        usual, _ = run_with_cache(case.model, inputs, [fed])
        _, elsewhere = run_with_cache(case.model, others, [fed])
        for name, point in case.model.points().items():
            if point.read_only:
                message = checks.run("mistake", case.name, "ask", *pair, {"patches": {name: 0}})
                assert message == f"{name}: can be read but not patched, since nothing reads it afterwards"
                continue
            moved, cache = run_with_cache(case.model, inputs, [fed], [name, "logits"], {name: changed})
            assert float((moved - usual).abs().max()) > 1e-2, name
            mine = {name: {"scale": 0.5, "shift": -0.25}}
            assert_close(checks.run("forward", case.name, inputs[0].tolist(), fed, [name, "logits"], mine), cache)
            with patched(case.model, {name: changed}):
                outputs = generate(case.model, inputs, case.problem.longest_target)[0].tolist()
            asked = checks.run("ask", case.name, *pair, {"patches": mine})
            assert asked["tokens"] == outputs[:len(asked["tokens"])] and END not in outputs[:len(asked["tokens"]) - 1], name
            moved, cache = run_with_cache(case.model, inputs, [fed], "logits", {name: elsewhere[name]})
            arrays = {name: {"values": elsewhere[name].flatten().tolist()}}
            assert_close(checks.run("forward", case.name, inputs[0].tolist(), fed, "logits", arrays), cache)


def changed(value: torch.Tensor) -> torch.Tensor:
    return 0.5 * value - 0.25


def offsets_of(largest: int, exponent: float) -> list[float]:
    return [-exponent * math.log(k) for k in range(1, largest + 1)]


@torch.no_grad()
def log_probabilities(case: Case, inputs: torch.Tensor, rows: list[list[int]]) -> tuple[torch.Tensor, torch.Tensor]:
    """ln p of whole rows by teacher forcing, and without what is behind their last token but END."""
    longest = max(map(len, rows))
    padded = torch.tensor([[BEGIN, *row, *[PAD] * (longest - len(row))] for row in rows])
    steps = Logits(case.model)(inputs.expand(len(rows), -1), padded[:, :-1]).double().log_softmax(-1)
    each = steps.gather(2, padded[:, 1:, None])[..., 0]
    return (each * (padded[:, 1:] != PAD)).sum(1), (each * (padded[:, 1:] > END)).sum(1)


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("family", ["transformer", "gru"])
def test_a_prior_is_decided_as_by_brute_force(family: str, base: int, checks: Checks) -> None:
    """Every listed k is scored, and the model's own sequence if it is none of them."""
    case, moves = checks.add(case_of(family, base)), 0
    targets = [[*encode_row([k], base), END] for k in range(1, 101)]
    for number, (a, b) in enumerate(questions(case.problem, 6, seed=1).tolist()):
        offsets = torch.tensor(offsets_of(100, 1.5 if number % 2 else -1.5), dtype=torch.float64)
        if number > 2:
            offsets[::2] = -torch.inf
        if number > 4:
            offsets[6:] = -torch.inf
        inputs = torch.from_numpy(case.problem.encode_questions(np.array([[a, b]]))[0])
        own = generate(case.model, inputs, case.problem.longest_target)[0].tolist()
        own = own[:own.index(END) + 1] if END in own else own
        is_listed = own in targets and bool(offsets[targets.index(own)].isfinite())
        every = torch.cat([offsets, torch.tensor([-torch.inf]) if is_listed else offsets[offsets.isfinite()].min()[None]])
        whole, endless = (logs + every for logs in log_probabilities(case, inputs, [*targets, own]))
        goes_on = [any(len(row) > len(other) and row[:len(other) - 1] == other[:-1] for row, offset in zip(
            targets, offsets, strict=True) if offset.isfinite()) for other in targets]
        endless = torch.where(torch.tensor([*goes_on, True]), whole, endless)
        given = [value if math.isfinite(value) else None for value in offsets.tolist()]
        asked = checks.run("ask", case.name, a, b, {"prior": given, "trace": True})
        assert asked["tokens"] == [*targets, own][int(whole.argmax())]
        assert [step["token"] for step in asked["steps"]] == asked["tokens"]
        assert asked["cache"]["logits"]["shape"] == [len(asked["tokens"]), case.problem.vocabulary.size]
        assert checks.run("answers", case.name, [[a, b]], given) == [asked["answer"]]
        candidates = asked["candidates"]
        best = [score for score in whole.topk(8).values.tolist() if math.isfinite(score)]
        assert [entry["score"] for entry in candidates] == pytest.approx(best, abs=CLOSE)
        for entry in candidates:
            listed = [k - 1 for k in range(1, 101) if k == entry["answer"] and math.isfinite(offsets[k - 1])] or [100]
            assert entry["score"] == pytest.approx(float(whole[listed[0]]), abs=CLOSE)
            low, high = (float((entry["score"] - logs.logsumexp(0)).exp()) for logs in (endless, whole))
            assert 0.999 * low <= entry["p"] <= 1.001 * high
        moves += asked["tokens"] != own
    assert moves


def test_a_prior_under_a_patch(checks: Checks, models: dict[str, Case]) -> None:
    """The patch reaches the scores: with logits that are all the same, the prior alone decides."""
    name = models["transformer"].name
    prior = offsets_of(9, -1.0)
    usual = checks.run("ask", name, 6, 4, {"prior": prior})
    flat = checks.run("ask", name, 6, 4, {"prior": prior, "patches": {"logits": {"scale": 0, "shift": 1}}})
    again = checks.run("ask", name, 6, 4, {"prior": prior})
    assert flat["answer"] == 9 and usual["candidates"] == again["candidates"] != flat["candidates"]


TASKS: list[dict[str, object]] = [
    {"base": base, "maximum": maximum, "task": task, "framing": framing}
    for base, maximum, task, framing in [
        (2, 1_000_000, "gcd", "none"), (10, 2**53 - 1, "gcd", "published"), (1000, 10**12, "gcd", "none"),
        (30, 1_000_000, "division", "none"), (420, 94_906_000, "simplification", "none"), (20_000, 10**15, "gcd", "none")]]


@pytest.mark.parametrize("leaves", TASKS, ids=lambda leaves: f"{leaves['task']}-{leaves['base']}")
def test_integers_and_tokens(leaves: dict[str, object], checks: Checks) -> None:
    config = Config().derive(leaves, layers=1, dim=4, heads=1)
    problem = Problem.of(config)
    name = f"tokens-{leaves['task']}-{leaves['base']}"
    case = checks.add(Case(name, config, problem, build_model(config, problem, seed=0)))
    rng = np.random.default_rng(0)
    low, high = problem.question_bounds
    drawn = np.exp(rng.uniform(0, np.log(high), (300, 2))).astype(np.int64)
    pairs = np.clip(np.concatenate([[[low, high], [high, high - 1]], drawn]), low, high)
    tokens, lengths = problem.encode_questions(pairs)
    assert checks.run("encoded", case.name, [[str(a), str(b)] for a, b in pairs.tolist()]) == [
        row[:length] for row, length in zip(tokens.tolist(), lengths.tolist(), strict=True)]

    rows = rng.integers(0, problem.vocabulary.size, (400, 12))
    rows[:200] = rng.integers(1, DIGIT_0 + 2, (200, 12))
    rows[:, 0] = np.where(rng.random(400) < 0.9, PLUS + rng.integers(0, 2, 400), rows[:, 0])
    for row in rows[:350]:
        row[rng.integers(1, 12):] = END
    rows[100:250, 1:-1] = np.where(rows[100:250, 1:-1] == END, END, rng.integers(DIGIT_0, DIGIT_0 + problem.base, (150, 10)))
    values, readable = problem.decode_answers(rows)
    assert 50 < readable.sum() < 350 or problem.task.outputs == 2
    assert checks.run("decoded", case.name, rows.tolist()) == [
        [str(value) for value in row] if known else None for row, known in zip(values.tolist(), readable, strict=True)]
    for bad in (0, -1, 0.5, high + 1, 2**60, "6", None):
        message = checks.run("mistake", case.name, "ask", bad, 1)
        assert message.startswith(f"a: an integer in 1..{high}, got "), message


def test_mistakes_are_refused_by_name(checks: Checks, models: dict[str, Case]) -> None:
    name = models["transformer"].name
    for given, words in [
        (("ask", 6, 4, {"beam": 4}), 'option "beam": not known here; prior, patches, trace are'),
        (("ask", 6, 4, {"patches": {"resid": 0}}), 'hook point: none is called "resid"; they are encoder.embedding, '),
        (("ask", 6, 4, {"patches": {"logits": 0}}), "logits: a patch is a Float32Array or a function, got 0"),
        (("ask", 6, 4, {"prior": []}), "prior: a Float64Array with an offset for every k"),
        (("ask", 6, 4, {"prior": [0, None]}), 'prior: the offset of 2 must be a number below infinity, got "null"'),
        (("ask", 6, 4, {"prior": "natural"}), "prior: a Float64Array"),
        (("forward", [], [1]), "inputs: 1 to 16 tokens in 1..14, got []"),
        (("forward", [3, 6], [1, 99]), "targets: 1 to 9 tokens in 1..14, got [1,99]"),
    ]:
        message = checks.run("mistake", name, *given)
        assert message is not None and message.startswith(words), (given, message)
    values = checks.tab.page.evaluate(
        "async ([name]) => checks.mistake(name, 'ask', 6, 4, {patches: {'encoder.embedding': new Float32Array(3)}})", [name])
    assert values == "encoder.embedding: a patch of shape [4,32], got 3 values"
    for prior, words in [("[0, NaN]", "the offset of 2 must be a number below infinity, got \"NaN\""),
                         ("[0, Infinity]", "the offset of 2 must be a number below infinity, got \"Infinity\""),
                         ("[-Infinity]", "no offset is finite")]:
        found = checks.tab.page.evaluate(f"async ([name]) => checks.mistake(name, 'ask', 6, 4, {{prior: {prior}}})", [name])
        assert found == f"prior: {words}"
