"""Answers what templates `lookup`, inside the worker: an API server that knows what it was told.

The SDK asks an API server by HTTP. Workers reach no cluster: this desk stands in for one, on this
machine's own address. What it was told is handed out; what it was not told is written down, and
whoever asked for the render brings it and asks again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from secrets import token_urlsafe
from socket import socket
from threading import Thread

from tidegate.model.units.chart_request import LOOKUP_NOT_FOUND, LookupResult
from tidegate.render.helm.worker import sdk

LOOPBACK = "127.0.0.1"


class LookupServer:
    """Open for one render at a time. It listens when a template may look something up."""

    def __init__(self) -> None:
        self._known: Mapping[str, LookupResult] = {}
        self.unseen: list[str] = []
        """What was asked for and is not known, in the order of asking."""

    def open(self, known: Mapping[str, LookupResult]) -> None:
        """Forget the render before."""
        self._known, self.unseen = known, []

    @cached_property
    def cluster(self) -> sdk.Handle:
        """What asks here. Nobody else on this machine knows where."""
        where = f"/{token_urlsafe()}"

        server = ThreadingHTTPServer((LOOPBACK, 0), partial(_Inquiry, where, self._answer))
        Thread(target=server.serve_forever, name="lookups", daemon=True).start()
        return sdk.create_cluster_config(f"http://{LOOPBACK}:{server.server_port}{where}")

    def _answer(self, path: str) -> LookupResult:
        known = self._known.get(path)
        if known is None:
            self.unseen.append(path)
        return known or LOOKUP_NOT_FOUND


class _Inquiry(BaseHTTPRequestHandler):
    """One connection of the SDK's client."""

    protocol_version = "HTTP/1.1"

    def __init__(
        self,
        where: str,
        answer: Callable[[str], LookupResult],
        request: socket,
        address: tuple[str, int],
        server: ThreadingHTTPServer,
    ) -> None:
        self._where, self._answer = where, answer
        super().__init__(request, address, server)

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        is_ours = path.startswith(f"{self._where}/")
        found = self._answer(path.removeprefix(self._where)) if is_ours else LOOKUP_NOT_FOUND
        body = found.body.encode()
        self.send_response(found.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_words: object) -> None:
        """Nobody reads it, and it would tell names of Secrets."""
