"""Sharing: a link to what is shown, an iframe with one figure, and pages that show that figure only."""

from __future__ import annotations

import html
import re
import struct
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from gcdformer.lab.catalogue import EXAMPLE
from gcdformer.lab.export import export_runs, export_single_file
from lab_browser import Tab, needs_browser, open_browser, open_tab, sync_api  # noqa: F401 - two are fixtures
from lab_process import Lab
from test_lab_browser import CONTRAST, TWO_FRAMES, UNNAMED
from test_lab_export import static_host

pytestmark = [needs_browser, pytest.mark.processes]
FIGURES = {"ask": ("#/ask/example?a=160&b=120&only=ask", ".question"), "grid": ("#/run/example?epoch=20&only=grid", ".grid"),
           "curves": ("#/run/example?only=curves", ".panel"), "heat": ("#/run/example?epoch=20&only=heat", ".heat canvas"),
           "clock": ("#/mechanism/example?only=clock&p=3", ".clock")}
HEADS = {"grid": "k,prediction,share,right,rule,kind", "curves": "epoch,examples,", "heat": "k,prediction,share",
         "history": "epoch,k,state", "places": "p,site,position,removes,adds", "clock": "p,digit,x,y,residue",
         "overlap": "p,2,3,5", "ask": "a,b,what,value,probability,chosen"}
SVG = "{http://www.w3.org/2000/svg}"


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


def download(page: Any, title: str, kind: str) -> bytes:
    """What the button of this name downloads."""
    with page.expect_download() as file:
        page.get_by_role("button", name=f"Download {title} as {kind}").click()
    return Path(file.value.path()).read_bytes()


def saved(page: Any, figure: str, kind: str) -> bytes:
    """What the button below a figure downloads."""
    buttons = page.locator(f"[data-figure={figure}] + .share")
    with page.expect_download() as download:
        buttons.get_by_role("button", name=re.compile(f"^Download .* as {kind}$")).click()
    assert download.value.suggested_filename.endswith(f".{kind.lower()}")
    return Path(download.value.path()).read_bytes()


@pytest.mark.parametrize(("view", "figures"), [("#/run/example?epoch=20&theme=dark", ["grid", "curves", "heat", "history"]),
                                               ("#/mechanism/example", ["places", "clock", "overlap"]),
                                               ("#/ask/example?a=765840&b=940824", ["ask"])])
def test_figures_are_downloaded_as_they_stand(tab: Tab, single: Path, view: str, figures: list[str]) -> None:
    page = tab.open(single.as_uri() + view)
    for figure in figures:
        text = saved(page, figure, "SVG").decode()
        root = ElementTree.fromstring(text)
        assert not re.search(r"var\(|light-dark|color-mix|class=|style=|<foreignObject|<image", text), figure
        drawn = list(root.iter())
        assert len(drawn) > 20 and any(element.text for element in drawn if element.tag == f"{SVG}text"), figure
        ground = root.find(f"{SVG}rect")
        assert ground is not None and (ground.get("fill", "") < "#4") == ("dark" in view), "the page's own"
        width, height = (int(root.get(name, "0")) for name in ("width", "height"))
        assert struct.unpack(">II", saved(page, figure, "PNG")[16:24]) == (2 * width, 2 * height)
        head, *rows = saved(page, figure, "CSV").decode().splitlines()
        assert head.startswith(HEADS[figure]) and len(rows) >= 3 and all(row.count(",") == head.count(",") for row in rows)
        if figure == "grid":
            words = [element.text for element in drawn if element.tag == f"{SVG}text"]
            assert words[:200:2] == [str(k) for k in range(1, 101)] and words[1:200:2] == [row.split(",")[1] for row in rows]
    if "ask" in figures:
        words = [element.text for element in drawn if element.tag == f"{SVG}text"]
        assert {"765840", "940824", "36"} <= set(words), "what was typed, and the answer"
        answered, sign, *_ = [row for row in rows if row.endswith(",true")]
        assert re.fullmatch(r"765840,940824,answer,36,0\.\d+,true", answered)
        assert sign.startswith("765840,940824,token 1,'+,")
        page.get_by_text("Attention maps").click()
        lines = download(page, "Attention of example", "CSV").decode().splitlines()
        assert lines[0] == "attention,layer,head,row,looks,column,at,share"
        shares = [float(line.rpartition(",")[2]) for line in lines[1:] if line.startswith("cross,1,1,0,")]
        assert len(shares) == 11 and sum(shares) == pytest.approx(1, abs=1e-3)
        assert b"<svg" in download(page, "Attention of example", "SVG")
    if "grid" in figures:
        lines = download(page, "What example knows", "CSV").decode().splitlines()
        assert lines[0] == "prime,power,divides_base,right,state" and lines[1].startswith("2,2,true,")
    if "places" in figures:
        lines = download(page, "Swaps of 2", "CSV").decode().splitlines()
        assert lines[0] == "a,b,value from,before,rules say,came out" and re.fullmatch(r"\d+(,\d+){5}", lines[1])


def test_the_place_that_was_chosen_stays_in_the_address(tab: Tab, single: Path) -> None:
    page = tab.open(single.as_uri() + "#/mechanism/example?only=places")
    cell = page.locator(".places:not(.overlap) [aria-pressed=false]").last
    key = cell.get_attribute("data-key")
    cell.click()
    address = page.url
    assert re.search(r"[?&]at=\d", address) and "only=places" in address
    page = tab.open(address)
    assert {pressed.get_attribute("data-key") for pressed in page.locator("[aria-pressed=true]").all()} == {key}


def test_the_servers_own_page_gives_no_code_for_frames(tab: Tab, tmp_path: Path) -> None:
    with Lab(tmp_path) as lab:
        page = tab.open(lab.url + "#/run/example")
        assert page.get_by_role("button", name="Copy link").count() == page.locator("[data-figure]").count() == 4
        assert page.get_by_role("button", name="Copy embed code").count() == 0
        assert saved(page, "grid", "PNG").startswith(b"\x89PNG") and saved(page, "curves", "CSV").count(b"\n") == 41
        page.goto("about:blank")
