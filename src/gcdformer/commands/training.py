"""Train with a view that fits the output, then tell what came of it; shared by `train` and `demo`."""

from __future__ import annotations

import sys
from pathlib import Path

from rich.console import Console

from gcdformer.commands.options import print_json
from gcdformer.config import Config
from gcdformer.runs.folder import best_line
from gcdformer.runs.run import Run
from gcdformer.training.learner import Diverged
from gcdformer.training.session import train_session
from gcdformer.training.signals import EXIT_INTERRUPTED
from gcdformer.training.view import LiveView, PlainView, View, prediction_grid, shorten

EXIT_DIVERGED = 3


def train_and_tell(config: Config, out: Path, *, quiet: bool = False, as_json: bool = False) -> int:
    """Train, then print the last evaluation; the exit code."""
    console = Console()
    view: View
    if quiet:
        view = View()
    elif console.is_terminal and not as_json:
        view = LiveView(console)
    else:
        view = PlainView(sys.stderr if as_json else None)
    try:
        outcome = train_session(config, out, view)
    except Diverged as error:
        print(f"gcdformer: {error}; the run stops, its last good checkpoint in {out} is kept; "
              "a new run with a lower --lr or a smaller --clip may do better", file=sys.stderr)
        return EXIT_DIVERGED
    run = Run(out)
    if as_json:
        lines = run.metrics
        best = best_line(lines)
        print_json({"run": str(out), "ended": outcome.reason, "last": lines[-1] if lines else None,
                    "best_epoch": best["epoch"] if best else None})
    elif not quiet:
        tell(run, console, live=isinstance(view, LiveView))
    return EXIT_INTERRUPTED if outcome.interrupted else 0


def tell(run: Run, console: Console, *, live: bool) -> None:
    """What the last evaluation says, and what to type next."""
    lines = run.metrics
    if not lines:
        console.print("no epoch was completed, so nothing was evaluated; "
                      f"gcdformer train --out {run.path} goes on, "
                      "a new run with a smaller --epoch-size evaluates earlier", highlight=False)
        return
    last = lines[-1]
    if "n_correct" in last:
        if not live:
            console.print(prediction_grid(run.scores(), console.width))
        frequencies = [one.frequency for one in run.scores().by_gcd.values()]
        console.print(f"accuracy {last['accuracy']:.2f} % on natural pairs; {last['n_correct']} correct GCD of "
                      f"{len(frequencies)}; mean frequency of f(k) {sum(frequencies) / len(frequencies):.3f}\n"
                      f"D = {shorten(last['D'], 100)}", highlight=False)
        console.print(f"ask it: gcdformer predict {run.path} 160 120", highlight=False)
    else:
        console.print(f"accuracy {last['accuracy']:.2f} %", highlight=False)
