"""API server for a world on this machine, with its own kubeconfig.

async with serve_world(world, directory) as served:
    ...                      # kubectl --kubeconfig directory/kubeconfig get pods

`run_sandbox` serves a long-running simulated cluster.
"""

from __future__ import annotations

import asyncio
import base64
import os
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path

import msgspec

from tidegate.apiserver.server import HOST, ApiServer, serve_http
from tidegate.apiserver.switchboard import RealTimeDriver
from tidegate.documents.dump import to_yaml
from tidegate.errors import ClusterError
from tidegate.flows.sandbox_home import CONTEXT, KUBECONFIG
from tidegate.model.objects import Json, Kind, Ref
from tidegate.schema.builtin import release
from tidegate.world.calls import Verb, Write
from tidegate.world.protocol import World


class ServedWorld(msgspec.Struct, frozen=True):
    """Address of a served world."""

    address: str
    clock_task: asyncio.Task[None]
    """The task that advances the time of the world; it never finishes by itself."""


@asynccontextmanager
async def serve_world(
    world: World, directory: Path, *, pace: float = 1.0, port: int = 0
) -> AsyncIterator[ServedWorld]:
    """Serve a world until the context is left.

    `directory` must not be shared. The kubeconfig in it is deleted when the server stops.
    """
    if find_spec("cryptography") is None:
        problem = "a server needs a certificate, and `cryptography` is not installed"
        raise ClusterError("cluster.sandbox", problem, hint="install `tidegate[sandbox]`")
    from tidegate.apiserver.certificate import make_certificate

    driver, token = RealTimeDriver(world, pace=pace), secrets.token_urlsafe(32)
    certificate, tls = make_certificate(directory)
    clock_task = asyncio.get_running_loop().create_task(
        driver.run(), name="the time of a served world"
    )
    try:
        await driver.request(_node_ready_patch())
        handler = ApiServer(driver, token).handle
        async with serve_http(handler, port=port, tls=tls) as bound_port:
            address = f"https://{HOST}:{bound_port}"
            _write_private_file(
                directory / KUBECONFIG, _build_kubeconfig(address, certificate, token)
            )
            yield ServedWorld(address, clock_task)
    finally:
        (directory / KUBECONFIG).unlink(missing_ok=True)
        clock_task.cancel()
        await asyncio.wait((clock_task,))


def _node_ready_patch() -> Write:
    """Return the node status that a kubelet would write; simulated kubelets write none."""
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "simulated"}
    status = {"conditions": [ready], "nodeInfo": {"kubeletVersion": release()}}
    body = msgspec.json.encode({"status": status})
    ref = Ref(Kind("", "v1", "Node"), "", "node-1")
    return Write(verb=Verb.PATCH, ref=ref, body=body, subresource="status", manager="kubelet")


def _write_private_file(path: Path, content: bytes) -> None:
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)


def _build_kubeconfig(address: str, certificate: bytes, token: str) -> bytes:
    authority = base64.b64encode(certificate).decode()
    entries: dict[str, Json] = {
        "clusters": [
            {
                "name": CONTEXT,
                "cluster": {"server": address, "certificate-authority-data": authority},
            }
        ],
        "users": [{"name": CONTEXT, "user": {"token": token}}],
        "contexts": [{"name": CONTEXT, "context": {"cluster": CONTEXT, "user": CONTEXT}}],
    }
    header: dict[str, Json] = {"apiVersion": "v1", "kind": "Config", "current-context": CONTEXT}
    return to_yaml({**header, **entries}).encode()
