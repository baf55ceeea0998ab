"""How units are found: what may be had, what clusters are like, what generators find."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import msgspec

from tidegate.dialect.argo.sets.asking import KnownCluster
from tidegate.flows.discover.families import Growing, Render
from tidegate.flows.discover.scan import Scan
from tidegate.flows.discover.sets import AskLives, Generating, nothing_lives
from tidegate.flows.generator_data import GeneratorData
from tidegate.flows.rendering import Rendered, Setting, Unrendered, Workshop
from tidegate.flows.rendering.capabilities import Capabilities
from tidegate.flows.rendering.trees import FindData
from tidegate.flows.rendering.units import render_unit
from tidegate.model.config import Config
from tidegate.model.unit import Unit

AskCluster: TypeAlias = Callable[[str], Awaitable[Capabilities]]
AT_ONCE = 16
"""Units on their way at a time: what they wait for is limited elsewhere."""


class Way(msgspec.Struct, frozen=True):
    """The same for all units of one search."""

    setting: Setting
    ask: AskCluster
    config: Config
    data: GeneratorData
    lives: AskLives = nothing_lives
    clusters: tuple[KnownCluster, ...] = ()
    """Those that units of this very repository make known to Argo CD."""

    def growing(self, scan: Scan, workshop: Workshop) -> Growing:
        generating = Generating(workshop, scan, self.config, self.data, self.lives, self.clusters)
        return Growing(scan, self._renderer(workshop), generating)

    def _renderer(self, workshop: Workshop) -> Render:
        room = asyncio.Semaphore(AT_ONCE)

        async def render(unit: Unit, find_data: FindData) -> Rendered | Unrendered:
            async with room:
                await asyncio.sleep(0)  # noqa: TID251 - no pause: tools are heard between units
                cluster = await self.ask(unit.destination.cluster)
                return await render_unit(unit, cluster, workshop, find_data)

        return render
