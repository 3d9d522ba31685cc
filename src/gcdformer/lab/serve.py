"""Listening: a socket bound before anything is printed, a browser opened once the page answers, a clean end."""

from __future__ import annotations

import ipaddress
import socket
import sys
import threading
import webbrowser
from pathlib import Path

import uvicorn

from gcdformer.errors import UserError
from gcdformer.lab.catalogue import Catalogue
from gcdformer.lab.server import create_app

DEFAULT_PORT = 8420
Address = ipaddress.IPv4Address | ipaddress.IPv6Address


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
        url = f"http://{url_host(host)}:{found.getsockname()[1]}/"
        where = "" if is_loopback(host) else f"listening on {host}; "
        print(f"lab  {url}   ({where}Ctrl-C to close)", flush=True)
        if not Catalogue(root).has_runs():
            print(f"no runs in {root} yet: showing the bundled examples", flush=True)
        if not is_loopback(host):
            more = ", ask their models and start trainings" if allow_training else " and ask their models"
            print(f"caution: anyone on the network can read these runs{more}", file=sys.stderr, flush=True)
        if open_browser:
            threading.Timer(0.3, webbrowser.open, [url]).start()
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False, server_header=False,
                                               timeout_graceful_shutdown=3))
        server.run(sockets=[found])


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches what listens there."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def url_host(host: str) -> str:
    """The host as others write it in an address; for "all addresses", the one that leads out of this machine."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if address.is_unspecified:
        address = outward_address(address.version) or address
    return f"[{address}]" if address.version == 6 else str(address)


def outward_address(version: int) -> Address | None:
    """This machine's own address on its usual network: that of a datagram socket with a far end, which sends nothing. None
    without a network."""
    family, far = (socket.AF_INET6, "2001:db8::1") if version == 6 else (socket.AF_INET, "192.0.2.1")
    with socket.socket(family, socket.SOCK_DGRAM) as found:
        try:
            found.connect((far, 9))
        except OSError:
            return None
        return ipaddress.ip_address(found.getsockname()[0])
