"""An API server on this machine that has a few Secrets, and keeps what it was asked for."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

VERSION = {"major": "1", "minor": "36", "gitVersion": "v1.36.0"}
SECRETS = {
    "resource": "secrets",
    "responseKind": {"group": "", "version": "v1", "kind": "Secret"},
    "scope": "Namespaced",
    "verbs": ["get", "list"],
}
CORE = {"metadata": {"name": ""}, "versions": [{"version": "v1", "resources": [SECRETS]}]}
ABSENT = {
    "kind": "Status",
    "apiVersion": "v1",
    "status": "Failure",
    "reason": "NotFound",
    "message": "not found",
    "code": 404,
}


@dataclass(slots=True)
class SecretServer:
    """Where it listens, and which paths were asked for, in their order."""

    port: int
    requests: list[str] = field(default_factory=list)

    def write_kubeconfig(self, path: Path) -> Path:
        cluster = {"name": "c", "cluster": {"server": f"http://127.0.0.1:{self.port}"}}
        context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "c",
            "clusters": [cluster],
            "contexts": [context],
            "users": [{"name": "u", "user": {}}],
        }
        path.write_text(json.dumps(config))
        return path


@contextmanager
def secret_server(namespace: str, secrets: Mapping[str, bytes]) -> Iterator[SecretServer]:
    """Serve these until the block ends; they are JSON, by name."""
    pages = {
        "/version": json.dumps(VERSION).encode(),
        "/api": json.dumps({"items": [CORE]}).encode(),
        "/apis": json.dumps({"items": []}).encode(),
    }
    for name, body in secrets.items():
        pages[f"/api/v1/namespaces/{namespace}/secrets/{name}"] = body
    result = SecretServer(0)

    class _Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            result.requests.append(path)
            body = pages.get(path)
            self.send_response(404 if body is None else 200)
            named = {"details": {"name": path.rpartition("/")[2], "kind": "secrets"}}
            shown = json.dumps(ABSENT | named).encode() if body is None else body
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(shown)))
            self.end_headers()
            self.wfile.write(shown)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), _Answers) as server:
        result.port = int(server.server_address[1])
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield result
        finally:
            server.shutdown()
            thread.join()
