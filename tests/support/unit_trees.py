"""A single unit, rendered for its cluster, as a unit tree."""

from __future__ import annotations

from tidegate.clusters.session import Session
from tidegate.model.units.unit import Unit
from tidegate.planning.manifests import UnitManifests
from tidegate.planning.preparation import read_valid_manifests
from tidegate.workspace.discovery.unit_tree import RenderedUnit, UnitTree
from tidegate.workspace.rendering.context import RenderContext
from tidegate.workspace.rendering.render_unit import render_unit


async def make_unit_tree(unit: Unit, session: Session) -> UnitTree:
    """It has no children."""
    cluster = await session.capabilities(unit.destination.cluster)
    async with RenderContext(session.render_settings) as workshop:
        rendered = await render_unit(unit, cluster, workshop)
    return UnitTree(unit.id, (RenderedUnit(unit, rendered),))


async def make_unit_manifests(unit: Unit, session: Session) -> UnitManifests:
    """What it asks for."""
    (read,) = await read_valid_manifests((await make_unit_tree(unit, session)).members, session)
    return read
