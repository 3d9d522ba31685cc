"""Row 13: any arguments to any command: exit 0 or 2 (3 if a training diverges), one line, never a traceback."""

from __future__ import annotations

import argparse
import functools
import io
import sys
from collections import Counter
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from conftest import Figures
from faults import TINY, count, run_to_end
from gcdformer.cli import VERBS, build_parser, main
from gcdformer.options import run_path
from reference import make_checkpoint

# What keeps a case short, given before the drawn arguments, which may override it.
SMALL: dict[str, list[object]] = {
    "train": [*TINY, "--max", 60, "--max-epochs", 1, "--max-minutes", 0.005], "describe": ["--no-timing"],
    "demo": [*TINY, "--max", 60, "--max-epochs", 1, "--max-minutes", 0.005], "evaluate": ["--threads", 1],
    "bench": ["--seconds", 0.01, "--dim", 16, "--heads", 2, "--threads", 1, "--base", 10], "sample": ["--count", 9],
    "predict": [], "explain": [], "report": [], "theory": [], "encode": [], "seen": [], "runs": [], "sweep": ["--dry-run"],
    "reproduce": ["--ledger", "a ledger", "--show"], "lab": ["--export", "a page"], "completion": [], "export": [],
    "import-reference": ["--test-size", 100], "mechanism": ["--pairs", 20],
}
HUGE = "99999999999999999999999999"
NONSENSE = ["-1", "0", "nan", "inf", "-inf", "1e400", "x", "", " ", "1_000", "\u0663", "0x10", "1.5", "--", "-", "1e-9",
            "\x00", "\x1b[2J", "%s", "../..", "x" * 300, "1,2,,3", "\udcff", "None", "best", "last"]
GOOD = ["1", "2", "3", "7", "10", "12", "16", "60"]
SOUND = {"alpha": ["0.5", "-1"], "mixture_share": ["0.5"], "repeat_share": ["0.2"], "lr": ["0.01", "10"], "beta1": ["0.5"],
         "beta2": ["0.5"], "epsilon": ["1e-30"], "weight_decay": ["0.1"], "threshold": ["0.8"], "device": ["cpu", "auto"],
         "final_lr_share": ["0.1"], "checkpoint": ["best", "last", "1", "2"], "epoch": ["1", "2"], "members": ["1,2,3", "7"],
         "prior": ["natural", "uniform", "0.5"], "preset": ["fast", "paper"],
         "task": ["gcd", "addition", "comparison", "division"]}
# Flags with which a sound but large value means a long wait or a full disk.
BOUNDED = {"max_minutes": ["0.001"], "max_epochs": ["1", "2"], "threads": ["1", "2"], "count": ["1", "9"],
           "test_size": ["100"], "seconds": ["0.01"], "epoch_size": ["1", "40", HUGE], "beam": ["1", "3"],
           "batch_size": ["1", "16"], "checkpoint_minutes": ["1e-9", "9"], "layers": ["1", "2"], "encoder_layers": ["2"],
           "decoder_layers": ["2"], "pairs": ["20", "40"]}
SLOW = {"bench": 4, "report": 6, "reproduce": 15, "export": 10, "import-reference": 10, "mechanism": 6}
"""Cases of the verbs that take seconds; the others have 29 each, 300 together."""
ODD_PATHS = ["", "\x00", "x" * 300, "/proc/x", "nowhere", "a file", "."]
ODD_TASKS = ["x.py:Y", ":", ".py:", "\x00.py:X", "..py:X", "lcm"]


