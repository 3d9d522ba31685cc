"""Explanations, prediction tables and curves as pieces of HTML, for notebooks, the report and exported pages.

A notebook's piece brings its style: light and dark by the notebook's theme where it has one (JupyterLab, VS Code), else by
the reader's setting. No script, nothing is fetched; where the style is stripped the words and numbers remain.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from gcdformer.config import LEAST_PAIRS, TESTED_GCDS, Config
from gcdformer.display.cells import explanation_cells
from gcdformer.display.style import piece_style
from gcdformer.display.words import (
    CLASS_COLUMNS,
    band_mark,
    band_share,
    class_rows,
    describe_config,
    enumeration_text,
    known_elements,
    numbers,
    rule_mark,
    rule_words,
    shown_value,
    undecided_text,
    unreadable_text,
)
from gcdformer.evaluation.table import PredictionTable, readable
from gcdformer.explanation.bands import limits_text
from gcdformer.explanation.certificate import Explanation
from gcdformer.explanation.forms import NONE
from gcdformer.explanation.rules import Rule

MOST_ROWS = 100
MOST_OTHERS = 4
NAMESPACE = re.compile(r' xmlns(:\w+)?="[^"]*"')


def notebook_html(explanation: Explanation) -> str:
    """The certificate as a notebook shows it."""
    scope = f"base {explanation.base}" + (f", integers up to {explanation.maximum:,}" if explanation.maximum else "")
    return framed(header("Explanation", scope, explanation, []) + certificate_sections(explanation))


def header(title: str, about: str, explanation: Explanation | None, facts: list[tuple[str, str]]) -> str:
    badge = ""
    if explanation is not None:
        badge = '<span class="badge good">certified</span>'
        if explanation.certified:
            about = f"{about}. Certified on {explanation.domain}{limits_text(explanation.bands)}"
        else:
            badge = f'<span class="badge bad">{escape(explanation.verdict)}</span>'
        share = explanation.fidelity.get("stratified") or explanation.fidelity["pairs"]
        undecided = f", {len(explanation.undecided)} undecided" if explanation.undecided else ""
        facts = [("correct GCD", f"{len(explanation.correct)} <small>of {len(explanation.shares)}{undecided}</small>"),
                 ("accuracy", f"{explanation.measured_accuracy:.2f} %"), ("fidelity", f"{100 * share.value:.2f} %"),
                 ("form", explanation.form.letter), *facts]
    cells = "".join(f"<div><b>{value}</b><span>{escape(name)}</span></div>" for name, value in facts)
    return f'<header><h1>{escape(title)} {badge}</h1><p>{escape(about)}</p><div class="facts">{cells}</div></header>'


def certificate_sections(explanation: Explanation) -> str:
    rules = "".join(rule_item(says, rule) for says, rule in rule_words(explanation))
    extra = ""
    if explanation.being_learned:
        extra += f'<li class="wait">being learned, not judged: {numbers(explanation.being_learned)}</li>'
    if explanation.undecided:
        extra += f'<li class="wait">{escape(undecided_text(explanation))}</li>'
    if explanation.untested:
        extra += f'<li class="wait">fewer than {LEAST_PAIRS} pairs, not judged: {numbers(explanation.untested)}</li>'
    if any(explanation.unreadable.values()):
        extra += f'<li class="wait">unreadable answers: {unreadable_text(explanation)}</li>'
    fidelity = "".join(
        f"<tr><th>fidelity, {escape(name)}</th><td>{100 * share.value:.3f} %</td>"
        f"<td>{'every pair was tried' if explanation.exhaustive else interval(share.interval)}</td>"
        f"<td>{share.n:,} pairs with k ≤ {TESTED_GCDS}</td></tr>"
        for name, share in explanation.fidelity.items())
    says = [enumeration_text(explanation)] if explanation.exhaustive else []
    says += [f"could have missed: {explanation.power.text}"] if explanation.power is not None else []
    if not explanation.certified and (explanation.form is NONE or explanation.mistakes.mostly_right):
        says.append(explanation.mistakes.text)
    notes = "".join(f"<p>{escape(sentence(text))}</p>" for text in says)
    form = explanation.form
    classes = classes_table(explanation) if form.has_classes else ""
    return f"""<section><h2>What it knows</h2><p class="known">{known(explanation)}</p>{grid(explanation)}
