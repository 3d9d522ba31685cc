"""docs/REPRODUCTION.md from the ledger: every table with the published values and ours, every run with its command.

Text only, a function of the tables and the ledger; a test renders it again and compares.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from gcdformer.paper import CLAIM_EPOCHS, CLAIMS
from gcdformer.paper.claims import claim_verdicts
from gcdformer.paper.compare import count_of, count_tables, millions, reproduction_tables, run_facts
from gcdformer.paper.entry import STALLED, Entry
from gcdformer.paper.table import PAPER_EPOCH

HEAD = """# The paper, cell by cell

Written by `gcdformer reproduce --render docs/REPRODUCTION.md` from the measured runs in
`src/gcdformer/paper/ledger/`; do not edit it, measure and render again.

Tables and figures have the numbers of the paper, which continue in its appendix: `gcdformer reproduce 2` and
`gcdformer reproduce "Figure 1"` show one of them. A cell reads *published → ours*. `·` means that it was not measured yet.
**Bold**: ours differs by more than the noise of the test sets; the line below the table says why. Accuracy is in
percent of 100,000 uniform pairs; a GCD is correct if nine tenths of its pairs are predicted right; epochs are the paper's,
of 300,000 examples. Values that need no run (theory, parameter counts, tokens) are computed. The best
of several seeds is taken among runs that differ in the seed only. In the recipe `fast` the model is smaller
than the paper's unless a table is about the model; the reasons name both.
"""
COUNTED = ("prediction", "frequency", "share")
LONGEST_LIST = 12
LONGEST_EVIDENCE = 40
CLAIMS_HEAD = f"""What the paper claims, in our words, and what the measured runs say of it. A comparison pairs runs that
differ in one thing, of the same recipe and seed and of like budgets, and reads both after the same number of examples unless
it says otherwise. A claim holds if it is as claimed three times of four. Where the two sides of a comparison come out equal,
that is a tie: it counts as one of the times and is not as claimed, but it does not speak against the claim either. So a
claim does not hold only if it fails without its ties too; if only the ties keep it from three times of four, it is
undecided. It is also undecided if fewer comparisons than it asks for are no ties, or if chance does as well.

