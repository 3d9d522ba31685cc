"""The paper's tables as HTML, published beside ours, and its figures: learning curves of the measured runs."""

from __future__ import annotations

from html import escape
from pathlib import Path

from matplotlib.figure import Figure

from gcdformer.display import figures
from gcdformer.explanation.timeline import timeline
from gcdformer.paper.claims import Verdict
from gcdformer.paper.comparison import ComparedCell, ComparedTable, count_cells
from gcdformer.paper.entry import Entry
from gcdformer.paper.page import RUNS_HEAD, budget, difference_lines, effort, evidence_lines, similar_line, value_text
from gcdformer.paper.text import Line
from gcdformer.report.page import write_page

VERDICTS = {"holds": "good", "does not hold": "bad"}
IN_A_LINE = 10
"""Cells side by side where a table has one column only."""
TAGS = {"run": '<a href="#run-{0}">{0}</a>', "code": "<code>{0}</code>", "strong": "<b>{0}</b>"}
"""How the marked parts of a line look: a name of a run leads to its command."""


def write_reproduction(path: Path, tables: list[ComparedTable], entries: list[Entry], verdicts: list[Verdict]) -> None:
    """One self-contained page: what there is, the claims, each table, and the command of every run."""
    title = tables[0].table.heading if len(tables) == 1 else "The paper, cell by cell" if tables else "The paper's claims"
    parts = [f"<header><h1>{escape(title)}</h1><p>In each cell the published value, and ours below it: bold where they "
             "differ by more than noise, · where it was not measured.</p></header>"]
    parts += [overview(tables, len(entries), verdicts)] if len(tables) > 1 else []
    parts += [claims_section(verdicts)] if verdicts else []
    parts += [table_section(table) for table in tables]
    items = "".join(f'<li id="run-{escape(entry.name)}"><b>{escape(entry.name)}</b>: {effort(entry)}; '
                    f"{escape(entry.explanation.verdict if entry.explanation else 'no rules to check')}"
                    f"<pre>{escape(entry.command)}</pre></li>" for entry in entries)
    parts.append(f"<section><h2>Runs</h2><p><small>{escape(RUNS_HEAD)}</small></p>"
                 f"<ul>{items or '<li>none is measured yet</li>'}</ul></section>")
    write_page(path, title, "\n".join(parts))


def overview(tables: list[ComparedTable], runs: int, verdicts: list[Verdict]) -> str:
    """How much is measured, and a line for each table with a link to it."""
    cells = count_cells(cell for table in tables for cell in table.cells)
    facts = [(cells.measured, f"of {cells.published:,} cells have our value"),
             (cells.agreeing, f"of {cells.published:,} cells agree"), (runs, "measured runs"),
             (sum(bool(table.runs) for table in tables), f"of {len(tables)} tables and figures have runs"),
             (sum(verdict.status == "holds" for verdict in verdicts), f"of {len(verdicts)} claims hold")]
    shown = "".join(f"<div><b>{number:,}</b><span>{escape(words)}</span></div>" for number, words in facts)
    rows = "".join(f'<tr><td>{compared.table.in_paper}</td><td><a href="#{compared.table.name}">{compared.table.name}</a>'
                   f"</td><td>{compared.counts.published or 'figure'}</td><td>{compared.counts.measured or ''}</td>"
                   f"<td>{compared.counts.agreeing or ''}</td><td>{len(compared.runs) or ''}</td>"
                   f"<td>{escape(compared.table.title)}</td></tr>" for compared in tables)
    head = "".join(f"<th>{name}</th>" for name in ("in the paper", "name", "cells", "ours", "agree", "runs", "what"))
    return (f'<div class="facts">{shown}</div><section><h2>Tables and figures</h2><div class="scroll"><table class="index">'
            f"<tr>{head}</tr>{rows}</table></div></section>")


def claims_section(verdicts: list[Verdict]) -> str:
    """Each claim with its verdict; its evidence to unfold."""
    items = []
    for verdict in verdicts:
        claim, lines = verdict.claim, "".join(f"<li>{to_html(line)}</li>" for line in evidence_lines(verdict))
        badge = f'<span class="badge {VERDICTS.get(verdict.status, "")}">{escape(verdict.status)}</span>'
        items.append(f"<h3>{escape(claim.name)} {badge}</h3><p>{escape(claim.statement)} "
                     f"<small>{escape(verdict.summary)}</small></p>"
                     f"<details><summary>evidence</summary><p><small>Counted: {escape(claim.unit)}, "
                     f"{escape(claim.rule)}.</small></p><ul>{lines}</ul></details>")
    return f"<section><h2>Claims</h2>{''.join(items)}</section>"


def to_html(line: Line) -> str:
    return "".join(escape(part) if isinstance(part, str) else TAGS[part.kind].format(escape(part.text)) for part in line)


def table_section(compared: ComparedTable) -> str:
    table = compared.table
    rows = in_lines(compared) if len(compared.columns) == 1 and len(compared.rows) > IN_A_LINE else in_rows(compared)
    grid = f'<div class="scroll"><table>{rows}</table></div>' if compared.cells else ""
    notes = "".join(f"<li>{to_html(line)}</li>"
                    for line in (*difference_lines(compared), *map(similar_line, compared.similar)))
    drawn = f"<figure>{figures.to_svg(drawing(compared), escape(table.title))}</figure>" if compared.curves else ""
    remark = f"<p><small>{escape(table.note.text)}</small></p>" if table.note else ""
    return (f'<section id="{table.name}"><h2>{escape(table.heading)}</h2><p>{escape(table.title)} ({escape(table.label)}).'
            f"{escape(budget(compared))}</p>{remark}{grid}<ul>{notes}</ul>{drawn}</section>")


def in_rows(table: ComparedTable) -> str:
    """A line for each row."""
    places, columns = table.by_place, table.columns
    head = "".join(f"<th>{escape(name)}</th>" for name in ["", *columns])
    return f"<tr>{head}</tr>" + "".join(
        f"<tr><td>{escape(row)}</td>{''.join(cell_html(places.get((row, name))) for name in columns)}</tr>"
        for row in table.rows)


def in_lines(table: ComparedTable) -> str:
    """A single long column, ten to a line."""
    lines = []
    for start in range(0, len(table.cells), IN_A_LINE):
        some = table.cells[start:start + IN_A_LINE]
        lines.append("<tr><th></th>" + "".join(f"<th>{escape(cell.row)}</th>" for cell in some) + "</tr>")
        lines.append(f"<tr><td>{escape(table.columns[0])}</td>{''.join(map(cell_html, some))}</tr>")
    return "".join(lines)


def cell_html(cell: ComparedCell | None) -> str:
    """Published, and ours below it."""
    if cell is None or cell.published is None:
        return "<td></td>"
    ours = escape(value_text(cell.ours))
    shown = f"<b>{ours}</b>" if cell.agrees is False else ours
    return f"<td><small>{escape(value_text(cell.published))}</small><br>{shown}</td>"


def drawing(table: ComparedTable) -> Figure:
    """The learning curves of a figure; a single one with the prime powers that were learned."""
    lines = {f"seed {run.entry.seed}": run.entry.metrics for run in table.curves}
    return figures.curves(lines, timeline(next(iter(lines.values()))) if len(lines) == 1 else None)


def write_curves(folder: Path, tables: list[ComparedTable]) -> list[Path]:
    """The learning curves of each table or figure that has some, as SVG and PNG."""
    drawn = {compared.table.name: drawing(compared) for compared in tables if compared.curves}
    return figures.save_all(folder, drawn) if drawn else []
