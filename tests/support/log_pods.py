"""Pods that print what a test gives them, on each world."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from tests.support.cluster_client import ClusterClient, require_live
from tests.support.kubelet import LogEndpoint
from tests.support.objects import POD, a_container, an_object
from tidegate.model.k8s.objects import JsonObject, Kind, LiveObject, Ref
from tidegate.sandbox.world import Sandbox
from tidegate.world.messages import Success

NODE = Kind("", "v1", "Node")


Lines = dict[str, list[str]]
NONE: Lines = {}


class PrintingPod(Protocol):
    """Make a pod whose containers have printed these lines, and those in the run before."""

    async def __call__(
        self, client: ClusterClient, lines: Lines, *, before: Lines = NONE
    ) -> Ref: ...


def on_a_real_server(endpoint: LogEndpoint) -> PrintingPod:
    """A pod on a node whose kubelet is the endpoint."""

    async def make(client: ClusterClient, lines: Lines, *, before: Lines = NONE) -> Ref:
        node = require_live(await client.create(an_object(NODE, f"node-{client.namespace}"))).ref
        await client.patch(
            node,
            {
                "status": {
                    "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
                    "daemonEndpoints": {"kubeletEndpoint": {"Port": endpoint.port}},
                }
            },
            subresource="status",
        )
        pod = (await a_pod(client, node.name, lines, before)).ref
        for name, printed in lines.items():
            endpoint.lines[client.namespace, pod.name, name] = printed
        for name, printed in before.items():
            endpoint.before[client.namespace, pod.name, name] = printed
        return pod

    return make


def in_a_sandbox(sandbox: Sandbox) -> PrintingPod:
    """A pod whose output the sandbox knows."""

    async def make(client: ClusterClient, lines: Lines, *, before: Lines = NONE) -> Ref:
        pod = await a_pod(client, "node", lines, before)
        known = sandbox.clusters[""].server.logs
        for name, printed in before.items():
            known.add(pod.uid, name, 0, tuple(printed))
        for name, printed in lines.items():
            known.add(pod.uid, name, int(name in before), tuple(printed))
        return pod.ref

    return make


async def a_pod(
    client: ClusterClient, node: str, containers: Iterable[str], restarted: Iterable[str]
) -> LiveObject:
    """Made as soon as its namespace has a service account."""
    desired = [a_container(name) for name in containers]
    pod = an_object(POD, "web", spec={"nodeName": node, "containers": [*desired]})
    created = await client.eventually(
        lambda: client.create(pod), lambda outcome: isinstance(outcome, Success)
    )
    ref = require_live(created).ref
    statuses: JsonObject = {"containerStatuses": [_restarted(name) for name in restarted]}
    return require_live(await client.patch(ref, {"status": statuses}, subresource="status"))


def _restarted(name: str) -> JsonObject:
    """A container that ended once and runs again."""
    ended: JsonObject = {"exitCode": 1, "containerID": "test://1"}
    return {
        **a_container(name),
        "imageID": "",
        "ready": True,
        "restartCount": 1,
        "state": {"running": {}},
        "lastState": {"terminated": ended},
    }
