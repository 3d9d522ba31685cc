"""The live figures of the documentation, in a real browser: they come when the reader comes near, fit, and take the site's
colours."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from lab_browser import Tab, needs_browser, open_browser, open_tab, sync_api  # noqa: F401 - two are fixtures
from test_lab_export import static_host

pytestmark = [needs_browser, pytest.mark.processes]
PAGES = ("index", "rules", "prior", "mechanism")
FITS = "() => document.documentElement.scrollHeight <= innerHeight && document.documentElement.scrollWidth <= innerWidth"


def figure(page: Any, number: int) -> tuple[Any, Any]:
    """A live figure that has been scrolled to: the element, and the document in its frame."""
    found = page.locator("figure.live").nth(number)
    found.scroll_into_view_if_needed()
    sync_api.expect(found).to_have_class(re.compile("is-live"))
    assert found.locator(".still").is_hidden()
    return found, found.locator("iframe").element_handle().content_frame()


def test_every_figure_has_a_still_for_readers_without_scripts(browser: Any, site: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    try:
        page = context.new_page()
        for name in PAGES:
            page.goto((site / f"{name}.html").as_uri())
            stills = page.locator("figure.live .still")
            assert page.locator("figure.live").count() == stills.count() >= 1 and page.locator("iframe").count() == 0
            for still in stills.all():
                assert still.is_visible()
                assert still.locator("svg").count() == 1 or "the model answers" in still.inner_text()
        assert "the rules say 2, and 2 comes out" in stills.first.inner_text(), "computed when the site was built"
    finally:
        context.close()


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_figures_are_live_fit_and_follow_the_colours(browser: Any, site: Path, width: int, scheme: str) -> None:
    with static_host(site) as url, Tab(browser, width, scheme) as tab:
        page = tab.page
        page.goto(url + "index.html")
        ask, frame = figure(page, 0)
        frame.locator("#a").fill("600000")
        frame.wait_for_function("() => location.hash.includes('a=600000')")
        frame.locator(".verdict").wait_for()
        frame.locator("#prior").fill("100")
        frame.wait_for_function("() => location.hash.includes('prior=100')")
        frame.get_by_role("button", name="Flip divisibility by 3 of a").click()
        sync_api.expect(frame.locator(".flip-result")).to_contain_text("came out")
        frame.wait_for_function(FITS)
        _, grid = figure(page, 1)
        before = grid.locator(".cell.correct").count()
        grid.locator("#epoch").fill("40")
        grid.wait_for_function("count => document.querySelectorAll('.cell.correct').length > count", arg=before)
        grid.wait_for_function(FITS)
        assert grid.locator("html").get_attribute("data-theme") == scheme
        other = "dark" if scheme == "light" else "light"
        page.evaluate("document.querySelector('.md-header label:not([hidden])[for^=__palette]').click()")
        frame.wait_for_function("theme => document.documentElement.dataset.theme === theme", arg=other)
        assert "a=600000" in frame.url, "the state stays"
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert ask.locator("iframe").get_attribute("title") and not tab.problems, tab.problems
        assert all(fetched.startswith((url, "data:", "about:")) for fetched in tab.fetched)


def test_figures_are_live_from_the_disk(tab: Tab, site: Path) -> None:
    """Where only the theme's search is missing, since it needs a server."""
    page = tab.page
    page.goto((site / "mechanism.html").as_uri())
    count = page.locator("figure.live").count()
    assert page.locator("iframe").count() < count, "those far away are not loaded"
    for number, seen in ((0, ".flip-result b"), (count - 1, ".clock")):
        _, frame = figure(page, number)
        frame.locator(seen).first.wait_for()
        frame.wait_for_function(FITS)
    tab.problems[:] = [text for text in tab.problems if "search_index" not in text and "ERR_FILE_NOT_FOUND" not in text]
