"""One self-contained HTML page: no network, light and dark, wide and narrow."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

from gcdformer.display import figures
from gcdformer.display.html import certificate_sections, header
from gcdformer.display.mechanism import mechanism_section
from gcdformer.display.style import page_style
from gcdformer.display.words import describe_config, timeline_sentences
from gcdformer.errors import UserError
from gcdformer.evaluation.scores import Calibration
from gcdformer.explanation import Explanation
from gcdformer.explanation.timeline import Timeline, compare, timeline
from gcdformer.mechanism.result import Mechanism
from gcdformer.presets import repeat_command
from gcdformer.runs.explain import explain_run
from gcdformer.runs.folder import best_line
from gcdformer.runs.mechanism import saved_mechanism
from gcdformer.runs.run import Run
from gcdformer.version import __version__


def write_report(path: Path, runs: list[Run], checkpoint: str = "last") -> None:
    """The report of a run, or of several with their curves in one plot."""
    for run in runs:
        if not run.metrics:
            raise UserError(f"{run.path}: no epoch has been evaluated yet, so there is nothing to report")
    parts = []
    if len(runs) > 1:
        parts.append(comparison_section(runs))
        parts += [f"<details><summary>{escape(name)}</summary>{run_sections(run, checkpoint)}</details>"
                  for name, run in named(runs).items()]
        title = f"{len(runs)} runs"
    else:
        parts.append(run_sections(runs[0], checkpoint))
        title = runs[0].path.name
    write_page(path, title, "\n".join(parts))


def write_figures(folder: Path, runs: list[Run], checkpoint: str = "last") -> list[Path]:
    """The figures of the report as SVG and PNG files."""
    drawn = {"curves": figures.curves({name: run.metrics for name, run in named(runs).items()},
                                      timeline(runs[0].metrics) if len(runs) == 1 and has_gcd(runs[0]) else None)}
    if len(runs) == 1 and has_gcd(runs[0]):
        drawn["raster"] = figures.raster(runs[0].metrics)
        drawn["heat-map"] = figures.heat_map(runs[0].prediction_tables(checkpoint)["stratified"])
    return figures.save_all(folder, drawn)


def write_explanation(path: Path, explanation: Explanation, what: str, history: Timeline | None,
                      calibration: Calibration | None = None) -> None:
    """The explanation alone, of a run or of anyone's predictions."""
    parts = [header(what, f"base {explanation.base}", explanation, []), certificate_sections(explanation)]
    if calibration is not None:
        parts.append(figure_section("Calibration", figures.reliability(calibration),
                                    "How often answers of a confidence are right; on the dotted line, as often as the "
                                    "model says.", narrow=True))
    if history is not None:
        parts.append(timeline_section(history))
    write_page(path, what, "\n".join(parts))


def write_mechanism_page(path: Path, mechanism: Mechanism, what: str) -> None:
    """The mechanism alone."""
    write_page(path, what, header(what, f"base {mechanism.base}", None, []) + mechanism_section(mechanism))


def named(runs: list[Run]) -> dict[str, Run]:
    """Runs by the name of their folder, or by its path where names clash."""
    names = [run.path.name for run in runs]
    return {name if names.count(name) == 1 else str(run.path): run for name, run in zip(names, runs, strict=True)}


def has_gcd(run: Run) -> bool:
    return run.problem.task.has_gcd


