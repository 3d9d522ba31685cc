"""The lab's views in a real browser: what is being learned, an empty D, the paper, runs that lack something, the focus."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import tiny_config
from gcdformer import Run, train
from lab_browser import Tab, needs_browser, open_browser, open_tab, sync_api  # noqa: F401 - two are fixtures
from lab_process import Lab
from test_lab import OWN_TASK
from test_report import long_run

pytestmark = [needs_browser, pytest.mark.processes]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("views")
    long_run(folder / "long", 10)
    with Lab(folder) as lab:
        yield lab


def test_compare_and_run_page_agree_on_what_is_being_learned(tab: Tab, lab: Lab) -> None:
    page = tab.open(lab.url + "#/run/example-grokking")
    shown = {kind: page.locator(f".cell.{kind} small").all_inner_texts() for kind in ("correct", "learning")}
    assert shown["learning"] == [str(k) for k in lab.get("/api/runs/example-grokking/epochs/26")["being_learned"]] != []
    page = tab.open(lab.url + "#/compare?runs=example,example-grokking")
    known = page.locator(".known").last
    sync_api.expect(known.locator("rect.learning")).to_have_count(len(shown["learning"]))
    for kind, values in shown.items():
        assert known.locator(f"rect.{kind} title").all_text_contents() == values


def test_without_d_there_is_a_dash(tab: Tab, lab: Lab) -> None:
    """Whether the answer to everything is 1, or no integer at all."""
    for run in ("example", "example-grokking"):
        assert lab.get(f"/api/runs/{run}/epochs/1")["D"] == []
        page = tab.open(lab.url + f"#/run/{run}?epoch=1")
        rows = [row.locator("td").all_inner_texts() for row in page.locator(".certificate tr").all()]
        assert [row[0] for row in rows] == ["–", "–", rows[2][0], "–"] and "%" in rows[2][0]
        assert "D is empty: every pair would get f(1)" in rows[3][1]
        assert page.locator(".facts").inner_text().count("–") == 1


def test_a_new_view_focuses_its_heading_without_a_frame(tab: Tab, lab: Lab) -> None:
    page = tab.open(lab.url + "#/runs")
    for change in (lambda: page.keyboard.press("Enter"), lambda: page.goto(lab.url + "#/compare?runs=long"),
                   lambda: page.evaluate("location.hash = '#/run/long'")):
        page.get_by_role("link", name="Paper").focus()
        change()
        sync_api.expect(page.locator("h1")).to_be_focused()
        frames = page.evaluate("['main', 'h1'].map((tag) => getComputedStyle(document.querySelector(tag)).outlineStyle)")
        assert frames == ["none", "none"]
    assert page.locator("h1").inner_text() == "long"


def test_a_view_that_is_slow_says_so(tab: Tab, lab: Lab) -> None:
    """The answer is held back until the page has said that it waits."""
    page = tab.open(lab.url + "#/runs")
    held: list[Any] = []

    def hold(route: Any) -> None:
        held.append(route)

    page.route("**/api/paper", hold)
    page.get_by_role("link", name="Paper").click()
    sync_api.expect(page.get_by_role("status")).to_have_text("Setting the measured runs beside the paper …")
    held[0].continue_()
    sync_api.expect(page.locator("h1")).to_have_text("The paper, reproduced")
    assert page.get_by_role("status").count() == 0


def test_the_paper_on_a_phone(browser: Any, lab: Lab) -> None:
    """Claims and figures are there, and our value beside the published one is in sight."""
    with Tab(browser, 390) as tab:
        page = tab.open(lab.url + "#/paper")
        assert page.locator(".claims .badge").count() == len(lab.get("/api/paper")["claims"])
        sync_api.expect(page.locator(".paper-table figure .curve").first).to_be_visible()
        page.evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))")
        sides = page.evaluate(
            "[...document.querySelectorAll('.col-ours')].map((cell) => cell.getBoundingClientRect().right)")
        assert len(sides) > 500 and min(sides) > 0 and max(sides) <= 390
        cut = page.evaluate("[...document.querySelectorAll('.paper-table .scroll')]"
                            ".filter((one) => one.scrollWidth > one.clientWidth).length")
        assert cut == 0 and not tab.problems


def test_runs_without_epochs_and_of_other_tasks(tab: Tab, trained: Run, tmp_path: Path) -> None:
    shutil.copytree(trained.path, tmp_path / "fresh", ignore=shutil.ignore_patterns("metrics.jsonl", "predictions"))
    train(tiny_config(task="comparison", max_epochs=2), tmp_path / "comparison")
    with Lab(tmp_path) as lab:
        page = tab.open(lab.url + "#/run/fresh")
        assert page.locator(".lede").inner_text() == "No epoch of this run has been evaluated."
        page = tab.open(lab.url + "#/run/comparison")
        assert page.locator(".crumbs").inner_text().endswith("uniform operands")
        assert page.locator(".panel-title").all_text_contents() == ["accuracy, %", "training loss"]
        page = tab.open(lab.url + "#/compare?runs=fresh,comparison")
        assert page.locator(".known").inner_text() == "nothing evaluated yet"
        assert page.locator("h2").all_inner_texts() == ["Learning curves", "Which GCD each knows", "Where they stand"]
        page.locator(".panel").first.hover(position={"x": 788, "y": 60})
        assert re.fullmatch(r"after 640: [\d.]+\s%", page.locator(".at-epoch").last.inner_text())
        assert page.locator(".at-epoch").first.inner_text() == "nothing evaluated yet"
        tab.page.goto("about:blank")


def test_a_task_of_ones_own_that_has_a_gcd_has_the_page_of_a_gcd(tab: Tab, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN_TASK)
    run = train(tiny_config(task=f"{tmp_path / 'own.py'}:Divisor", max_epochs=1), tmp_path / "runs" / "own")
    with Lab(tmp_path / "runs") as lab:
        page = tab.open(lab.url + "#/run/own")
        assert page.locator(".cell.correct").count() == run.metrics[0]["n_correct"] and page.locator(".cell").count() == 100
        page.get_by_role("link", name="Ask this model").click()
        page.locator(".verdict").wait_for()
        tab.page.goto("about:blank")
