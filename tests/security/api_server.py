"""A malicious API server: endless, huge, deeply nested and false responses, terminal escapes."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.support.tidegate_runs import kubeconfig

MIB = 1024 * 1024
EVIL = "no\x1b[2J\r\n::add-mask::x\n##vso[a]"
CORE = {
    "metadata": {"name": ""},
    "versions": [
        {
            "version": "v1",
            "resources": [
                {
                    "resource": plural,
                    "responseKind": {"group": "", "version": "v1", "kind": kind},
                    "scope": "Namespaced",
                    "verbs": ["get", "list", "watch"],
                }
                for plural, kind in (("configmaps", "ConfigMap"), ("secrets", "Secret"))
            ],
        }
    ],
}
GOOD = {
    "/version": {"major": "1", "minor": "36", "gitVersion": "v1.36.0"},
    "/api": {"items": [CORE]},
    "/apis": {"items": []},
}


class MaliciousAnswer(Enum):
    """Its response to requests for objects, or to every request."""

    ENDLESS = "endless"
    BOMB = "bomb"
    NESTED = "nested"
    GARBAGE = "garbage"
    FORGED = "forged"
    WRONG_TYPES = "wrong types"
    HUGE_NUMBERS = "huge numbers"


def body_of(malice: MaliciousAnswer) -> tuple[bytes, dict[str, str]]:
    """What is sent, and with which headers; what is endless is sent again and again."""
    match malice:
        case MaliciousAnswer.ENDLESS:
            return b" " * MIB, {}
        case MaliciousAnswer.BOMB:
            return gzip.compress(b" " * (512 * MIB), 1), {"Content-Encoding": "gzip"}
        case MaliciousAnswer.NESTED:
            return b'{"items":' + b"[" * 100_000 + b"]" * 100_000 + b"}", {}
        case MaliciousAnswer.GARBAGE:
            return b"\xff\xfe\x00{", {}
        case MaliciousAnswer.FORGED:
            status = {"kind": "Status", "apiVersion": "v1", "message": EVIL, "code": 403}
            return json.dumps({**status, "reason": "Forbidden"}).encode(), {}
        case MaliciousAnswer.WRONG_TYPES:
            return b'{"kind":5,"metadata":{"resourceVersion":[]},"items":{"a":1}}', {}
        case MaliciousAnswer.HUGE_NUMBERS:
            return (
                b'{"metadata":{},"items":[{"metadata":{"generation":' + b"9" * 5_000 + b"}}]}",
                {},
            )


class _Hostile(BaseHTTPRequestHandler):
    """One connection; what is meant is on the server."""

    server: HostileServer  # type: ignore[mutable-override]

    def do_GET(self) -> None:
        path, server = self.path.partition("?")[0], self.server
        with suppress(ConnectionError):
            if path in GOOD and not server.at_once:
                self._say(json.dumps(GOOD[path]).encode(), {})
            elif server.malice is MaliciousAnswer.ENDLESS:
                self._send_headers({}, 200)
                while True:
                    self.wfile.write(server.body)
            else:
                self._say(server.body, server.headers, server.status)

    def _say(self, text: bytes, headers: dict[str, str], status: int = 200) -> None:
        self._send_headers({**headers, "Content-Length": str(len(text))}, status)
        self.wfile.write(text)

    def _send_headers(self, headers: dict[str, str], status: int) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **headers}.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing."""


class HostileServer(ThreadingHTTPServer):
    """`at_once`: every response is false; otherwise only those about objects."""

    daemon_threads = True

    def __init__(self, malice: MaliciousAnswer, *, at_once: bool) -> None:
        super().__init__(("127.0.0.1", 0), _Hostile)
        self.malice, self.at_once = malice, at_once
        self.body, self.headers = body_of(malice)
        self.status = 403 if malice is MaliciousAnswer.FORGED else 200


@contextmanager
def hostile_server(malice: MaliciousAnswer, folder: Path, *, at_once: bool) -> Iterator[Path]:
    """Serve until the block ends; gives a kubeconfig."""
    with HostileServer(malice, at_once=at_once) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield kubeconfig(folder, f"http://127.0.0.1:{server.server_address[1]}")
        finally:
            server.shutdown()
            thread.join()
