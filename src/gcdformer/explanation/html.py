"""An explanation as pieces of HTML, for the report and for notebooks; whoever shows them brings the style sheet."""

from __future__ import annotations

from html import escape

from gcdformer.config import LEAST_PAIRS
from gcdformer.evaluation.notebook import framed
from gcdformer.explanation.certificate import Explanation
from gcdformer.explanation.rules import Rule, mode, readable
from gcdformer.explanation.words import (
    known_sets,
    numbers,
    rule_mark,
    rule_words,
    shown_value,
    unreadable_text,
)


def notebook_html(found: Explanation) -> str:
    """The certificate as a notebook shows it."""
    scope = f"base {found.base}" + (f", integers up to {found.maximum:,}" if found.maximum else "")
    return framed(header("Explanation", scope, found, []) + certificate_sections(found))


def header(title: str, about: str, found: Explanation | None, facts: list[tuple[str, str]]) -> str:
    badge = ""
    if found is not None:
        badge = f'<span class="badge {"good" if found.certified else "bad"}">{escape(found.verdict)}</span>'
        told = found.fidelity.get("stratified") or found.fidelity["pairs"]
        facts = [("correct GCD", f"{len(found.correct)} <small>of {len(found.shares)}</small>"),
                 ("accuracy", f"{found.measured_accuracy:.2f} %"), ("fidelity", f"{100 * told.value:.2f} %"),
                 ("form", found.form.letter), *facts]
    cells = "".join(f"<div><b>{value}</b><span>{escape(name)}</span></div>" for name, value in facts)
    return f'<header><h1>{escape(title)} {badge}</h1><p>{escape(about)}</p><div class="facts">{cells}</div></header>'


def certificate_sections(found: Explanation) -> str:
    rules = "".join(rule_item(says, rule) for says, rule in rule_words(found))
    extra = ""
    if found.being_learned:
        extra += f'<li class="wait">being learned, not judged: {numbers(found.being_learned)}</li>'
    if found.untested:
        extra += f'<li class="wait">fewer than {LEAST_PAIRS} pairs, not judged: {numbers(found.untested)}</li>'
    if any(found.unreadable.values()):
        extra += f'<li class="wait">unreadable answers: {unreadable_text(found)}</li>'
    fidelity = "".join(
        f"<tr><th>fidelity, {escape(name)}</th><td>{100 * one.value:.3f} %</td>"
        f"<td>{'every pair was tried' if found.exhaustive else interval(one.interval)}</td><td>{one.n:,} pairs</td></tr>"
        for name, one in found.fidelity.items())
    return f"""<section><h2>What it knows</h2><p class="known">{known(found)}</p>{grid(found)}
<p class="legend"><i class="correct"></i> correct <i class="learning"></i> being learned <i class="broken"></i> against the
rules <i class="rule"></i> as the rules say. Each cell shows f(k), the usual answer for pairs with GCD k.</p></section>
<section><h2>The rules</h2><p>Form <b>{found.form}</b>: {escape(found.form.title)}. {escape(sentence(found.why))}</p>
<ul class="rules">{rules}{extra}</ul>
<table>{fidelity}<tr><th>accuracy</th><td>{found.measured_accuracy:.3f} %</td><td>measured</td><td></td></tr>
<tr><th></th><td>{found.predicted_accuracy:.3f} %</td><td>if the rules were followed exactly</td><td></td></tr></table>
{classes_table(found) if found.form.has_classes else ""}{counterexamples(found)}</section>"""


def rule_item(says: str, rule: Rule) -> str:
    mark = rule_mark(rule)
    if mark != "no":
        return f'<li class="{"yes" if mark == "yes" else "wait"}">{escape(says)}</li>'
    details = "; ".join(escape(breach.text) for breach in rule.exceptions)
    return (f'<li class="no">{escape(says)}: {rule.share:.0%} of k<details><summary>{len(rule.exceptions)} exceptions'
            f"</summary>{details}</details></li>")


def known(found: Explanation) -> str:
    """D or E: as a product of sets of prime powers if it is one, else every element."""
    labels = found.labels
    sets = known_sets(found)
    if not labels:
        shown = "empty"
    elif sets is None:
        shown = f"{{{numbers(labels)}}}"
    else:
        shown = " × ".join(f'<span class="set{" grokked" if found.base % p else ""}">{{{numbers(powers)}}}</span>'
                           for p, powers in sets) or "{1}"
    note = " <small>outlined: grokked, not a divisor of the base</small>" if found.grokked and sets else ""
    return f"<b>{found.form.set_name}</b> = {shown}{note}"


def grid(found: Explanation) -> str:
    broken = found.broken
    cells = []
    for k in range(1, max(found.shares, default=0) + 1):
        if k not in found.shares:
            cells.append(f'<span class="untested" title="k = {k}: not tested">·</span>')
            continue
        shares = found.shares[k]
        value = readable(mode(shares))
        kind = ("correct" if k in found.correct else "learning" if k in found.being_learned
                else "broken" if k in broken else "rule")
        others = ", ".join(f"{'?' if readable(v) is None else v} {100 * s:.1f} %" for v, s in list(shares.items())[:4])
        shown = "?" if value is None else value
        cells.append(f'<span class="{kind}" title="k = {k}: {others}"><small>{k}</small>{shown}</span>')
    return f'<div class="grid" role="img" aria-label="f(k) for every k tested">{"".join(cells)}</div>'


def classes_table(found: Explanation) -> str:
    rows = "".join(
        f"<tr><td>{c.label}</td><td>{readable(c.prediction)}</td><td>{c.shares[c.prediction]:.2f}</td><td>{c.values}</td>"
        f"<td>{c.entropy:.2f}</td><td>{numbers(c.members)}</td></tr>" for c in found.classes)
    return ("<h3>Classes</h3><div class=\"scroll\"><table><tr><th>class</th><th>predicted</th><th>share</th><th>values</th>"
            f"<th>bits</th><th>members</th></tr>{rows}</table></div>")


def counterexamples(found: Explanation) -> str:
    if not found.counterexamples:
        return "<p>No pair tried speaks against the rules.</p>"
    rows = "".join(f"<tr><td>{e.a:,}</td><td>{e.b:,}</td><td>{e.gcd}</td><td>{shown_value(e.prediction)}</td>"
                   f"<td>{'nothing' if e.rule is None else e.rule}</td></tr>" for e in found.counterexamples)
    head = "<tr><th>a</th><th>b</th><th>GCD</th><th>predicted</th><th>the rules say</th></tr>"
    return (f"<details><summary>{len(found.counterexamples)} pairs against the rules</summary>"
            f'<div class="scroll"><table>{head}{rows}</table></div></details>')


def interval(bounds: tuple[float, float]) -> str:
    return f"95 % interval {100 * bounds[0]:.2f} to {100 * bounds[1]:.2f}"


def sentence(text: str) -> str:
    return text[0].upper() + text[1:] + "."
