"""A run in a notebook: what was trained, how far it has come, its curves and its grid of f(k). Knows run folders."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from gcdformer.display.html import curves, framed, grid, header, known
from gcdformer.display.words import describe_config
from gcdformer.errors import UserError

if TYPE_CHECKING:
    from gcdformer.runs.run import Run


def run_html(run: Run) -> str:
    """The run as it is now; a file that cannot be read is named instead."""
    try:
        return framed(run_body(run))
    except UserError as error:
        return framed(f"<h4>{escape(run.path.name)}</h4><p>{escape(str(error))}</p>")


def run_body(run: Run) -> str:
    from gcdformer.runs.explain import explain_run
    lines = run.metrics
    if not lines:
        return header(run.path.name, describe_config(run.config), None, []) + "<p>No epoch has been evaluated yet.</p>"
    last = lines[-1]
    facts = [("epochs", f"{last['epoch']}"), ("examples", f"{last['examples']:,}"),
             ("minutes", f"{last['seconds'] / 60:.1f}")]
    if not run.problem.task.has_gcd:
        facts.insert(0, ("accuracy", f"{last['accuracy']:.2f} %"))
        return header(run.path.name, describe_config(run.config), None, facts) + curves(lines)
    found = explain_run(run)
    return (header(run.path.name, describe_config(run.config), found, facts) + curves(lines)
            + f'<p class="known">{known(found)}</p>{grid(found)}')
