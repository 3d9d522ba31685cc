"""The command line in processes forked from a server that has it loaded, torch and the compiled training step included.

A start then costs hundredths of a second of CPU time instead of five seconds. From there on the process is one like any
other: arguments, folder, environment, input, output, signals and exit code of its own. How the interpreter itself starts
and ends is tested with real processes, in test_habits.py, test_pipes.py and faults/test_signals.py.
"""

from __future__ import annotations

import fcntl
import multiprocessing
import os
import pty
import runpy
import signal
import subprocess
import sys
import tempfile
import termios
from collections.abc import Callable, Mapping
from multiprocessing import forkserver, resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import IO, Self, TextIO

import pytest

from leftovers import note_start

SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(["preloaded"])


def fork(target: Callable[..., object], *args: object) -> BaseProcess:
    """Call a function in a process of its own."""
    paths = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    with pytest.MonkeyPatch.context() as environment:  # the server finds preloaded.py by it
        environment.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
        forkserver.ensure_running()
    process: BaseProcess = SERVER.Process(target=target, args=args)
    process.start()
    note_start()
    return process


def stop_server() -> None:
    """End the server, if there is one, and wait until it has ended: nothing is left running behind the tests."""
    forkserver._forkserver._stop()  # type: ignore[attr-defined]
    resource_tracker._resource_tracker._stop()  # type: ignore[attr-defined]


def start(words: tuple[object, ...], stdin: int, stdout: int, stderr: int, *, cwd: Path | None = None,
          environment: Mapping[str, str] = os.environ, module: str = "gcdformer") -> BaseProcess:
    """Start a command with these open files, in this folder or the present one."""
    streams = [Connection(os.dup(stream)) for stream in (stdin, stdout, stderr)]  # what is sent to a process as an open file
    try:
        return fork(run, module, [str(word) for word in words], str(cwd or Path.cwd()), dict(environment), streams)
    finally:
        for stream in streams:
            stream.close()


def run(module: str, words: list[str], cwd: str, environment: dict[str, str], streams: list[Connection]) -> None:
    """In the process: what `python -m` does with a module, in a session of its own."""
    assert "preloaded" in sys.modules, "the server has nothing loaded"
    for number, stream in enumerate(streams):
        os.dup2(stream.fileno(), number)
        stream.close()
    os.setsid()
    if os.isatty(0):
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    sys.stdin, sys.stdout = os.fdopen(0), os.fdopen(1, "w")
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace")
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = [module, *words]
    runpy.run_module(module, run_name="__main__")


def ended(process: BaseProcess) -> int:
    """The exit code of a process when it has ended; the test's own limit ends one that hangs."""
    process.join()
    code = process.exitcode
    assert code is not None
    return code


def gcdformer(*words: object, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    with tempfile.TemporaryFile("w+") as given, tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        given.write(stdin or "")
        given.flush()
        given.seek(0)
        code = ended(start(words, given.fileno(), out.fileno(), err.fileno()))
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(words, code, out.read(), err.read())


class Running:
    """A command that runs, with its output, and its errors in between, in a pipe; it ends with the `with` block."""

    def __init__(self, *words: object, cwd: Path | None = None, module: str = "gcdformer") -> None:
        reader, writer = os.pipe()
        with Path(os.devnull).open() as nothing:
            self.process = start(words, nothing.fileno(), writer, writer, cwd=cwd, module=module)
        os.close(writer)
        self.stdout: TextIO = os.fdopen(reader)

    def send_signal(self, number: signal.Signals) -> None:
        assert self.process.pid is not None
        os.kill(self.process.pid, number)

    def wait(self) -> int:
        return ended(self.process)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.join()
        self.stdout.close()


def in_terminal(*words: object, columns: int = 100) -> tuple[int, str]:
    """Run a command in a terminal of its own; exit code and all that it drew."""
    terminal, inside = pty.openpty()
    with pytest.MonkeyPatch.context() as environment:
        for name, value in {"COLUMNS": str(columns), "LINES": "40", "TERM": "xterm-256color"}.items():
            environment.setenv(name, value)
        process = start(words, inside, inside, inside)
    os.close(inside)
    drawn = b""
    while True:
        try:
            part = os.read(terminal, 65_536)
        except OSError:  # Linux says so when the other end closes
            break
        if not part:
            break
        drawn += part
    os.close(terminal)
    return ended(process), drawn.decode()


class TrialProcess:
    """What a sweep's launcher on this machine needs of `subprocess.Popen`, with a process that is forked."""

    def __init__(self, command: list[str], *, stdin: int, stdout: int, stderr: IO[bytes], env: dict[str, str],
                 start_new_session: bool) -> None:
        assert command[:2] == [sys.executable, "-m"] and stdin == stdout == subprocess.PIPE and start_new_session
        (orders, to_orders), (from_said, said) = os.pipe(), os.pipe()
        self.process = start(tuple(command[3:]), orders, said, stderr.fileno(), environment=env, module=command[2])
        os.close(orders)
        os.close(said)
        self.stdin, self.stdout = os.fdopen(to_orders, "wb"), os.fdopen(from_said, "rb")

    def poll(self) -> int | None:
        return self.process.exitcode

    returncode = property(poll)

    def wait(self) -> int:
        return ended(self.process)

    def kill(self) -> None:
        self.process.kill()

    def send_signal(self, number: signal.Signals) -> None:
        assert self.process.pid is not None
        os.kill(self.process.pid, number)
