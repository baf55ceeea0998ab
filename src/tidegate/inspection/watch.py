"""Watches on units and their objects.

    async for _ in watch_changes(watch_targets(workspace, plan_result, session), session, within):
        ...                      # read again and show the result

A kind that is not served yet cannot be watched, so the caller is also resumed after 10 seconds.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable

from tidegate.clusters.session import Session
from tidegate.model.k8s.objects import ClusterRef, Kind
from tidegate.model.times import SECOND, Ms
from tidegate.planning.plan import PlanResult
from tidegate.workspace.selection import list_resources
from tidegate.workspace.workspace import Workspace
from tidegate.world.dispatcher import Client
from tidegate.world.messages import Message, Response, WatchEnded, WatchEvent
from tidegate.world.requests import RequestId, Selection, View, Watch

WatchTarget = tuple[str, Kind, str]
"""A cluster, a kind and a namespace."""
POLL_INTERVAL = Ms(10 * SECOND)
SETTLE_DELAY = Ms(200)
"""Delay in which further changes are collected before the caller is resumed."""


def watch_targets(
    workspace: Workspace, plan_result: PlanResult, session: Session
) -> list[WatchTarget]:
    """Return where units and sources are, and the objects of a plan."""
    objects = [
        *(resource.cluster_ref for resource in list_resources(workspace.unit_trees)),
        *(
            ClusterRef(manifests.unit.destination.cluster, manifest.ref)
            for manifests in (planned.manifests for planned in plan_result.unit_manifests)
            for manifest in manifests.manifests
        ),
    ]
    targets = ((item.cluster, item.ref.kind, item.ref.namespace) for item in objects)
    return [target for target in dict.fromkeys(targets) if target[0] in session.targets.contexts]


async def watch_changes(
    targets: Iterable[WatchTarget], session: Session, within: Ms | None = None
) -> AsyncGenerator[None]:
    """Yield at once, and again after each change, until `within` has passed."""
    world = session.world
    client, end = world.client(), None if within is None else Ms(world.now() + within)
    watches = {
        client.submit(Watch(Selection(kind, namespace, view=View.METADATA)), cluster=cluster)
        for cluster, kind, namespace in targets
    }
    try:
        await _wait_until_listed(client, {*watches})
        while True:
            yield
            if not await _wait_for_change(client, end):
                return
    finally:
        for request_id in watches:
            client.cancel(request_id)


async def _wait_until_listed(client: Client, awaited: set[RequestId]) -> None:
    """Wait until each watch has listed its objects or was rejected."""
    while awaited:
        awaited -= {
            message.request_id
            for message in await client.wait(None)
            if isinstance(message, Response | WatchEnded)
        }


async def _wait_for_change(client: Client, end: Ms | None) -> bool:
    """Wait for a change or the next poll; return False when the time is over."""
    next_poll = Ms(client.now() + POLL_INTERVAL)
    until = next_poll if end is None else min(next_poll, end)
    while client.now() < until:
        if any(map(_is_change, await client.wait(until))):
            settled = Ms(client.now() + SETTLE_DELAY)
            while client.now() < settled:
                await client.wait(settled)
            break
    return end is None or client.now() < end


def _is_change(message: Message) -> bool:
    return isinstance(message, WatchEvent)
