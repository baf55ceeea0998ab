"""What charts `lookup` in the cluster that they are for, as an API server would answer them."""

from __future__ import annotations

from http import HTTPStatus
from urllib.parse import unquote

import msgspec

from tidegate.errors import Place, foreign
from tidegate.flows.session import Session
from tidegate.model.objects import Kind, Live, Ref, Served
from tidegate.model.release import NOT_THERE, LookedUp
from tidegate.model.unit import Unit
from tidegate.world.ask import ask
from tidegate.world.calls import Get, Kinds, List, Selection
from tidegate.world.facts import (
    Catalogue,
    Done,
    Listed,
    Missing,
    NotServed,
    Outcome,
    is_refusal,
)
from tidegate.world.refusals import refusal_error

IN_NAMESPACE = 3
"""Parts of a path that names a namespace first, at least."""


class LookupPath(msgspec.Struct, frozen=True):
    """What a path asks for: a group's kinds, one object, or a list of them."""

    api_version: str
    plural: str = ""
    namespace: str = ""
    name: str = ""


class ClusterLookups:
    """The objects of a session's clusters, each asked for with the rights of the unit."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._kinds: dict[str, tuple[Served, ...]] = {}

    async def __call__(self, unit: Unit, path: str) -> LookedUp:
        """Raises where the cluster does not show it; what is not there is an answer."""
        wanted, place = read_path(path), self._session.place_of(unit.destination.cluster)
        if wanted is None:
            return NOT_THERE
        kinds = await self.kinds(place)
        served = [one for one in kinds if one.kind.api_version == wanted.api_version]
        if not wanted.plural:
            return _told(_resources(wanted.api_version, served)) if served else NOT_THERE
        mine = next((one for one in served if one.plural == wanted.plural), None)
        if mine is None:
            return NOT_THERE
        request: Get | List = List(Selection(mine.kind, wanted.namespace))
        if wanted.name:
            request = Get(Ref(mine.kind, wanted.namespace, wanted.name))
        items = list[Live]()
        while True:
            identity = unit.policy.identity
            (found,) = await ask(self._session.world, request, cluster=place, identity=identity)
            if not isinstance(found, Listed):
                return _answer(found, path, unit)
            items += found.items
            if not found.resume:
                return _told(_list(mine.kind, items))
            request = msgspec.structs.replace(request, resume=found.resume)

    async def kinds(self, cluster: str) -> tuple[Served, ...]:
        """What a cluster serves by now: a rollout may have brought kinds since it began."""
        if cluster not in self._kinds:
            (found,) = await ask(self._session.world, Kinds(), cluster=cluster)
            self._kinds[cluster] = found.kinds if isinstance(found, Catalogue) else ()
        return self._kinds[cluster]


def read_path(path: str) -> LookupPath | None:
    """None for what is no path of an object or a kind."""
    match [unquote(one) for one in path.split("/")]:
        case ["", "api", version, *rest]:
            api_version = version
        case ["", "apis", group, version, *rest]:
            api_version = f"{group}/{version}"
        case _:
            return None
    namespace = ""
    if len(rest) >= IN_NAMESPACE and rest[0] == "namespaces":
        namespace, rest = rest[1], rest[2:]
    match rest:
        case []:
            return LookupPath(api_version)
        case [plural]:
            return LookupPath(api_version, plural, namespace)
        case [plural, name]:
            return LookupPath(api_version, plural, namespace, name)
        case _:
            return None


def _answer(found: Outcome, path: str, unit: Unit) -> LookedUp:
    if isinstance(found, Done) and found.live is not None:
        return LookedUp(HTTPStatus.OK, found.live.body.decode())
    if is_refusal(found) and not isinstance(found, Missing | NotServed):
        doing = f"looking up `{foreign(path)}` for the chart"
        raise refusal_error(found, doing, where=unit.where or Place(f"unit {unit.id}"))
    return NOT_THERE


def _resources(api_version: str, served: list[Served]) -> dict[str, object]:
    names = ("name", "kind", "namespaced", "verbs")
    told = ((one.plural, one.kind.name, one.namespaced, one.verbs) for one in served)
    resources = [dict(zip(names, one, strict=True)) for one in told]
    return {"kind": "APIResourceList", "groupVersion": api_version, "resources": resources}


def _list(kind: Kind, items: list[Live]) -> dict[str, object]:
    bodies = [msgspec.Raw(one.body) for one in items]
    named = {"apiVersion": kind.api_version, "kind": f"{kind.name}List"}
    return {**named, "metadata": {}, "items": bodies}


def _told(body: dict[str, object]) -> LookedUp:
    return LookedUp(HTTPStatus.OK, msgspec.json.encode(body).decode())
