"""The paper's tables and claims in lines and Markdown; docs/REPRODUCTION.md is made of them, from the ledger.

The lines are typed: the terminal, the HTML page and the lab show the same ones in their own ways. A test renders the page
again and compares.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from gcdformer.paper import CLAIM_EPOCHS, CLAIMS
from gcdformer.paper.claims import Verdict, claim_verdicts
from gcdformer.paper.comparison import (
    ComparedCell,
    ComparedTable,
    Counts,
    CurveRun,
    SimilarRun,
    Tally,
    count_cells,
    count_tables,
)
from gcdformer.paper.entry import STALLED, Entry
from gcdformer.paper.ledger import measured_as
from gcdformer.paper.table import PAPER_EPOCH, Value
from gcdformer.paper.text import Line, Span, count_of, millions, run_names, shorten, to_markdown

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
    counts = count_tables(entries)
    parts = [HEAD, overview(counts), claims_section(claim_verdicts(entries)), *map(table_section, counts.tables),
             "\n".join(["## Runs", "", RUNS_HEAD, "", *(map(run_item, entries) if entries else ["None is measured yet."])])]
    return "\n".join(part.rstrip() + "\n" for part in parts)


def overview(counts: Counts) -> str:
    rows = [[compared.table.in_paper, f"[{compared.table.name}](#{compared.table.name.lower()})", compared.table.title,
             *tally_texts(compared.counts), str(len(compared.runs))] for compared in counts.tables]
    rows.append(["all", "", "", *tally_texts(counts.cells), str(counts.runs)])
    return (f"{count_of(counts.runs, 'run')}; {counts.cells.measured} of {counts.cells.published} cells have our value, "
            f"{counts.with_measurements} of {len(counts.tables)} tables and figures have measurements.\n\n"
            + grid(["in the paper", "name", "what", "published", "measured", "agree (of measured)", "runs"], rows))


def tally_texts(counts: Tally) -> list[str]:
    """Published values, those with ours, and those that agree with their share of the measured ones."""
    if not counts.published:
        return ["", "", ""]
    share = "" if counts.share is None else f" ({100 * counts.share:.0f} %)"
    return [str(counts.published), str(counts.measured), f"{counts.agreeing}{share}"]


def claims_section(verdicts: list[Verdict]) -> str:
    """The claims with their verdicts, then the evidence of each."""
    rows = [[verdict.claim.statement, f"**{verdict.status}**", verdict.summary if verdict.observations else "·"]
            for verdict in verdicts]
    parts = [f"## {CLAIMS.title()}", "", CLAIMS_HEAD, "", grid(["claim", "verdict", "as claimed"], rows)]
    for verdict in verdicts:
        claim = verdict.claim
        counted = f"Counted, at least {claim.least}: {claim.unit}, {claim.rule}."
        parts += ["", f"**{claim.name}**: {verdict.status}. {counted}", "", *map(item, evidence_lines(verdict))]
    return "\n".join(parts)


def evidence_lines(verdict: Verdict) -> list[Line]:
    """What each run or pair says; what is missing, also if it is decided without; how to measure what decides it."""
    lines: list[Line] = []
    for seen in verdict.observations[:LONGEST_EVIDENCE]:
        older = "" if seen.current else f" (an older recipe, {seen.runs[0].recipe})"
        lines.append([f"{seen.where}: {seen.finding.text}{older}. Runs: ", *run_names(run.name for run in seen.runs)])
    if len(verdict.observations) > LONGEST_EVIDENCE:
        lines.append([f"and {len(verdict.observations) - LONGEST_EVIDENCE} more."])
    if verdict.missing:
        lines.append([f"Missing: {', '.join(verdict.missing)}."])
    elif not verdict.observations:
        lines.append([f"{verdict.summary}."])
    if verdict.missing or verdict.status in ("undecided", "not measured"):
        lines.append(["To measure: ", Span("code", verdict.command)])
    return lines


def table_section(compared: ComparedTable) -> str:
    """A table as the paper has it, published beside ours; for predictions also how many agree in each column."""
    table = compared.table
    lines = [f"## {table.name}", "", f"{table.in_paper}: {table.title} (`{table.label}`).{budget(compared)}", ""]
    if table.note:
        lines += [f"Note: {table.note.text}.", ""]
    if not compared.cells and not compared.curves:
        return "\n".join([*lines, "Not measured yet."])
    if compared.cells:
        lines += [share_grid(compared) if is_split(compared) else cell_grid(compared), ""]
        lines += [group_grid(compared), ""] if is_counted(compared) else []
    lines += map(item, [*difference_lines(compared), *map(similar_line, compared.similar)])
    lines += map(item, map(curve_line, compared.curves))
    return "\n".join(lines)


def budget(compared: ComparedTable) -> str:
    """The paper's own budget in words, where it is stated."""
    table = compared.table
    seeds = f"best of {table.best_of}" if compared.counts.published else f"{table.best_of} seeds"
    parts = [seeds] if table.best_of > 1 else []
    if table.epochs:
        parts.append(f"up to {table.epochs} epochs ({table.epochs * PAPER_EPOCH / 1e6:.0f} M examples)")
    return f" Published: {', '.join(parts)}." if parts else ""


