"""Sharing: a link to what is shown, an iframe with one figure, and pages that show that figure only."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

import pytest

from gcdformer.lab.catalogue import EXAMPLE
from gcdformer.lab.export import export_runs, export_single_file
from lab_browser import Tab, needs_browser, open_browser, open_tab, sync_api  # noqa: F401 - two are fixtures
from lab_process import Lab
from test_lab_browser import CONTRAST, TWO_FRAMES, UNNAMED
from test_lab_export import static_host

pytestmark = [needs_browser, pytest.mark.processes]
FIGURES = {"ask": ("#/ask/example?a=160&b=120&only=ask", ".question"), "grid": ("#/run/example?epoch=20&only=grid", ".grid"),
           "curves": ("#/run/example?only=curves", ".panel")}


@pytest.fixture(scope="module")
def single(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export_single_file([EXAMPLE], tmp_path_factory.mktemp("share") / "page.html")


@pytest.mark.parametrize(("width", "scheme"), [(800, "light"), (390, "dark")])
def test_only_one_figure_is_shown(browser: Any, single: Path, width: int, scheme: str) -> None:
    with Tab(browser, width, scheme, motion="reduce") as tab:
        for only, (view, _) in FIGURES.items():
            page = tab.open(single.as_uri() + view)
            page.evaluate(TWO_FRAMES)
            seen = {name for name, (_, other) in FIGURES.items() if page.locator(other).first.is_visible()}
            assert seen == {only}
            assert not page.locator("header.top").is_visible() and not page.locator("footer").is_visible()
            assert page.locator("h1").count() == 1, "a heading for those who do not see"
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (only, width)
            assert page.evaluate(CONTRAST) == [] and page.evaluate(UNNAMED) == [], only
        assert not tab.problems


def test_the_state_stays_in_the_address_and_leads_to_the_whole_page(tab: Tab, single: Path) -> None:
    page = tab.open(single.as_uri() + "#/run/example?epoch=20&only=grid")
    page.locator("#epoch").fill("9")
    page.wait_for_function("location.hash.includes('epoch=9') && location.hash.includes('only=grid')")
    whole = page.get_by_role("link", name="Open the whole page")
    whole.focus()
    assert whole.get_attribute("href").endswith("#/run/example?epoch=9")
    page = tab.open(single.as_uri() + "#/run/example?only=nothing")
    assert page.locator("header.top").is_visible(), "a figure that is not there hides nothing"


def test_what_is_copied_shows_the_figure_in_a_frame(tab: Tab, tmp_path: Path) -> None:
    export_runs([EXAMPLE], tmp_path / "site")
    with static_host(tmp_path) as url:
        tab.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=url.rstrip("/"))
        page = tab.open(url + "site/#/ask/example?a=160&b=120")
        page.get_by_role("button", name="Copy link").click()
        sync_api.expect(page.locator(".share [role=status]")).to_have_text("copied")
        assert page.evaluate("navigator.clipboard.readText()") == page.url
        page.get_by_role("button", name="Copy embed code").click()
        page.wait_for_function("async () => (await navigator.clipboard.readText()).startsWith('<iframe')")
        code = page.evaluate("navigator.clipboard.readText()")
        source = re.search(r'src="([^"]+)"', code)
        assert source and html.unescape(source[1]) == page.url + "&only=ask"
        (tmp_path / "article.html").write_text(f"<!doctype html><link rel=icon href=data:,><body data-ready>{code}")
        frame = tab.open(url + "article.html").frame_locator("iframe")
        frame.locator(".verdict").wait_for()
        assert not frame.locator("header.top").is_visible()


def test_the_servers_own_page_gives_no_code_for_frames(tab: Tab, tmp_path: Path) -> None:
    with Lab(tmp_path) as lab:
        page = tab.open(lab.url + "#/run/example")
        assert page.get_by_role("button", name="Copy link").count() == 2
        assert page.get_by_role("button", name="Copy embed code").count() == 0
        page.goto("about:blank")
