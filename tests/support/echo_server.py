"""An HTTP server on this machine that answers with who came: path, headers, client certificate."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BORING = ("accept", "accept-encoding", "user-agent", "host", "connection")


class _Echo(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        shown = None
        if isinstance(self.connection, ssl.SSLSocket) and (seen := self.connection.getpeercert()):
            shown = str(seen["subject"])
        headers = sorted(
            [name.lower(), value]
            for name, value in self.headers.items()
            if name.lower() not in BORING and not name.lower().startswith("kubectl-")
        )
        body = json.dumps({"path": self.path, "headers": headers, "certificate": shown}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing."""


@contextmanager
def echo_server(context: ssl.SSLContext | None = None) -> Iterator[int]:
    """Serve until the block ends; gives the port."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Echo) as server:
        if context is not None:
            server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield int(server.server_address[1])
        finally:
            server.shutdown()
            thread.join()
