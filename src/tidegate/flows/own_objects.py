"""Where the own objects of units are: what says in a cluster that a unit is there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tidegate.flows.planning import Planned
from tidegate.flows.session import Session
from tidegate.model.objects import Kind, Ref, Spot
from tidegate.model.plan import Deed, items_of
from tidegate.model.unit import UnitId


class OwnObject(NamedTuple):
    """Its place, and its text where the plan writes it."""

    spot: Spot
    text: bytes = b""


async def find_own(
    planned: Planned, session: Session, groups: Mapping[str, str]
) -> dict[UnitId, OwnObject]:
    """The own objects of units, by whose kinds' names there are groups.

    As the plan writes them; else in the version that their cluster serves. A kind that nobody
    serves and that the plan does not bring has none.
    """
    found: dict[UnitId, OwnObject] = {}
    units = [unit.id for unit in planned.plan.units if unit.id.kind in groups]
    wanted = frozenset(units)
    for step in planned.plan.steps if units else ():
        for item in (one for one in items_of(step) if one.deed is not Deed.SKIP):
            kind, ref = item.ref.kind, item.ref
            name = UnitId(kind.name, step.cluster, ref.namespace, ref.name)
            if name in wanted and groups[kind.name] == kind.group:
                found.setdefault(name, OwnObject(Spot(step.cluster, ref), item.body))
    for name in (one for one in units if one not in found):
        if name.cluster not in session.target.contexts:
            continue
        for kind in await _served(name, groups[name.kind], session):
            found[name] = OwnObject(Spot(name.cluster, Ref(kind, name.namespace, name.name)))
    return {name: found[name] for name in units if name in found}


async def _served(unit: UnitId, group: str, session: Session) -> list[Kind]:
    kinds = (one.kind for one in await session.kinds(unit.cluster))
    return [kind for kind in kinds if (kind.group, kind.name) == (group, unit.kind)][:1]
