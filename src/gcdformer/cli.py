"""The command line: a table of verbs. Each verb is a module of `commands/`, imported only when it is called.

Exit codes: 0 done, or the reader of the output has gone; 1 a trial of a sweep is not over, or a defect of ours; 2 bad input;
3 the loss diverged; 75 stopped by a signal, saved: the same command resumes.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any, NoReturn

from gcdformer.errors import UserError, did_you_mean, one_line
from gcdformer.training.signals import EXIT_INTERRUPTED, Interrupted, ending_at_once, interrupted_text
from gcdformer.version import __version__

VERBS = {
    "demo": "train live for a few minutes and show what was learned",
    "train": "train a run, or resume it",
    "sweep": "run the trials of a file that are missing, here or on a cluster",
    "runs": "a query over many runs: filter, sort, best of seeds, groups, SQL",
    "evaluate": "accuracy, correct GCD, f(k) and its frequency for every k",
    "predict": "tokens, prediction and truth for some integers",
    "explain": "which rules a model follows, how well, and every exception",
    "mechanism": "which places of the network carry each learned prime, with controls",
    "report": "one HTML page of a run, or of several compared",
    "lab": "a web page to see runs learn, ask their models, and see why",
    "theory": "accuracy of the rule model: exact, in the limit, by the paper's formula",
    "encode": "tokens of integers in base B",
    "sample": "write training examples to a file",
    "seen": "whether and when a pair was trained on",
    "describe": "parameters, lengths, FLOPs and time of a configuration",
    "import-reference": "weights of the paper's published code as a run folder",
    "export": "a run as a Hugging Face style folder, ONNX, Parquet",
    "reproduce": "the paper's tables: published beside measured, and what is missing",
    "completion": "a script that completes verbs, flags and names in your shell",
    "bench": "throughput of sampling, training and evaluation on this machine",
}

SAVING = ("demo", "train", "sweep", "reproduce")
"""Verbs that save when a signal asks them to stop, from their first moment."""

CODES = ("exit codes: 0 done; 2 bad input; 3 the loss diverged (the last good checkpoint is kept); "
         "75 stopped by Ctrl-C, SIGTERM or SIGUSR1, saved: the same command resumes it")


class Parser(argparse.ArgumentParser):
    """Errors are one line and exit with 2."""

    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message} (see {self.prog} --help)")


class VerbParser(Parser):
    """A verb's own parser names what it does not know itself: the one above it would name the wrong help."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        parsed, unknown = super().parse_known_args(args, namespace)
        if unknown:
            flag = next((word.split("=")[0] for word in unknown if word.startswith("-")), "")
            self.error(f"unrecognized arguments: {' '.join(unknown)}{did_you_mean(flag, self._option_string_actions)}")
        return parsed, unknown


def build_parsers() -> Parser:
    """The parser of all verbs at once, for what is made from them: completion, the reference."""
    return build_parser(*VERBS)


def build_parser(*loaded: str) -> Parser:
    """The parser that lists the verbs and knows the arguments of some."""
    parser = Parser(prog="gcdformer", allow_abbrev=False, epilog=CODES, description=(
        "Train small models on integer arithmetic, above all the GCD, and explain what they predict."))
    parser.add_argument("--version", action="version", version=f"gcdformer {__version__}")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True, parser_class=VerbParser)
    for name, summary in VERBS.items():
        sub = verbs.add_parser(name, help=summary, description=summary[0].upper() + summary[1:] + ".",
                               allow_abbrev=False)
        if name in loaded:
            module = importlib.import_module(f"gcdformer.commands.{name.replace('-', '_')}")
            module.add_arguments(sub)
            sub.set_defaults(run=module.run, build_parsers=build_parsers)
    return parser


def run_verb(words: list[str]) -> int:
    """Parse, run, and say in one line what went wrong."""
    verb = words[0] if words and words[0] in VERBS else None
    try:
        if any("\0" in word for word in words):
            raise UserError("arguments: none may hold a NUL character")
        if words and verb is None and not words[0].startswith("-"):
            raise UserError(f"unknown verb '{words[0]}'{did_you_mean(words[0], VERBS)} (gcdformer --help lists the verbs)")
        with ending_at_once() if verb in SAVING else nullcontext():
            args = build_parser(*([verb] if verb else [])).parse_args(words)
            return int(args.run(args))
    except UserError as error:
        print(f"gcdformer: {one_line(str(error))}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        raise
    except OSError as error:
        where = one_line(str(error.filename or "system"))
        print(f"gcdformer: {where}: {one_line(error.strerror or str(error))}", file=sys.stderr)
        return 2
    except Interrupted as stop:
        print(interrupted_text(str(stop)), file=sys.stderr)
        return EXIT_INTERRUPTED
    except KeyboardInterrupt:
        print("gcdformer: interrupted", file=sys.stderr)
        return 130


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code of a verb. A reader of its output that has gone, as with `| head -1`, ends it quietly and with 0."""
    try:
        code = run_verb(list(sys.argv[1:] if arguments is None else arguments))
    except BrokenPipeError:
        code = 0
    except SystemExit as end:
        if not isinstance(end.__context__, BrokenPipeError):  # with a closed pipe rich ends the process itself, with 1
            flush_output()
            raise
        code = 0
    flush_output()
    return code


def flush_output() -> None:
    """Write what is left. If nobody reads it, drop it, so that Python does not complain at its end."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def run_process() -> NoReturn:
    """`main` as a process of its own. A tracker that was left alone, because it did not finish in time, may be within a
    library's native code, which aborts at Python's usual end: then the process ends without it, with its own code."""
    code = main()
    trackers = sys.modules.get("gcdformer.training.trackers")  # loaded by a verb that trains
    if trackers is not None and trackers.some_left_alone():
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


if __name__ == "__main__":
    run_process()