`gcdformer reproduce {CLAIMS}` shows the claims; `gcdformer reproduce {CLAIMS} --run` also measures what is missing,
{CLAIM_EPOCHS} epochs per run."""
RUNS_HEAD = f"""Each run with what it learned, whether the rules hold, and the command to repeat it. Minutes are those on the
clock, evaluations included. An epoch that took more than {STALLED} times the median has stalled, because the machine slept
or did other work: what it took beyond the median is named. Examples/s are those of the median epoch, in training alone."""


def render(entries: list[Entry]) -> str:
    """The whole page."""
    tables = reproduction_tables(entries)
    parts = [HEAD, overview(tables, entries), claims_section(claim_verdicts(entries)),
             *(table_section(table) for table in tables), runs_section(entries)]
    return "\n".join(part.rstrip() + "\n" for part in parts)


def overview(tables: list[dict[str, Any]], entries: list[Entry]) -> str:
    counts = count_tables(entries)
    rows = [[one["number"], f"[{one['name']}](#{anchor(one)})", one["title"], str(one["published"]), str(one["measured"]),
             str(sum(cell["agrees"] is True for cell in one["cells"])), str(len(one["runs"]))] for one in tables]
    told = (f"{count_of(counts['distinct_runs'], 'run')}; {counts['measured']} of {counts['cells']} cells have our value, "
            f"{counts['tables_with_measurements']} of {len(tables)} tables and figures have measurements.")
    return f"{told}\n\n{markdown(['in the paper', 'name', 'what', 'cells', 'ours', 'agree', 'runs'], rows)}"


def anchor(table: dict[str, Any]) -> str:
    return str(table["name"]).lower()


def claims_section(claims: list[dict[str, Any]]) -> str:
    """The claims with their verdicts, then the evidence of each."""
    rows = [[claim["statement"], f"**{claim['verdict']}**", "·" if claim["verdict"] == "not measured" else claim["told"]]
            for claim in claims]
    parts = [f"## {CLAIMS.title()}", "", CLAIMS_HEAD, "", markdown(["claim", "verdict", "as claimed"], rows)]
    for claim in claims:
        parts += ["", f"**{claim['name']}**: {claim['verdict']}. Counted, at least {claim['least']}: "
                  f"{claim['unit']}, {claim['rule']}.", "",
                  *evidence_lines(claim)]
    return "\n".join(parts)


def evidence_lines(claim: dict[str, Any]) -> list[str]:
    """What each run or pair says; what is missing, also if it is decided without; how to measure what decides it."""
    found = claim["evidence"]
    lines = [f"- {one['where']}: {one['told']}" + ("" if one["current"] else f" (an older recipe, {one['recipe']})")
             + f". Runs: {', '.join(f'`{name}`' for name in one['runs'])}" for one in found[:LONGEST_EVIDENCE]]
    if len(found) > LONGEST_EVIDENCE:
        lines.append(f"- and {len(found) - LONGEST_EVIDENCE} more.")
    if claim["missing"]:
        lines.append(f"- Missing: {', '.join(claim['missing'])}.")
    elif not found:
        lines.append(f"- {claim['told']}.")
    if claim["missing"] or claim["verdict"] in ("undecided", "not measured"):
        lines.append(f"- To measure: `{claim['command']}`")
    return lines


def table_section(table: dict[str, Any]) -> str:
    """A table as the paper has it, published beside ours; for predictions also how many agree in each column."""
    lines = [f"## {table['name']}", "", f"{table['number']}: {table['title']} (`{table['label']}`).{budget(table)}", ""]
    if table["note"]:
        lines += [f"Note: {table['note']['text']}.", ""]
    if not table["cells"] and not table["curves"]:
        return "\n".join([*lines, "Not measured yet."])
    if table["cells"]:
        lines += [in_shares(table) if is_split(table) else as_grid(table), ""]
        lines += [in_groups(table), ""] if is_counted(table) else []
        lines += [f"- {line}" for line in reasons(table)]
    lines += [f"- {alike_line(one)}" for one in table["alike"]]
    lines += [curve_line(one) for one in table["curves"]]
    return "\n".join(lines)


def budget(table: dict[str, Any]) -> str:
    seeds = "best of {}" if table["published"] else "{} seeds"
    parts = [seeds.format(table["best_of"])] if table["best_of"] > 1 else []
    if table["epochs"]:
        parts.append(f"up to {table['epochs']} epochs ({table['epochs'] * PAPER_EPOCH / 1e6:.0f} M examples)")
    return f" Published: {', '.join(parts)}." if parts else ""


def is_counted(table: dict[str, Any]) -> bool:
    """Whether it has so many cells that those which agree are also counted."""
    return any(cell["measure"] in COUNTED for cell in table["cells"])


def is_split(table: dict[str, Any]) -> bool:
    """Whether each of its rows is a distribution, whose values are other ones in each row."""
    return all(cell["measure"] == "share" for cell in table["cells"])


def as_grid(table: dict[str, Any]) -> str:
    by_place = {(cell["row"], cell["column"]): cell for cell in table["cells"]}
    rows = [[row, *(show(by_place.get((row, column))) for column in table["columns"])] for row in table["rows"]
            if any((row, column) in by_place for column in table["columns"])]
    return markdown(["", *table["columns"]], rows)


def show(cell: dict[str, Any] | None) -> str:
    """A cell: published → ours."""
    if cell is None or cell["published"] is None:
        return ""
    ours = "·" if cell["ours"] is None else text(cell["ours"])
    return f"{text(cell['published'])} → {f'**{ours}**' if cell['agrees'] is False else ours}"


def in_shares(table: dict[str, Any]) -> str:
    """A line for each row, with its values and their shares."""
    rows = [[name, ", ".join(map(" ".join, shares))] for name, shares in shares_of(table, show).items()]
    return markdown(["", "predicted: percent of the pairs"], rows)


def shares_of(table: dict[str, Any], shown: Callable[[dict[str, Any]], str]) -> dict[str, list[tuple[str, str]]]:
    """For each row the values that it is split over, each with its share."""
    return {row: [(cell["column"].replace(" %", ":"), shown(cell)) for cell in table["cells"] if cell["row"] == row]
            for row in table["rows"]}


def in_groups(table: dict[str, Any]) -> str:
    return markdown(*group_rows(table))


def group_rows(table: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    """For each column how many cells agree, those that do not, and the run; for each row where a row is a distribution.
    Headings and rows."""
    one, other = ("row", "column") if is_split(table) else ("column", "row")
    rows = []
    for name in table[f"{one}s"]:
        cells = [cell for cell in table["cells"] if cell[one] == name]
        measured = [cell for cell in cells if cell["ours"] is not None]
        differing = [f"{cell[other]}: {text(cell['published'])} → {text(cell['ours'])}" for cell in measured
                     if cell["agrees"] is False]
        more = f", and {len(differing) - LONGEST_LIST} more" if len(differing) > LONGEST_LIST else ""
        rows.append([name, str(len(cells)), str(len(measured)) if measured else "·",
                     str(sum(cell["agrees"] is True for cell in measured)) if measured else "·",
                     ", ".join(differing[:LONGEST_LIST]) + more,
                     ", ".join(f"`{run}`" for run in dict.fromkeys(cell["run"] for cell in measured))])
    return [one, "cells", "measured", "agree", "published → ours where they differ", "run"], rows


def reasons(table: dict[str, Any]) -> list[str]:
    """Why ours differs, each reason once with the cells it is about; and results of another distribution, model or an older
    recipe as such, also those beside the run that stands for a cell."""
    found: dict[str, list[str]] = {}
    for cell in table["cells"]:
        if cell["measured_as"]:
            found.setdefault(f"measured as {cell['measured_as']} (`{cell['run']}`)", []).append(cell["row"])
        if cell["agrees"] is False:
            found.setdefault(f"{cell['why']['reason']}: {cell['why']['text']}", []).append(cell["row"])
        for one in cell["otherwise"]:
            found.setdefault(f"{one['ours']} correct GCD, where {cell['published']} are published, "
                             f"if measured as {one['measured_as']} (`{one['run']}`)", []).append(cell["row"])
    lines = []
    for why, rows in found.items():
        names = list(dict.fromkeys(rows))
        lines.append(f"{', '.join(names[:LONGEST_LIST])}{' …' if len(names) > LONGEST_LIST else ''}: {why}.")
    old = Counter(cell["recipe"] for cell in table["cells"] if cell["current"] is False)
    return lines + [f"{count_of(count, 'cell')} {'was' if count == 1 else 'were'} measured in an older recipe, {recipe}."
                    for recipe, count in old.items()]


def alike_line(one: dict[str, Any]) -> str:
    """The predictions of a run that grokked, in the form of the table."""
    of = len(one["predictions"])
    but = f" but those of {', '.join(map(str, one['unruled']))}" if one["unruled"] else ""
    told = f"each{but} is the largest element of D that divides k ({of - len(one['unruled'])} of {of})"
    return (f"Ours in base {one['base']} in the form of this table (`{one['run']}`), where "
            f"{' and '.join(map(str, one['grokked']))} {'were' if len(one['grokked']) > 1 else 'was'} grokked; for k from 1 "
            f"on: {', '.join(map(str, one['predictions']))}; {told}.")


def curve_line(one: dict[str, Any]) -> str:
    """The steps of a learning curve in words."""
    curve, steps, best = one["curve"], [], 0
    for examples, count in zip(curve["examples"], curve["n_correct"], strict=True):
        if count > best:
            best = count
            steps.append(f"{count} at {examples / PAPER_EPOCH:.1f}")
    stands = f", measured as {one['measured_as']}" if one["measured_as"] else ""
    return f"- `{one['run']}` (seed {one['seed']}{stands}), correct GCD at epoch: {', '.join(steps)}."


def runs_section(entries: Iterable[Entry]) -> str:
    lines = ["## Runs", "", RUNS_HEAD, ""]
    found = [run_lines(run_facts(entry)) for entry in entries]
    return "\n".join([*lines, *(found or ["None is measured yet."])])


def run_lines(run: dict[str, Any]) -> str:
    parts = [f"**{run['run']}**: {run['recipe']}, seed {run['seed']}; {effort(run)}; accuracy {run['accuracy']:.2f}"]
    if run["D"] is not None:
        parts.append(f"{run['n_correct']} correct GCD ({shorten(run['D'])})")
        parts.append(f"form {run['form']}, {run['verdict']}, stratified fidelity {run['fidelity']:.2f} %")
        if run["classes"]:
            parts.append(f"classes {shorten(run['classes'])}")
        if run["being_learned"]:
            parts.append(f"being learned: {shorten(run['being_learned'])}")
        parts += [f"the rule '{name}' is broken by {shorten(dict.fromkeys(one.get('k', '?') for one in exceptions))}"
                  for name, exceptions in run["broken"].items()]
    return f"- {'; '.join(parts)}.\n  `{run['command']}`"


def effort(run: dict[str, Any]) -> str:
    """How long it took, and for how many examples; the speed is of training alone, and is said to be."""
    stalled = f", {run['stalled_minutes']} of them stalled" if run["stalled_minutes"] else ""
    speed = f", {run['examples_per_s']:,} examples/s in training" if run["examples_per_s"] else ""
    return f"{run['minutes']} minutes{stalled}; {millions(run['examples'])}{speed}"


def shorten(values: Iterable[Any]) -> str:
    listed = list(map(str, values))
    return ", ".join(listed[:40]) + (f" and {len(listed) - 40} more" if len(listed) > 40 else "")


def text(value: Any) -> str:
    if isinstance(value, list):
        return "{" + ", ".join(map(str, value)) + "}" if value else "none"
    return f"`{value}`" if isinstance(value, str) and value.startswith("+") else str(value)


def markdown(head: list[str], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])
