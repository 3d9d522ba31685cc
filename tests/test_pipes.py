"""A reader that closes the output early, as `| head -1` does, ends every verb quietly, with exit code 0."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from gcdformer import Run

pytestmark = pytest.mark.processes

VERBS = ["--help", "reproduce --help", "explain RUN", "explain RUN --json", "evaluate RUN", "reproduce", "reproduce claims",
         "reproduce 2 --json", "runs RUN", "theory --base 10"]


def run_into_closed_pipe(*words: str) -> subprocess.CompletedProcess[str]:
    """The command with an output that nobody reads: whatever it writes fails, from the first byte."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        return subprocess.run([sys.executable, "-m", "gcdformer", *words], stdout=writer, stderr=subprocess.PIPE, text=True,
                              timeout=120, check=False)
    finally:
        os.close(writer)


@pytest.mark.parametrize("line", VERBS)
def test_a_closed_pipe_ends_a_verb_quietly(line: str, trained: Run) -> None:
    done = run_into_closed_pipe(*(word.replace("RUN", str(trained.path)) for word in line.split()))
    assert done.returncode == 0
    assert not [word for word in ("Traceback", "Error", "Exception", "roken pipe") if word in done.stderr], done.stderr


def test_a_closed_pipe_hides_no_mistake() -> None:
    done = run_into_closed_pipe("reproduce", "24")
    assert done.returncode == 2 and "the paper has no Table 24" in done.stderr


def test_a_reader_that_takes_one_line() -> None:
    """The same as `| head -1`: the page is larger than what a pipe holds."""
    with subprocess.Popen([sys.executable, "-m", "gcdformer", "reproduce", "--markdown", "--quiet"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline() == "# The paper, cell by cell\n"
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 0
