"""The few HTTP requests that starting a control plane takes, with the standard library alone.

Not the client under test: a tool that checks another must not share its mistakes.
"""

from __future__ import annotations

import http.client
import ssl
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from plane.errors import PlaneError
from tidegate.errors import Location, sanitize
from tidegate.model.k8s.objects import Json
from tidegate.model.k8s.secret import SecretValue

ANSWER_SECONDS = 5.0
POLL_SECONDS = 0.05


class Client:
    """Asks one server on loopback. No proxy, no redirect, one connection for each request."""

    def __init__(self, server: str, *, ca: Path, token: SecretValue | None = None) -> None:
        self._server = server
        self._token = token
        self._tls = ssl.create_default_context(cafile=str(ca))

    def get(self, path: str) -> Json:
        """The value at a path, or None."""
        return self._decoded("GET", path, accepted=(200, 404))

    def post(
        self, path: str, body: Mapping[str, Json], *, accepted: tuple[int, ...] = (200, 201, 409)
    ) -> Json:
        """Send something; that it is there already is fine."""
        return self._decoded("POST", path, dict(body), accepted=accepted)

    def answers(self, path: str) -> bool:
        """Whether the server says 200. A server that is not there says nothing."""
        try:
            return self._ask("GET", path, None)[0] == http.HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            return False

    def _decoded(
        self, method: str, path: str, body: Json = None, *, accepted: tuple[int, ...]
    ) -> Json:
        status, text = self._ask(method, path, body)
        if status not in accepted:
            problem = f"{method} {path} was answered with {status}: {sanitize(text.decode())}"
            raise PlaneError("plane.request", problem, location=Location(self._server))
        if status == http.HTTPStatus.NOT_FOUND:
            return None
        answer: Json = msgspec.json.decode(text)
        return answer

    def _ask(self, method: str, path: str, body: Json) -> tuple[int, bytes]:
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token.reveal()}"
        content = None if body is None else msgspec.json.encode(body)
        connection = self._connect()
        try:
            connection.request(method, path, content, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def _connect(self) -> http.client.HTTPConnection:
        url = urlsplit(self._server)
        host = url.netloc
        if url.scheme == "https":
            return http.client.HTTPSConnection(host, timeout=ANSWER_SECONDS, context=self._tls)
        return http.client.HTTPConnection(host, timeout=ANSWER_SECONDS)


def wait_until(claim: Callable[[], bool], *, seconds: float) -> bool:
    """Ask again and again until it is so; False when the time is over."""
    deadline = time.monotonic() + seconds
    while not claim():
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_SECONDS)
    return True
