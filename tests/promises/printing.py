"""Pods that print what a test gives them, on each world."""

from __future__ import annotations

from typing import Protocol

from tests.fakes.kubelet import LogEndpoint
from tests.promises.objects import POD, a_container, an_object
from tidegate.model.objects import Kind, Ref
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
        containers = [a_container(name) for name in lines]
        pod = an_object(POD, "web", spec={"nodeName": node.name, "containers": [*containers]})
        created = await desk.eventually(
            lambda: desk.create(pod), lambda outcome: isinstance(outcome, Done)
        )
        for name, printed in lines.items():
            endpoint.lines[desk.namespace, "web", name] = printed
        return live_of(created).ref

    return make
