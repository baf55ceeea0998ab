"""Pods that print what a test gives them, on each world."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from tests.fakes.kubelet import LogEndpoint
from tests.promises.objects import POD, a_container, an_object
from tidegate.model.objects import Kind, Ref
from tidegate.sandbox.world import Sandbox
from tidegate.testing import Desk, live_of
from tidegate.world.facts import Done

NODE = Kind("", "v1", "Node")


class PrintingPod(Protocol):
    """Make a pod whose containers have printed these lines."""

    async def __call__(self, desk: Desk, lines: dict[str, list[str]]) -> Ref: ...


def on_a_real_server(endpoint: LogEndpoint) -> PrintingPod:
    """A pod on a node whose kubelet is the endpoint."""

    async def make(desk: Desk, lines: dict[str, list[str]]) -> Ref:
        node = live_of(await desk.create(an_object(NODE, f"node-{desk.namespace}"))).ref
        await desk.patch(
            node,
            {
                "status": {
                    "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
                    "daemonEndpoints": {"kubeletEndpoint": {"Port": endpoint.port}},
                }
            },
            subresource="status",
        )
        pod = await a_pod(desk, node.name, lines)
        for name, printed in lines.items():
            endpoint.lines[desk.namespace, pod.name, name] = printed
        return pod

    return make


def in_a_sandbox(sandbox: Sandbox) -> PrintingPod:
    """A pod whose output the sandbox knows."""

    async def make(desk: Desk, lines: dict[str, list[str]]) -> Ref:
        pod = await a_pod(desk, "node", lines)
        for name, printed in lines.items():
            sandbox.clusters[""].server.printed[pod, name] = printed
        return pod

    return make


async def a_pod(desk: Desk, node: str, containers: Iterable[str]) -> Ref:
    """Made as soon as its namespace has a service account."""
    wanted = [a_container(name) for name in containers]
    pod = an_object(POD, "web", spec={"nodeName": node, "containers": [*wanted]})
    created = await desk.eventually(
        lambda: desk.create(pod), lambda outcome: isinstance(outcome, Done)
    )
    return live_of(created).ref
