"""Lookups of charts in their cluster, answered as an API server would."""

from __future__ import annotations

from http import HTTPStatus
from urllib.parse import unquote

import msgspec

from tidegate.errors import Location, sanitize
from tidegate.flows.session import Session
from tidegate.model.objects import Kind, LiveObject, Ref, ServedKind
from tidegate.model.release import LOOKUP_NOT_FOUND, LookupResult
from tidegate.model.unit import Unit
from tidegate.world.ask import send_requests
from tidegate.world.calls import Discover, Get, List, Selection
from tidegate.world.facts import (
    ApiResources,
    ListPage,
    NotFound,
    NotServed,
    Outcome,
    Success,
    is_error,
)
from tidegate.world.refusals import error_from_outcome

NAMESPACED_SEGMENTS = 3
"""Minimum number of segments after the version of a path that names a namespace."""


class LookupPath(msgspec.Struct, frozen=True):
    """The request of an API path: the kinds of a group version, one object, or a list."""

    api_version: str
    plural: str = ""
    namespace: str = ""
    name: str = ""


class ClusterLookups:
    """Answers lookups of charts from the clusters of a session, with the identity of the unit."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._kinds: dict[str, tuple[ServedKind, ...]] = {}

    async def __call__(self, unit: Unit, path: str) -> LookupResult:
        """Return the response to an API path; not found is a response.

        Raises where the cluster refuses.
        """
        lookup, cluster = (
            parse_lookup_path(path),
            self._session.cluster_or_default(unit.destination.cluster),
        )
        if lookup is None:
            return LOOKUP_NOT_FOUND
        kinds = await self.kinds(cluster)
        served = [
            candidate for candidate in kinds if candidate.kind.api_version == lookup.api_version
        ]
        if not lookup.plural:
            return (
                _json_response(_api_resource_list(lookup.api_version, served))
                if served
                else LOOKUP_NOT_FOUND
            )
        resource = next(
            (candidate for candidate in served if candidate.plural == lookup.plural), None
        )
        if resource is None:
            return LOOKUP_NOT_FOUND
        request: Get | List = List(Selection(resource.kind, lookup.namespace))
        if lookup.name:
            request = Get(Ref(resource.kind, lookup.namespace, lookup.name))
        items = list[LiveObject]()
        while True:
            identity = unit.policy.identity
            (outcome,) = await send_requests(
                self._session.world, request, cluster=cluster, identity=identity
            )
            if not isinstance(outcome, ListPage):
                return _to_response(outcome, path, unit)
            items += outcome.items
            if not outcome.continue_token:
                return _json_response(_object_list(resource.kind, items))
            request = msgspec.structs.replace(request, continue_token=outcome.continue_token)

    async def kinds(self, cluster: str) -> tuple[ServedKind, ...]:
        """Return the kinds that a cluster serves now: a rollout may have added some."""
        if cluster not in self._kinds:
            (outcome,) = await send_requests(self._session.world, Discover(), cluster=cluster)
            self._kinds[cluster] = outcome.kinds if isinstance(outcome, ApiResources) else ()
        return self._kinds[cluster]


def parse_lookup_path(path: str) -> LookupPath | None:
    """Return the parsed API path; None for any other path."""
    match [unquote(segment) for segment in path.split("/")]:
        case ["", "api", version, *segments]:
            api_version = version
        case ["", "apis", group, version, *segments]:
            api_version = f"{group}/{version}"
        case _:
            return None
    namespace = ""
    if len(segments) >= NAMESPACED_SEGMENTS and segments[0] == "namespaces":
        namespace, segments = segments[1], segments[2:]
    match segments:
        case []:
            return LookupPath(api_version)
        case [plural]:
            return LookupPath(api_version, plural, namespace)
        case [plural, name]:
            return LookupPath(api_version, plural, namespace, name)
        case _:
            return None


def _to_response(outcome: Outcome, path: str, unit: Unit) -> LookupResult:
    if isinstance(outcome, Success) and outcome.live is not None:
        return LookupResult(HTTPStatus.OK, outcome.live.body.decode())
    if is_error(outcome) and not isinstance(outcome, NotFound | NotServed):
        action = f"looking up `{sanitize(path)}` for the chart"
        raise error_from_outcome(
            outcome, action, location=unit.location or Location(f"unit {unit.id}")
        )
    return LOOKUP_NOT_FOUND


def _api_resource_list(api_version: str, served: list[ServedKind]) -> dict[str, object]:
    names = ("name", "kind", "namespaced", "verbs")
    rows = (
        (resource.plural, resource.kind.name, resource.namespaced, resource.verbs)
        for resource in served
    )
    resources = [dict(zip(names, row, strict=True)) for row in rows]
    return {"kind": "APIResourceList", "groupVersion": api_version, "resources": resources}


def _object_list(kind: Kind, items: list[LiveObject]) -> dict[str, object]:
    bodies = [msgspec.Raw(item.body) for item in items]
    header = {"apiVersion": kind.api_version, "kind": f"{kind.name}List"}
    return {**header, "metadata": {}, "items": bodies}


def _json_response(body: dict[str, object]) -> LookupResult:
    return LookupResult(HTTPStatus.OK, msgspec.json.encode(body).decode())
