"""Listening: a socket bound before anything is printed, a browser opened once the page answers, a clean end."""

from __future__ import annotations

import socket
import threading
import webbrowser
from pathlib import Path

import uvicorn

from gcdformer.errors import UserError
from gcdformer.lab.server import create_app

DEFAULT_PORT = 8420


def listen(host: str, port: int | None) -> socket.socket:
    """A listening socket; without a port the usual one, or any if that is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for choice in (DEFAULT_PORT, 0) if port is None else (port,):
        found = socket.socket(family, socket.SOCK_STREAM)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            found.bind((host, choice))
            found.listen(128)
            return found
        except OSError as error:
            found.close()
            if port is None and choice:
                continue
            raise UserError(f"port: cannot listen on {host} port {choice}: {error.strerror or error}; "
                            "choose another --port (0: any free one)") from None
    raise AssertionError("port 0 is always free or an error")


def serve(root: Path, *, host: str, port: int | None, open_browser: bool, allow_training: bool) -> None:
    """Serve until Ctrl-C or SIGTERM."""
    app = create_app(root, host=host, allow_training=allow_training)
    with listen(host, port) as found:
        shown = f"[{host}]" if ":" in host else "127.0.0.1" if host == "0.0.0.0" else host
        url = f"http://{shown}:{found.getsockname()[1]}/"
        print(f"lab  {url}   (Ctrl-C to close)", flush=True)
        if open_browser:
            threading.Timer(0.3, webbrowser.open, [url]).start()
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False, server_header=False,
                                               timeout_graceful_shutdown=3))
        server.run(sockets=[found])
