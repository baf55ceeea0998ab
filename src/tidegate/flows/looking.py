"""Looking at objects by their names, for verbs that have nothing else to wait for."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from tidegate.errors import Place
from tidegate.model.objects import Json, Kind, Live, Ref, as_served
from tidegate.world.ask import ask
from tidegate.world.calls import Get, Kinds, List, Selection
from tidegate.world.exchange import Exchange
from tidegate.world.facts import Catalogue, Done, Listed, Missing, NotServed, is_refusal
from tidegate.world.refusals import refusal_error

ABSENT = Missing | NotServed


async def look_at(world: Exchange, refs: Iterable[Ref], *, cluster: str = "") -> list[Live]:
    """Those of these objects that live, in the same order. Raises ClusterError.

    An object is the same in all versions of its kind: one whose version is no longer served is
    looked for in a version that is.
    """
    (catalogue,) = await ask(world, Kinds(), cluster=cluster)
    kinds = catalogue.kinds if isinstance(catalogue, Catalogue) else ()
    served = dict.fromkeys(one.kind for one in kinds)
    wanted = dict.fromkeys(as_served(ref, served) for ref in refs)
    outcomes = await ask(world, *map(Get, wanted), cluster=cluster)
    found = []
    for ref, outcome in zip(wanted, outcomes, strict=True):
        if isinstance(outcome, Done) and outcome.live is not None:
            found.append(outcome.live)
        elif is_refusal(outcome) and not isinstance(outcome, ABSENT):
            raise refusal_error(outcome, "looking at the cluster", where=Place(str(ref)))
    return found


async def look_in(
    world: Exchange, places: Iterable[tuple[Kind, str]], *, cluster: str = ""
) -> list[Live]:
    """All objects of these kinds in these namespaces. Raises ClusterError."""
    wanted = [Selection(*place) for place in dict.fromkeys(places)]
    outcomes = await ask(world, *map(List, wanted), cluster=cluster)
    found: list[Live] = []
    for selection, outcome in zip(wanted, outcomes, strict=True):
        if isinstance(outcome, Listed):
            found += outcome.items
        elif is_refusal(outcome) and not isinstance(outcome, NotServed):
            where = Place(selection.kind.name)
            raise refusal_error(outcome, "looking at the cluster", where=where)
    return found


def body_of(live: Live) -> dict[str, Json]:
    """What an object says; items of a list do not say what kind they are of."""
    body: dict[str, Json] = msgspec.json.decode(live.body)
    kind = live.ref.kind
    return {"apiVersion": kind.api_version, "kind": kind.name, **body}
