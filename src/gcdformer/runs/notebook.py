"""A run in a notebook: what was trained, how far it has come, its curves and its grid of f(k). Knows run folders."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from gcdformer.errors import UserError
from gcdformer.evaluation.notebook import framed
from gcdformer.explanation.html import grid, header, known
from gcdformer.runs.metrics import Line

if TYPE_CHECKING:
    from gcdformer.config import Config
    from gcdformer.runs.run import Run

WIDTH, HEIGHT, LEFT, BOTTOM = 560, 150, 34, 18


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
        return header(run.path.name, about(run.config), None, []) + "<p>No epoch has been evaluated yet.</p>"
    last = lines[-1]
    facts = [("epochs", f"{last['epoch']}"), ("examples", f"{last['examples']:,}"),
             ("minutes", f"{last['seconds'] / 60:.1f}")]
    if not run.problem.task.has_gcd:
        facts.insert(0, ("accuracy", f"{last['accuracy']:.2f} %"))
        return header(run.path.name, about(run.config), None, facts) + curves(lines)
    found = explain_run(run)
    return (header(run.path.name, about(run.config), found, facts) + curves(lines)
            + f'<p class="known">{known(found)}</p>{grid(found)}')


def about(config: Config) -> str:
    """What was trained, in a line."""
    task, model = config.task, config.model
    return (f"{task.task} in base {task.base}, integers up to {task.maximum:,}; {config.examples_in_words}; "
            f"{model.family} {model.encoder_layers}+{model.decoder_layers} layers, {model.decoder_dim} dimensions; "
            f"seed {config.training.seed}")


def curves(lines: list[Line]) -> str:
    """Accuracy and, if there are any, correct GCD over the epochs, both from 0 to 100; nothing for a single epoch."""
    if len(lines) < 2:
        return ""
    drawn = [("accuracy, %", "curve", "accuracy")]
    if "n_correct" in lines[-1]:
        drawn.append(("correct GCD", "curve second", "n_correct"))
    first, last = int(lines[0]["epoch"]), int(lines[-1]["epoch"])

    def x(epoch: float) -> float:
        return LEFT + (WIDTH - LEFT - 90) * (epoch - first) / (last - first)

    def y(value: float) -> float:
        return 8 + (HEIGHT - BOTTOM - 8) * (1 - value / 100)

    parts = [f'<line class="axis" x1="{LEFT}" x2="{x(last):.0f}" y1="{y(v):.1f}" y2="{y(v):.1f}"/>'
             f'<text x="{LEFT - 6}" y="{y(v) + 4:.1f}" text-anchor="end">{v}</text>' for v in (0, 50, 100)]
    parts += [f'<text x="{x(epoch):.0f}" y="{HEIGHT - 3}" text-anchor="middle">{words}</text>'
              for epoch, words in ((first, str(first)), ((first + last) / 2, "epoch"), (last, str(last)))]
    ends = {name: lines[-1][name] for _, _, name in drawn}
    close = len(ends) > 1 and abs(ends["accuracy"] - ends["n_correct"]) < 11
    for label, kind, name in drawn:
        points = " ".join(f"{x(line['epoch']):.1f},{y(line[name]):.1f}" for line in lines)
        shift = (9 if (name == "n_correct") == (ends["n_correct"] <= ends["accuracy"]) else -3) if close else 4
        parts.append(f'<polyline class="{kind}" points="{points}"/>'
                     f'<text x="{x(last) + 6:.0f}" y="{y(ends[name]) + shift:.1f}">{label}</text>')
    title = " and ".join(label for label, _, _ in drawn) + " by epoch"
    return (f'<figure><svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{title}">{"".join(parts)}</svg></figure>')
