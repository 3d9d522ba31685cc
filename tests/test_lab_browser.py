"""The lab in a real browser, doing what a person does: open, filter, slide, ask, compare, train, share, follow."""

from __future__ import annotations

import re
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import ROOT, tiny_config
from forked import Running
from gcdformer import Run, train
from lab_browser import Tab, needs_browser, open_browser, open_tab, sync_api  # noqa: F401 - two are fixtures
from lab_process import Lab
from test_report import long_run

pytestmark = [needs_browser, pytest.mark.processes]


@pytest.fixture(scope="module")
def lab(trained: Run, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("browser-runs")
    shutil.copytree(trained.path, folder / "tiny")
    train(tiny_config(base=7, seed=1, max_epochs=2, keep_checkpoints=5), folder / "other")
    long_run(folder / "long", 40)
    shutil.copytree(trained.path, folder / "hurt")
    (folder / "hurt" / "config.toml").write_text("x")
    with Lab(folder) as lab:
        yield lab


def count_of(page: Any) -> int:
    """The epoch the page shows."""
    return int(page.locator(".epoch-count b").inner_text())


def test_filter_and_sort(tab: Tab, lab: Lab) -> None:
    page = tab.open(lab.url)
    rows = page.locator(".runs tbody tr")
    assert rows.count() == 4 and page.locator("tr.is-damaged .badge").inner_text() == "damaged"
    page.keyboard.press("Tab")
    page.locator("#filter").press_sequentially("base 7")
    sync_api.expect(rows).to_have_count(1)
    assert rows.first.get_attribute("data-run") == "other" and "q=base+7" in page.url
    page.locator("#filter").fill("base 1")
    page.get_by_role("button", name="Show all runs").click()
    sync_api.expect(rows).to_have_count(4)
    page.locator("#filter").fill("uniform")
    page.get_by_role("button", name="Base").click()
    assert [row.get_attribute("data-run") for row in rows.all()][0] == "other"
    page.get_by_role("button", name="Base").click()
    assert [row.get_attribute("data-run") for row in rows.all()][-1] == "other"
    page.reload()
    sync_api.expect(rows).to_have_count(3)
    assert page.locator("#filter").input_value() == "uniform" and page.locator("th[aria-sort=descending]").count() == 1


def test_the_slider_drives_everything(tab: Tab, lab: Lab) -> None:
    page = tab.open(lab.url + "#/run/long")
    assert count_of(page) == 40

    def state() -> dict[str, str]:
        names = {"grid": ".grid", "lede": ".lede", "formula": ".formula", "rules": ".rules-card", "event": ".epoch-event"}
        found = {name: page.locator(selector).first.inner_text() for name, selector in names.items()}
        found["heat"] = page.locator(".heat canvas").evaluate("canvas => canvas.toDataURL()")
        found["cursor"] = page.locator(".cursor").first.get_attribute("x1")
        found["correct"] = str(page.locator(".cell.correct").count())
        found["powers"] = str(page.locator(".power.correct").count())
        return found

    late = state()
    page.locator("#epoch").focus()
    page.keyboard.press("Home")
    sync_api.expect(page.locator(".cell.correct")).to_have_count(2)
    early = state()
    assert {name for name in late if late[name] == early[name]} <= {"rules"} and early["formula"] == "D = {1, 2}"
    assert "epoch=1" in page.url
    page.keyboard.press("ArrowRight")
    assert count_of(page) == 2
    page.locator(".panel").first.click(position={"x": 600, "y": 100})
    assert 10 < count_of(page) < 40


def test_play_watches_the_sieve_grow(tab: Tab, lab: Lab) -> None:
    page = tab.open(lab.url + "#/run/long?epoch=1")
    before = page.locator(".cell.correct").count()
    page.get_by_role("button", name=re.compile("Play")).click()
    sync_api.expect(page.locator(".epoch-count b")).to_have_text("40")
    sync_api.expect(page.get_by_role("button", name=re.compile("Play"))).to_be_visible()
    assert page.locator(".cell.correct").count() > before + 20
    page.locator("h2").first.click()
    page.keyboard.press("ArrowLeft")
    assert count_of(page) == 39


def test_hover_links_the_figures(tab: Tab, lab: Lab) -> None:
    page = tab.open(lab.url + "#/run/long?epoch=40")
    before = page.locator(".heat canvas").evaluate("canvas => canvas.toDataURL()")
    page.locator(".cell[data-k='24']").hover()
    assert "Pairs with GCD 24 = 2³ · 3" in page.locator(".detail").inner_text()
    assert page.locator(".power.divides-k").count() == 4
    assert page.locator(".heat canvas").evaluate("canvas => canvas.toDataURL()") != before
    page.locator(".power[data-k='25']").hover()
    assert (
        "Pairs with GCD 25" in page.locator(".detail").inner_text()
        and page.locator(".cell.hovered").get_attribute("data-k") == "25"
    )
    page.locator(".heat canvas").hover(position={"x": 300, "y": 200})
    assert page.locator(".cell.hovered").count() == 1
    page.locator(".cell[data-k='36']").click()
    assert "k=36" in page.url
    page.locator(".cell[data-k='36']").press("ArrowDown")
    assert page.locator(":focus").get_attribute("data-k") == "46"


def test_a_shared_link_shows_the_same(tab: Tab, lab: Lab, browser: Any) -> None:
    page = tab.open(lab.url + "#/run/long")
    page.locator("#epoch").fill("9")
    page.locator(".cell[data-k='20']").click()
    page.mouse.move(0, 0)
    sync_api.expect(page.locator(".epoch-count b")).to_have_text("9")
    url, shown = page.url, page.locator(".grid").inner_text()
    with Tab(browser) as other:
        again = other.open(url)
        assert count_of(again) == 9 and again.locator(".grid").inner_text() == shown
        assert again.locator(".cell.chosen").get_attribute("data-k") == "20"


def test_ask(tab: Tab, lab: Lab) -> None:
    page = tab.open(lab.url + "#/ask/tiny")
    page.locator(".verdict").wait_for()
    assert (page.locator("#a").input_value(), page.locator("#b").input_value()) == ("400", "840")
    expected = lab.get("/api/runs/tiny/ask?a=500&b=250")
    page.locator("#a").fill("500")
    page.locator("#b").fill("250")
    sync_api.expect(page.locator(".reason")).to_have_text(expected["reason"])
    tokens = page.locator(".operands .token").all_inner_texts()
    assert tokens == ["+", "5", "0", "0", "+", "2", "5", "0"]
    assert page.locator(".steps .step").count() == len(expected["steps"]) and "a=500" in page.url
    page.get_by_text("Attention maps").click()
    assert page.locator(".attention-group").count() == 3 and page.locator(".heads svg").count() == 6
    page.locator("#a").fill("12x")
    assert "Integers from 1 to 1,000" in page.locator("#problem").inner_text()
    assert page.locator(".result").inner_text() == "", "the answer to another question is gone"
    page.locator("#random").click()
    page.locator(".verdict").wait_for()
    assert page.locator("#problem").inner_text() == "" and page.locator("details.maps[open]").count() == 1
    before = page.url
    page.locator("#weights").select_option(index=1)
    page.wait_for_function("old => location.href !== old", arg=before)
    page.locator("#surprise").click()
    page.locator("h1").click()
    page.keyboard.press("r")
    page.reload()
    page.locator(".verdict").wait_for()


def test_compare(tab: Tab, lab: Lab) -> None:
    page = tab.open(lab.url)
    for name in ("tiny", "other", "long"):
        page.get_by_label(f"Compare {name}").check()
    page.get_by_role("button", name="Compare 3 runs").click()
    page.wait_for_selector("body[data-ready=compare]")
    lede = page.locator(".lede").inner_text()
    assert page.locator("h1").inner_text() == "3 runs compared" and "base (10 or 7)" in lede
    assert page.locator(".panel").first.locator(".curve").count() == 3
    panels = page.locator(".panel")
    assert panels.last.locator(".tick").last.text_content() == "training examples"
    panels.first.hover(position={"x": 46, "y": 100})
    assert [text.inner_text() for text in page.locator(".at-epoch").all()] == ["nothing evaluated yet"] * 3
    long = page.locator(".known").nth(2)
    panels.first.hover(position={"x": 90, "y": 100})
    assert long.locator("rect").count() == 100 and re.fullmatch(r"2 after (640|960|1 k)", long.inner_text())
    ends = re.fullmatch(r"after (\d+): \d+ correct, [\d.]+\s%", page.locator(".at-epoch").first.inner_text())
    assert ends and int(ends[1]) in (320, 640, 960), "after as many examples, whatever the number of the epoch"
    panels.first.hover(position={"x": 400, "y": 100})
    assert long.locator("rect.correct").count() > 2
    page.reload()
    page.wait_for_selector("h1:has-text('3 runs compared')")


def test_damaged_and_missing_runs_say_so(tab: Tab, lab: Lab) -> None:
    page = tab.open(lab.url + "#/run/hurt")
    assert "damaged" in page.locator("h1").inner_text() and "config.toml" in page.locator(".lede").inner_text()
    page = tab.open(lab.url + "#/run/none")
    assert "there is none called" in page.locator(".lede").inner_text()
    assert all("422" in text or "404" in text for text in tab.problems)
    tab.problems.clear()


def test_follow_a_run_trained_by_another_process(tab: Tab, tmp_path: Path) -> None:
    """It has work for minutes, and is stopped here."""
    words = ("--base 10 --max 1000 --dim 16 --heads 2 --epoch-size 8000 --test-size 200 --max-epochs 4000 --threads 1 "
             "--quiet")
    with Lab(tmp_path) as lab:
        page = tab.open(lab.url + "#/runs")
        assert page.locator(".badge").first.inner_text() == "bundled example"
        with Running("train", "--out", tmp_path / "followed", *words.split()) as process:
            link = page.get_by_role("link", name="followed")
            link.wait_for()
            sync_api.expect(page.locator(".lede")).to_have_text(re.compile("^Each run is a small model"))
            page.locator("tr.is-live").wait_for()
            sync_api.expect(page.locator("td.col-epochs").first).not_to_have_text(re.compile("^–"))
            link.click()
            page.wait_for_selector("body[data-ready=run]")
            first = count_of(page)
            page.wait_for_selector(".badge.live")
            page.wait_for_selector(f".epoch-count b:not(:text-is('{first}'))")
            assert count_of(page) > first
            process.send_signal(signal.SIGTERM)
            assert process.wait() == 75
            sync_api.expect(page.locator(".badge.live")).to_have_count(0)
        page.goto("about:blank")


def test_train_here(tab: Tab, tmp_path: Path) -> None:
    with Lab(tmp_path, allow_training=True) as lab:
        page = tab.open(lab.url + "#/train")
        page.locator("#base").fill("30")
        assert "30 = 2 · 3 · 5" in page.locator("form").inner_text()
        page.locator("#minutes").fill("5")
        page.get_by_text("Epochs, tests and threads").click()
        page.locator("#epoch-size").fill("2000")
        page.locator("#test-size").fill("1000")
        page.locator("#threads").fill("1")
        page.get_by_role("button", name="Start training").click()
        page.locator("[data-state=running]").wait_for()
        page.get_by_role("button", name="Start training").click()
        sync_api.expect(page.locator("form .problem")).to_have_text(re.compile("one is running already"))
        tab.problems.clear()
        page.locator(".progress").wait_for()
        page.get_by_role("button", name="Stop").click()
        page.locator("[data-state=stopped]").wait_for()
        page.get_by_role("link", name="Watch the sieve").click()
        page.wait_for_selector("body[data-ready=run]")
        assert page.locator("h1").inner_text() == "lab-base-30" and count_of(page) >= 1
        assert Run(tmp_path / "lab-base-30").config.task.base == 30
        page.goto("about:blank")


CONTRAST = (ROOT / "tests" / "lab_contrast.js").read_text()
UNNAMED = (ROOT / "tests" / "lab_unnamed.js").read_text()
TWO_FRAMES = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
"""Figures are drawn in the first frame in which they have a width."""
VIEWS = [
    "#/runs",
    "#/run/long?epoch=9&k=24",
    "#/mechanism/example-grokking",
    "#/mechanism/tiny",
    "#/ask/tiny?a=500&b=250",
    "#/compare?runs=tiny,other,long",
    "#/train",
    "#/paper",
    "#/paper/table-4",
    "#/paper/figure-2",
    "#/paper/claim-steps",
    "#/ledger/base-30_seed-0_fast-4-10epochs?k=24",
]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1400, 390])
def test_every_view_is_legible_named_and_within_the_window(browser: Any, lab: Lab, scheme: str, width: int) -> None:
    with Tab(browser, width, scheme, motion="reduce") as tab:
        for view in VIEWS:
            page = tab.open(lab.url + view)
            page.evaluate(TWO_FRAMES)
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (view, width)
            assert page.evaluate(CONTRAST) == [], view
            assert page.evaluate(UNNAMED) == [], view
            assert page.locator("h1").count() == 1 and page.locator("html[lang=en]").count() == 1
        assert all(url.startswith((lab.url, "about:", "data:")) for url in tab.fetched), (
            "everything comes from the lab itself"
        )
        assert not tab.problems


def test_theme_can_be_chosen(tab: Tab, lab: Lab) -> None:
    page = tab.open(lab.url + "#/paper")
    colour = "getComputedStyle(document.body).backgroundColor"
    before = page.evaluate(colour)
    page.get_by_role("button", name="Light or dark colours").click()
    after = page.evaluate(colour)
    page.reload()
    assert before != after == page.evaluate(colour)
    page.route("**/app.js", lambda route: route.fulfill(body="", content_type="text/javascript"))
    page.reload()
    assert after == page.evaluate(colour), "the choice does not wait for the page's modules"
