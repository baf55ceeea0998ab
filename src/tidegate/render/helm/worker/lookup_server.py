"""API server for `lookup` in templates, inside the worker.

The SDK sends HTTP requests to an API server. Workers reach no cluster: this server listens on the
loopback address instead. It returns the responses of the request; a path without one is recorded,
and the parent process reads it from the cluster and requests the render again.
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
    """API server for one render at a time. It listens once a template may use `lookup`."""

    def __init__(self) -> None:
        self._responses: Mapping[str, LookupResult] = {}
        self.missing_paths: list[str] = []
        """Requested paths without a known response, in the order of the requests."""

    def reset(self, responses: Mapping[str, LookupResult]) -> None:
        """Set the known responses, and forget the previous render."""
        self._responses, self.missing_paths = responses, []

    @cached_property
    def cluster(self) -> sdk.Handle:
        """Return the SDK's configuration for this server. The path is secret on this machine."""
        secret_path = f"/{token_urlsafe()}"

        server = ThreadingHTTPServer(
            (LOOPBACK, 0), partial(_LookupConnection, secret_path, self._respond)
        )
        Thread(target=server.serve_forever, name="lookups", daemon=True).start()
        return sdk.create_cluster_config(f"http://{LOOPBACK}:{server.server_port}{secret_path}")

    def _respond(self, path: str) -> LookupResult:
        response = self._responses.get(path)
        if response is None:
            self.missing_paths.append(path)
        return response or LOOKUP_NOT_FOUND


class _LookupConnection(BaseHTTPRequestHandler):
    """A connection of the SDK's client."""

    protocol_version = "HTTP/1.1"

    def __init__(
        self,
        secret_path: str,
        respond: Callable[[str], LookupResult],
        request: socket,
        address: tuple[str, int],
        server: ThreadingHTTPServer,
    ) -> None:
        self._secret_path, self._respond = secret_path, respond
        super().__init__(request, address, server)

    def do_GET(self) -> None:
        """Return the response of a lookup."""
        path = self.path.partition("?")[0]
        has_secret_path = path.startswith(f"{self._secret_path}/")
        response = (
            self._respond(path.removeprefix(self._secret_path))
            if has_secret_path
            else LOOKUP_NOT_FOUND
        )
        body = response.body.encode()
        self.send_response(response.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments: object) -> None:
        """Log nothing: paths contain names of Secrets."""
