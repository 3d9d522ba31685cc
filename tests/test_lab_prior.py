"""The decision prior in the lab: the slider on the Ask page moves the answer and the bars, in the page as by the server; the
switch on a run's page shows an epoch as the same weights decide it under another prior."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import tiny_config
from gcdformer import Run, explain, train
from gcdformer.lab import decided, weights
from gcdformer.lab.catalogue import EXAMPLE, Catalogue, ListedRun
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
    page = tab.open(file.as_uri() + "#/run/example?prior=natural&k=24")
    sync_api.expect(page.locator("p.decided")).to_contain_text("Decided under the natural prior")
    check_run_page(page, decided_by_server(lab, "uneven", 40, "natural"))
    page.get_by_role("link", name="Ask the model such a pair").click()
    sync_api.expect(page.locator(".prior output")).to_have_text("the natural prior")


def test_the_server_moves_it_too(tab: Tab, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "LARGEST_IN_PAGE", 0)
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


def decided_by_server(lab: Lab, run: str, epoch: int, prior: str) -> Any:
    """What the server sends when all pairs are answered; each request waits a while for that."""
    while (sent := lab.get(f"/api/runs/{run}/decided?epoch={epoch}&prior={prior}"))["details"] is None:
        assert 0 <= sent["done"] <= 1
    return sent["details"]


def check_run_page(page: Any, details: Any) -> None:
    """The grid, D, accuracy, the verdict and the rules are those of the details."""
    shown = {int(cell.get_attribute("data-k")): cell.locator("b").inner_text() for cell in page.locator(".cell").all()}
    assert shown == {one["k"]: str("?" if one["prediction"] is None else one["prediction"]) for one in details["f"]}
    assert page.locator(".facts b").first.inner_text() == str(len(details["D"]))
    assert f"{details['accuracy']['measured']:.2f} %" in page.locator(".certificate").inner_text()
    assert ("certified: the" in page.locator(".badge").first.inner_text()) == details["certified"]
    assert [rule.inner_text() for rule in page.locator(".rules > li > span").all()] == [
        rule["says"] for rule in details["rules"]]


@pytest.mark.parametrize(("run", "prior"), [("natural", "training"), ("power", "training")])
def test_an_epoch_is_decided_as_explain_does(lab: Lab, run: str, prior: str) -> None:
    epoch = lab.get(f"/api/runs/{run}")["checkpoints"][-1]
    sent = decided_by_server(lab, run, epoch, prior)
    expected = explain(Catalogue(Path(lab.get("/api/about")["folder"])).find(run).path, prior=prior, bands=False).to_json()
    for key in ("D", "being_learned", "form", "why", "certified", "verdict", "fidelity", "accuracy"):
        assert sent[key] == expected[key], key
    own = lab.get(f"/api/runs/{run}/epochs/{epoch}")
    assert sent["prior"] == prior != own["prior"] and sent["f"] != own["f"]


def test_the_run_page_switches(tab: Tab, lab: Lab) -> None:
    """Its state is in the address; where there is nothing to switch to, it says why."""
    page = tab.open(lab.url + "#/run/natural")
    check_run_page(page, lab.get("/api/runs/natural/epochs/2"))
    assert "Decided under the natural prior" in page.locator("p.decided").inner_text()
    assert "stratified test set" in page.locator("p.decided").inner_text()
    page.get_by_label("the training prior").check()
    page.wait_for_function("location.hash.includes('prior=training')")
    sync_api.expect(page.locator("p.decided")).to_be_empty()
    sync_api.expect(page.locator(".lede strong")).to_contain_text("decided under the training prior")
    check_run_page(page, decided_by_server(lab, "natural", 2, "training"))
    sync_api.expect(page.locator(".switch p")).to_contain_text("evaluated: under the natural prior")
    page.get_by_label("the natural prior").check()
    page.wait_for_function("!location.hash.includes('prior=')")
    check_run_page(page, lab.get("/api/runs/natural/epochs/2"))
    assert [page.get_by_role("radio").nth(place).input_value() for place in range(2)] == ["training", "natural"]
    page = tab.open(lab.url + "#/run/uneven?epoch=9&prior=natural")
    assert "weights of epoch 9 are not kept" in page.locator(".switch p").inner_text()
    assert page.get_by_label("the natural prior").is_disabled() and page.get_by_label("the training prior").is_checked()
    page = tab.open(lab.url + "#/run/flat?prior=natural")
    assert "the natural prior is the training's" in page.locator(".switch p").inner_text()
    assert page.get_by_label("another prior").is_disabled()


def test_an_epoch_that_cannot_be_decided_is_refused(lab: Lab) -> None:
    for target, words in (("flat/decided?epoch=1&prior=natural", "the training's"),
                          ("uneven/decided?epoch=9&prior=natural", "weights of epoch 9 are not kept"),
                          ("uneven/decided?epoch=40&prior=often", "prior: one of"),
                          ("uneven/decided?epoch=0&prior=natural", "epoch"), ("uneven/decided?epoch=40", "prior")):
        assert words in lab.get(f"/api/runs/{target}", 400)["error"], target


def test_work_that_nobody_waits_for_stops(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path(lab.get("/api/about")["folder"])
    catalogue = Catalogue(folder)
    decisions, entry = decided.Decisions(catalogue), ListedRun("power", "power", folder / "power")
    monkeypatch.setattr(decided, "ABANDONED_AFTER", -1.0)
    assert decisions.get(entry, 1, "training") == {"epoch": 1, "prior": "training", "done": 0.0, "details": None}
    monkeypatch.undo()
    while (made := decisions.get(entry, 1, "training"))["details"] is None:
        pass
    assert made["done"] == 1.0
    decisions.close()
