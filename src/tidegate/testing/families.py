"""A unit by itself, rendered for its cluster, as flows take units."""

from __future__ import annotations

from tidegate.flows.discover import RenderedUnit, UnitTree
from tidegate.flows.reading import UnitManifests, read_valid_manifests
from tidegate.flows.rendering import RenderContext
from tidegate.flows.rendering.units import render_unit
from tidegate.flows.session import Session
from tidegate.model.unit import Unit


async def a_family(unit: Unit, session: Session) -> UnitTree:
    """It brings nobody."""
    cluster = await session.capabilities(unit.destination.cluster)
    async with RenderContext(session.render_settings) as workshop:
        rendered = await render_unit(unit, cluster, workshop)
    return UnitTree(unit.id, (RenderedUnit(unit, rendered),))


async def a_read(unit: Unit, session: Session) -> UnitManifests:
    """What it asks for."""
    (read,) = await read_valid_manifests((await a_family(unit, session)).members, session)
    return read
