"""Reads of live objects by reference, kind or namespace."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping

import msgspec
from msgspec.structs import replace

from tidegate.engine.cluster.procedures import ApiCall, Pause, Procedure, ResultT
from tidegate.errors import Location
from tidegate.model.k8s.kinds import APPLICATION, SECRET
from tidegate.model.k8s.objects import (
    ClusterRef,
    Json,
    Kind,
    LiveObject,
    Ref,
    object_body,
    with_served_version,
)
from tidegate.model.times import Ms
from tidegate.model.units.identity import ImpersonatedUser
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.errors import raise_for_error
from tidegate.world.messages import (
    ApiResources,
    ErrorOutcome,
    Forbidden,
    ListPage,
    NotFound,
    NotServed,
    Outcome,
    Success,
    is_error,
)
from tidegate.world.one_shot import send_requests
from tidegate.world.requests import MAX_DISCOVERY_AGE, Discover, Get, List, Request, Selection

LIST_QUERIES = {
    "AppProject": (Kind("argoproj.io", "v1alpha1", "AppProject"), ""),
    "Application": (APPLICATION, ""),
    "Secret": (SECRET, "argocd.argoproj.io/secret-type=cluster"),
}
ABSENT = NotFound | NotServed


class Listing(msgspec.Struct, frozen=True):
    """The objects of selections, and the errors of those that could not be listed.

    A kind that the cluster does not serve has no objects, and no error.
    """

    pages: dict[Selection, list[LiveObject]] = msgspec.field(default_factory=dict)
    errors: dict[Selection, ErrorOutcome] = msgspec.field(default_factory=dict)

    @property
    def items(self) -> list[LiveObject]:
        """The objects of all selections."""
        return [live for items in self.pages.values() for live in items]

    def raise_errors(
        self,
        action: str,
        location: Location | None = None,
        *,
        ignored: type[ErrorOutcome] | tuple[()] = (),
    ) -> None:
        """Raise ClusterError for the first error; by default at the kind of its selection."""
        for selection, error in self.errors.items():
            error_location = location or Location(selection.kind.name)
            raise_for_error(error, action, error_location, ignored=ignored)


class ClusterReader(msgspec.Struct, frozen=True):
    """Reader of the live objects of one cluster."""

    world: Dispatcher
    cluster: str = ""
    identity: ImpersonatedUser | None = None
    timeout: Ms | None = None
    """After how long a request without a response counts as failed; None for no limit."""

    async def get(self, ref: Ref) -> LiveObject | None:
        """Return a live object; None if it does not exist. Raises ClusterError."""
        return (await self.get_many((ref,))).get(ref)

    async def get_many(self, refs: Iterable[Ref]) -> dict[Ref, LiveObject]:
        """Return the existing ones of these objects, in the same order. Raises ClusterError.

        An object is the same in all versions of its kind: if its version is not served any more, it
        is read in a served version.
        """
        requested = dict.fromkeys(refs)
        if not requested:
            return {}
        (catalogue,) = await self._send(Discover(MAX_DISCOVERY_AGE))
        kinds = catalogue.kinds if isinstance(catalogue, ApiResources) else ()
        served = dict.fromkeys(served_kind.kind for served_kind in kinds)
        resolved = {ref: with_served_version(ref, served) for ref in requested}
        read_refs = dict.fromkeys(resolved.values())
        outcomes = dict(zip(read_refs, await self._send(*map(Get, read_refs)), strict=True))
        for ref, outcome in outcomes.items():
            raise_for_error(outcome, "reading the object", Location(str(ref)), ignored=ABSENT)
        live_objects = {
            ref: outcome.live
            for ref, outcome in outcomes.items()
            if isinstance(outcome, Success) and outcome.live is not None
        }
        return {
            ref: live_objects[read_ref]
            for ref, read_ref in resolved.items()
            if read_ref in live_objects
        }

    async def may_serve(self, kind: Kind) -> bool:
        """Return whether the cluster serves a kind, or its kinds are not known."""
        (catalogue,) = await self._send(Discover(MAX_DISCOVERY_AGE))
        if not isinstance(catalogue, ApiResources):
            return True
        return any(served.kind == kind for served in catalogue.kinds)

    async def find_absent(self, refs: Collection[Ref]) -> list[Ref]:
        """Return those of the objects that do not exist. An object that cannot be read is none."""
        outcomes = await self._send(*map(Get, refs))
        return [ref for ref, outcome in zip(refs, outcomes, strict=True) if _is_absent(outcome)]

    async def list_all(
        self, selections: Iterable[Selection], action: str = "listing objects"
    ) -> list[LiveObject]:
        """Return all selected objects. Raises ClusterError."""
        listing = await self.list_each(selections)
        listing.raise_errors(action)
        return listing.items

    async def list_each(
        self, selections: Iterable[Selection], *, limit: int = 0, page_size: int = 0
    ) -> Listing:
        """List each selection: at most `limit` objects, or all in pages of `page_size`."""
        listing = Listing()
        requests = [List(selection, limit or page_size) for selection in dict.fromkeys(selections)]
        while requests:
            following: list[List] = []
            outcomes = await self._send(*requests)
            for request, outcome in zip(requests, outcomes, strict=True):
                if isinstance(outcome, ListPage):
                    listing.pages.setdefault(request.selection, []).extend(outcome.items)
                    if page_size and outcome.continue_token:
                        following.append(replace(request, continue_token=outcome.continue_token))
                elif is_error(outcome) and not _is_absent(outcome):
                    listing.errors[request.selection] = outcome
            requests = following
        return listing

    async def list_in(
        self, namespaces: Mapping[Selection, Iterable[str]], *, page_size: int = 0
    ) -> Listing:
        """List each selection; if its kind may not be listed everywhere, in these namespaces."""
        listing = await self.list_each(namespaces, page_size=page_size)
        forbidden = [
            selection for selection, error in listing.errors.items() if isinstance(error, Forbidden)
        ]
        narrowed = await self.list_each(
            (
                replace(selection, namespace=namespace)
                for selection in forbidden
                for namespace in namespaces[selection]
            ),
            page_size=page_size,
        )
        for selection in forbidden:
            del listing.errors[selection]
        return Listing(listing.pages | narrowed.pages, listing.errors | narrowed.errors)

    async def _send(self, *requests: Request) -> tuple[Outcome, ...]:
        return await send_requests(
            self.world,
            *requests,
            cluster=self.cluster,
            identity=self.identity,
            timeout=self.timeout,
        )


def _is_absent(outcome: Outcome) -> bool:
    return isinstance(outcome, NotFound | NotServed)


async def get_objects(
    world: Dispatcher, cluster_refs: Iterable[ClusterRef]
) -> dict[ClusterRef, LiveObject]:
    """Return the existing ones of these objects, each from its cluster. Raises ClusterError."""
    refs_by_cluster: dict[str, list[Ref]] = {}
    for cluster_ref in cluster_refs:
        refs_by_cluster.setdefault(cluster_ref.cluster, []).append(cluster_ref.ref)
    return {
        ClusterRef(cluster, ref): live
        for cluster, refs in refs_by_cluster.items()
        for ref, live in (await ClusterReader(world, cluster).get_many(refs)).items()
    }


async def list_argocd_objects(
    world: Dispatcher, kind: str, namespace: str, *, cluster: str = ""
) -> dict[str, dict[str, Json]] | None:
    """Return bodies by name of AppProjects, Applications or cluster Secrets in a namespace.

    None if they may not be listed, or the cluster does not answer.
    """
    listed_kind, labels = LIST_QUERIES[kind]
    selection = Selection(listed_kind, namespace, label_selector=labels)
    reader = ClusterReader(world, cluster)
    if not await reader.may_serve(listed_kind):
        return {}
    listing = await reader.list_each((selection,))
    if listing.errors:
        return None
    return {live.ref.name: object_body(live) for live in listing.items}


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
