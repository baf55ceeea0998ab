"""What units render to: charts, overlays, and directories of manifests."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable

from tidegate.errors import TidegateError
from tidegate.flows.pointing import Words, point_at
from tidegate.flows.rendering import Rendered, Setting, Unrendered, Workshop
from tidegate.flows.rendering.capabilities import Capabilities
from tidegate.flows.rendering.units import render_unit
from tidegate.model.unit import Unit
from tidegate.render.sops import Keys
from tidegate.source import Cache, default_cache_root, read_repository_map

AT_ONCE = 16
"""Units on their way at a time: what they wait for is limited elsewhere."""
UNKNOWN = Capabilities()


def own_setting(*, offline: bool = False, maps: Iterable[str] = ()) -> Setting:
    """The user's own cache, keys and credentials. A map is `URL=PATH`."""
    return Setting(
        cache=Cache(default_cache_root()),
        keys=Keys.from_environment(os.environ),
        environment=os.environ,
        maps=tuple(read_repository_map(text) for text in maps),
        offline=offline,
    )


async def render_paths(
    paths: Iterable[str], words: Words, setting: Setting
) -> tuple[Rendered | Unrendered, ...]:
    """What each path or address renders to, for no cluster in particular."""
    pointed = [_point_at(path, words) for path in paths]
    units = [(one, UNKNOWN) for one in pointed if isinstance(one, Unit)]
    results = iter(await render_all(units, setting))
    return tuple(next(results) if isinstance(one, Unit) else one for one in pointed)


def _point_at(path: str, words: Words) -> Unit | Unrendered:
    try:
        return point_at(path, **words)
    except TidegateError as error:
        return Unrendered((error,))


async def render_all(
    units: Iterable[tuple[Unit, Capabilities]], setting: Setting
) -> tuple[Rendered | Unrendered, ...]:
    """Render many, on all cores, each for its cluster; the results come in the same order.

    What goes wrong with one is its own result.
    """
    room = asyncio.Semaphore(AT_ONCE)

    async def one(unit: Unit, cluster: Capabilities) -> Rendered | Unrendered:
        async with room:
            return await render_unit(unit, cluster, workshop)

    async with Workshop(setting) as workshop, asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(one(unit, cluster), name=f"render {unit.id}")
            for unit, cluster in units
        ]
    return tuple(task.result() for task in tasks)