def is_counted(table: ComparedTable) -> bool:
    """Whether it has so many cells that those which agree are also counted."""
    return any(cell.source.measure.kind in COUNTED for cell in table.cells)


def is_split(table: ComparedTable) -> bool:
    """Whether each of its rows is a distribution, whose values are other ones in each row."""
    return all(cell.source.measure.kind == "share" for cell in table.cells)


def cell_grid(table: ComparedTable) -> str:
    texts = {place: to_markdown(cell_line(cell)) for place, cell in table.by_place.items()}
    return grid(["", *table.columns], [[row, *(texts.get((row, column), "") for column in table.columns)]
                                       for row in table.rows])


def share_grid(table: ComparedTable) -> str:
    """A line for each row, with the values that it is split over and their shares."""
    rows = {row: [f"{cell.source.measure.value}: {to_markdown(cell_line(cell))}" for cell in table.cells if cell.row == row]
            for row in table.rows}
    return grid(["", "predicted: percent of the pairs"], [[row, ", ".join(shares)] for row, shares in rows.items()])


def cell_line(cell: ComparedCell) -> Line:
    """A cell: published → ours, with emphasis where they differ. Tokens are code."""
    if cell.published is None:
        return []
    published, ours = value_text(cell.published), value_text(cell.ours)
    if published.startswith("+"):
        return [Span("code", published), " → ", Span("code", ours)]
    return [f"{published} → ", Span("strong", ours) if cell.agrees is False else ours]


def value_text(value: Value | None) -> str:
    """A value without marks; a dot where there is none."""
    if isinstance(value, tuple):
        return "{" + ", ".join(map(str, value)) + "}" if value else "none"
    return "·" if value is None else str(value)


@dataclass(frozen=True)
class Group:
    """A column, or a row where a row is a distribution: how many of its cells agree, which differ, and the runs."""

    name: str
    counts: Tally
    differing: list[str]
    runs: list[str]


def groups(table: ComparedTable) -> list[Group]:
    listed, by_row = [], is_split(table)
    for name in table.rows if by_row else table.columns:
        cells = [cell for cell in table.cells if name == (cell.row if by_row else cell.column)]
        differing = [f"{cell.column if by_row else cell.row}: {value_text(cell.published)} → {value_text(cell.ours)}"
                     for cell in cells if cell.agrees is False]
        runs = dict.fromkeys(cell.run for cell in cells if cell.run)
        listed.append(Group(name, count_cells(cells), differing, list(runs)))
    return listed


def group_grid(table: ComparedTable) -> str:
    """For each group how many cells agree, those that do not, and the runs."""
    rows = []
    for group in groups(table):
        more = f", and {len(group.differing) - LONGEST_LIST} more" if len(group.differing) > LONGEST_LIST else ""
        counts = group.counts
        rows.append([group.name, str(counts.published), str(counts.measured or "·"),
                     str(counts.agreeing) if counts.measured else "·", ", ".join(group.differing[:LONGEST_LIST]) + more,
                     to_markdown(run_names(group.runs))])
    return grid(["row" if is_split(table) else "column", "cells", "measured", "agree", "published → ours where they differ",
                 "run"], rows)


def to_measure(compared: ComparedTable) -> str | None:
    """The command that measures what is missing; None if nothing is."""
    bases = sorted({cell.source.experiment.base for cell in compared.cells if cell.status == "not measured"})
    if not bases and (compared.cells or compared.curves):
        return None
    some = f" --bases {','.join(map(str, bases))}" if bases else ""
    return f"gcdformer reproduce {compared.table.name}{some} --run"


