"""Connections to real clusters: kubeconfig, version check, World."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from tidegate.errors import ClusterError, Location
from tidegate.model.k8s.capabilities import read_kube_version
from tidegate.model.times import SECOND, Ms
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.errors import raise_for_error
from tidegate.world.messages import NotServed, Outcome, RawResponse
from tidegate.world.one_shot import send_requests
from tidegate.world.requests import RawGet

if TYPE_CHECKING:
    from tidegate.kube.access.context import KubeTarget
    from tidegate.kube.world import KubeWorld


Worker = Callable[[bytes], bytes]
"""A function that runs in a worker process: a script or an expansion, as bytes."""
CONNECT_TIMEOUT = Ms(15 * SECOND)
WATCH_TIMEOUT = Ms(300 * SECOND)


@asynccontextmanager
async def open_world(
    contexts: Mapping[str, str | None],
    *,
    kubeconfig: str | None = None,
    watch_timeout: Ms = WATCH_TIMEOUT,
    workers: Mapping[str, Worker] | None = None,
    add_version: Callable[[str, str], None] | None = None,
) -> AsyncIterator[KubeWorld]:
    """Open a World of real clusters, by cluster name.

    Each cluster must answer `/version`. Raises ClusterError if one does not.
    `watch_timeout`: the requested duration of a watch; `add_version`: called with the name and the
    version of each cluster.
    """
    from tidegate.kube.world import KubeWorld

    targets = {
        name: find_target(context, kubeconfig=kubeconfig) for name, context in contexts.items()
    }
    async with KubeWorld(targets, watch_timeout=watch_timeout, workers=workers) as world:
        for name, target in targets.items():
            request = RawGet("/version")
            (outcome,) = await send_requests(
                Dispatcher(world), request, cluster=name, timeout=CONNECT_TIMEOUT
            )
            version = _read_version(outcome, server=target.server, location=target.location)
            if add_version is not None:
                add_version(name, version)
        yield world


def find_target(context: str | None, *, kubeconfig: str | None = None) -> KubeTarget:
    """Return the cluster of a context, by default the current one, with kubectl's rules."""
    from tidegate.kube.config import load_target

    return load_target(kubeconfig=kubeconfig, context=context, environ=os.environ)


def context_names(kubeconfig: str | None) -> list[str]:
    """Return the names of all contexts, with kubectl's rules."""
    from tidegate.kube.config import list_contexts

    return list_contexts(kubeconfig, os.environ)


def _read_version(outcome: Outcome, *, server: str, location: Location) -> str:
    """Return the version of a server.

    Raises ClusterError if it cannot be reached or is not a Kubernetes API server.
    """
    raise_for_error(outcome, f"connecting to `{server}`", location, ignored=NotServed)
    version = read_kube_version(outcome.body) if isinstance(outcome, RawResponse) else ""
    if not version:
        problem = f"`{server}` is not a Kubernetes API server"
        hint = "check `server` of this cluster in the kubeconfig"
        raise ClusterError("cluster.foreign", problem, location=location, hint=hint)
    return version
