"""The page as one HTML file, and its ES modules as one script: from `file://` a browser loads no other module.

Each module becomes a function that returns its exports, behind the modules it imports. Knows the forms that the page's
modules have (`import { a, b as c } from "./x.js";`, `export` before a constant, function or class, `export { a };`) and
refuses others. A single file has styles, script and data inside. Its data are compressed and in base64, so that nothing in
them is read as markup; a policy lets the browser run exactly the scripts and styles that are written here. Knows the page's
files, no run.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path

IMPORT = re.compile(r'^import \{([^}]*)\} from "(\.[^"\n]*)";\n', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:const|class|function\*?|async function\*?) (\w+))", re.MULTILINE)
EXPORT_LIST = re.compile(r"^export \{([^}]*)\};\n", re.MULTILINE)
UNKNOWN = re.compile(r"^(?:import|export|await)\b.*|\bimport(?:\(|\.meta\b).*|<(?:/script|!--).*", re.MULTILINE | re.I)
STYLE = re.compile(r'<link rel="stylesheet" href="static/([^"]+)">\n')
PRELOAD = re.compile(r'<link rel="modulepreload"[^>]*>\n')
THEME = '<script src="static/theme.js"></script>\n'
APP = '<script type="module" src="static/app.js"></script>\n'
ICON = 'href="static/icon.svg"'


def bundle(root: Path, entry: str) -> str:
    """The module `entry` below `root` and all it imports, as one module without imports or exports.

    A module's exports are in the constant that `name_of` names. A `ValueError` names a module that cannot be bundled.
    """
    written: dict[Path, str] = {}
    add(root / entry, root.resolve(), written, ())
    return "\n".join(written.values())


def add(path: Path, root: Path, written: dict[Path, str], importers: tuple[Path, ...]) -> str:
    """Write a module behind those it imports, once; the name of its exports in the script."""
    path = path.resolve()
    if path in importers:
        raise ValueError(f"{path}: imports itself, by way of {', '.join(importer.name for importer in importers)}")
    if path not in written:
        source = path.read_text(encoding="utf-8")
        imports = [f"const {{ {renamed(names)} }} = {add(path.parent / target, root, written, (*importers, path))};"
                   for names, target in IMPORT.findall(source)]
        exports = [*EXPORT.findall(source), *map(renamed_back, listed(EXPORT_LIST.findall(source)))]
        body = EXPORT_LIST.sub("", EXPORT.sub("", IMPORT.sub("", source)))
        unknown = UNKNOWN.search(body)
        if unknown:
            raise ValueError(f"{path}: cannot be bundled because of '{unknown.group()[:80]}'")
        name = name_of(path, root)
        parts = [f"const {name} = (() => {{", *imports, body.strip("\n"), f"return {{ {', '.join(exports)} }};", "})();"]
        written[path] = "\n".join(parts) + "\n"
    return name_of(path, root)


def name_of(path: Path, root: Path) -> str:
    return "module_" + re.sub(r"\W", "_", path.relative_to(root).with_suffix("").as_posix())


def listed(groups: list[str]) -> list[str]:
    return [name.strip() for group in groups for name in group.split(",") if name.strip()]


def renamed(names: str) -> str:
    """`a as b` of an import as `a: b` of a destructuring."""
    return ", ".join(name.replace(" as ", ": ") for name in listed([names]))


def renamed_back(name: str) -> str:
    """`a as b` of an export as `b: a` of an object."""
    inner, _, outer = name.partition(" as ")
    return f"{outer}: {inner}" if outer else inner


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
        assert old in page, old
        page = page.replace(old, new, 1)
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
