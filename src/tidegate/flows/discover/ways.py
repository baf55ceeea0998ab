"""Inputs of a discovery: render settings, clusters, and results of generators."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import msgspec

from tidegate.dialect.argo.sets.asking import RegisteredCluster
from tidegate.flows.discover.families import RenderFunction, UnitTreeBuilder
from tidegate.flows.discover.scan import RepositoryScan
from tidegate.flows.discover.sets import AppSetExpander, ListLive, list_nothing
from tidegate.flows.generator_data import GeneratorData
from tidegate.flows.rendering import RenderContext, RenderFailure, RenderResult, RenderSettings
from tidegate.flows.rendering.capabilities import Capabilities
from tidegate.flows.rendering.trees import FindData
from tidegate.flows.rendering.units import render_unit
from tidegate.model.config import Config
from tidegate.model.unit import Unit

GetCapabilities: TypeAlias = Callable[[str], Awaitable[Capabilities]]
CONCURRENT_UNITS = 16
"""Number of units that are rendered at a time; what they wait for has limits of its own."""


class DiscoveryContext(msgspec.Struct, frozen=True):
    """Inputs of one discovery, the same for all units."""

    settings: RenderSettings
    get_capabilities: GetCapabilities
    config: Config
    generator_data: GeneratorData
    list_live: ListLive = list_nothing
    created_clusters: tuple[RegisteredCluster, ...] = ()
    """Clusters that units of this repository register with Argo CD."""

    def tree_builder(self, scan: RepositoryScan, render_context: RenderContext) -> UnitTreeBuilder:
        expander = AppSetExpander(
            render_context,
            scan,
            self.config,
            self.generator_data,
            self.list_live,
            self.created_clusters,
        )
        return UnitTreeBuilder(scan, self._renderer(render_context), expander)

    def _renderer(self, render_context: RenderContext) -> RenderFunction:
        slots = asyncio.Semaphore(CONCURRENT_UNITS)

        async def render(unit: Unit, find_data: FindData) -> RenderResult | RenderFailure:
            async with slots:
                await asyncio.sleep(0)  # noqa: TID251 - no pause: tools are heard between units
                capabilities = await self.get_capabilities(unit.destination.cluster)
                return await render_unit(unit, capabilities, render_context, find_data)

        return render
