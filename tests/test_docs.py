"""The documentation: what it computes, what it names, and the site, built strictly."""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import shlex
from pathlib import Path

import pytest

from conftest import ROOT, build_site
from gcdformer.cli import VERBS, build_parsers, main
from gcdformer.paper import TABLES

pytestmark = pytest.mark.processes

DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
WRITTEN = [path for path in PAGES if path.name not in ("LOG.md", "REPRODUCTION.md")]
FENCES = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
PARSER = build_parsers()
(VERB_PARSERS,) = (action.choices for action in PARSER._actions if hasattr(action, "choices") and action.dest == "verb")


def fences(path: Path, kind: str) -> list[str]:
    return [body for found, body in FENCES.findall(path.read_text()) if found == kind]


@pytest.mark.parametrize("path", [p for p in PAGES if ">>>" in p.read_text()], ids=lambda path: path.name)
def test_python_examples_are_computed(path: Path) -> None:
    result = doctest.testfile(str(path), module_relative=False, verbose=False)
    assert result.attempted >= 3 and result.failed == 0


@pytest.mark.parametrize("path", [p for p in PAGES if fences(p, "console")], ids=lambda path: path.name)
def test_commands_print_what_is_shown(path: Path) -> None:
    for block in fences(path, "console"):
        for session in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, shown = session.partition("\n")
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                assert main(shlex.split(command)[1:]) == 0
            assert printed.getvalue() == shown, command


def commands(path: Path) -> list[list[str]]:
    """The calls of gcdformer on a page: lines of its blocks, and code in its text."""
    text = path.read_text()
    lines = [line.removeprefix("$ ") for kind, body in FENCES.findall(text) if kind in ("", "console", "bash")
             for line in body.replace("\\\n", " ").splitlines()]
    inline = re.findall(r"`(gcdformer [a-z][^`]*)`", re.sub(FENCES, "", text))
    found = [re.search(r"\bgcdformer ([a-z].*)", line.split(" #")[0]) for line in lines + inline]
    return [re.sub(r"[|;>'\"].*", "", match.group(1)).split() for match in found if match]


@pytest.mark.parametrize("path", [*WRITTEN, ROOT / "README.md"], ids=lambda path: path.name)
def test_verbs_and_flags_that_are_named_exist(path: Path) -> None:
    for verb, *words in commands(path):
        if ":" in verb or verb == "in":
            continue
        assert verb in VERBS, f"{path.name}: gcdformer {verb}"
        known = VERB_PARSERS[verb]._option_string_actions
        for word in words:
            if word.startswith("--") and len(word) > 2:
                assert word.split("=")[0].rstrip(",.)") in known, f"{path.name}: gcdformer {verb} {word}"


def test_every_layer_is_in_the_page_of_how_it_works() -> None:
    text = (DOCS / "how-it-works.md").read_text()
    folders = {path.parent.name for path in (ROOT / "src" / "gcdformer").glob("*/__init__.py")}
    assert folders == set(re.findall(r"^\| `(\w+)/`", text, re.MULTILINE))


def test_the_site_builds_strictly_and_loads_nothing_from_elsewhere(site: Path) -> None:
    pages = {str(path.relative_to(site)): path.read_text() for path in site.rglob("*.html")}
    assert {"index.html", "rules.html", "faq.html", "commands.html", "settings.html", "api/python.html"} <= set(pages)
    for name, text in pages.items():
        assert not re.findall(r"<(?:script|img|iframe)[^>]+src=\"(?:https?:)?//", text), name
        assert not re.findall(r"<link[^>]+rel=\"(?:stylesheet|preconnect|icon)\"[^>]+href=\"(?:https?:)?//", text), name
    for verb in VERBS:
        assert f'id="{verb}"' in pages["commands.html"], verb
    for word in ("--final-lr-share", "--stop-at-correct", "paper-benford-sqrt"):
        assert word in pages["settings.html"]
    names = ("runs.run.Run.predict", "runs.exported.load_exported", "models.hooks.run_with_cache", "models.hooks.patched")
    for name in names:
        assert f'id="gcdformer.{name}"' in pages["api/python.html"]
    curves = re.findall(r'<h2 id="([^"]+)">(?:(?!<h2).)*?<figure><svg role="img"', pages["REPRODUCTION.html"], re.DOTALL)
    assert curves == [name for name, table in TABLES.items() if table.curves], "drawn from the ledger"
    live = {name: re.findall(r'<figure class="live" data-src="live.html([^"]+)">\s*<div class="still">', text)
            for name, text in pages.items() if "<figure" in text}
    assert {name: len(views) for name, views in live.items() if views} == {
        "index.html": 2, "rules.html": 3, "prior.html": 1, "mechanism.html": 3} and (site / "assets" / "live.js").is_file()
    assert 'data-source="inside"' in pages["live.html"] and not any("data-view" in text for text in pages.values())
    assert "class ModularAddition" in re.sub(r"<[^>]+>", "", pages["extend.html"])


@pytest.mark.parametrize("lines", [["[x](nowhere.md)", "[x](faq.md#no-such-heading)", "[x][gcdformer.no.such.name]"],
                                   ["::: gcdformer.no_such_module"]], ids=["links", "module"])
def test_a_broken_link_or_name_ends_the_build(lines: list[str], tmp_path: Path) -> None:
    """With the settings of the site, but few pages, to be quick."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("# A page\n\n" + "\n\n".join(lines) + "\n")
    (tmp_path / "docs" / "faq.md").write_text("# Another\n")
    text = (ROOT / "mkdocs.yml").read_text().partition("\nnav:")[0]
    text = re.sub(r"^(hooks|watch|extra_css): .*\n", "", text, flags=re.MULTILINE)
    (tmp_path / "mkdocs.yml").write_text(text + "\n")
    done = build_site(tmp_path, tmp_path / "site")
    assert done.returncode != 0
    for line in lines:
        assert re.split(r"[(\[#: )\]]+", line.rstrip(")]"))[-1] in done.stderr, done.stderr
