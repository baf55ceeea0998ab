"""Calls that are given up while the server is silent."""

from __future__ import annotations

import asyncio
import gc
import socket
import ssl
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.certificates import issue
from tidegate.errors import Location
from tidegate.kube.access.context import Anonymous, KubeTarget
from tidegate.kube.http_requests import HttpRequest
from tidegate.kube.transport import InFlightRequest, Transport

HERE = Location("config", 7)
AUTHORITY = issue("authority", is_authority=True)
SERVER = issue("server", AUTHORITY)


@contextmanager
def silent_server(folder: Path, connected: threading.Event) -> Iterator[int]:
    """Accepts a connection, reads a request, and never answers or closes."""
    (folder / "server.pem").write_bytes(SERVER.certificate + SERVER.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        done = threading.Event()

        def serve() -> None:
            accepted, _ = listening.accept()
            with context.wrap_socket(accepted, server_side=True) as talking:
                talking.recv(1)
                connected.set()
                done.wait()

        server = threading.Thread(target=serve)
        server.start()
        try:
            yield listening.getsockname()[1]
        finally:
            done.set()
            server.join()


async def give_up(port: int, connected: threading.Event) -> None:
    target = KubeTarget(
        name="here",
        server=f"https://localhost:{port}",
        namespace="default",
        user="jane",
        login=Anonymous(),
        ca=AUTHORITY.certificate,
        ca_location=HERE,
        location=HERE,
    )
    async with Transport(target) as transport, asyncio.TaskGroup() as group:
        call = group.create_task(transport.send(HttpRequest("GET", "/version"), InFlightRequest()))
        await asyncio.to_thread(connected.wait)
        call.cancel()


def test_a_cancelled_call_leaves_no_open_connection(tmp_path: Path) -> None:
    connected = threading.Event()
    with silent_server(tmp_path, connected) as port, warnings.catch_warnings(record=True) as left:
        warnings.simplefilter("always", ResourceWarning)

        asyncio.run(give_up(port, connected))

        gc.collect()
    assert [str(item.message) for item in left] == []
