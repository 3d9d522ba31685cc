"""The pages of the site that are made from the code: commands from the parsers, settings from the schema, security; and the
learning curves on the page of the paper's tables, drawn from the ledger.

A hook of MkDocs (see mkdocs.yml). The text is Markdown like the other pages', so that links in it are checked too.
"""

from __future__ import annotations

import argparse
import re
from html import escape
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from gcdformer.cli import CODES, VERBS, build_parsers
from gcdformer.config import Config, config_leaves
from gcdformer.display import figures
from gcdformer.paper.comparison import compare_tables
from gcdformer.presets import PRESETS, preset
from gcdformer.report.reproduction import drawing

ROOT = Path(__file__).parent.parent


def on_files(files: Files, config: Any) -> Files:
    """Called by MkDocs when it has found the pages."""
    for name, text in (("commands.md", commands_page()), ("settings.md", settings_page()), ("security.md", security_page())):
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Called by MkDocs for every page: links to SECURITY.md, which work on a code host, go to its page in the site; the page
    of the paper's tables gets its learning curves."""
    markdown = markdown.replace("](../SECURITY.md)", "](security.md)")
    return with_curves(markdown) if page.file.src_uri == "REPRODUCTION.md" else markdown


def with_curves(markdown: str) -> str:
    """The page with a drawing below the first line of each figure or table that has learning curves."""
    for compared in compare_tables():
        if compared.curves:
            drawn = re.sub(r"\s*\n\s*", " ", figures.to_svg(drawing(compared), escape(compared.table.title)))
            top = re.compile(rf"^## {compared.table.name}\n\n.*\n", re.MULTILINE)
            markdown = top.sub(lambda found, drawn=drawn: f"{found[0]}\n<figure>{drawn}</figure>\n", markdown, count=1)
    return markdown


def commands_page() -> str:
    """Every verb with its arguments."""
    parser = build_parsers()
    (verbs,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    lines = ["# Commands", "", "Made from the parsers; `gcdformer VERB --help` shows the same. `python -m gcdformer` is "
             "`gcdformer`.", "", CODES[0].upper() + CODES[1:] + ".", "",
             "| command | does |", "|---|---|", *(f"| [`{verb}`](#{verb}) | {text} |" for verb, text in VERBS.items()), ""]
    for verb in VERBS:
        lines += verb_section(verb, verbs.choices[verb])
    return "\n".join(lines)


def verb_section(verb: str, parser: argparse.ArgumentParser) -> list[str]:
    own = [action for action in parser._actions if not is_setting(action) and action.dest != "help"]
    settings = [action for action in parser._actions if is_setting(action)]
    words = ["gcdformer", verb, *(usage(action) for action in own if not action.option_strings or action.required)]
    lines = [f"## {verb}", "", str(parser.description), "", "```", " ".join([*words, "…"]), "```", "",
             "| argument | meaning |", "|---|---|"]
    lines += [f"| `{cell(usage(action))}` | {cell((action.help or '').replace('%%', '%'))} |" for action in own]
    if len(settings) > 40:
        lines += ["", "And every [setting](settings.md) as a flag."]
    elif settings:
        lines += ["", "And of the [settings](settings.md): " + ", ".join(f"`{a.option_strings[0]}`" for a in settings) + "."]
    return [*lines, ""]


def is_setting(action: argparse.Action) -> bool:
    return action.dest.startswith("config.")


def usage(action: argparse.Action) -> str:
    """An argument as one types it."""
    value = action.metavar or ("|".join(map(str, action.choices)) if action.choices else action.dest.upper())
    if not action.option_strings:
        return f"[{value}]" if action.nargs in ("?", "*") else f"{value} …" if action.nargs == "+" else str(value)
    flag = action.option_strings[0]
    if action.nargs == 0:
        return flag
    return f"{flag} [{value}]" if action.nargs == "?" else f"{flag} {value}" + (" …" if action.nargs == "+" else "")


def cell(text: str) -> str:
    """Text in a cell of a table."""
    return text.replace("|", r"\|")


def settings_page() -> str:
    """Every leaf of the schema, and the presets."""
    fast, paper = preset("fast").model_dump(), preset("paper").model_dump()
    lines = ["# Settings", "", "Made from the schema. Each is a flag of `train`, `demo`, `describe` and `bench`, a field of "
             "a [`--config` file](cli.md#a-file-of-settings) and of a run's `config.toml`, and a name for "
             "`Config.replace` in Python. `--dim`, `--heads` and `--layers` set both sides.", ""]
    for section, info in Config.model_fields.items():
        kind: Any = info.annotation
        lines += [f"## {section}", "", kind.__doc__ or "", "",
                  "| flag | field | `fast` | `paper` | meaning |", "|---|---|---|---|---|"]
        for leaf in config_leaves():
            if leaf.section == section:
                meaning = leaf.info.description or ""
                if leaf.choices:
                    meaning += ": " + ", ".join(f"`{choice}`" for choice in leaf.choices)
                values = (shown(tree[section][leaf.name]) for tree in (fast, paper))
                lines.append(f"| `{leaf.flag}` | `{leaf.name}` | " + " | ".join(values) + f" | {cell(meaning)} |")
        lines.append("")
    lines += ["## Presets", "", "| preset | what |", "|---|---|"]
    lines += [f"| `{name}` | {cell(' '.join((make.__doc__ or '').split()))} |" for name, make in PRESETS.items()]
    return "\n".join([*lines, ""])


def shown(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return "" if value is None else f"`{value}`" if isinstance(value, str) else str(value)


def security_page() -> str:
    """SECURITY.md, with links to files of the repository as plain names."""
    text = (ROOT / "SECURITY.md").read_text()
    text = text.replace("(docs/", "(")
    return re.sub(r"\[([^\]]+)\]\((?!https?:)(?![A-Z]+\.md)([^)]+)\)", r"`\1`", text)
