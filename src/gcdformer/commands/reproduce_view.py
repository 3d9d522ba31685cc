"""What `reproduce` prints: the list of tables, one table with published, ours, difference and commands, or the claims."""

from __future__ import annotations

from collections import Counter
from typing import Any

from rich.console import Console
from rich.table import Table as Grid

from gcdformer.paper import CLAIMS
from gcdformer.paper.compare import count_of
from gcdformer.paper.page import (
    alike_line,
    claims_section,
    curve_line,
    evidence_lines,
    group_rows,
    is_counted,
    is_split,
    reasons,
    run_lines,
    shares_of,
    table_section,
    text,
)

LONGEST_LINE = 1000
"""A terminal folds the names of runs by itself; a table cut to its width would lose them."""
DIFFERS = "*"
GAP = 2
"""Blanks between two columns."""
MANY = {"holds": "hold", "does not hold": "do not hold"}


def tell_counts(counts: dict[str, Any], claims: list[dict[str, Any]]) -> None:
    """The tables with how many cells are published and how many have our value, and how many claims are decided."""
    grid = Grid(box=None, pad_edge=False, header_style="dim")
    for heading in ("paper", "table", "cells", "measured", "what"):
        right = heading in ("cells", "measured")
        grid.add_column(heading, justify="right" if right else "left", no_wrap=heading in ("paper", "table"))
    for one in counts["tables"]:
        curves = f" ({count_of(one['curves'], 'curve')})" if one["curves"] else ""
        grid.add_row(one["number"], one["name"], str(one["cells"] or "figure"), f"{one['measured']}{curves}", one["title"])
    Console(highlight=False).print(grid)
    print(f"{counts['measured']} of {counts['cells']} cells; {count_of(counts['distinct_runs'], 'run')}; "
          f"{counts['tables_with_measurements']} of {len(counts['tables'])} tables and figures with measurements")
    verdicts = Counter(claim["verdict"] for claim in claims)
    decided = ", ".join(f"{count} {MANY.get(verdict, verdict)}" for verdict, count in verdicts.items())
    print(f"{len(claims)} claims: {decided}; gcdformer reproduce {CLAIMS} shows them")
    print("show one     gcdformer reproduce base_gcd, or by its number in the paper: gcdformer reproduce 2")
    print("measure one  gcdformer reproduce base_gcd --bases 2,10,30 --seeds 3 --minutes 6 --run")


def tell_table(table: dict[str, Any], runs: list[dict[str, Any]], *, as_markdown: bool) -> None:
    if as_markdown:
        print(table_section(table))
        print("\n".join(["", *map(run_lines, runs)]))
    else:
        tell_cells(table)
        for run in runs:
            print(without_marks(run_lines(run)))
        for line in to_measure(table):
            print(line)


def without_marks(line: str) -> str:
    """A line of the page for a terminal, so that its command can be taken as it is."""
    return line.replace("**", "").replace("`", "")


def tell_claims(claims: list[dict[str, Any]], runs: list[dict[str, Any]], *, as_markdown: bool) -> None:
    """Each claim with its verdict, the count behind it, and what each run or pair says."""
    if as_markdown:
        print(claims_section(claims))
        print("\n".join(["", *map(run_lines, runs)]))
        return
    console = Console(highlight=False, markup=False)
    for claim in claims:
        console.print(f"{claim['name']}: {claim['verdict']}", style="bold")
        lines = [claim["statement"]] + ([] if claim["verdict"] == "not measured" else [f"{claim['told']}: {claim['rule']}"])
        for line in [*lines, *evidence_lines(claim)]:
            console.print(without_marks(line), style="dim" if line.startswith("-") else None, soft_wrap=True)


