"""Units that somebody has suspended in their cluster, on their own objects or by a record of ours.

A unit whose controller is held by us is not suspended: we roll it out in the controller's place.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
from msgspec.structs import replace

from tidegate.dialect.masters import MASTERS, is_held
from tidegate.dialect.requests import is_suspended
from tidegate.engine.suspensions import SUSPENSIONS
from tidegate.errors import Place
from tidegate.flows.discover import Family
from tidegate.flows.looking import body_of
from tidegate.flows.session import Session
from tidegate.model.finding import Finding, Severity
from tidegate.model.objects import Json, Live
from tidegate.model.reading import text
from tidegate.model.unit import UnitId
from tidegate.world.ask import ask
from tidegate.world.calls import List, Selection
from tidegate.world.facts import Forbidden, Listed, Missing, NotServed, Outcome, is_refusal
from tidegate.world.refusals import refusal_error

Body = dict[str, Json]


async def with_suspended(
    families: Sequence[Family], session: Session
) -> tuple[tuple[Family, ...], tuple[Finding, ...]]:
    """The families, in which those are suspended that somebody has suspended in their cluster.

    And what is to be said where that cannot be seen.
    """
    names = [one.unit.id for family in families for one in family.members if one.unit.id.kind]
    left, unseen = await _look(names, session)
    found = tuple(_mark(family, left) for family in families) if left else tuple(families)
    return found, tuple(map(_unseen, unseen))


def _unseen(place: str) -> Finding:
    return Finding(
        code="units.unseen",
        severity=Severity.NOTE,
        sentence=f"whether units are suspended in the cluster cannot be seen: {place}",
        why="what may not be listed there is taken for not suspended",
    )


def _mark(family: Family, left: frozenset[UnitId]) -> Family:
    members = tuple(
        replace(one, unit=msgspec.structs.replace(one.unit, suspended=True))
        if one.unit.id in left
        else one
        for one in family.members
    )
    return replace(family, members=members)


async def suspended_among(names: Iterable[UnitId], session: Session) -> frozenset[UnitId]:
    """Those that somebody has suspended in their cluster."""
    left, _ = await _look([*names], session)
    return left


async def _look(
    names: Sequence[UnitId], session: Session
) -> tuple[frozenset[UnitId], tuple[str, ...]]:
    """Those that are suspended, by one list for each kind and namespace of own objects.

    And what may not be listed.
    """
    found: set[UnitId] = set()
    unseen: list[str] = []
    for cluster in dict.fromkeys(one.cluster for one in names):
        if cluster not in session.target.contexts:
            continue
        mine = [one for one in names if one.cluster == cluster]
        places = (SUSPENSIONS, *await _places(mine, cluster, session))
        pages = await ask(session.world, *map(List, places), cluster=cluster)
        unseen += [
            f"{place.kind.name} in `{place.namespace}`"
            for place, page in zip(places, pages, strict=True)
            if isinstance(page, Forbidden)
        ]
        records, *owns = map(_items, pages)
        marks = {text(body_of(one), "data", "unit") for one in records}
        found |= {one for one in mine if one.mark in marks}
        found |= {
            UnitId(live.ref.kind.name, cluster, live.ref.namespace, live.ref.name)
            for lives in owns
            for live in lives
            if _is_left(body_of(live))
        }
    return frozenset(found), tuple(unseen)


async def _places(names: list[UnitId], cluster: str, session: Session) -> list[Selection]:
    """Where own objects are, of kinds that the cluster serves."""
    kinds = {(one.kind.group, one.kind.name): one.kind for one in await session.kinds(cluster)}
    groups = {one: (_group(one.kind), one.kind) for one in names}
    homes = dict.fromkeys(
        (kinds[groups[one]], one.namespace) for one in names if groups[one] in kinds
    )
    return [Selection(*home) for home in homes]


def _group(kind: str) -> str:
    return MASTERS[kind].group if kind in MASTERS else ""


def _is_left(own: Body) -> bool:
    return is_suspended(own) and not is_held(own)


def _items(page: Outcome) -> tuple[Live, ...]:
    if is_refusal(page) and not isinstance(page, Forbidden | Missing | NotServed):
        where = Place("units' own objects")
        raise refusal_error(page, "looking for what is suspended", where=where)
    return page.items if isinstance(page, Listed) else ()
