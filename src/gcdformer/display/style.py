"""The style of reports, notebooks and figures, from colours.css and style.css; the lab's page loads colours.css as it is.

Here colours are written out for light and for dark, since old browsers and some viewers of notebooks do not know
light-dark(). Knows no page and no picture.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

COLOURS = Path(__file__).parent / "colours.css"
DEFINITION = re.compile(r"--([\w-]+): (?:light-dark\((#\w+), (#\w+)\)|var\(--([\w-]+)\));")
DARK_NOTEBOOKS = ('body[data-jp-theme-light="false"] .gcdformer', "body.vscode-dark .gcdformer")
NOT_LIGHT = 'body:not([data-jp-theme-light="true"]):not(.vscode-light) .gcdformer'


@cache
def colours() -> dict[str, tuple[str, str]]:
    """Name -> the colour in light and in dark."""
    rows = DEFINITION.findall(COLOURS.read_text(encoding="utf-8"))
    own = {name: (light, dark) for name, light, dark, _ in rows if light}
    return own | {name: own[other] for name, _, _, other in rows if other}


def colour(name: str, *, dark: bool = False) -> str:
    return colours()[name][dark]


def with_names(svg: str) -> str:
    """A drawing in the light colours as one that takes the page's, where the page has them."""
    names = {light: name for name, (light, _) in reversed(colours().items())}
    return re.sub("|".join(names), lambda match: f"var(--{names[match[0]]}, {match[0]})", svg)


def with_values(svg: str, *, dark: bool) -> str:
    """A drawing that takes its colours from the page as one that needs no page."""
    return re.sub(r"var\(--([\w-]+), #\w+\)", lambda match: colour(match[1], dark=dark), svg)


def page_style() -> str:
    """For a whole page: light or dark by the reader's setting."""
    return f"{block([':root'], dark=False)}\n{dark_setting(':root')}\n{rules()}"


def piece_style() -> str:
    """For a piece of a notebook: by the notebook's theme if it has one, else by the reader's setting."""
    return "\n".join((block([".gcdformer"], dark=False), dark_setting(NOT_LIGHT), block(DARK_NOTEBOOKS, dark=True), rules()))


def dark_setting(selector: str) -> str:
    return f"@media (prefers-color-scheme: dark) {{ {block([selector], dark=True)} }}"


def block(selectors: list[str] | tuple[str, ...], *, dark: bool) -> str:
    """The colours as custom properties."""
    values = "; ".join(f"--{name}: {pair[dark]}" for name, pair in colours().items())
    return f"{', '.join(selectors)} {{ {values}; }}"


def rules() -> str:
    text = COLOURS.with_name("style.css").read_text(encoding="utf-8")
    return re.sub(r"/\*.*?\*/\s*", "", text, flags=re.DOTALL)
