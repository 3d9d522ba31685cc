"""`gcdformer train`: parse, train with a view that fits the output, then show what was learned and what to type next.

`demo` is the same with another configuration. What needs torch is imported when training is about to begin, so that
something is on the screen before: loading torch takes seconds.
"""

from __future__ import annotations

import argparse
import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from gcdformer.config import Config, config_leaves
from gcdformer.display.progress import in_window, progress
from gcdformer.display.words import has_outcomes
from gcdformer.errors import UserError
from gcdformer.options import (
    add_config_flags,
    add_json,
    add_preset,
    add_quiet,
    config_from,
    given,
    print_json,
    run_path,
    runs_folder,
)
from gcdformer.runs.folder import RunFolder, best_line
from gcdformer.sweeps.sweep import plain

if TYPE_CHECKING:
    from gcdformer.runs.run import Run
    from gcdformer.training.view import View

EXIT_DIVERGED = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_preset(parser)
    parser.add_argument("--out", type=run_path, metavar="DIR",
                        help="run folder, new or to resume (default: named after what is trained, as "
                        "runs/gcd-base30-uniform-natural, with -2, -3 … for other configurations)")
    add_quiet(parser, "print nothing while training")
    add_json(parser)
    add_config_flags(parser)


def run(args: argparse.Namespace) -> int:
    config = config_from(args, stored_config(args))
    return train_and_show(config, args.out or default_folder(config, runs_folder()), quiet=args.quiet, as_json=args.json)


def train_and_show(config: Config, out: Path, *, quiet: bool = False, as_json: bool = False) -> int:
    """Train, then print the last evaluation; the exit code. Of several ranks the first speaks."""
    speaks = os.environ.get("RANK", "0") == "0"
    with progress("getting ready", quiet=quiet or not speaks, file=sys.stderr if as_json else sys.stdout):
        from gcdformer.runs.run import Run
        from gcdformer.training.device import is_first_rank
        from gcdformer.training.learner import Diverged
        from gcdformer.training.live import LiveView
        from gcdformer.training.session import run_session
        from gcdformer.training.signals import EXIT_INTERRUPTED
    speaks, console = is_first_rank(), Console(highlight=False)
    view = view_for(console, out, quiet=quiet or not speaks, as_json=as_json)
    try:
        outcome = run_session(config, out, view)
    except Diverged as error:
        print(f"gcdformer: {error}; the run stops, its last good checkpoint in {out} is kept; "
              "a new run with a lower --lr or a smaller --clip may do better", file=sys.stderr)
        return EXIT_DIVERGED
    if not speaks:
        return EXIT_INTERRUPTED if outcome.interrupted else 0
    if outcome.interrupted and not RunFolder(out).exists():
        print(f"gcdformer: {outcome.reason}", file=sys.stderr)
        return EXIT_INTERRUPTED
    trained = Run(out)
    if as_json:
        lines = trained.metrics
        best = best_line(lines)
        print_json({"run": str(out), "ended": outcome.reason, "last": lines[-1] if lines else None,
                    "best_epoch": best["epoch"] if best else None})
    elif not quiet:
        show_learned(trained, console, live=isinstance(view, LiveView), interrupted=outcome.interrupted)
    return EXIT_INTERRUPTED if outcome.interrupted else 0


def view_for(console: Console, out: Path, *, quiet: bool, as_json: bool) -> View:
    """The view that fits the output."""
    from gcdformer.training.live import LiveView
    from gcdformer.training.view import PlainView, SilentView
    if quiet:
        return SilentView()
    if in_window(console) and not as_json:
        return LiveView(console, out)
    return PlainView(sys.stderr if as_json else None, out)


def show_learned(run: Run, console: Console, *, live: bool, interrupted: bool) -> None:
    """What was learned in short, the report, and what to type next."""
    from gcdformer.display.terminal import prediction_grid, show_short
    from gcdformer.runs.explain import explain_run
    from gcdformer.runs.hints import earlier_certificate, hint, questions
    lines = run.metrics
    say = partial(console.print, highlight=False, markup=False, soft_wrap=True)  # a command stays in one line
    if not lines:
        say(f"no epoch was completed, so nothing was evaluated; {hint('train', '--out', run.path)} resumes it, "
            "a new run with a smaller --epoch-size evaluates earlier")
        return
    if interrupted:
        say(f"saved; resume it with: {hint('train', '--out', run.path)}")
        return
    console.print()
    if run.problem.task.has_gcd:
        explanation = explain_run(run)
        if not live:
            console.print(prediction_grid(run.scores(), console.width))
        show_short(console, explanation, f"{run.path}, epoch {lines[-1]['epoch']}")
        if not explanation.certified and (earlier := earlier_certificate(run, lines[-1]["epoch"])):
            say(f"note    {earlier}")
        question = questions(run, explanation)
    else:
        console.print(f"accuracy {lines[-1]['accuracy']:.2f} %", highlight=False)
        question = run.stream.examples(0, 1)[0, :run.problem.task.inputs].tolist()
    with progress("writing the report", quiet=not live):
        from gcdformer.report.page import write_report
        write_report(run.path / "report.html", [run])
    say(f"report  {run.path / 'report.html'}\nlook    {hint('lab', run.path)}\n"
        f"ask it  {hint('predict', run.path, *question)}")


def stored_config(args: argparse.Namespace) -> Config | None:
    """The run's own configuration, if it is to be resumed and nothing else was asked for than limits."""
    free = {leaf.name for leaf in config_leaves() if leaf.section in ("limits", "machine")}
    if args.out is None or args.preset is not None or args.config_file is not None or set(given(args)) - free:
        return None
    folder = RunFolder(args.out)
    return folder.read_config()[0] if folder.exists() else None


def default_folder(config: Config, parent: Path) -> Path:
    """The folder named after what is trained that holds this configuration, or the first that holds none."""
    name, number = default_name(config), 1
    while True:
        path = parent / (name if number == 1 else f"{name}-{number}")
        if is_free(path) or holds(path, config):
            return path
        number += 1


def default_name(config: Config) -> str:
    """Task, base and distributions: `gcd-base30-uniform-natural`; or the file that the examples are from."""
    task, data = config.task, config.data
    words = [plain(task.task.rpartition(":")[2]), f"base{task.base}"]
    if data.train_file is not None:
        words.append(f"from-{plain(Path(data.train_file).stem)}")
    else:
        words += [data.operands, *([data.outcomes] if has_outcomes(config) else [])]
    return "-".join(words)


def is_free(path: Path) -> bool:
    """Whether a new run may be made there: nothing is, or what a run that has just been started leaves."""
    return not path.exists() or path.is_dir() and all(p.name == "lock" or p.name.startswith(".") for p in path.iterdir())


def holds(path: Path, config: Config) -> bool:
    """Whether the run there has this configuration; the horizon that a cosine was given at its start is its own."""
    try:
        stored = RunFolder(path).read_config()[0]
    except UserError:
        return False
    have, want = stored.identity(), config.identity()
    return have == want | ({"horizon": have["horizon"]} if want["horizon"] is None else {})
