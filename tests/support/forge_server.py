"""A stand-in for GitHub's API: the comments of one pull request."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import parse_qs, urlparse


class ForgeServer(ThreadingHTTPServer):
    """The server, with its comments by number and the requests that changed them."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Requests)
        self.comments: dict[int, str] = {}
        self.authors: dict[int, str] = {}
        """Authors of comments; a job writes the others."""
        self.user = ""
        """The user of the token; empty for the token of a job."""
        self.writes: list[tuple[str, str]] = []
        """Method and path of each request that was to change a comment."""
        self.is_read_only = False
        """Whether the token may not write, as that of a fork."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


@contextmanager
def forge_server() -> Iterator[ForgeServer]:
    """Serve a pull request without comments."""
    server = ForgeServer()
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Requests(BaseHTTPRequestHandler):
    @property
    def _forge(self) -> ForgeServer:
        assert isinstance(self.server, ForgeServer)
        return self.server

    def do_GET(self) -> None:
        if self.path == "/user":
            self._answer(200 if self._forge.user else 403, {"login": self._forge.user})
            return
        query = parse_qs(urlparse(self.path).query)
        size, page = int(query["per_page"][0]), int(query["page"][0])
        entries = [
            {"id": number, "body": body, "user": self._user(number)}
            for number, body in self._forge.comments.items()
        ]
        self._answer(200, entries[(page - 1) * size : page * size])

    def do_POST(self) -> None:
        self._write(len(self._forge.comments) + 1, 201)

    def do_PATCH(self) -> None:
        self._write(int(self.path.rpartition("/")[2]), 200)

    def log_message(self, *_: object) -> None:
        """Log nothing."""

    def _user(self, number: int) -> dict[str, str]:
        login = self._forge.authors.get(number, "")
        return {"login": login, "type": "User"} if login else {"login": "job[bot]", "type": "Bot"}

    def _write(self, number: int, status: int) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["body"]
        self._forge.writes.append((self.command, self.path))
        if self._forge.is_read_only:
            self._answer(403, {"message": "Resource not accessible by integration"})
            return
        self._forge.comments[number] = body
        self._forge.authors.setdefault(number, self._forge.user)
        self._answer(status, {"id": number})

    def _answer(self, status: int, document: object) -> None:
        content = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
