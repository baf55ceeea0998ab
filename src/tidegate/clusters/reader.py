"""Reads of live objects by reference, kind or namespace."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import msgspec

from tidegate.engine.cluster.procedures import ApiCall, Pause, Procedure, ResultT
from tidegate.errors import Location
from tidegate.model.k8s.objects import Json, Kind, LiveObject, Ref, with_served_version
from tidegate.model.times import SECOND, Ms
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.errors import error_from_outcome
from tidegate.world.messages import (
    ApiResources,
    ListPage,
    NotFound,
    NotServed,
    Outcome,
    Success,
    is_error,
)
from tidegate.world.one_shot import send_requests
from tidegate.world.requests import Discover, Get, List, Selection

LIST_QUERIES = {
    "AppProject": (Kind("argoproj.io", "v1alpha1", "AppProject"), ""),
    "Application": (Kind("argoproj.io", "v1alpha1", "Application"), ""),
    "Secret": (Kind("", "v1", "Secret"), "argocd.argoproj.io/secret-type=cluster"),
}
ABSENT = NotFound | NotServed
MAX_DISCOVERY_AGE = Ms(10 * SECOND)
"""Age of a discovery that is recent enough to choose the version of a kind."""


async def get_objects(
    world: Dispatcher, refs: Iterable[Ref], *, cluster: str = ""
) -> list[LiveObject]:
    """Return the live ones of these objects, in the same order. Raises ClusterError.

    An object is the same in all versions of its kind: if its version is not served any more, it is
    read in a served version.
    """
    (catalogue,) = await send_requests(world, Discover(MAX_DISCOVERY_AGE), cluster=cluster)
    kinds = catalogue.kinds if isinstance(catalogue, ApiResources) else ()
    served = dict.fromkeys(served_kind.kind for served_kind in kinds)
    requested = dict.fromkeys(with_served_version(ref, served) for ref in refs)
    outcomes = await send_requests(world, *map(Get, requested), cluster=cluster)
    objects = []
    for ref, outcome in zip(requested, outcomes, strict=True):
        if isinstance(outcome, Success) and outcome.live is not None:
            objects.append(outcome.live)
        elif is_error(outcome) and not isinstance(outcome, ABSENT):
            location = Location(str(ref))
            raise error_from_outcome(outcome, "reading the object", location=location)
    return objects


async def list_objects(
    world: Dispatcher, kind_namespaces: Iterable[tuple[Kind, str]], *, cluster: str = ""
) -> list[LiveObject]:
    """Return all objects of these kinds in these namespaces. Raises ClusterError."""
    selections = [Selection(*pair) for pair in dict.fromkeys(kind_namespaces)]
    outcomes = await send_requests(world, *map(List, selections), cluster=cluster)
    objects: list[LiveObject] = []
    for selection, outcome in zip(selections, outcomes, strict=True):
        if isinstance(outcome, ListPage):
            objects += outcome.items
        elif is_error(outcome) and not isinstance(outcome, NotServed):
            location = Location(selection.kind.name)
            raise error_from_outcome(outcome, "listing objects", location=location)
    return objects


async def list_argocd_objects(
    world: Dispatcher, kind: str, namespace: str, *, cluster: str = ""
) -> dict[str, dict[str, Json]] | None:
    """Return bodies by name of AppProjects, Applications or cluster Secrets in a namespace.

    None if they may not be listed, or the cluster does not answer.
    """
    listed_kind, labels = LIST_QUERIES[kind]
    (outcome,) = await send_requests(
        world, List(Selection(listed_kind, namespace, label_selector=labels)), cluster=cluster
    )
    if isinstance(outcome, NotServed):
        return {}
    items = outcome.items if isinstance(outcome, ListPage) else None
    return None if items is None else {live.ref.name: object_body(live) for live in items}


def object_body(live: LiveObject) -> dict[str, Json]:
    """Return the body with apiVersion and kind, which items of a list do not have."""
    body: dict[str, Json] = msgspec.json.decode(live.body)
    kind = live.ref.kind
    return {"apiVersion": kind.api_version, "kind": kind.name, **body}


async def run_procedure(procedure: Procedure[ResultT], world: Dispatcher) -> ResultT:
    """Run one procedure alone; the calls of one step are sent at once."""
    client = world.client()
    outcomes: tuple[Outcome, ...] | None = None
    try:
        while True:
            step = next(procedure) if outcomes is None else procedure.send(outcomes)
            if isinstance(step, Pause):
                await client.wait(step.until)
                outcomes = ()
                continue
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(_send(world, call)) for call in step]
            outcomes = tuple(task.result() for task in tasks)
    except StopIteration as end:
        result: ResultT = end.value
        return result


async def _send(world: Dispatcher, call: ApiCall) -> Outcome:
    cluster, identity = call.cluster, call.identity
    (outcome,) = await send_requests(world, call.request, cluster=cluster, identity=identity)
    return outcome
