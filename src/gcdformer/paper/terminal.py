"""The paper's tables and claims in the terminal: the list of tables, one table with published, ours and commands, or claims.

The same lines as on the page, without its marks, so that a command can be copied.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from rich.console import Console
from rich.table import Table as Grid

from gcdformer.paper import CLAIMS, page
from gcdformer.paper.claims import Verdict
from gcdformer.paper.comparison import ComparedCell, ComparedTable, Counts
from gcdformer.paper.entry import Entry
from gcdformer.paper.text import count_of, plain

LONGEST_LINE = 1000
"""A terminal folds the names of runs by itself; a table cut to its width would lose them."""
DIFFERS = "*"
GAP = 2
"""Blanks between two columns."""
MANY = {"holds": "hold", "does not hold": "do not hold"}


def print_counts(counts: Counts, verdicts: list[Verdict]) -> None:
    """The tables with how many cells are published, have our value and agree, and how many claims are decided."""
    grid = new_grid(["paper", "table"], right=["cells", "ours", "agree"])
    grid.add_column("what")
    for row in counts.tables:
        curves = [count_of(len(row.curves), "curve")] if row.curves else []
        published, *ours = page.tally_texts(row.counts)
        grid.add_row(row.table.in_paper, row.table.name, ", ".join([published, *curves] if published else curves), *ours,
                     row.table.title)
    Console(highlight=False).print(grid)
    cells, measured, agreeing = page.tally_texts(counts.cells)
    print(f"{measured} of {cells} cells; {agreeing} agree; {count_of(counts.runs, 'run')}; "
          f"{counts.with_measurements} of {len(counts.tables)} tables and figures with measurements")
    decided = Counter(verdict.status for verdict in verdicts)
    listed = ", ".join(f"{count} {MANY.get(status, status)}" for status, count in decided.items())
    print(f"{len(verdicts)} claims: {listed}; gcdformer reproduce {CLAIMS} shows them")
    print("show one     gcdformer reproduce base_gcd, or by its number in the paper: gcdformer reproduce 2")
    print("measure one  gcdformer reproduce base_gcd --bases 2,10,30 --seeds 3 --minutes 6 --run")


def print_claims(verdicts: list[Verdict]) -> None:
    """Each claim with its verdict, the count behind it, and what each run or pair says."""
    console = Console(highlight=False, markup=False)
    for verdict in verdicts:
        console.print(f"{verdict.claim.name}: {verdict.status}", style="bold")
        console.print(verdict.claim.statement, soft_wrap=True)
        if verdict.observations:
            console.print(f"{verdict.summary}: {verdict.claim.rule}", soft_wrap=True)
        for line in page.evidence_lines(verdict):
            console.print(f"- {plain(line)}", style="dim", soft_wrap=True)


def print_table(compared: ComparedTable, runs: list[Entry]) -> None:
    """Published beside ours: a line per cell; for predictions the table as the paper has it, and a line per column. Then the
    runs, and the command for what is open."""
    table = compared.table
    console = Console(highlight=False)
    console.print(f"{table.in_paper}: {table.title} ({table.label})", style="bold")
    if table.note:
        console.print(table.note.text, style="dim")
    if page.is_counted(compared):
        console.print(f"published → ours; {DIFFERS} differs by more than noise, · was not measured", style="dim")
        for block in [shares_grid(compared)] if page.is_split(compared) else blocks(compared, console.width):
            console.print(block)
            console.print()
        console.print(groups_grid(compared))
    elif compared.cells:
        grid = cells_grid(compared)
        every = console.measure(grid, options=console.options.update(max_width=LONGEST_LINE)).maximum
        Console(highlight=False, width=max(console.width, every)).print(grid)
    lines = [plain(line) for line in [*page.difference_lines(compared), *map(page.similar_line, compared.similar)]]
    for text in [*lines, *(f"- {plain(page.curve_line(run))}" for run in compared.curves)]:
        console.print(text, style="dim", markup=False)
    if not compared.cells and not compared.curves:
        console.print("not measured")
    for entry in runs:
        print(f"- {plain(page.run_line(entry))}\n  {entry.command}")
    if command := page.to_measure(compared):
        print(f"to measure: {command}")


def groups_grid(compared: ComparedTable) -> Grid:
    """How many cells agree in each column, or in each row where a row is a distribution."""
    grid = new_grid(["row" if page.is_split(compared) else "column", "agree"])
    grid.add_column("run", overflow="fold")
    for group in page.groups(compared):
        counts = group.counts
        agreeing = f"{counts.agreeing} of {counts.measured}"
        agreeing += f", {counts.published} cells in all" if counts.missing else ""
        grid.add_row(group.name, agreeing if counts.measured else "not measured", ", ".join(group.runs))
    return grid


def cells_grid(compared: ComparedTable) -> Grid:
    """A line for each cell."""
    grid = new_grid(["", "", "published", "ours"], right=["difference", "minutes", "seeds"])
    grid.add_column("run", no_wrap=True)
    for cell in compared.cells:
        if cell.published is not None:
            grid.add_row(cell.row, cell.column, page.value_text(cell.published),
                         "not measured" if cell.ours is None else page.value_text(cell.ours),
                         "" if cell.difference is None else f"{cell.difference:+g}",
                         "" if cell.minutes is None else f"{cell.minutes:g}", str(len(cell.seeds) or ""), cell.run)
    return grid


def cell_text(cell: ComparedCell) -> str:
    """A cell in one line: published → ours, with an asterisk where they differ."""
    return plain(page.cell_line(cell)) + (DIFFERS if cell.agrees is False else "")


def blocks(compared: ComparedTable, width: int) -> list[Grid]:
    """The table with as many columns side by side as the window holds, the rest below; a prediction and its frequency stay
    together."""
    shown = {place: cell_text(cell) for place, cell in compared.by_place.items()}
    widths = {name: GAP + max(len(name), *(len(shown.get((row, name), "")) for row in compared.rows))
              for name in compared.columns}
    width_left = width - max(map(len, compared.rows))
    chosen: list[list[str]] = [[]]
    for name in compared.columns:
        pair = [name, f"{name} %"] if f"{name} %" in widths else [name]
        if name not in chosen[-1]:
            if chosen[-1] and sum(widths[column] for column in (*chosen[-1], *pair)) > width_left:
                chosen.append([])
            chosen[-1] += pair
    return [text_grid(["", *names], [[row, *(shown.get((row, name), "") for name in names)] for row in compared.rows])
            for names in chosen]


def shares_grid(compared: ComparedTable) -> Grid:
    """A line for each value that a row is split over."""
    rows = [cell.row for cell in compared.cells]
    starts = [row != before for row, before in zip(rows, ["", *rows], strict=False)]
    return text_grid(["", "predicted", "percent"],
                     [[cell.row if first else "", str(cell.source.measure.value), cell_text(cell)]
                      for cell, first in zip(compared.cells, starts, strict=True)])


def text_grid(headings: list[str], rows: list[list[str]]) -> Grid:
    grid = new_grid(headings)
    grid.padding = (0, GAP, 0, 0)
    for row in rows:
        grid.add_row(*row)
    return grid


def new_grid(left: Iterable[str], right: Iterable[str] = ()) -> Grid:
    """A table without lines, whose columns are not folded: some aligned left, then some aligned right."""
    grid = Grid(box=None, pad_edge=False, header_style="dim")
    for heading in left:
        grid.add_column(heading, no_wrap=True)
    for heading in right:
        grid.add_column(heading, no_wrap=True, justify="right")
    return grid