def difference_lines(table: ComparedTable) -> list[Line]:
    """Why ours differs, each reason once with the cells it is about; and results of another distribution, model or an older
    recipe as such, also those beside the run that represents a cell."""
    rows_of: dict[tuple[str | Span, ...], list[str]] = {}
    for cell in table.cells:
        if cell.measured_as and cell.run:
            rows_of.setdefault((f"measured as {cell.measured_as} (", Span("run", cell.run), ")"), []).append(cell.row)
        if cell.why:
            rows_of.setdefault((f"{cell.why.reason}: {cell.why.text}",), []).append(cell.row)
        for other in cell.others:
            rows_of.setdefault((f"{len(other.correct)} correct GCD, where {cell.published} are published, if measured as "
                                f"{measured_as(other)} (", Span("run", other.name), ")"), []).append(cell.row)
    lines: list[Line] = []
    for why, rows in rows_of.items():
        names = list(dict.fromkeys(rows))
        lines.append([f"{', '.join(names[:LONGEST_LIST])}{' …' if len(names) > LONGEST_LIST else ''}: ", *why, "."])
    old = Counter(cell.choice.entry.recipe for cell in table.cells if cell.choice and not cell.choice.entry.is_current)
    return lines + [[f"{count_of(count, 'cell')} {'was' if count == 1 else 'were'} measured in an older recipe, {recipe}."]
                    for recipe, count in old.items()]


def similar_line(run: SimilarRun) -> Line:
    """The predictions of a run that grokked, in the form of the table."""
    of = len(run.predictions)
    but = f" but those of {', '.join(map(str, run.unruled))}" if run.unruled else ""
    return [f"Ours in base {run.entry.config.task.base} in the form of this table (", Span("run", run.entry.name),
            f"), where {' and '.join(map(str, run.grokked))} {'were' if len(run.grokked) > 1 else 'was'} grokked; for k "
            f"from 1 on: {', '.join(map(str, run.predictions))}; each{but} is the largest element of D that divides k "
            f"({of - len(run.unruled)} of {of})."]


def curve_line(run: CurveRun) -> Line:
    """The steps of a learning curve in words."""
    steps, best = [], 0
    for examples, count in zip(run.entry.curve["examples"], run.entry.curve["n_correct"], strict=True):
        if count > best:
            best = count
            steps.append(f"{count} at {examples / PAPER_EPOCH:.1f}")
    instead = measured_as(run.entry)
    return [Span("run", run.entry.name), f" (seed {run.entry.seed}{f', measured as {instead}' if instead else ''}), "
            f"correct GCD at epoch: {', '.join(steps)}."]


def run_line(entry: Entry) -> Line:
    """What was trained, how long it took, what it learned, and whether the rules hold."""
    parts = [f": {entry.recipe}, seed {entry.seed}; {effort(entry)}; accuracy {entry.accuracy:.2f}"]
    explanation = entry.explanation
    if explanation is not None:
        parts += [f"{len(entry.correct)} correct GCD ({shorten(entry.correct)})",
                  f"form {explanation.form.letter}, {explanation.verdict}, stratified fidelity "
                  f"{100 * explanation.fidelity['stratified'].value:.2f} %"]
        if explanation.form.has_classes and explanation.model.labels:
            parts.append(f"classes {shorten(explanation.model.labels)}")
        if explanation.being_learned:
            parts.append(f"being learned: {shorten(explanation.being_learned)}")
        parts += [f"the rule '{name}' is broken by {shorten(dict.fromkeys(breach.k for breach in rule.exceptions))}"
                  for name, rule in explanation.rules.items() if not rule.holds]
    return [Span("strong", entry.name), "; ".join(parts) + "."]


def effort(entry: Entry) -> str:
    """How long it took, and for how many examples; the speed is of training alone, and is said to be."""
    stalled, speed = round(entry.stalled_minutes, 1), entry.facts["examples_per_s"]
    return (f"{round(entry.minutes, 1)} minutes{f', {stalled} of them stalled' if stalled else ''}; "
            f"{millions(entry.examples)}{f', {speed:,} examples/s in training' if speed else ''}")


def run_item(entry: Entry) -> str:
    """A run with the command that repeats it, as an item of a list."""
    return f"{item(run_line(entry))}\n  `{entry.command}`"


def item(line: Line) -> str:
    return f"- {to_markdown(line)}"


def grid(head: list[str], rows: list[list[str]]) -> str:
    """A table in Markdown."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])