<p class="legend"><i class="correct"></i> correct <i class="learning"></i> being learned <i class="broken"></i> against the
rules <i class="rule"></i> as the rules say. Each cell shows f(k), the usual answer for pairs with GCD k.</p></section>
<section><h2>The rules</h2><p>Form <b>{form}</b>: {escape(form.title)}. {escape(sentence(explanation.why))}</p>
<ul class="rules">{rules}{extra}</ul>
<table>{fidelity}<tr><th>accuracy</th><td>{explanation.measured_accuracy:.3f} %</td><td>measured</td><td></td></tr>
<tr><th></th><td>{explanation.predicted_accuracy:.3f} %</td><td>if the rules were followed exactly</td><td></td></tr></table>
{notes}{classes}{counterexamples(explanation)}</section>{bands_section(explanation)}"""


def bands_section(explanation: Explanation) -> str:
    """Fidelity in each band of size and order, as bars and in figures."""
    if not explanation.bands:
        return ""
    marks = {"yes": "✓", "no": "✗", "wait": "…"}
    rows = "".join(f"<tr><td>{marks[band_mark(band)]}</td><td>{escape(band.name)}</td>"
                   f"<td>{bar(band.fidelity.value, band_share(band))}</td><td>{band.accuracy:.1f} %</td>"
                   f"<td>{band.fidelity.n:,}</td><td>{band.gcds}</td></tr>" for band in explanation.bands)
    head = "<tr><th></th><th>pairs with</th><th>fidelity, 95 % interval</th><th>right</th><th>pairs</th><th>k</th></tr>"
    return (f"<section><h2>By size and order</h2><p>Over all k up to {TESTED_GCDS} that fit, each equally often where the "
            f'pairs were drawn.</p><div class="scroll"><table>{head}{rows}</table></div></section>')


def bar(share: float, text: str) -> str:
    """Text on a bar, whose whole length is 1."""
    return f'<span class="bar" style="--share: {100 * share:.0f}%">{text}</span>'


def rule_item(says: str, rule: Rule) -> str:
    mark = rule_mark(rule)
    if mark != "no":
        return f'<li class="{"yes" if mark == "yes" else "wait"}">{escape(says)}</li>'
    details = "; ".join(escape(breach.text) for breach in rule.exceptions)
    return (f'<li class="no">{escape(says)}: {rule.share:.0%} of k<details><summary>{len(rule.exceptions)} '
            f"exception{'s' if len(rule.exceptions) > 1 else ''}</summary>{details}</details></li>")


def known(explanation: Explanation) -> str:
    """D (or E), with the powers of grokked primes outlined."""
    text = known_elements(explanation, lambda text, grokked: f'<span class="set{" grokked" * grokked}">{text}</span>')
    note = " <small>outlined: grokked, not a divisor of the base</small>" if 'class="set grokked"' in text else ""
    return f"<b>{explanation.form.set_name}</b> = {text}{note}"


def grid(explanation: Explanation) -> str:
    """f(k) in rows of ten. Where a page drops the style, as code hosts do, the line breaks still make the rows."""
    cells = []
    for cell in explanation_cells(explanation):
        if cell.kind == "untested":
            cells.append(f'<span class="untested" title="k = {cell.k}: not tested">{cell.text}</span>')
            continue
        values = list(explanation.shares[cell.k].items())[:4]
        others = ", ".join(f"{'?' if readable(v) is None else v} {100 * s:.1f} %" for v, s in values)
        title = f"k = {cell.k}: {others}"
        cells.append(f'<span class="{cell.kind}" title="{title}"><small>{cell.k}</small> <b>{cell.text}</b></span>')
    rows = "<br>".join(" ".join(cells[start:start + 10]) for start in range(0, len(cells), 10))
    return f'<div class="grid" role="img" aria-label="f(k) for every k tested">{rows}</div>'


def classes_table(explanation: Explanation) -> str:
    head = "".join(f"<th>{title}</th>" for title in CLASS_COLUMNS)
    rows = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in class_rows(explanation))
    return f'<h3>Classes</h3><div class="scroll"><table><tr>{head}</tr>{rows}</table></div>'


def counterexamples(explanation: Explanation) -> str:
    if not explanation.counterexamples:
        return "<p>No pair tried speaks against the rules.</p>"
    rows = "".join(f"<tr><td>{e.a:,}</td><td>{e.b:,}</td><td>{e.gcd}</td><td>{shown_value(e.prediction)}</td>"
                   f"<td>{'nothing' if e.rule is None else e.rule}</td></tr>" for e in explanation.counterexamples)
    head = "<tr><th>a</th><th>b</th><th>GCD</th><th>predicted</th><th>the rules say</th></tr>"
    return (f"<details><summary>{len(explanation.counterexamples)} pairs against the rules</summary>"
            f'<div class="scroll"><table>{head}{rows}</table></div></details>')


def interval(bounds: tuple[float, float]) -> str:
    return f"95 % interval {100 * bounds[0]:.2f} to {100 * bounds[1]:.2f}"


def sentence(text: str) -> str:
    return text[0].upper() + text[1:] + "."


def framed(body: str) -> str:
    """The piece with its style, which touches nothing else on the page."""
    return f'<div class="gcdformer"><style>{piece_style()}</style>{body}</div>'


def run_html(name: str, config: Config, lines: Sequence[Mapping[str, Any]], explanation: Explanation | None) -> str:
    """A run as it is now: what was trained, how far it has come, its curves and, if it was explained, its grid of f(k)."""
    if not lines:
        return framed(header(name, describe_config(config), None, []) + "<p>No epoch has been evaluated yet.</p>")
    last = lines[-1]
    facts = [] if explanation else [("accuracy", f"{last['accuracy']:.2f} %")]
    facts += [("epochs", f"{last['epoch']}"), ("examples", f"{last['examples']:,}"),
              ("minutes", f"{last['seconds'] / 60:.1f}")]
    sieve = f'<p class="known">{known(explanation)}</p>{grid(explanation)}' if explanation else ""
    drawn = learning_curves(lines) if len(lines) > 1 else ""
    return framed(header(name, describe_config(config), explanation, facts) + drawn + sieve)


def learning_curves(lines: Sequence[Mapping[str, Any]]) -> str:
    """The figure as a piece of HTML, which needs no namespaces."""
    from gcdformer.display.figures import curves, to_svg
    return f'<figure class="narrow">{NAMESPACE.sub("", to_svg(curves({"": lines}), "Learning curves"))}</figure>'


def table_html(table: PredictionTable) -> str:
    """A row for each GCD k: the pairs, f(k) with its share, and what else was predicted."""
    tested = table.tested()
    rows = "".join(table_row(k, table.counts_of(k)) for k in tested[:MOST_ROWS])
    more = f"<p class=\"soft\">and {len(tested) - MOST_ROWS:,} larger GCD</p>" if len(tested) > MOST_ROWS else ""
    return framed(
        f"<h4>Predictions for {table.total:,} pairs</h4><p class=\"soft\">{100 * table.accuracy:.2f} % right; "
        f"{len(tested):,} different GCD k, f(k) the usual prediction</p>"
        f'<div class="scroll tall"><table class="rows"><thead><tr><th>k</th><th>pairs</th><th>f(k)</th><th>share</th>'
        f"<th>other predictions</th></tr></thead><tbody>{rows}</tbody></table></div>{more}")


def table_row(k: int, counts: dict[int, int]) -> str:
    total = sum(counts.values())
    (value, count), *others = counts.items()
    share = count / total
    rest = ", ".join(f"{shown_value(readable(v))} ({c:,})" for v, c in others[:MOST_OTHERS])
    if len(others) > MOST_OTHERS:
        rest += f" and {len(others) - MOST_OTHERS} more"
    kind = "right" if value == k else "wrong"
    return (f'<tr class="{kind}"><th>{k}</th><td>{total:,}</td><td class="f">{shown_value(readable(value))}</td>'
            f"<td>{bar(share, f'{100 * share:.1f} %')}</td><td>{rest}</td></tr>")
