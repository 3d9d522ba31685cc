"""`gcdformer runs`: a query over the runs in a folder."""

from __future__ import annotations

import argparse
import csv
import json
import math
import sys
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gcdformer.display.progress import progress
from gcdformer.errors import UserError, one_line
from gcdformer.options import bounded, run_path, runs_folder

if TYPE_CHECKING:
    from gcdformer.runs.query import QueryResult


WIDE = 250  # columns, where no window bounds them


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", nargs="?", type=run_path, default=runs_folder(), metavar="DIR",
                        help="folder with runs in it, at any depth (default: $GCDFORMER_RUNS, or runs)")
    parser.add_argument("--where", metavar="SQL", help="only runs for which this holds: \"base = 10 AND seed < 3\"")
    parser.add_argument("--sort", metavar="SQL", help="\"accuracy DESC, base\" (default: most correct GCD first)")
    parser.add_argument("--best-of-seeds", action="store_true", help="of runs that differ in the seed only, the best one")
    parser.add_argument("--group-by", type=names, default=[], metavar="COLUMNS", help="a row per group: base,outcomes")
    parser.add_argument("--columns", type=names, default=[], metavar="COLUMNS",
                        help="what to show (default: the settings that differ and the main figures)")
    parser.add_argument("--limit", type=bounded("limit", 1, 10**9), metavar="N",
                        help="at most N rows")
    parser.add_argument("--sql", metavar="QUERY", help="any query over the tables `runs` (a row per run) and `metrics` "
                        "(a row per evaluation), instead of the flags above")
    parser.add_argument("--format", choices=["table", "csv", "json"], help="default: table")
    parser.add_argument("--json", action="store_true", help="the same as --format json")


def names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def run(args: argparse.Namespace) -> int:
    from gcdformer.runs.query import RunsDatabase, RunsQuery
    question = RunsQuery(args.where, args.sort, args.best_of_seeds, args.group_by, args.columns, args.limit, args.sql)
    if args.sql is not None and question != RunsQuery(sql=args.sql):
        raise UserError("sql: goes alone; --where, --sort, --best-of-seeds, --group-by, --columns and --limit are for "
                        "queries without it")
    if args.json and args.format not in (None, "json"):
        raise UserError(f"--json and --format {args.format} clash: give one")
    with progress("reading the runs"):
        runs = RunsDatabase(args.folder)
        answer = runs.ask(question)
    for problem in runs.problems():
        print(f"damaged, left out of the figures: {one_line(problem)}", file=sys.stderr)
    show(answer, "json" if args.json else args.format or "table")
    return 0


def show(answer: QueryResult, layout: str) -> None:
    if layout == "json":
        rows = [dict(zip(answer.columns, map(plain, row), strict=True)) for row in answer.rows]
        print(json.dumps(rows, indent=1, allow_nan=False))
    elif layout == "csv":
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(answer.columns)
        writer.writerows([plain(value) for value in row] for row in answer.rows)
    else:
        table = Table(box=None, pad_edge=False, header_style="dim")
        for place, name in enumerate(answer.columns):
            numbers = all(row[place] is None or isinstance(row[place], int | float) for row in answer.rows)
            table.add_column(Text(one_line(name)), justify="right" if numbers else "left", no_wrap=numbers, overflow="fold")
        for row in answer.rows:
            table.add_row(*(Text(one_line(cell(value))) for value in row))
        console = Console(highlight=False)
        if not console.is_terminal:
            console.width = WIDE
        console.print(table)


def plain(value: Any) -> Any:
    """A value as JSON and CSV know it."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def cell(value: Any) -> str:
    """A value as a person reads it."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.2f}" if 0.01 <= abs(value) < 1e6 or value == 0 else f"{value:g}"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return str(value)