@st.composite
def commands(draw: st.DrawFn, verb: str, run: Path, work: Path) -> tuple[list[str], str]:
    """A verb with some of its flags and positional arguments, at most two of them nonsense; and what standard input says."""
    verbs = next(a for a in parser_of(verb)._actions if isinstance(a, argparse._SubParsersAction))
    actions = [a for a in verbs.choices[verb]._actions if not isinstance(a, argparse._HelpAction)]
    words = [verb, *map(str, SMALL[verb])]
    places = st.one_of(st.just("a file"), st.integers(0, 10**6).map(lambda n: f"new-{n}"))
    odd = [draw(st.integers(0, 2))]

    def value_of(action: argparse.Action) -> str:
        name = action.dest.removeprefix("config.")
        path = action.type in (Path, run_path) or name in ("init_from", "train_file", "test_file")
        if odd[0] and draw(st.booleans()):
            odd[0] -= 1
            if path:
                return draw(st.sampled_from(ODD_PATHS))
            if name == "task":
                return draw(st.sampled_from(ODD_TASKS))
            bounds = ["-1", "0", "x", "", "nan", "1e400"]
            return draw(st.sampled_from(bounds) if name in BOUNDED else st.one_of(
                st.sampled_from([*NONSENSE, HUGE]), st.text(max_size=6)))
        if path:
            sound = {"train_file": "pairs.csv", "test_file": "pairs.csv", "file": "model.pth"}
            if name in sound:
                return str(work / sound[name])
            return str(run if name in ("run_folder", "run_folders", "init_from") else work / draw(places))
        if action.choices:
            return str(draw(st.sampled_from(list(action.choices))))
        return draw(st.sampled_from(BOUNDED.get(name) or SOUND.get(name) or GOOD))

    optional = [a for a in actions if a.option_strings]
    for action in draw(st.lists(st.sampled_from(optional), max_size=4, unique=True)) if optional else []:
        words.append(draw(st.sampled_from(action.option_strings)))
        if action.nargs != 0:
            words.append(value_of(action))
    for action in (a for a in optional if a.required and draw(st.integers(0, 9))):
        words += [action.option_strings[0], value_of(action)]
    for action in (a for a in actions if not a.option_strings):
        most = 2 if action.nargs in ("+", "*") else 1
        least = 0 if action.nargs in ("?", "*") else 1
        words += [value_of(action) for _ in range(draw(st.integers(least, most)))]
    return words, draw(st.one_of(st.just("12,18\n7,3\n"), st.text(max_size=20)))


parser_of = functools.cache(build_parser)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run, and beside it files that some arguments name."""
    folder = tmp_path_factory.mktemp("arguments")
    run_to_end(["train", *TINY, "--max", 60, "--max-epochs", 2, "--out", folder / "run"], folder / "log")
    work = folder / "work"
    work.mkdir()
    (work / "a file").write_text("a,b,prediction\n2,4,2\n")
    (work / "a ledger").mkdir()
    (work / "pairs.csv").write_text("a,b,gcd\n" + "2,4,2\n3,9,3\n" * 30)
    make_checkpoint(work / "model.pth", maxint=60)
    return folder


@pytest.mark.parametrize("verb", VERBS)
def test_any_arguments_to_any_command(verb: str, place: Path, figures: Figures, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cases that nobody chose; a case that hangs is in the file `last case`."""
    monkeypatch.chdir(place / "work")
    codes: Counter[int] = Counter()

    def one_case(case: tuple[list[str], str]) -> None:
        words, stdin = case
        (place / "last case").write_text(repr(words))
        out, err = io.StringIO(), io.StringIO()
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        with redirect_stdout(out), redirect_stderr(err):
            code = main(words)
        said = err.getvalue()
        assert code in ((0, 2, 3) if words[0] in ("train", "demo") else (0, 2)), (words, code, said)
        assert "Traceback" not in said + out.getvalue()
        if code == 2:
            errors = [line for line in said.splitlines() if line.startswith("gcdformer: ")]
            assert len(errors) == 1 and errors[0].isprintable(), (words, said)
        codes[code] += 1

    cases = SLOW.get(verb, 29) * count(1, 3)
    bounds = settings(max_examples=cases, deadline=None, derandomize=True, database=None, phases=[Phase.generate],
                      suppress_health_check=list(HealthCheck))
    bounds(given(commands(verb, place / "run", place / "work"))(one_case))()
    figures(13, f"any arguments to {verb} in one process: exit 0, 2 (3: diverged)", f"{codes[0]}, {codes[2]} ({codes[3]})",
            "no other, no traceback")
    assert sum(codes.values()) == cases and codes[2] > 0
