"""Every colour stands once, in display/colours.css; reports, notebooks, figures and the lab take theirs from there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gcdformer.display.style import colours, page_style, piece_style, with_names, with_values

PACKAGE = Path(__file__).parent.parent / "src" / "gcdformer"
FOLDERS = [PACKAGE / name for name in ("display", "lab", "report")]
SOURCES = sorted(path for folder in FOLDERS for ending in ("css", "js", "html", "py") for path in folder.rglob(f"*.{ending}")
                 if path.name != "colours.css")
LITERAL = re.compile(r"#(?:[0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8})\b|\b(?:rgba?|hsla?|oklch|oklab)\(", re.IGNORECASE)
NAMED = re.compile(r"(?:color|background|fill|stroke|facecolor|fillStyle)\w*[:=]\s*[\"']?"
                   r"(?:white|black|red|green|blue|yellow|orange|purple|gr[ae]y)\b")


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_colour_stands_anywhere_else(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert LITERAL.findall(text) == [] and NAMED.findall(text) == []


def test_every_colour_that_is_used_is_there() -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in SOURCES)
    used = set(re.findall(r"var\(--([\w-]+)[,)]", text)) | set(re.findall(r"colour\(\"(?:--)?([\w-]+)\"", text))
    own = set(re.findall(r"--([\w-]+):", text)) | set(re.findall(r"\"--([\w-]+)\"[:,]", text))
    assert "accent" in used and used - own <= set(colours())
    assert len(re.findall(r"^  --", (PACKAGE / "display" / "colours.css").read_text(), re.MULTILINE)) == len(colours())


def test_pages_and_pieces_have_light_and_dark() -> None:
    for style in (page_style(), piece_style()):
        assert all(f"--{name}: {value};" in style for name, pair in colours().items() for value in pair)
        assert "prefers-color-scheme: dark" in style and "light-dark(" not in style


def test_a_drawing_takes_the_colours_of_its_page_and_can_do_without() -> None:
    light, dark = colours()["series-2"]
    named = with_names(f'<path style="stroke: {light}"/>')
    assert named == f'<path style="stroke: var(--series-2, {light})"/>'
    assert with_values(named, dark=False) == f'<path style="stroke: {light}"/>'
    assert dark in with_values(named, dark=True)
