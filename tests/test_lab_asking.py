"""The lab's page asks small models by itself: the server's words, no question to the server, the server where it cannot."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterator
from math import gcd
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load, save

from conftest import tiny_config
from gcdformer import Run, train
from gcdformer.display.reasons import reason
from gcdformer.evaluation.table import readable
from gcdformer.explanation import Explanation
from gcdformer.explanation.sieve import products
from gcdformer.lab.catalogue import EXAMPLES, Catalogue
from gcdformer.lab.views import explain_epoch, k_views
from gcdformer.runs import checkpoint
from gcdformer.runs.files import sha256
from lab_browser import Tab, needs_browser, open_browser, open_tab, sync_api  # noqa: F401 - two are fixtures
from lab_process import Lab
from test_explanation import class_answers, explain_one, random_sieve, sieve_answers, table_from

pytestmark = [needs_browser, pytest.mark.processes]


@pytest.fixture(scope="module")
def lab(trained: Run, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("asking")
    shutil.copytree(trained.path, folder / "tiny")
    train(tiny_config(family="gru", heads=0, max_epochs=1, seed=2), folder / "gru")
    train(tiny_config(max_epochs=2, average=0.99), folder / "averaged")
    with Lab(folder) as lab:
        yield lab


def explanations(catalogue: Catalogue) -> Iterator[Explanation]:
    """Of trained models at several epochs, and made ones of every form, some with k that are being learned."""
    for entry in EXAMPLES.values():
        for epoch in range(1, 27, 5):
            yield explain_epoch(catalogue, entry, epoch)[1]
    rng = np.random.default_rng(5)
    for seed in range(6):
        known = products(random_sieve(rng, 30, True), 100)
        answers = class_answers(known, rng) if seed % 2 else sieve_answers(known)
        if seed > 3:
            answers[rng.integers(0, 100, 4)] = -1
        yield explain_one(table_from(answers, rng, (0.0, 0.06, 0.3)[seed % 3], 40), 30)


def test_the_page_has_the_words_of_the_server(tab: Tab, lab: Lab) -> None:
    rng = random.Random(3)
    cases, forms = [], set()
    for explanation in explanations(Catalogue(Path("none"))):
        forms.add(explanation.form.letter)
        asked = []
        for k in [*range(1, 131), *(rng.randrange(131, 5000) for _ in range(40)), 999_983, 1_000_000]:
            rule = readable(explanation.model.answer(k))
            for prediction in {rule, k, None, rng.randrange(1, 200)}:
                asked.append((k, prediction, rule, reason(explanation, k, k, prediction)))
        view = {"D": explanation.correct, "E": explanation.labels if explanation.form.has_classes else None,
                "being_learned": explanation.being_learned, "f": k_views(explanation)}
        cases.append({"epoch": view, "threshold": explanation.threshold, "asked": asked})
    assert forms == {"R", "G", "U", "none"}
    page = tab.open(lab.url)
    wrong = page.evaluate(
        """async (cases) => {
          const { Reasons } = await import("/static/views/reasons.js");
          return cases.flatMap(({ epoch, threshold, asked }) => {
            const reasons = new Reasons(epoch, threshold);
            return asked.map(([k, prediction, ...expected]) => [[reasons.rule(k), reasons.reason(k, prediction)], expected])
              .filter(([mine, expected]) => `${mine}` !== `${expected}`);
          });
        }""", json.loads(json.dumps(cases)))
    assert wrong == []


def test_a_flip_in_a_recurrent_model_exchanges_all_it_knows_of_the_question(tab: Tab, lab: Lab) -> None:
    """Its final state is one place, so that the answer is that to the other question."""
    answers = tab.open(lab.url).evaluate("""async (pairs) => {
      const names = ["asker.js", "api.js", "model/flip.js"].map((name) => import(`/static/${name}`));
      const [{ Asker }, { oneRun }, { flipped }] = await Promise.all(names);
      const { network } = await new Asker((await oneRun("gru")).body).model(1);
      const rules = { label: (k) => [12, 6, 4, 3, 2, 1].find((d) => k % d === 0), rule: (k) => k };
      const whole = { site: "encoder.final.hidden", positions: [7] };
      const found = { positions: Array(8).fill("state"), primes: [{ p: 2, whole }] };
      return pairs.map(([a, b]) => [flipped(network, rules, found, 2, a, b), b])
        .map(([{ answer, swapped, expected }, b]) => [answer, network.ask(swapped, b).answer, expected % 2]);
    }""", [[120 + 12 * i, 84] for i in range(10)] + [[121 + 2 * i, 84] for i in range(10)])
    assert len(answers) == 20 and all(answer == other for answer, other, _ in answers)
    assert [odd for *_, odd in answers[10:]] == [0] * 10, "2 was added"


def asked_of_server(tab: Tab) -> list[str]:
    return [url for url in tab.fetched if "/ask?" in url]


@pytest.mark.parametrize("run", ["tiny", "gru", "averaged", "example", "example-grokking"])
def test_the_page_shows_what_the_server_would_answer(tab: Tab, lab: Lab, run: str) -> None:
    rng = random.Random(1)
    maximum = lab.get(f"/api/runs/{run}")["maximum"]
    page = tab.open(lab.url + f"#/ask/{run}")
    page.locator(".verdict").wait_for()
    for _ in range(8):
        k = rng.choice([1, 2, 5, 10, 20, 30, 60, 128])
        a, b = (k * rng.randrange(1, maximum // k) for _ in range(2))
        expected = lab.get(f"/api/runs/{run}/ask?a={a}&b={b}")
        assert expected["truth"] == gcd(a, b)
        page.locator("#a").fill(str(a))
        page.locator("#b").fill(str(b))
        page.wait_for_function("([a, b]) => location.hash.includes(`a=${a}&b=${b}`)", arg=[a, b])
        assert page.locator(".reason").inner_text() == expected["reason"]
        said = "no integer" if expected["prediction"] is None else f"{expected['prediction']:,}"
        assert page.locator(".verdict .big b").inner_text() == said
        texts = page.locator(".steps .step > .token").all_inner_texts()
        assert texts == [{"<end>": "end"}.get(word, word) for word in expected["output"]]
    assert asked_of_server(tab) == [] and len([url for url in tab.fetched if "/weights?" in url]) == 1


def damage(run: Path, change: Any) -> None:
    """Change the tensors of every checkpoint of a run, with checksums that agree."""
    for folder in (run / "checkpoints").iterdir():
        tensors = load((folder / "model.safetensors").read_bytes())
        change(tensors)
        (folder / "model.safetensors").write_bytes(save(tensors))
        (folder / "SHA256SUMS").write_text("".join(
            f"{sha256((folder / name).read_bytes())}  {name}\n" for name in checkpoint.FILES))


def to_nan(tensors: dict[str, Any]) -> None:
    next(iter(tensors.values()))[...] = np.nan


def to_another_shape(tensors: dict[str, Any]) -> None:
    name = next(iter(tensors))
    tensors[name] = np.zeros((3, 3), dtype=np.float32)


def to_another_name(tensors: dict[str, Any]) -> None:
    tensors["<img src=x onerror=alert(1)>"] = tensors.pop(next(iter(tensors)))


def test_where_the_page_cannot_the_server_is_asked(tab: Tab, trained: Run, tmp_path: Path) -> None:
    """Weights that are no weights of this model: the page says what the server says, in words."""
    for name, change in {"nan": to_nan, "shape": to_another_shape, "name": to_another_name}.items():
        shutil.copytree(trained.path, tmp_path / name)
        damage(tmp_path / name, change)
    with Lab(tmp_path) as lab:
        for name in ("shape", "name", "nan"):
            page = tab.open(lab.url + f"#/ask/{name}?a=10&b=20")
            sync_api.expect(page.locator("#problem, .verdict").first).not_to_be_empty()
            assert any(f"/{name}/ask?" in url for url in asked_of_server(tab)), name
            if name != "nan":
                assert "checkpoints" in page.locator("#problem").inner_text()
            assert page.locator("main img").count() == 0
    assert all("422" in text or "400" in text for text in tab.problems), tab.problems
    tab.problems.clear()
