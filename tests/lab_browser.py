"""A real browser for tests of the lab: Chromium, and pages that remember what went wrong on them.

Import `open_browser` and `open_tab`, the fixtures `browser` and `tab`, and mark the module with `needs_browser`.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import Any, Self

import pytest

sync_api = pytest.importorskip("playwright.sync_api", reason="pip install 'gcdformer[dev]'")
PATIENCE = 100_000
"""Milliseconds: waiting ends a little before the limit of a test, so that a slow machine is no failure."""
sync_api.expect.set_options(timeout=PATIENCE)
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""The first that is there is taken. The shell is Chromium without windows, and opens a page in a third of the time."""
CHROMIUM = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
needs_browser = pytest.mark.skipif(
    CHROMIUM is None, reason="no chromium: apt-get install chromium-headless-shell (or set CHROMIUM to a browser's path)"
)


@pytest.fixture(scope="module", name="browser")
def open_browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as play:
        found = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            yield found
        finally:
            found.close()


class Tab:
    """A page that remembers what went wrong on it."""

    def __init__(self, browser: Any, width: int = 1280, scheme: str = "light", motion: str = "no-preference") -> None:
        self.context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme,
                                           reduced_motion=motion)
        self.page = self.context.new_page()
        self.page.set_default_timeout(PATIENCE)
        self.problems: list[str] = []
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("console", lambda message: self.problems.append(message.text) if message.type == "error" else None)
        self.fetched: list[str] = []
        self.page.on("request", lambda request: self.fetched.append(request.url))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.context.close()

    def open(self, url: str) -> Any:
        self.page.goto("about:blank")
        self.page.goto(url)
        self.page.wait_for_selector("body[data-ready]")
        return self.page


@pytest.fixture(name="tab")
def open_tab(browser: Any) -> Iterator[Tab]:
    with Tab(browser) as tab:
        yield tab
    assert not tab.problems, tab.problems
