"""Train with a view that fits the output, then show what was learned and what to type next; shared by `train` and `demo`."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

from rich.console import Console

from gcdformer.config import Config
from gcdformer.display.progress import in_window, progress
from gcdformer.display.terminal import prediction_grid
from gcdformer.options import print_json
from gcdformer.runs.explain import explain_run
from gcdformer.runs.folder import RunFolder, best_line
from gcdformer.runs.hints import earlier_certificate, hint, questions
from gcdformer.runs.run import Run
from gcdformer.training.distributed import is_first_rank
from gcdformer.training.learner import Diverged
from gcdformer.training.session import train_session
from gcdformer.training.signals import EXIT_INTERRUPTED
from gcdformer.training.view import LiveView, PlainView, View

EXIT_DIVERGED = 3


def train_and_tell(config: Config, out: Path, *, quiet: bool = False, as_json: bool = False) -> int:
    """Train, then print the last evaluation; the exit code."""
    console = Console(highlight=False)
    view: View
    speaks = is_first_rank()
    if quiet or not speaks:
        view = View()
    elif in_window(console) and not as_json:
        view = LiveView(console, out)
    else:
        view = PlainView(sys.stderr if as_json else None, out)
    try:
        outcome = train_session(config, out, view)
    except Diverged as error:
        print(f"gcdformer: {error}; the run stops, its last good checkpoint in {out} is kept; "
              "a new run with a lower --lr or a smaller --clip may do better", file=sys.stderr)
        return EXIT_DIVERGED
    if not speaks:
        return EXIT_INTERRUPTED if outcome.interrupted else 0
    if outcome.interrupted and not RunFolder(out).exists():
        print(f"gcdformer: {outcome.reason}", file=sys.stderr)
        return EXIT_INTERRUPTED
    run = Run(out)
    if as_json:
        lines = run.metrics
        best = best_line(lines)
        print_json({"run": str(out), "ended": outcome.reason, "last": lines[-1] if lines else None,
                    "best_epoch": best["epoch"] if best else None})
    elif not quiet:
        tell(run, console, live=isinstance(view, LiveView), interrupted=outcome.interrupted)
    return EXIT_INTERRUPTED if outcome.interrupted else 0


def tell(run: Run, console: Console, *, live: bool, interrupted: bool) -> None:
    """What was learned in short, the report, and what to type next."""
    lines = run.metrics
    say = partial(console.print, highlight=False, markup=False, soft_wrap=True)  # a command stays in one line
    if not lines:
        say(f"no epoch was completed, so nothing was evaluated; {hint('train', '--out', run.path)} resumes it, "
            "a new run with a smaller --epoch-size evaluates earlier")
        return
    if interrupted:
        say(f"saved; resume it with: {hint('train', '--out', run.path)}")
        return
    from gcdformer.display.terminal import show_short
    console.print()
    if run.problem.task.has_gcd:
        found = explain_run(run)
        if not live:
            console.print(prediction_grid(run.scores(), console.width))
        show_short(console, found, f"{run.path}, epoch {lines[-1]['epoch']}")
        if not found.certified and (earlier := earlier_certificate(run, lines[-1]["epoch"])):
            say(f"note    {earlier}")
        question = questions(run, found)
    else:
        console.print(f"accuracy {lines[-1]['accuracy']:.2f} %", highlight=False)
        question = run.stream.examples(0, 1)[0, :run.problem.task.inputs].tolist()
    with progress("writing the report", quiet=not live):
        from gcdformer.report.page import write_report
        write_report(run.path / "report.html", [run])
    say(f"report  {run.path / 'report.html'}\nlook    {hint('lab', run.path)}\n"
        f"ask it  {hint('predict', run.path, *question)}")
