"""The explanation as a page in the terminal: D by prime powers, the rules with a tick or their exceptions, f(k) as cells."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gcdformer.config import LEAST_PAIRS, TESTED_GCDS
from gcdformer.display.cells import Cell, explanation_cells, score_cells
from gcdformer.display.words import (
    CLASS_COLUMNS,
    band_mark,
    band_share,
    class_rows,
    enumeration_text,
    known_count,
    known_elements,
    listed,
    numbers,
    rule_mark,
    rule_words,
    timeline_sentences,
    undecided_text,
    unreadable_text,
)
from gcdformer.evaluation import Scores
from gcdformer.evaluation.scores import Calibration
from gcdformer.explanation import Explanation
from gcdformer.explanation.bands import limits_text
from gcdformer.explanation.forms import NONE
from gcdformer.explanation.metamorphic import Check
from gcdformer.explanation.priors import UnderPrior
from gcdformer.explanation.rules import Rule
from gcdformer.explanation.timeline import Comparison, Timeline
from gcdformer.numbers.theory import prime_factors

SHOWN_STEPS = 15
LONGEST_LIST = 30
BAR = 20
SIGNS = {"yes": ("✓", "bold green"), "wait": ("…", "bold yellow"), "none": ("?", "bold yellow"), "no": ("✗", "bold red")}
CELL_STYLES = {"correct": "bold green", "learning": "yellow", "broken": "bold red", "hesitating": "dim italic red",
               "rule": "dim", "untested": "dim"}


def show_explanation(console: Console, explanation: Explanation, what: str, notes: Sequence[str] = ()) -> None:
    """The certificate; notes stand below its head."""
    show_head(console, explanation, what)
    for note in notes:
        console.print(Text.assemble(("note   ", "dim"), note))
    if explanation.exhaustive:
        console.print(enumeration_text(explanation), style="green" if explanation.is_proof else "yellow")
    console.print(Text.assemble(("why    ", "dim"), explanation.why))
    console.print()
    console.print(grid(explanation_cells(explanation), console.width))
    console.print()
    show_rules(console, explanation)
    if explanation.untested:
        untested = f"fewer than {LEAST_PAIRS} pairs, not judged: {numbers(explanation.untested, LONGEST_LIST)}"
        console.print(Text.assemble(("  ? ", "yellow"), untested))
    console.print()
    show_fidelity(console, explanation)
    if explanation.power is not None:
        console.print(Text.assemble(("could have missed    ", "dim"), explanation.power.text))
    if not explanation.certified and (explanation.form is NONE or explanation.mistakes.mostly_right):
        console.print(Text.assemble(("right and wrong      ", "dim"), explanation.mistakes.text))
    if explanation.bands:
        show_bands(console, explanation)
    if explanation.form.has_classes:
        show_classes(console, explanation)
    if explanation.counterexamples:
        shown = listed((example.text for example in explanation.counterexamples), 5, "; ", " by --json")
        console.print(Text.assemble(("against the rules    ", "dim"), shown))


def show_short(console: Console, explanation: Explanation, what: str) -> None:
    """The short form: what it knows, whether the rules hold, how many answers they predict."""
    show_head(console, explanation, what)
    show_rules(console, explanation)
    show_fidelity(console, explanation)


def show_head(console: Console, explanation: Explanation, what: str) -> None:
    verdict = Text("certified", style="bold green") if explanation.certified else Text(explanation.verdict, style="bold red")
    console.print(Text.assemble((what, "bold"), f"  base {explanation.base} = {factored(explanation.base)}  ", verdict))
    if explanation.certified:
        console.print(Text.assemble(("for    ", "dim"), f"{explanation.domain}{limits_text(explanation.bands)}"))
    console.print(Text.assemble(("form   ", "dim"), f"{explanation.form}: {explanation.form.title}"))
    console.print(known_text(explanation))


def show_rules(console: Console, explanation: Explanation) -> None:
    for says, rule in rule_words(explanation):
        show_rule(console, says, rule)
    if explanation.being_learned:
        learning = numbers(explanation.being_learned, LONGEST_LIST)
        console.print(Text.assemble(("  … ", "yellow"), f"being learned: {learning}"))
    if explanation.undecided:
        console.print(Text.assemble(("  ? ", "yellow"), undecided_text(explanation)))


def show_fidelity(console: Console, explanation: Explanation) -> None:
    for name, share in explanation.fidelity.items():
        low, high = share.interval
        exact = " (all pairs)" if explanation.exhaustive else f" [{100 * low:.2f}, {100 * high:.2f}]"
        console.print(Text.assemble((f"fidelity, {name:<11}", "dim"),
                                    f"{100 * share.value:.2f} %{exact} of {share.n:,} pairs with k ≤ {TESTED_GCDS}"))
    if any(explanation.unreadable.values()):
        console.print(Text.assemble(("unreadable answers   ", "dim"), unreadable_text(explanation)))
    console.print(Text.assemble(("accuracy             ", "dim"), f"{explanation.measured_accuracy:.2f} % measured, "
                                f"{explanation.predicted_accuracy:.2f} % if the rules were followed exactly"))


def show_calibration(console: Console, calibration: Calibration | None) -> None:
    """The error in a line, and a line for each bin that has answers; nothing if it was not measured."""
    if calibration is None:
        return
    console.print(f"expected calibration error {calibration.ece:.4f} over {calibration.n:,} pairs")
    table = Table(box=None, padding=(0, 1), header_style="dim")
    for title in ("confidence", "pairs", "mean", "right"):
        table.add_column(title, justify="right")
    for part in calibration.bins:
        if part.n:
            table.add_row(f"{part.low:.2f} to {part.high:.2f}", f"{part.n:,}", f"{part.confidence:.3f}",
                          f"{part.accuracy:.3f}")
    console.print(table)


def show_priors(console: Console, under: Sequence[UnderPrior], what: str) -> None:
    """A row for each prior: what the same weights answer under it; `implied` is the accuracy that the rules imply."""
    console.print(f"{what}, the same weights under each prior", style="bold")
    table = Table(box=None, padding=(0, 1), header_style="dim")
    for title in ("prior", "accuracy", "implied", "GCD", "form", "fidelity", "stratified", "certified"):
        table.add_column(title, justify="left" if title == "prior" else "right", no_wrap=True)
    for figures in under:
        name = figures.prior if figures.exponent is None else f"k^-{figures.prior}"
        verdict = Text("yes", "bold green") if figures.certified else Text("no", "yellow")
        table.add_row(name, f"{figures.accuracy:.2f} %", f"{figures.implied:.2f} %", str(len(figures.D)), figures.form,
                      f"{100 * figures.natural:.2f} %", f"{100 * figures.stratified:.2f} %", verdict)
    console.print(table)


def known_text(explanation: Explanation) -> Text:
    """D (or E), with a star behind the powers of a grokked prime."""
    shown = known_elements(explanation, lambda text, grokked: text + "*" * grokked, LONGEST_LIST)
    text = Text.assemble((f"{explanation.form.set_name}      ", "dim"), shown, f"   {known_count(explanation)}")
    if explanation.grokked:
        text.append(f"   * grokked: {numbers(explanation.grokked, LONGEST_LIST)}", style="cyan")
    return text


def show_rule(console: Console, says: str, rule: Rule) -> None:
    mark = rule_mark(rule)
    if mark != "no":
        sign, style = SIGNS[mark]
        console.print(Text.assemble((f"  {sign} ", style), says))
        return
    console.print(Text.assemble(("  ✗ ", "bold red"), f"{says}: {rule.share:.0%} of k"))
    parts = listed((breach.text for breach in rule.exceptions), 12, "; ", " by --json")
    console.print(Text("      " + parts, style="dim"))


def grid(cells: list[Cell], width: int) -> Table:
    """f(k) for every k, ten or twenty in a row: green correct, yellow being learned, red against the rules or without a
    usual answer, grey as the rules say."""
    table = Table.grid(padding=(0, 1))
    across = 20 if width >= 96 else 10
    texts = [Text(f"{cell.text if len(cell.text) < 4 else '…':>3}", style=CELL_STYLES[cell.kind]) for cell in cells]
    for row in range(0, len(texts), across):
        label = "f(k), k = " if row == 0 else ""
        table.add_row(Text(f"{label}{row + 1} …", style="dim", justify="right"), *texts[row:row + across])
    return table


def prediction_grid(scores: Scores, width: int) -> Table:
    """The grid of an evaluation that was not explained."""
    return grid(score_cells(scores), width)


def show_bands(console: Console, explanation: Explanation) -> None:
    """How many answers the rules predict in each band of size and order, as a bar and in figures."""
    console.print(Text("\nby size and order, over all k that fit", style="bold"))
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="dim")
    for title in ("", "pairs with", "", "fidelity", "right", "pairs", "k"):
        table.add_column(title, justify="left" if title in ("", "pairs with") else "right", no_wrap=True)
    figures = [(band.name, band_share(band), f"{band.accuracy:.1f} %", f"{band.fidelity.n:,}", str(band.gcds))
               for band in explanation.bands]
    others = sum(max(map(len, column)) + 1 for column in zip(("", "", "right", "pairs", "k"), *figures, strict=True)) + 2
    length = max(4, min(BAR, console.width - others - 1))
    for band, (name, *shares) in zip(explanation.bands, figures, strict=True):
        sign, style = SIGNS[band_mark(band)]
        full = int(length * band.fidelity.value)
        bar = Text("█" * full + "·" * (length - full), style=style.split()[-1])
        table.add_row(Text(sign, style=style), name, bar, *map(Text, shares))
    console.print(table)


def show_classes(console: Console, explanation: Explanation) -> None:
    table = Table(box=None, padding=(0, 1), header_style="dim")
    for title in CLASS_COLUMNS:
        members = title == "members"
        table.add_column(title, justify="left" if members else "right", no_wrap=True,
                         min_width=None if members else len(title))
    for row in class_rows(explanation, 12):
        table.add_row(*row)
    console.print(table)


def show_timeline(console: Console, history: Timeline) -> None:
    """The last steps in order, with the epochs between them in which nothing changed; which are left out is said."""
    if not history.steps:
        return
    shown = history.steps[-SHOWN_STEPS:]
    left_out = len(history.steps) - len(shown)
    console.print(Text("\nhow it was learned", style="bold"))
    if left_out:
        console.print(Text(f"  the last {len(shown)} epochs at which D changed; {left_out} before epoch {shown[0].epoch} "
                           "are left out here, --json and --html have all", style="dim"))
    for _, text, changed in timeline_sentences(history, shown[0].epoch if left_out else 0):
        console.print(Text("  " + text, style="default" if changed else "dim"))


def show_checks(console: Console, checks: list[Check]) -> None:
    console.print(Text("\nasked in other ways", style="bold"))
    table = Table(box=None, padding=(0, 2), show_header=False)
    for check in checks:
        says = [check.says] if console.width >= 110 else []
        table.add_row(check.name, *says, f"{100 * check.rate:.2f} %", f"of {check.n:,}")
    console.print(table)


def show_comparison(console: Console, rows: list[Comparison]) -> None:
    console.print(Text("\nepoch at which each prime power was learned", style="bold"))
    table = Table(box=None, padding=(0, 2), header_style="dim")
    table.add_column("prime power", justify="right")
    for name in rows[0].epochs if rows else []:
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(str(row.prime_power), *("–" if e is None else str(e) for e in row.epochs.values()))
    console.print(table)


def factored(n: int) -> str:
    """720 -> 2^4 · 3^2 · 5."""
    return " · ".join(str(p) if e == 1 else f"{p}^{e}" for p, e in prime_factors(n).items())
