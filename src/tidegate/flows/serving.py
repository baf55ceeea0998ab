"""A world as an API server on this machine, with a kubeconfig of its own.

async with serving(world, home) as served:
    ...                      # kubectl --kubeconfig home/kubeconfig get pods
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

from tidegate.apiserver.server import HOST, ApiServer, listening
from tidegate.apiserver.switchboard import Switchboard
from tidegate.documents.dump import to_yaml
from tidegate.errors import ClusterError
from tidegate.flows.sandbox_home import CONTEXT, KUBECONFIG
from tidegate.model.objects import Json, Kind, Ref
from tidegate.schema.builtin import release
from tidegate.world.calls import Verb, Write
from tidegate.world.protocol import World


class ServedWorld(msgspec.Struct, frozen=True):
    """Where a world is served, and the task in which its time passes: for ever."""

    address: str
    time: asyncio.Task[None]


@asynccontextmanager
async def serving(
    world: World, home: Path, *, pace: float = 1.0, port: int = 0
) -> AsyncIterator[ServedWorld]:
    """Serve a world until the caller is done.

    `home` is a directory of nobody else's. The kubeconfig in it goes with the server.
    """
    if find_spec("cryptography") is None:
        problem = "a server needs a certificate, and `cryptography` is not installed"
        raise ClusterError("cluster.sandbox", problem, hint="install `tidegate[sandbox]`")
    from tidegate.apiserver.certificate import make_certificate

    board, token = Switchboard(world, pace=pace), secrets.token_urlsafe(32)
    certificate, tls = make_certificate(home)
    time = asyncio.get_running_loop().create_task(board.run(), name="the time of a served world")
    try:
        await board.ask(_well_node())
        answer = ApiServer(board, token).handle
        async with listening(answer, port=port, tls=tls) as found:
            address = f"https://{HOST}:{found}"
            _write_privately(home / KUBECONFIG, _kubeconfig(address, certificate, token))
            yield ServedWorld(address, time)
    finally:
        (home / KUBECONFIG).unlink(missing_ok=True)
        time.cancel()
        await asyncio.wait((time,))


def _well_node() -> Write:
    """What the node's kubelet would say; simulated ones run pods and say nothing of themselves."""
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "simulated"}
    status = {"conditions": [ready], "nodeInfo": {"kubeletVersion": release()}}
    body = msgspec.json.encode({"status": status})
    ref = Ref(Kind("", "v1", "Node"), "", "node-1")
    return Write(verb=Verb.PATCH, ref=ref, body=body, subresource="status", manager="kubelet")


def _write_privately(path: Path, text: bytes) -> None:
    path.unlink(missing_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(text)


def _kubeconfig(address: str, certificate: bytes, token: str) -> bytes:
    authority = base64.b64encode(certificate).decode()
    named: dict[str, Json] = {
        "clusters": [
            {
                "name": CONTEXT,
                "cluster": {"server": address, "certificate-authority-data": authority},
            }
        ],
        "users": [{"name": CONTEXT, "user": {"token": token}}],
        "contexts": [{"name": CONTEXT, "context": {"cluster": CONTEXT, "user": CONTEXT}}],
    }
    head: dict[str, Json] = {"apiVersion": "v1", "kind": "Config", "current-context": CONTEXT}
    return to_yaml({**head, **named}).encode()
