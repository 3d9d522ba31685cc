"""The sign of life: when it comes, where it goes, and that every verb that may take long gives one before its work."""

from __future__ import annotations

import threading

import pytest

from gcdformer.commands import progress as module
from gcdformer.commands.progress import PlainLines, progress

PATIENCE = 60.0
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
