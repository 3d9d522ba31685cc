"""The page as one HTML file: styles, script and data inside, so that it works from `file://` and asks no host for anything.

Data are compressed and in base64, so that nothing in them is read as markup. A policy in the page lets the browser run
exactly the scripts and styles that are written here. Knows the page's files, no run.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path

from gcdformer.lab.bundle import bundle

STYLE = re.compile(r'<link rel="stylesheet" href="static/([^"]+)">\n')
PRELOAD = re.compile(r'<link rel="modulepreload"[^>]*>\n')
THEME = '<script src="static/theme.js"></script>\n'
APP = '<script type="module" src="static/app.js"></script>\n'
ICON = 'href="static/icon.svg"'


def single_file(static: Path, colours: Path, files: Mapping[str, bytes]) -> str:
    """The page in `static` with these files inside, by the paths under which it asks for them."""
    page = (static / "index.html").read_text(encoding="utf-8")
    style = style_of(static, colours)
    theme, app = (static / "theme.js").read_text(encoding="utf-8"), bundle(static, "app.js")
    icon = base64.b64encode((static / "icon.svg").read_bytes()).decode()
    policy = (f"default-src 'none'; script-src {digest(theme)} {digest(app)}; style-src {digest(style)}; img-src data:; "
              "base-uri 'none'; form-action 'none'")
    packed = json.dumps({name: pack(data) for name, data in files.items()}, separators=(",", ":")).replace("<", "\\u003c")
    parts = [
        ("<head>\n", f'<head>\n<meta http-equiv="Content-Security-Policy" content="{policy}">\n'),
        (THEME, f"<script>{theme}</script>\n<style>{style}</style>\n"),
        (APP, f'<script type="module">{app}</script>\n'),
        (ICON, f'href="data:image/svg+xml;base64,{icon}"'),
        ('data-source="server"', 'data-source="inside"'),
        ("</body>", f'<script type="application/json" id="files">{packed}</script>\n</body>'),
    ]
    page = PRELOAD.sub("", STYLE.sub("", page))
    for old, new in parts:
        before, found, after = page.partition(old)
        assert found, old
        page = before + new + after
    return page


def style_of(static: Path, colours: Path) -> str:
    """The style sheets that the page names, one behind the other."""
    names = STYLE.findall((static / "index.html").read_text(encoding="utf-8"))
    return "".join((colours if name == colours.name else static / name).read_text(encoding="utf-8") for name in names)


def digest(text: str) -> str:
    """A script or style as a Content-Security-Policy names it."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def pack(data: bytes) -> str:
    return base64.b64encode(gzip.compress(data, mtime=0)).decode()
