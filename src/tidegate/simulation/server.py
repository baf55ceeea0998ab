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
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path

import msgspec
from msgspec.structs import replace

from tidegate.apiserver.real_time_driver import RealTimeDriver, current_time
from tidegate.apiserver.server import HOST, ApiServer, serve_http
from tidegate.clusters.sandboxes import CONTEXT, KUBECONFIG, SimulationConfig, build_sandbox
from tidegate.documents.dump import to_yaml
from tidegate.errors import ClusterError
from tidegate.model.k8s.json_fields import get_mapping, object_kind
from tidegate.model.k8s.kinds import NODE
from tidegate.model.k8s.objects import Json, Ref
from tidegate.model.simulation.preinstalled import GivenCluster
from tidegate.schema.builtin import kubernetes_release, served_kinds
from tidegate.simulation.apply_files import DEFAULT_NAMESPACE, cluster_scoped_kinds, read_objects
from tidegate.simulation.daemon import lock_directory
from tidegate.world.protocol import World
from tidegate.world.requests import Verb, Write


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
        problem = "the simulated API server needs `cryptography`, which is not installed"
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
    status = {"conditions": [ready], "nodeInfo": {"kubeletVersion": kubernetes_release()}}
    body = msgspec.json.encode({"status": status})
    ref = Ref(NODE, "", "node-1")
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


STOP_SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


class RunningSandbox(msgspec.Struct, frozen=True):
    """Address and kubeconfig of a running simulated cluster."""

    address: str
    kubeconfig: Path


def with_given(config: SimulationConfig, files: Sequence[Path]) -> SimulationConfig:
    """Return the configuration with the objects of files as given objects."""
    documents = [document for path in files for document in read_objects(path)]
    cluster_scoped = cluster_scoped_kinds(served_kinds(), documents)
    objects = tuple(_with_namespace(document.body, cluster_scoped) for document in documents)
    return replace(config, assumed={"": GivenCluster(objects=objects)})


def _with_namespace(body: dict[str, Json], cluster_scoped: set[tuple[str, str]]) -> dict[str, Json]:
    """Return the body with the default namespace where it needs one and has none."""
    kind, metadata = (
        object_kind(body),
        get_mapping(body, "metadata"),
    )
    if (kind.group, kind.name) in cluster_scoped or metadata.get("namespace"):
        return body
    return {**body, "metadata": {**metadata, "namespace": DEFAULT_NAMESPACE}}


async def run_sandbox(
    config: SimulationConfig,
    directory: Path,
    *,
    pace: float,
    on_ready: Callable[[RunningSandbox], None],
) -> None:
    """Serve a new simulated cluster until this process is stopped.

    `on_ready` is called once, when the server accepts requests.
    """
    stopped, loop = asyncio.Event(), asyncio.get_running_loop()
    with lock_directory(directory):
        for stop_signal in STOP_SIGNALS:
            loop.add_signal_handler(stop_signal, stopped.set)
        world = build_sandbox(replace(config, start=config.start or current_time()))
        async with serve_world(world, directory, pace=pace) as served:
            served.clock_task.add_done_callback(lambda _: stopped.set())
            on_ready(RunningSandbox(served.address, directory / KUBECONFIG))
            await stopped.wait()
            if served.clock_task.done():
                served.clock_task.result()
