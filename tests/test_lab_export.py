"""The lab's page without a server, in a real browser: as files on a static host, and as one file opened from the disk."""

from __future__ import annotations

import functools
import http.server
import re
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from gcdformer import Run
from gcdformer.lab.catalogue import EXAMPLE, GROKKING
from gcdformer.lab.export import export_runs, export_single_file
from lab_browser import Tab, needs_browser, open_browser, open_tab, sync_api  # noqa: F401 - two are fixtures
from test_lab_asking import damage, to_another_name, to_another_shape, to_nan
from test_lab_browser import CONTRAST, TWO_FRAMES, UNNAMED, count_of

pytestmark = [needs_browser, pytest.mark.processes]
HOSTILE = "<img src=x onerror=alert(1)> & ' %2e #?é"


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        pass


@contextmanager
def static_host(folder: Path) -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="module")
def single(trained: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("single")
    hostile = Path(shutil.copytree(trained.path, folder / HOSTILE))
    return export_single_file([EXAMPLE, GROKKING, hostile], folder / "page.html")


def ask(page: Any, a: int, b: int) -> tuple[str, str]:
    """What the page answers, and why."""
    page.locator("#a").fill(str(a))
    page.locator("#b").fill(str(b))
    page.wait_for_function("([a, b]) => location.hash.includes(`a=${a}&b=${b}`)", arg=[a, b])
    return page.locator(".verdict .big b").inner_text(), page.locator(".reason").inner_text()


def test_the_exported_page_works_from_files(tab: Tab, trained: Run, tmp_path: Path) -> None:
    export_runs([trained.path], tmp_path / "sub" / "site")
    with static_host(tmp_path) as url:
        page = tab.open(f"{url}sub/site/")
        page.wait_for_selector("body[data-ready=run]")
        page.locator("#epoch").focus()
        page.keyboard.press("Home")
        assert count_of(page) == 1 and page.locator(".cell").count() == 100
        page.get_by_role("link", name="Ask this model").click()
        page.wait_for_selector("body[data-ready=ask]")
        assert ask(page, 500, 250)[0] == f"{trained.predict(500, 250):,}"
        page.locator("#surprise").click()
        page.get_by_role("link", name="Paper").click()
        page.wait_for_selector("body[data-ready=paper]")
        asked = [fetched.rpartition("/data/")[2] for fetched in tab.fetched if "/data/paper" in fetched]
        assert asked == ["paper.json"], "a small index first, then what is opened"
        page.get_by_role("link", name="Figure 1").click()
        page.get_by_role("link", name="seed 0").click()
        page.wait_for_selector("body[data-ready=ledger]")
        assert page.locator(".cell").count() == 100 and page.locator(".certificate tr").count() == 4
        assert not any("/api/" in url for url in tab.fetched)
        assert all(fetched.startswith((url, "about:", "data:")) for fetched in tab.fetched)


def test_a_single_file_does_all_from_the_disk(tab: Tab, single: Path) -> None:
    page = tab.open(single.as_uri())
    assert page.locator(".runs tbody tr").count() == 3 and page.get_by_role("link", name="Train here").count() == 0
    page.get_by_label("Compare example", exact=True).check()
    page.get_by_label("Compare example-grokking").check()
    page.get_by_role("button", name="Compare 2 runs").click()
    page.wait_for_selector("body[data-ready=compare]")
    page = tab.open(single.as_uri() + "#/run/example?epoch=9")
    assert count_of(page) == 9 and page.locator(".cell").count() == 100
    model = Run(EXAMPLE).predictor(40)
    page = tab.open(single.as_uri() + "#/ask/example")
    for a, b in [(160, 120), (999_000, 30), (123_456, 654_321), (40_000, 80_000)]:
        prediction, reason = ask(page, a, b)
        assert prediction == f"{model.predict(a, b):,}" and "GCD" in reason
    assert page.locator(".heads svg").count() > 0
    page = tab.open(single.as_uri() + "#/paper")
    page.get_by_role("link", name="Table 4").click()
    sync_api.expect(page.locator(".published tbody tr")).to_have_count(17)
    page.get_by_role("row", name="2023").get_by_role("link").first.click()
    page.wait_for_selector("body[data-ready=ledger]")
    assert page.locator(".cell").count() == 100
    page = tab.open(single.as_uri() + "#/paper/claim-mixture")
    assert page.locator(".remarks li").count() > 0
    assert all(url.startswith((single.as_uri(), "about:", "data:")) for url in tab.fetched), "nothing else is fetched"


def test_a_single_file_runs_its_own_scripts_only(tab: Tab, single: Path) -> None:
    text = single.read_text()
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text)
    assert policy and policy[1].startswith("default-src 'none'; script-src 'sha256-") and "unsafe" not in policy[1]
    assert text.index("Content-Security-Policy") < text.index("<script")
    page = tab.open(single.as_uri())
    page.evaluate("document.body.append(Object.assign(document.createElement('script'), {textContent: 'window.ran = 1'}))")
    assert page.evaluate("window.ran") is None
    assert all("Content Security Policy" in problem for problem in tab.problems) and tab.problems
    tab.problems.clear()


def test_a_hostile_name_is_a_text(tab: Tab, single: Path) -> None:
    page = tab.open(single.as_uri())
    page.get_by_role("link", name=HOSTILE).click()
    page.wait_for_selector("body[data-ready=run]")
    assert page.locator("h1").inner_text() == HOSTILE and page.locator("main img").count() == 0
    page.get_by_role("link", name="Ask this model").click()
    page.wait_for_selector("body[data-ready=ask]")
    ask(page, 500, 250)


@pytest.mark.parametrize(("change", "says"), [(to_nan, "NaN|finite"), (to_another_shape, "tensor"),
                                              (to_another_name, "tensor")])
def test_weights_that_are_none_are_an_error_in_the_page(tab: Tab, trained: Run, tmp_path: Path, change: Any,
                                                         says: str) -> None:
    run = Path(shutil.copytree(trained.path, tmp_path / "run"))
    damage(run, change)
    page = tab.open(export_single_file([run], tmp_path / "page.html").as_uri() + "#/ask/run?a=10&b=20")
    sync_api.expect(page.locator("#problem")).to_have_text(re.compile(says))
    assert page.locator("main img").count() == 0 and page.locator(".verdict").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1400, 390])
def test_every_view_of_a_single_file_is_legible_and_named(browser: Any, single: Path, scheme: str, width: int) -> None:
    with Tab(browser, width, scheme, motion="reduce") as tab:
        for view in ("#/runs", "#/run/example?epoch=9&k=24", "#/ask/example?a=160&b=120",
                     "#/compare?runs=example,example-grokking"):
            page = tab.open(single.as_uri() + view)
            page.evaluate(TWO_FRAMES)
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (view, width)
            assert page.evaluate(CONTRAST) == [] and page.evaluate(UNNAMED) == [], view
        assert not tab.problems