def tell_cells(table: dict[str, Any]) -> None:
    """Published beside ours: a line per cell; for predictions the table as the paper has it, and a line per column."""
    console = Console(highlight=False)
    console.print(f"{table['number']}: {table['title']} ({table['label']})", style="bold")
    if table["note"]:
        console.print(table["note"]["text"], style="dim")
    if is_counted(table):
        console.print(f"published → ours; {DIFFERS} differs by more than noise, · was not measured", style="dim")
        for block in [shares_grid(table)] if is_split(table) else blocks(table, console.width):
            console.print(block)
            console.print()
        headings, rows = group_rows(table)
        grid = Grid(box=None, pad_edge=False, header_style="dim")
        for heading in (headings[0], "agree", "run"):
            grid.add_column(heading, no_wrap=heading in (headings[0], "agree"), overflow="fold")
        for name, cells, measured, agree, _, run in rows:
            agreeing = f"{agree} of {measured}" + ("" if measured == cells else f", {cells} cells in all")
            grid.add_row(name, "not measured" if measured == "·" else agreeing, without_marks(run))
        console.print(grid)
    elif table["cells"]:
        grid = Grid(box=None, pad_edge=False, header_style="dim")
        for heading in ("", "", "published", "ours", "difference", "minutes", "seeds", "run"):
            right = heading in ("difference", "minutes", "seeds")
            grid.add_column(heading, no_wrap=True, justify="right" if right else "left")
        for cell in table["cells"]:
            if cell["published"] is None:
                continue
            grid.add_row(cell["row"], cell["column"], without_marks(text(cell["published"])), told(cell),
                         "" if cell["difference"] is None else f"{cell['difference']:+g}",
                         "" if cell["minutes"] is None else f"{cell['minutes']:g}",
                         str(len(cell["seeds"]) or ""), cell["run"])
        every = console.measure(grid, options=console.options.update(max_width=LONGEST_LINE)).maximum
        Console(highlight=False, width=max(console.width, every)).print(grid)
    for line in [*reasons(table), *map(alike_line, table["alike"]), *map(curve_line, table["curves"])]:
        console.print(without_marks(line), style="dim", markup=False)
    if not table["cells"] and not table["curves"]:
        console.print("not measured")


def beside(cell: dict[str, Any]) -> str:
    """A cell without marks: published → ours."""
    if cell["published"] is None:
        return ""
    ours = "·" if cell["ours"] is None else text(cell["ours"])
    return f"{text(cell['published'])} → {ours}{DIFFERS if cell['agrees'] is False else ''}"


def blocks(table: dict[str, Any], width: int) -> list[Grid]:
    """The table with as many columns side by side as the window holds, the rest below; a prediction and its frequency stay
    together."""
    shown = {(cell["row"], cell["column"]): beside(cell) for cell in table["cells"]}
    widths = {name: GAP + max(len(name), *(len(shown.get((row, name), "")) for row in table["rows"]))
              for name in table["columns"]}
    room = width - max(map(len, table["rows"]))
    chosen: list[list[str]] = [[]]
    for name in table["columns"]:
        pair = [name, f"{name} %"] if f"{name} %" in widths else [name]
        if name not in chosen[-1]:
            if chosen[-1] and sum(widths[one] for one in (*chosen[-1], *pair)) > room:
                chosen.append([])
            chosen[-1] += pair
    return [lines_of(["", *names], [[row, *(shown.get((row, name), "") for name in names)] for row in table["rows"]])
            for names in chosen]


def shares_grid(table: dict[str, Any]) -> Grid:
    """A line for each value that a row is split over."""
    return lines_of(["", "predicted", "percent"], [["" if place else name, value.rstrip(":"), share]
                    for name, shares in shares_of(table, beside).items() for place, (value, share) in enumerate(shares)])


def lines_of(headings: list[str], rows: list[list[str]]) -> Grid:
    grid = Grid(box=None, pad_edge=False, header_style="dim", padding=(0, GAP, 0, 0))
    for heading in headings:
        grid.add_column(heading, no_wrap=True)
    for row in rows:
        grid.add_row(*row)
    return grid


def to_measure(table: dict[str, Any]) -> list[str]:
    """The command for what is open, if anything is."""
    bases = {cell["base"] for cell in table["cells"] if cell["status"] == "not measured"}
    if bases:
        return [f"to measure: gcdformer reproduce {table['name']} --bases {','.join(map(str, sorted(bases)))} --run"]
    return [] if table["cells"] or table["curves"] else [f"to measure: gcdformer reproduce {table['name']} --run"]


def told(cell: dict[str, Any]) -> str:
    return "not measured" if cell["ours"] is None else without_marks(text(cell["ours"]))
