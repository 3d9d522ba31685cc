"""A lab on a port of its own, in a thread, and the runs it is tried on."""

from __future__ import annotations

import http.client
import json
import shutil
import threading
from pathlib import Path
from typing import Any, Self

import uvicorn

from conftest import tiny_config
from gcdformer import Run, train
from gcdformer.lab.network import listen
from gcdformer.lab.server import create_app
from test_report import long_run

SHUTDOWN_SECONDS = 90
"""Longer than the lab gives its trainings to save themselves."""


class Lab:
    """Started when made; use it in a `with` block, or `close` it."""

    def __init__(self, root: Path, *, allow_training: bool = False) -> None:
        self.socket = listen("127.0.0.1", 0)
        self.port: int = self.socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/"
        self.server = uvicorn.Server(uvicorn.Config(create_app(root, allow_training=allow_training), log_level="warning",
                                                    timeout_graceful_shutdown=3))
        self.thread = threading.Thread(target=self.server.run, kwargs={"sockets": [self.socket]}, daemon=True)
        self.thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def request(
        self, target: str, method: str = "GET", body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> tuple[int, bytes, dict[str, str]]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port)  # waits as long as the test may
        try:
            connection.request(method, target, body, headers or {})
            answer = connection.getresponse()
            return answer.status, answer.read(), {name.lower(): value for name, value in answer.getheaders()}
        finally:
            connection.close()

    def get(self, target: str, status: int = 200) -> Any:
        code, body, _ = self.request(target)
        assert code == status, (target, code, body[:300])
        return json.loads(body)

    def close(self) -> None:
        self.server.should_exit = True
        self.thread.join(SHUTDOWN_SECONDS)
        self.socket.close()
        assert not self.thread.is_alive(), "the lab does not end"


def make_runs(folder: Path, trained: Run) -> Path:
    """Runs of several kinds, one of them damaged, and a link that leads out."""
    shutil.copytree(trained.path, folder / "tiny")
    train(tiny_config(family="gru", heads=0, max_epochs=1, seed=2), folder / "sweep" / "gru")
    train(tiny_config(task="comparison", max_epochs=1), folder / "comparison")
    long_run(folder / "long", 60)
    shutil.copytree(trained.path, folder / "damaged")
    (folder / "damaged" / "config.toml").write_text("nothing of ours")
    (folder / "link").symlink_to(trained.path)
    (folder / ".hidden").mkdir()
    (folder / "notes").mkdir()
    return folder
