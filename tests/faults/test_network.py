"""No network at run time: `demo` in a network namespace of its own, or, where there is none, with every socket blocked."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from conftest import Figures

SMALL = ["--epoch-size", "2000", "--test-size", "200", "--dim", "32", "--threads", "1", "--max-epochs", "2"]
REACH = "import socket; socket.create_connection(('127.0.0.1', 9), timeout=2)"
BLOCKED = """
import socket, sys
class NoNetwork(socket.socket):
    def connect(self, *args): raise SystemExit("reached for the network: connect")
    def bind(self, *args): raise SystemExit("reached for the network: bind")
def refuse(*args, **options): raise SystemExit("reached for the network")
socket.socket = NoNetwork
socket.getaddrinfo = socket.create_connection = refuse
from gcdformer.cli import main
raise SystemExit(main(sys.argv[1:]))
"""


def test_demo_with_the_network_cut_off(tmp_path: Path, figures: Figures) -> None:
    namespace = ["unshare", "--net", "--map-root-user"] if os.getuid() else ["unshare", "--net"]
    can = shutil.which("unshare") and not subprocess.run([*namespace, "true"], capture_output=True, check=False).returncode
    words = [sys.executable, "-m", "gcdformer"] if can else [sys.executable, "-c", BLOCKED]
    prefix = namespace if can else []
    if can:  # the namespace is empty: not even the local host answers
        reach = subprocess.run([*prefix, sys.executable, "-c", REACH], capture_output=True, text=True, check=False)
        assert "unreachable" in reach.stderr
    result = subprocess.run([*prefix, *words, "demo", *SMALL], cwd=tmp_path, capture_output=True, text=True,
                            check=False)
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "runs" / "demo" / "report.html").stat().st_size > 10_000
    figures(16, "demo with the network cut off", "in a network namespace" if can else "with sockets blocked", "works")
