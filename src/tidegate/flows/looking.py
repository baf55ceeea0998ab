"""Looking at objects by their names, for verbs that have nothing else to wait for."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from tidegate.errors import Place
from tidegate.model.objects import Json, Kind, Live, Ref
from tidegate.world.ask import ask
from tidegate.world.calls import Get, Kinds
from tidegate.world.facts import Catalogue, Done, Missing, NotServed, is_refusal
from tidegate.world.line import Line
from tidegate.world.protocol import World
from tidegate.world.refusals import refusal_error

ABSENT = Missing | NotServed


async def look_at(world: World, refs: Iterable[Ref], *, cluster: str = "") -> list[Live]:
    """Those of these objects that live, in the same order. Raises ClusterError.

    An object is the same in all versions of its kind: one whose version is no longer served is
    looked for in a version that is.
    """
    line = Line(world)
    (catalogue,) = await ask(line, Kinds(), cluster=cluster)
    served = [one.kind for one in catalogue.kinds] if isinstance(catalogue, Catalogue) else []
    wanted = dict.fromkeys(_as_served(ref, served) for ref in refs)
    outcomes = await ask(line, *map(Get, wanted), cluster=cluster)
    found = []
    for ref, outcome in zip(wanted, outcomes, strict=True):
        if isinstance(outcome, Done) and outcome.live is not None:
            found.append(outcome.live)
        elif is_refusal(outcome) and not isinstance(outcome, ABSENT):
            raise refusal_error(outcome, "looking at the cluster", where=Place(str(ref)))
    return found


def body_of(live: Live) -> dict[str, Json]:
    body: dict[str, Json] = msgspec.json.decode(live.body)
    return body


def _as_served(ref: Ref, served: list[Kind]) -> Ref:
    if ref.kind in served:
        return ref
    name = (ref.kind.group, ref.kind.name)
    kind = next((one for one in served if (one.group, one.name) == name), ref.kind)
    return Ref(kind, ref.namespace, ref.name)
