"""The paper's tables as HTML, published beside ours, and its figures: learning curves of the measured runs."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from gcdformer.display import figures
from gcdformer.explanation.timeline import timeline
from gcdformer.paper.page import RUNS_HEAD, alike_line, budget, effort, evidence_lines, reasons, text
from gcdformer.report.page import write_page

VERDICTS = {"holds": "good", "does not hold": "bad"}
IN_A_LINE = 10
"""Cells side by side where a table has one column only."""
NAMED = re.compile(r"`([^`]+)`")


def write_reproduction(path: Path, tables: list[dict[str, Any]], runs: list[dict[str, Any]],
                       claims: list[dict[str, Any]]) -> None:
    """One self-contained page: what there is, the claims, each table, and the command of every run."""
    title = heading(tables[0]) if len(tables) == 1 else "The paper, cell by cell" if tables else "The paper's claims"
    parts = [f"<header><h1>{escape(title)}</h1><p>In each cell the published value, and ours below it: bold where they "
             "differ by more than noise, · where it was not measured.</p></header>"]
    parts += [overview(tables, runs, claims)] if len(tables) > 1 else []
    parts += [claims_section(claims)] if claims else []
    parts += [table_section(table) for table in tables]
    items = "".join(f'<li id="run-{escape(run["run"])}"><b>{escape(run["run"])}</b>: {effort(run)}; '
                    f"{escape(run['verdict'] or 'no rules to check')}"
                    f"<pre>{escape(run['command'])}</pre></li>" for run in runs)
    parts.append(f"<section><h2>Runs</h2><p><small>{escape(RUNS_HEAD)}</small></p>"
                 f"<ul>{items or '<li>none is measured yet</li>'}</ul></section>")
    write_page(path, title, "\n".join(parts))


def overview(tables: list[dict[str, Any]], runs: list[dict[str, Any]], claims: list[dict[str, Any]]) -> str:
    """How much is measured, and a line for each table with a link to it."""
    cells, ours = (sum(table[key] for table in tables) for key in ("published", "measured"))
    facts = [(ours, f"of {cells:,} cells have our value"), (len(runs), "measured runs"),
             (sum(bool(table["runs"]) for table in tables), f"of {len(tables)} tables and figures have runs"),
             (sum(claim["verdict"] == "holds" for claim in claims), f"of {len(claims)} claims hold")]
    shown = "".join(f"<div><b>{number:,}</b><span>{escape(words)}</span></div>" for number, words in facts)
    rows = "".join(f'<tr><td>{table["number"]}</td><td><a href="#{table["name"]}">{table["name"]}</a></td>'
                   f"<td>{table['published'] or 'figure'}</td><td>{table['measured'] or ''}</td>"
                   f"<td>{sum(cell['agrees'] is True for cell in table['cells']) or ''}</td>"
                   f"<td>{len(table['runs']) or ''}</td><td>{escape(table['title'])}</td></tr>" for table in tables)
    head = "".join(f"<th>{name}</th>" for name in ("in the paper", "name", "cells", "ours", "agree", "runs", "what"))
    return (f'<div class="facts">{shown}</div><section><h2>Tables and figures</h2><div class="scroll"><table class="index">'
            f"<tr>{head}</tr>{rows}</table></div></section>")


def claims_section(claims: list[dict[str, Any]]) -> str:
    """Each claim with its verdict; its evidence to unfold."""
    items = []
    for claim in claims:
        lines = "".join(f"<li>{linked(line.removeprefix('- '))}</li>" for line in evidence_lines(claim))
        badge = f'<span class="badge {VERDICTS.get(claim["verdict"], "")}">{escape(claim["verdict"])}</span>'
        items.append(f"<h3>{escape(claim['name'])} {badge}</h3><p>{escape(claim['statement'])} "
                     f"<small>{escape(claim['told'])}</small></p>"
                     f"<details><summary>evidence</summary><p><small>Counted: {escape(claim['unit'])}, "
                     f"{escape(claim['rule'])}.</small></p><ul>{lines}</ul></details>")
    return f"<section><h2>Claims</h2>{''.join(items)}</section>"


def linked(line: str) -> str:
    """A line of the Markdown page as HTML; a name of a run leads to its command, anything else that is marked is code."""
    parts = NAMED.split(line)
    return "".join(escape(part) if place % 2 == 0 else marked(part) for place, part in enumerate(parts))


def marked(text: str) -> str:
    if " " in text:
        return f"<code>{escape(text)}</code>"
    return f'<a href="#run-{escape(text)}">{escape(text)}</a>'


def table_section(table: dict[str, Any]) -> str:
    rows = in_lines(table) if len(table["columns"]) == 1 and len(table["rows"]) > IN_A_LINE else in_rows(table)
    grid = f'<div class="scroll"><table>{rows}</table></div>' if table["cells"] else ""
    notes = "".join(f"<li>{linked(line)}</li>" for line in (*reasons(table), *map(alike_line, table["alike"])))
    drawn = f"<figure>{figures.to_svg(drawing(table), escape(table['title']))}</figure>" if table["curves"] else ""
    told = f"{escape(table['title'])} ({escape(table['label'])}).{escape(budget(table))}"
    remark = f"<p><small>{escape(table['note']['text'])}</small></p>" if table["note"] else ""
    return (f'<section id="{table["name"]}"><h2>{escape(heading(table))}</h2><p>{told}</p>{remark}{grid}<ul>{notes}</ul>'
            f"{drawn}</section>")


def heading(table: dict[str, Any]) -> str:
    """The number in the paper, and our name for it."""
    return f"{table['number']}: {table['name']}"


def in_rows(table: dict[str, Any]) -> str:
    """A line for each row."""
    by_place = {(cell["row"], cell["column"]): cell for cell in table["cells"]}
    head = "".join(f"<th>{escape(name)}</th>" for name in ["", *table["columns"]])
    return f"<tr>{head}</tr>" + "".join(
        f"<tr><td>{escape(row)}</td>" + "".join(cell_html(by_place.get((row, name))) for name in table["columns"]) + "</tr>"
        for row in table["rows"] if any((row, name) in by_place for name in table["columns"]))


def in_lines(table: dict[str, Any]) -> str:
    """A single long column, ten to a line."""
    cells, lines = table["cells"], []
    for start in range(0, len(cells), IN_A_LINE):
        some = cells[start:start + IN_A_LINE]
        lines.append("<tr><th></th>" + "".join(f"<th>{escape(cell['row'])}</th>" for cell in some) + "</tr>")
        lines.append(f"<tr><td>{escape(table['columns'][0])}</td>{''.join(map(cell_html, some))}</tr>")
    return "".join(lines)


def cell_html(cell: dict[str, Any] | None) -> str:
    """Published, and ours below it."""
    if cell is None or cell["published"] is None:
        return "<td></td>"
    ours = "·" if cell["ours"] is None else escape(text(cell["ours"]).strip("`"))
    shown = f"<b>{ours}</b>" if cell["agrees"] is False else ours
    return f"<td><small>{escape(text(cell['published']).strip('`'))}</small><br>{shown}</td>"


def drawing(table: dict[str, Any]) -> Figure:
    """The learning curves of a figure; a single one with the prime powers that were learned."""
    lines = {f"seed {one['seed']}": as_lines(one) for one in table["curves"]}
    return figures.curves(lines, timeline(next(iter(lines.values()))) if len(lines) == 1 else None)


def as_lines(one: dict[str, Any]) -> list[dict[str, Any]]:
    """A stored curve as lines of metrics, with D from its events."""
    curve, known, lines = one["curve"], set[int](), []
    changes = {epoch: (entered, left) for epoch, entered, left in one["events"]}
    for values in zip(*curve.values(), strict=True):
        line = dict(zip(curve, values, strict=True))
        entered, left = changes.get(line["epoch"], ((), ()))
        known = (known | set(entered)) - set(left)
        lines.append({**line, "D": sorted(known)})
    return lines


def write_curves(folder: Path, tables: list[dict[str, Any]]) -> list[Path]:
    """The learning curves of each table or figure that has some, as SVG and PNG."""
    written = []
    for table in tables:
        if table["curves"]:
            folder.mkdir(parents=True, exist_ok=True)
            figure = drawing(table)
            for ending in ("svg", "png"):
                written.append(folder / f"{table['name']}.{ending}")
                figures.save(figure, written[-1])
    return written
