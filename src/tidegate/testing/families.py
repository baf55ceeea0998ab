"""A unit by itself, rendered for its cluster, as flows take units."""

from __future__ import annotations

from tidegate.flows.discover import Family, Member
from tidegate.flows.reading import Read, read_members
from tidegate.flows.rendering import Workshop
from tidegate.flows.rendering.units import render_unit
from tidegate.flows.session import Session
from tidegate.model.unit import Unit


async def a_family(unit: Unit, session: Session) -> Family:
    """It brings nobody."""
    cluster = await session.capabilities(unit.destination.cluster)
    async with Workshop(session.setting) as workshop:
        rendered = await render_unit(unit, cluster, workshop)
    return Family(unit.id, (Member(unit, rendered),))


async def a_read(unit: Unit, session: Session) -> Read:
    """What it asks for."""
    (read,) = await read_members((await a_family(unit, session)).members, session)
    return read
