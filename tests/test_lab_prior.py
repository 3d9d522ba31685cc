"""The slider of the decision prior on the Ask page: it moves the answer and the bars, in the page as by the server."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import tiny_config
from gcdformer import Run, train
from gcdformer.lab import models
from gcdformer.lab.catalogue import EXAMPLE
from gcdformer.lab.export import export_single_file
from lab_browser import Tab, needs_browser, open_browser, open_tab, sync_api  # noqa: F401 - two are fixtures
from lab_process import Lab

pytestmark = [needs_browser, pytest.mark.processes]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("priors")
    shutil.copytree(EXAMPLE, folder / "uneven")
    train(tiny_config(max_epochs=2, outcomes="uniform", prior="natural"), folder / "natural")
    train(tiny_config(max_epochs=1, outcomes="uniform", prior="1.5", family="gru", heads=0), folder / "power")
    train(tiny_config(max_epochs=1), folder / "flat")
    with Lab(folder) as lab:
        yield lab


def moved_pair(run: Path) -> tuple[int, int, int, int]:
    """A pair that is answered otherwise under the natural prior, and both answers."""
    rng, own, natural = random.Random(2), Run(run).predictor(prior="training"), Run(run).predictor(prior="natural")
    while True:
        k = rng.randrange(1, 100)
        a, b = k * rng.randrange(1, 10_000), k * rng.randrange(1, 10_000)
        if (one := own.predict(a, b)) != (other := natural.predict(a, b)):
            return a, b, one, other


def state(page: Any) -> tuple[str, list[str]]:
    return page.locator(".verdict .big b").inner_text(), page.locator(".prior .bar-name").all_inner_texts()


def check_slider(page: Any, pair: tuple[int, int, int, int]) -> None:
    """Natural at the far end, the training's at the near one; the best bar is the answer."""
    a, b, own, natural = pair
    sync_api.expect(page.locator(".verdict .big b")).to_have_text(f"{own:,}")
    before = page.locator(".prior .bar-share").all_inner_texts()
    page.locator("#prior").focus()
    page.keyboard.press("End")
    sync_api.expect(page.locator(".verdict .big b")).to_have_text(f"{natural:,}")
    sync_api.expect(page.locator(".prior .bar-name").first).to_have_text(str(natural))
    assert page.locator(".prior .bar-share").all_inner_texts() != before
    assert f"gives {natural} instead of {own}" in page.locator(".reason").inner_text()
    assert page.locator("#prior").get_attribute("aria-valuetext") == "the natural prior"
    sync_api.expect(page.locator(".prior output")).to_have_text("the natural prior")
    page.wait_for_function("location.hash.includes('prior=100')")
    page.keyboard.press("Home")
    sync_api.expect(page.locator(".verdict .big b")).to_have_text(f"{own:,}")
    page.wait_for_function("!location.hash.includes('prior=')")


def test_the_slider_moves_the_answer(tab: Tab, lab: Lab, tmp_path: Path) -> None:
    pair = moved_pair(EXAMPLE)
    page = tab.open(lab.url + f"#/ask/uneven?a={pair[0]}&b={pair[1]}")
    check_slider(page, pair)
    assert not any("/ask?" in url for url in tab.fetched)
    file = export_single_file([EXAMPLE], tmp_path / "page.html")
    check_slider(tab.open(file.as_uri() + f"#/ask/example?a={pair[0]}&b={pair[1]}"), pair)


def test_the_server_moves_it_too(tab: Tab, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "LARGEST_IN_PAGE", 0)
    pair = moved_pair(EXAMPLE)
    check_slider(tab.open(lab.url + f"#/ask/uneven?a={pair[0]}&b={pair[1]}"), pair)
    assert any("/ask?" in url for url in tab.fetched) and not any("/weights?" in url for url in tab.fetched)


@pytest.mark.parametrize("run", ["uneven", "natural", "power"])
def test_the_page_decides_as_the_server(tab: Tab, lab: Lab, run: str) -> None:
    """At three places of the slider, the one where it starts among them."""
    rng = random.Random(4)
    model = lab.get(f"/api/runs/{run}/model")
    assert model["prior"]["own"] == (run != "uneven") and model["prior"]["name"] == ("1.5" if run == "power" else "natural")
    maximum = model["config"]["task"]["maximum"]
    for share in (None, 0, 45, 100):
        k = rng.choice([1, 2, 3, 6, 10, 15])
        a, b = (k * rng.randrange(1, maximum // k) for _ in range(2))
        place = "" if share is None else f"&prior={model['prior']['name']}&share={share / 100}"
        expected = lab.get(f"/api/runs/{run}/ask?a={a}&b={b}{place}")
        page = tab.open(lab.url + f"#/ask/{run}?a={a}&b={b}" + ("" if share is None else f"&prior={share}"))
        assert page.locator(".reason").inner_text() == expected["reason"]
        shown = [str("?" if one["answer"] is None else one["answer"]) for one in expected["candidates"][:5]]
        assert state(page) == ("no integer" if expected["prediction"] is None else f"{expected['prediction']:,}", shown)
        assert page.locator(".steps .step > .token").all_inner_texts() == [
            {"<end>": "end"}.get(word, word) for word in expected["output"]]
    assert not any("/ask?" in url for url in tab.fetched)


def test_a_prior_that_is_the_trainings_has_no_slider(tab: Tab, lab: Lab) -> None:
    page = tab.open(lab.url + "#/ask/flat")
    assert page.locator(".prior").is_visible() and page.locator("#prior").is_hidden()
    assert "no other prior" in page.locator(".prior").inner_text()


def test_a_prior_that_is_none_is_refused(lab: Lab) -> None:
    for words in ("prior=often", "prior=-1", "prior=natural&share=2", "prior=natural&share=NaN"):
        assert lab.request(f"/api/runs/uneven/ask?a=1&b=1&{words}")[0] == 400, words
