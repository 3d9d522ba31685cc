"""The sign of life: when it comes, where it goes, and that every verb that may take long gives one before its work."""

from __future__ import annotations

import subprocess
import sys
import threading
from importlib.resources import files
from pathlib import Path

import pytest

from gcdformer.cli import VERBS, main
from gcdformer.display import progress as module
from gcdformer.display.progress import PlainLines, progress


@pytest.fixture(autouse=True)
def switched_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(module.SWITCH)


def test_it_can_be_switched_off(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(module, "PlainLines", None)  # not even made
    for switch, quiet in (("off", False), ("on", True)):
        monkeypatch.setenv(module.SWITCH, switch)
        with progress("working", quiet=quiet) as advance:
            advance(1)
    assert capsys.readouterr() == ("", "")

PATIENCE = 100.0
"""Seconds after which a sign that never comes is a failure; none of them is waited for where it comes."""


@pytest.fixture
def sign(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set when a line of progress has been printed; the first is due at once."""
    seen, say = threading.Event(), PlainLines.say

    def said(lines: PlainLines) -> None:
        say(lines)
        seen.set()

    monkeypatch.setattr(module, "FIRST", 0.0)
    monkeypatch.setattr(PlainLines, "say", said)
    return seen


def test_work_that_says_nothing_itself_is_seen_on_stderr(sign: threading.Event, capsys: pytest.CaptureFixture[str]) -> None:
    with progress("thinking"):
        assert sign.wait(PATIENCE)
    out, err = capsys.readouterr()
    assert out == "" and err.splitlines()[0] == "thinking, 0 s"


def test_lines_say_how_far(sign: threading.Event, capsys: pytest.CaptureFixture[str],
                           monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EVERY", 0.001)
    with progress("reading", total=8) as advance:
        for done, total in ((2, None), (3, 4), (9, None)):
            advance(done, total)
            for _ in range(2):  # the first of the two may have been under way before
                sign.clear()
                assert sign.wait(PATIENCE)
    shares = [line.partition(",")[0] for line in capsys.readouterr().err.splitlines()]
    assert {"reading: 25 %", "reading: 75 %", "reading: 100 %"} <= set(shares)


def test_quiet_and_short_work_say_nothing(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FIRST", PATIENCE)
    with progress("short", total=2) as advance:
        advance(1)
    monkeypatch.setattr(module, "PlainLines", None)
    with progress("quiet", quiet=True) as advance:
        advance(1, 2)
    assert capsys.readouterr() == ("", "")


def test_nothing_is_said_after_the_end_and_errors_pass(capsys: pytest.CaptureFixture[str]) -> None:
    before = threading.active_count()
    with pytest.raises(ZeroDivisionError), progress("failing"):
        1 / 0  # noqa: B018
    assert threading.active_count() == before


class Enough(Exception):
    """The work has begun, and nothing more is to be seen."""


AT_ONCE = {"encode", "completion"}
"""Verbs that have nothing long to do."""
ELSEWHERE = {"lab", "sample"}
"""Verbs whose own tests say what they show."""
BEFORE_TORCH: dict[str, list[str]] = {
    "train": ["--max-epochs", "1"], "demo": [], "describe": ["--no-timing"], "bench": [], "sweep": ["SWEEP", "--out", "out"],
    "evaluate": ["RUN"], "predict": ["RUN", "12", "18"], "seen": ["RUN", "12", "18"], "export": ["RUN", "--to", "exported"],
    "import-reference": ["SWEEP", "--to", "imported"], "mechanism": ["RUN"],
}
WITHOUT_TORCH: dict[str, tuple[list[str], str]] = {
    "explain": (["RUN"], "gcdformer.runs.run.Run.prediction_tables"),
    "reproduce": (["base_gcd"], "gcdformer.commands.reproduce.known_entries"),
    "report": (["RUN"], "gcdformer.report.page.write_report"),
    "runs": (["RUN"], "gcdformer.runs.query.RunsDatabase"),
    "theory": (["--base", "30"], "gcdformer.numbers.theory.exact_accuracy"),
}

STOPS_AT_TORCH = """
import importlib.abc, os, sys, threading
from gcdformer import cli
from gcdformer.display import progress

alive = threading.Event()

class Watched:
    def __init__(self, file): self.file = file
    def write(self, text): alive.set(); return self.file.write(text)
    def __getattr__(self, name): return getattr(self.file, name)

class AtTorch(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            os._exit(42 if alive.wait(PATIENCE) else 43)

progress.FIRST = 0.0
sys.stdout, sys.stderr = Watched(sys.stdout), Watched(sys.stderr)
sys.meta_path.insert(0, AtTorch())
print(cli.main(sys.argv[1:]), file=sys.__stderr__)
""".replace("PATIENCE", str(PATIENCE))


def test_every_verb_is_in_a_table() -> None:
    assert sorted([*AT_ONCE, *ELSEWHERE, *BEFORE_TORCH, *WITHOUT_TORCH]) == sorted(VERBS)


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What stands for the capitals in the tables."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sweep.toml").write_text("[budget]\nmax_epochs = 1\n")
    return {"RUN": str(files("gcdformer") / "lab" / "example"), "SWEEP": "sweep.toml"}


@pytest.mark.processes
@pytest.mark.parametrize("verb", BEFORE_TORCH)
def test_a_sign_of_life_comes_before_torch(verb: str, places: dict[str, str]) -> None:
    """Loading it takes seconds, on a machine that has not done so for a while; here it waits until something is said."""
    words = [verb, *(places.get(word, word) for word in BEFORE_TORCH[verb])]
    done = subprocess.run([sys.executable, "-c", STOPS_AT_TORCH, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 42, done.stdout + done.stderr


@pytest.mark.parametrize("verb", WITHOUT_TORCH)
def test_a_sign_of_life_comes_before_the_work(verb: str, places: dict[str, str], sign: threading.Event,
                                              monkeypatch: pytest.MonkeyPatch) -> None:
    words, work = WITHOUT_TORCH[verb]

    def begin(*args: object, **options: object) -> None:
        assert sign.wait(PATIENCE), "nothing was said before the work"
        raise Enough

    monkeypatch.setattr(work, begin)
    with pytest.raises(Enough):
        main([verb, *(places.get(word, word) for word in words)])
