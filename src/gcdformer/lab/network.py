"""Listening and being talked to: the socket, the address that is printed, and who may send requests.

A page elsewhere on the web can make a browser send requests to 127.0.0.1, and a name it owns can be made to point there;
checking Host and Origin turns both away. Knows no run and no endpoint.
"""

from __future__ import annotations

import ipaddress
import platform
import socket
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gcdformer.errors import UserError

DEFAULT_PORT = 8420
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
LOCAL = {"localhost", "127.0.0.1", "::1"}
LARGEST_BODY = 10_000
LARGEST_TARGET = 4_000
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data:; style-src 'self'; object-src 'none'; "
                               "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Guard:
    """ASGI middleware in front of everything."""

    def __init__(self, app: ASGIApp, host: str) -> None:
        self.app = app
        self.open_to_others = host not in LOCAL
        self.names = LOCAL | {host, platform.node()} if self.open_to_others else LOCAL

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
            else:
                await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        refusal = self.refusal(Headers(scope=scope), scope)
        if refusal is not None:
            code, text = refusal
            await JSONResponse({"error": text}, code)(scope, receive, send_with_headers)
        else:
            await self.app(scope, receive, send_with_headers)

    def refusal(self, headers: Headers, scope: Scope) -> tuple[int, str] | None:
        """Why a request is turned away, or None."""
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self.is_ours(hosts[0]):
            return 421, "host: this server is not known by that name"
        origin = headers.get("origin")
        if origin is not None and origin != f"http://{hosts[0]}":
            return 403, "origin: requests from other pages are refused"
        if headers.get("sec-fetch-site") in ("cross-site", "same-site") and scope["path"].startswith("/api/"):
            return 403, "origin: requests from other pages are refused"
        if len(scope.get("raw_path", b"")) + len(scope["query_string"]) > LARGEST_TARGET:
            return 414, "url: too long"
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > LARGEST_BODY or "chunked" in headers.get("transfer-encoding", "").lower():
            return 413, f"body: at most {LARGEST_BODY} bytes, of a stated length"
        return None

    def is_ours(self, host: str) -> bool:
        """One of our names; bound to other addresses than loopback, any address that is no name."""
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        if name in self.names:
            return True
        return self.open_to_others and parse_address(name) is not None


def listen(host: str, port: int | None) -> socket.socket:
    """A listening socket; without a port the usual one, or any if that is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for choice in (DEFAULT_PORT, 0) if port is None else (port,):
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, choice))
            listener.listen(128)
            return listener
        except OSError as error:
            listener.close()
            if port is None and choice:
                continue
            raise UserError(f"port: cannot listen on {host} port {choice}: {error.strerror or error}; "
                            "choose another --port (0: any free one)") from None
    raise AssertionError("port 0 is always free or an error")


def parse_address(name: str) -> Address | None:
    """The address that this text is; None for a name."""
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches what listens there."""
    address = parse_address(host)
    return host == "localhost" if address is None else address.is_loopback


def url_host(host: str) -> str:
    """The host as others write it in an address; for "all addresses", the one that leads out of this machine."""
    address = parse_address(host)
    if address is None:
        return host
    if address.is_unspecified:
        address = outward_address(address.version) or address
    return f"[{address}]" if address.version == 6 else str(address)


def outward_address(version: int) -> Address | None:
    """This machine's own address on its usual network: that of a datagram socket with a far end, which sends nothing. None
    without a network."""
    family, far = (socket.AF_INET6, "2001:db8::1") if version == 6 else (socket.AF_INET, "192.0.2.1")
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((far, 9))
        except OSError:
            return None
        return ipaddress.ip_address(probe.getsockname()[0])