def run_sections(run: Run, checkpoint: str) -> str:
    """Everything about one run."""
    lines = run.metrics
    about = describe_config(run.config)
    last = lines[-1]
    facts = [("epochs", f"{last['epoch']}"), ("examples", f"{last['examples'] / 1e6:.2f} M"),
             ("minutes", f"{last['seconds'] / 60:.1f}")]
    if not has_gcd(run):
        facts.insert(0, ("accuracy", f"{last['accuracy']:.2f} %"))
        parts = [header(run.path.name, about, None, facts), figure_section("Learning curves", figures.curves({"": lines}))]
        return "\n".join([*parts, repeat_section(run)])
    explanation = explain_run(run, checkpoint)
    history = timeline(lines)
    best = best_line(lines)
    if best is not None and best["epoch"] != last["epoch"]:
        facts.append(("best epoch", f"{best['epoch']} ({best['n_correct']} correct)"))
    return "\n".join([
        header(run.path.name, about, explanation, facts),
        certificate_sections(explanation),
        figure_section("Learning curves", figures.curves({"": lines}, history),
                       "Dotted vertical lines mark the epochs at which a prime power was first learned."),
        figure_section("D over time", figures.raster(lines), "A row for each k: when the model knew it."),
        timeline_section(history),
        figure_section("True against predicted", figures.heat_map(run.prediction_tables(checkpoint)["stratified"]),
                       "Green: right. Orange: the value predicted instead. Strength: its share.", narrow=True),
        saved_section(run, checkpoint),
        repeat_section(run),
    ])


def saved_section(run: Run, checkpoint: str) -> str:
    """Where the divisors are carried, if that was analysed for this epoch."""
    mechanism = saved_mechanism(run, run.epoch(checkpoint))
    return "" if mechanism is None else mechanism_section(mechanism)


def timeline_section(history: Timeline) -> str:
    rows = "".join(f"<li>{escape(text)}</li>" for _, text, _ in timeline_sentences(history))
    return f'<section><h2>How it was learned</h2><ol class="events">{rows}</ol></section>'


def comparison_section(runs: list[Run]) -> str:
    plot = figure_section("Learning curves", figures.curves({name: run.metrics for name, run in named(runs).items()}))
    histories = {name: timeline(run.metrics) for name, run in named(runs).items() if has_gcd(run)}
    head = "".join(f"<th>{escape(name)}</th>" for name in histories)
    rows = "".join(f"<tr><th>{row.prime_power}</th>" + "".join(
        f"<td>{'–' if epoch is None else epoch}</td>" for epoch in row.epochs.values()) + "</tr>"
        for row in compare(histories))
    finals = "".join(f"<tr><th>{escape(name)}</th><td>{run.metrics[-1]['epoch']}</td>"
                     f"<td>{run.metrics[-1]['accuracy']:.2f}</td><td>{run.metrics[-1].get('n_correct', '')}</td></tr>"
                     for name, run in named(runs).items())
    return f"""<header><h1>{len(runs)} runs</h1></header>
<section><div class="scroll"><table>
<tr><th>run</th><th>epochs</th><th>accuracy, %</th><th>correct GCD</th></tr>{finals}</table></div></section>
{plot}<section><h2>Epoch at which each prime power was learned</h2>
<div class="scroll"><table><tr><th>prime power</th>{head}</tr>{rows}</table></div></section>"""


def figure_section(title: str, figure: Any, caption: str = "", *, narrow: bool = False) -> str:
    text = f"<p class=\"legend\">{escape(caption)}</p>" if caption else ""
    kind = ' class="narrow"' if narrow else ""
    return f"<section><h2>{escape(title)}</h2><figure{kind}>{figures.to_svg(figure, title)}</figure>{text}</section>"


def repeat_section(run: Run) -> str:
    made = ", ".join(f"{name} {value}" for name, value in run.made_by.items())
    return f"""<section><h2>How to repeat it</h2><pre>{escape(repeat_command(run.config, run.path.name))}</pre>
<details><summary>the full configuration</summary><pre>{escape(run.config.to_toml())}</pre></details>
<p class="legend">made by gcdformer {escape(made)}; the same machine and thread count give the same bits</p></section>"""


def write_page(path: Path, title: str, body: str) -> None:
    """Write the page; the folder must be there."""
    if path.is_dir() or not path.parent.is_dir():
        raise UserError(f"{path}: cannot be written; name a file in an existing folder")
    path.write_text(f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><title>{escape(title)} · gcdformer</title><style>{page_style()}</style></head>
<body class="gcdformer page"><main>{body}</main><footer>gcdformer {__version__}</footer></body></html>
""", encoding="utf-8")
