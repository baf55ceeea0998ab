"""Looking at objects by their names, for verbs that have nothing else to wait for."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import msgspec

from tidegate.engine.reach.errands import Ask, Came, Errand, Pause
from tidegate.errors import Place
from tidegate.model.objects import Json, Kind, Live, Ref, as_served
from tidegate.world.ask import ask
from tidegate.world.calls import Get, Kinds, List, Selection
from tidegate.world.exchange import Exchange
from tidegate.world.facts import Catalogue, Done, Listed, Missing, NotServed, Outcome, is_refusal
from tidegate.world.refusals import refusal_error

SOUGHT = {
    "AppProject": (Kind("argoproj.io", "v1alpha1", "AppProject"), ""),
    "Application": (Kind("argoproj.io", "v1alpha1", "Application"), ""),
    "Secret": (Kind("", "v1", "Secret"), "argocd.argoproj.io/secret-type=cluster"),
}
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


async def living(
    world: Exchange, kind: str, namespace: str, *, cluster: str = ""
) -> dict[str, dict[str, Json]] | None:
    """By name, what is sought in a namespace; of Secrets, those that are clusters of Argo CD's.

    None where they may not be seen, or the cluster does not say.
    """
    known, labels = SOUGHT[kind]
    (found,) = await ask(world, List(Selection(known, namespace, labels=labels)), cluster=cluster)
    if isinstance(found, NotServed):
        return {}
    items = found.items if isinstance(found, Listed) else None
    return None if items is None else {live.ref.name: body_of(live) for live in items}


def body_of(live: Live) -> dict[str, Json]:
    """What an object says; items of a list do not say what kind they are of."""
    body: dict[str, Json] = msgspec.json.decode(live.body)
    kind = live.ref.kind
    return {"apiVersion": kind.api_version, "kind": kind.name, **body}


async def run_errand(errand: Errand[Came], world: Exchange) -> Came:
    """Run one errand alone; what it asks for at the same time is asked at once."""
    party = world.party()
    outcomes: tuple[Outcome, ...] | None = None
    try:
        while True:
            wish = next(errand) if outcomes is None else errand.send(outcomes)
            if isinstance(wish, Pause):
                await party.wait(wish.until)
                outcomes = ()
                continue
            async with asyncio.TaskGroup() as group:
                asked = [group.create_task(_ask(world, one)) for one in wish]
            outcomes = tuple(task.result() for task in asked)
    except StopIteration as end:
        came: Came = end.value
        return came


async def _ask(world: Exchange, wanted: Ask) -> Outcome:
    cluster, identity = wanted.cluster, wanted.identity
    (outcome,) = await ask(world, wanted.request, cluster=cluster, identity=identity)
    return outcome
