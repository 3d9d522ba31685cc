"""The lab's views in a real browser: what is being learned, an empty D, the paper, runs that lack something, the focus."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import tiny_config
from gcdformer import Run, train
from gcdformer.lab.catalogue import GROKKING
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
                   lambda: page.evaluate("location.hash = '#/paper/table-2'"),
                   lambda: page.evaluate("location.hash = '#/run/long'")):
        page.locator(".top").get_by_role("link", name="Paper").focus()
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


VALUES = """() => ({
  seen: [...document.querySelectorAll(".published td:not(:empty)")].filter((cell) => cell.getClientRects().length).length,
  marked: [...document.querySelectorAll(".published td:not(:empty)")].every((cell) => cell.querySelector("b[aria-label]")),
  right: Math.max(0, ...[...document.querySelectorAll(".published :is(.theirs, .ours, b)")]
    .map((value) => value.getBoundingClientRect().right)),
  cut: [...document.querySelectorAll(".scroll, html")].filter((box) => box.scrollWidth > box.clientWidth).length,
})"""


def test_the_paper_on_a_phone(browser: Any, lab: Lab) -> None:
    """The index counts every table; at its own address each is there, ours beside the published value, all in sight."""
    with Tab(browser, 390) as tab:
        page = tab.open(lab.url + "#/paper")
        index = lab.get("/api/paper")
        tables = [table for section in index["sections"] for table in section["tables"]]
        assert page.locator(".claims .badge").all_inner_texts() == [claim["verdict"] for claim in index["claims"]]
        assert page.locator(".contents a b").all_inner_texts() == [table["number"] for table in tables]
        values = [table["values"] for table in tables if sum(table["values"].values())]
        words = page.locator(".contents .agreement").all_inner_texts()
        assert len(words) == len(values) and all(text.startswith(f"{count['agree']} of {sum(count.values())} agree (")
                                                 for text, count in zip(words, values, strict=True))
        seen = 0
        for table in tables:
            page.evaluate("id => (location.hash = `#/paper/${id}`)", table["id"])
            sync_api.expect(page.locator("h1")).to_have_text(table["number"])
            found = page.evaluate(VALUES)
            assert found["right"] <= 390 and found["cut"] == 0 and found["marked"], (table, found)
            assert (found["seen"] > 0) == (sum(table["values"].values()) > 0)
            assert page.locator("figure .curves").count() == (table["curves"] > 0)
            seen += found["seen"]
        assert seen > 500 and page.title().startswith("Table 23")
        page = tab.open(lab.url + "#/paper/table-22?column=base+30")
        page.get_by_label("Column").select_option("base 31")
        assert "column=base+31" in page.url
        page.reload()
        page.wait_for_selector("body[data-ready=paper]")
        assert page.locator(".published thead th:visible").all_inner_texts() == ["base 31", "base 31 %"]
        assert not tab.problems


def test_a_run_of_the_ledger_opens_like_any_run(tab: Tab, lab: Lab) -> None:
    page = tab.open(lab.url + "#/paper/table-2")
    page.get_by_role("row", name="30", exact=False).get_by_role("link", name="17").click()
    page.wait_for_selector("body[data-ready=ledger]")
    name = page.locator("h1").inner_text()
    last = lab.get(f"/api/paper/runs/{name}")["last"]
    assert name.startswith("base-30_seed-0") and page.locator("nav a[aria-current]").inner_text() == "Paper"
    assert page.locator(".cell.correct").count() == len(last["D"]) == 17 and page.locator(".cell").count() == 100
    sync_api.expect(page.locator(".panel .curve")).to_have_count(3)
    assert f"{100 * last['fidelity']['natural']['value']:.2f} %" in page.locator(".certificate").inner_text()
    assert page.locator(".player, .bands, .event-list button").count() == 0, "there is one epoch to show"
    for key in ("ArrowLeft", "Space"):
        page.keyboard.press(key)
    page.locator(".cell[data-k='24']").click()
    assert "Pairs with GCD 24" in page.locator(".detail").inner_text() and page.url.endswith("?k=24")
    asked = [url for url in tab.fetched if "/api/" in url and "/about" not in url]
    assert [url.rpartition("/api/")[2] for url in asked] == ["paper/tables/table-2", f"paper/runs/{name}"]
    page.locator(".crumbs").get_by_role("link", name="Table 2", exact=True).click()
    sync_api.expect(page.locator("h1")).to_have_text("Table 2")
    page = tab.open(lab.url + "#/ledger/comparison_base-10_max-100000_seed-0_fast-4-3epochs")
    assert page.locator(".panel-title").all_text_contents() == ["accuracy, %", "training loss"]


def test_a_mechanism_of_many_primes_on_a_phone(browser: Any, tmp_path: Path) -> None:
    """A wide table scrolls by itself, with the names of its rows in sight; cells without a value do not widen the page."""
    shutil.copytree(GROKKING, tmp_path / "many")
    found = json.loads((GROKKING / "mechanism.json").read_text())
    three, primes = found["primes"][1], (2, 3, 5, 7, 11, 13, 17)
    nothing = {site: [None] * len(found["positions"]) for site in three["adding"]}
    found["primes"] = [three | {"p": p, "adding": nothing} for p in primes]
    found["overlap"] = [[float(p == other) for other in primes] for p in primes]
    (tmp_path / "many" / "mechanism.json").write_text(json.dumps(found))
    with Lab(tmp_path) as lab, Tab(browser, 390) as tab:
        for address in ("#/mechanism/many", "#/mechanism/many?only=places"):
            page = tab.open(lab.url + address)
            places = page.get_by_role("region", name="Places by primes")
            places.get_by_text("too few pairs").last.wait_for(state="attached")
            assert places.evaluate("box => box.scrollWidth > 2 * box.clientWidth"), "as wide as in a run of seven primes"
            assert page.evaluate("document.documentElement.scrollWidth") == 390, address
            names = places.locator("tbody th > span, tbody tr:not(.site) th")
            before = [name.bounding_box()["x"] for name in names.all()]
            places.evaluate("box => (box.scrollLeft = box.scrollWidth)")
            assert [name.bounding_box()["x"] for name in names.all()] == before
        assert not tab.problems
        tab.page.goto("about:blank")


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
