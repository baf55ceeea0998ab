"""Steps in an order that respects their edges, or the circle that makes it impossible."""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TypeAlias, TypeVar

import msgspec

from tidegate.errors import Place, PlanError, foreign, parse_place
from tidegate.model.manifest import Manifests
from tidegate.model.plan import Edge, Step
from tidegate.model.unit import Unit, UnitId

MOST_NAMED = 4
Name = TypeVar("Name", bound=Hashable)
Awaiting: TypeAlias = Mapping[UnitId, Mapping[UnitId, Place | None]]
"""By unit: what it depends on, and where it says so."""


def put_in_order(steps: Mapping[str, Step], edges: Iterable[Edge]) -> tuple[Step, ...]:
    """The steps as they came, each moved back only as far as the edges ask for.

    Edges may lead out of these steps. Raises PlanError for a circle.
    """
    inside = [edge for edge in edges if edge.before in steps and edge.after in steps]
    ordered, circle = arrange(steps, ((edge.before, edge.after) for edge in inside))
    if circle:
        waits = {*pairwise([*circle, circle[0]])}
        said = (one.where for one in inside if one.where and (one.after, one.before) in waits)
        spots = [*map(parse_place, dict.fromkeys(said))]
        raise _refusal((steps[name].unit for name in circle), spots)
    return tuple(steps[name] for name in ordered)


def refuse_circles(after: Awaiting) -> None:
    """Raise PlanError for units that depend on each other; those must all be known."""
    _, refusal = _first_circle(after)
    if refusal is not None:
        raise refusal


class Circles(msgspec.Struct):
    """What is wanted, without the dependencies that make units wait for each other.

    By unit of such a circle why it never begins; and each circle once.
    """

    wanted: list[Manifests]
    members: dict[UnitId, str] = msgspec.field(default_factory=dict)
    refusals: list[PlanError] = msgspec.field(default_factory=list)


def part_circles(wanted: Iterable[Manifests]) -> Circles:
    """Take circles apart, one after another, so that all else can be put in order."""
    found = Circles(list(wanted))
    while True:
        circle, refusal = _first_circle(
            {one.unit.id: depended_on(one.unit) for one in found.wanted}
        )
        if refusal is None:
            return found
        found.refusals.append(refusal)
        found.members = dict.fromkeys(circle, refusal.problem) | found.members
        following = dict(pairwise([*circle, circle[0]]))
        found.wanted = [_not_waiting(one, following.get(one.unit.id)) for one in found.wanted]


def depended_on(unit: Unit) -> dict[UnitId, Place | None]:
    """The units that a unit depends on, and where it says so."""
    return {one.unit: one.where for one in unit.dependencies if one.unit is not None}


def _not_waiting(one: Manifests, other: UnitId | None) -> Manifests:
    if other is None:
        return one
    kept = tuple(each for each in one.unit.dependencies if each.unit != other)
    unit = msgspec.structs.replace(one.unit, dependencies=kept)
    return msgspec.structs.replace(one, unit=unit)


def _first_circle(after: Awaiting) -> tuple[list[UnitId], PlanError | None]:
    """Units that wait for each other, each for the next, and what is to be said of that."""
    pairs = ((before, name) for name, others in after.items() for before in others)
    _, circle = arrange(after, pairs)
    if not circle:
        return [], None
    spots = [after[one][other] for one, other in pairwise([*circle, circle[0]])]
    return circle, _refusal(circle, [one for one in spots if one is not None])


def arrange(
    names: Iterable[Name], pairs: Iterable[tuple[Name, Name]]
) -> tuple[list[Name], list[Name]]:
    """Names in order, and if some are left over, a circle among those: each waits for the next."""
    places = {name: place for place, name in enumerate(names)}
    behind: dict[Name, list[Name]] = {name: [] for name in places}
    unmet = dict.fromkeys(places, 0)
    for before, after in pairs:
        behind[before].append(after)
        unmet[after] += 1
    known = list(places)
    free = [place for name, place in places.items() if not unmet[name]]
    ordered: list[Name] = []
    while free:
        name = known[heapq.heappop(free)]
        ordered.append(name)
        for after in behind[name]:
            unmet[after] -= 1
            if not unmet[after]:
                heapq.heappush(free, places[after])
    held = [name for name, count in unmet.items() if count]
    return ordered, _circle(held, behind) if held else []


def _circle(held: list[Name], behind: dict[Name, list[Name]]) -> list[Name]:
    """Walk back from one that is held to the one it waits for, until one comes again."""
    waits_for: dict[Name, Name] = {}
    for name in held:
        for after in behind[name]:
            waits_for.setdefault(after, name)
    seen: dict[Name, int] = {}
    walk = held[0]
    while walk not in seen:
        seen[walk] = len(seen)
        walk = waits_for[walk]
    return list(seen)[seen[walk] :]


def _refusal(circle: Iterable[UnitId], spots: Sequence[Place] = ()) -> PlanError:
    units = [f"`{unit}`" for unit in dict.fromkeys(circle)]
    if len(units) == 1:
        problem = f"{units[0]} waits for itself"
    else:
        told = foreign(" waits for ".join([*units, units[0]]))
        problem = f"units wait for each other: {told}"
    hint = "remove one of these dependencies"
    if len(spots) > 1:
        more = ", …" if len(spots) > MOST_NAMED else ""
        hint += f"; others are at {', '.join(map(str, spots[1:MOST_NAMED]))}{more}"
    return PlanError("plan.cycle", problem, where=spots[0] if spots else None, hint=hint)
