"""Long-running simulated cluster: its initial objects, and its server."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from tidegate.apiserver.switchboard import current_time
from tidegate.flows.play import DEFAULT_NAMESPACE, cluster_scoped_kinds, read_objects
from tidegate.flows.sandbox_home import KUBECONFIG, lock_directory
from tidegate.flows.serving import serve_world
from tidegate.flows.wiring import SimulationConfig, build_sandbox
from tidegate.model.given import GivenCluster
from tidegate.model.objects import Json, Kind
from tidegate.model.reading import get_mapping, get_text
from tidegate.schema.builtin import served_kinds

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
        Kind.of(get_text(body, "apiVersion"), get_text(body, "kind")),
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
