"""`gcdformer completion`: a script for the shell, made by shtab from the parsers of all verbs.

The script is static: completing starts no Python. It is written anew after an upgrade.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator

SHELLS = ("bash", "zsh", "fish")
WHERE = {
    "bash": "~/.local/share/bash-completion/completions/gcdformer",
    "zsh": "_gcdformer in a folder of $fpath",
    "fish": "~/.config/fish/completions/gcdformer.fish",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, help="write the script to " + ", ".join(
        f"{path} ({shell})" for shell, path in WHERE.items()))


def run(args: argparse.Namespace) -> int:
    import shtab
    parser = args.build_parsers()
    for action in actions(parser):
        complete_values(action)
    print(shtab.complete(parser, args.shell))
    return 0


def actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """All arguments of a parser and of its verbs."""
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from actions(inner)


def complete_values(action: argparse.Action) -> None:
    """What the parser does not know: presets, tables and tasks by name, folders and files by their place."""
    import shtab

    from gcdformer.paper import CLAIMS, TABLES
    from gcdformer.presets import PRESETS
    from gcdformer.tasks.registry import TASKS
    names: dict[str, Iterable[str]] = {"preset": PRESETS, "table": [*TABLES, CLAIMS], "config.task": TASKS}
    metavar = str(action.metavar)
    if action.dest in names:
        action.choices, action.help = list(names[action.dest]), action.dest.removeprefix("config.")
    elif metavar in ("DIR", "RUN", "RUNS") or action.dest == "config.init_from":
        action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
    elif metavar.startswith("FILE"):
        action.complete = shtab.FILE  # type: ignore[attr-defined]
