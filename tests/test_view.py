"""The live page in a real pseudo-terminal, and the plain lines without one."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path


def in_terminal(*words: object, columns: int = 100) -> tuple[int, str]:
    """Run the command line in a terminal of its own; exit code and all that it drew."""
    process, terminal = pty.fork()
    if process == 0:
        os.environ.update(COLUMNS=str(columns), LINES="40", TERM="xterm-256color")
        os.execv(sys.executable, [sys.executable, "-m", "gcdformer", *map(str, words)])
    drawn = b""
    while True:
        try:
            part = os.read(terminal, 65_536)
        except OSError:  # Linux says so when the other end closes
            break
        if not part:
            break
        drawn += part
    _, status = os.waitpid(process, 0)
    return os.waitstatus_to_exitcode(status), drawn.decode()


def test_the_live_page_shows_what_is_learned(tmp_path: Path) -> None:
    code, drawn = in_terminal("train", "--out", tmp_path / "run", "--base", 10, "--max", 1000, "--dim", 16, "--heads", 2,
                              "--batch-size", 16, "--epoch-size", 640, "--test-size", 1000, "--max-epochs", 4, "--lr", 0.01,
                              "--threads", 1, "--schedule", "constant", "--operands", "uniform")
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", drawn)
    assert code == 0 and "Traceback" not in text
    for word in ("gcd in base 10", "examples/s", "correct GCD", "f(k), k = 1 …", "max_epochs 4 reached", "81 …",
                 "one prediction f(k)", "report  "):
        assert word in text, word
    assert "\x1b[1;32m" in drawn  # a correct GCD in green
    assert max(len(line) for line in text.replace("\r", "\n").split("\n")) <= 100


def test_a_reader_that_goes_away_ends_nothing(tmp_path: Path) -> None:
    """As `gcdformer train … | head -n 1`, or a `tee` that dies."""
    words = ["train", "--out", tmp_path / "run", "--base", 10, "--max", 1000, "--dim", 16, "--heads", 2, "--batch-size", 16,
             "--epoch-size", 640, "--test-size", 1000, "--max-epochs", 4, "--threads", 1, "--operands", "uniform"]
    process = subprocess.Popen([sys.executable, "-m", "gcdformer", *map(str, words)], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stderr is not None
    with process:
        assert process.stdout.readline()
        process.stdout.close()
        said = process.stderr.read()
    assert process.returncode == 0 and said == "gcdformer: nobody reads the output any more; going on without it\n"
    assert len((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()) == 4
