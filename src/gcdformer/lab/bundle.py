"""The page's ES modules as one script, for a page that is a single file: from `file://` a browser loads no other module.

Each module becomes a function that returns its exports, behind the modules it imports. Knows the forms that the page's
modules have (`import { a, b as c } from "./x.js";`, `export` before a constant, function or class, `export { a };`) and
refuses others.
"""

from __future__ import annotations

import re
from pathlib import Path

IMPORT = re.compile(r'^import \{([^}]*)\} from "(\.[^"\n]*)";\n', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:const|class|function\*?|async function\*?) (\w+))", re.MULTILINE)
EXPORT_LIST = re.compile(r"^export \{([^}]*)\};\n", re.MULTILINE)
UNKNOWN = re.compile(r"^(?:import|export|await)\b.*|\bimport(?:\(|\.meta\b).*|<(?:/script|!--).*", re.MULTILINE | re.I)


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
        raise ValueError(f"{path}: imports itself, by way of {', '.join(one.name for one in importers)}")
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
