"""What units render to: charts, overlays, and directories of manifests."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace

from tidegate.errors import TidegateError
from tidegate.flows.discover import is_called
from tidegate.flows.entering import Found, find
from tidegate.flows.pointing import Pointed
from tidegate.flows.rendering import Rendered, Setting, Unrendered
from tidegate.render.sops import Keys
from tidegate.source import Cache, default_cache_root, read_repository_map


def own_setting(*, offline: bool = False, maps: Iterable[str] = ()) -> Setting:
    """The user's own cache, keys and credentials. A map is `URL=PATH`."""
    return Setting(
        cache=Cache(default_cache_root()),
        keys=Keys.from_environment(os.environ),
        environment=os.environ,
        maps=tuple(read_repository_map(text) for text in maps),
        offline=offline,
    )


async def render_pointed(
    pointed: Iterable[Pointed], setting: Setting
) -> tuple[tuple[Found | None, tuple[Rendered | Unrendered, ...]], ...]:
    """What each path or address renders to, for no cluster in particular: unit by unit."""
    return tuple([await _render(one, setting) for one in pointed])


async def _render(
    pointed: Pointed, setting: Setting
) -> tuple[Found | None, tuple[Rendered | Unrendered, ...]]:
    try:
        found = await find(pointed, setting)
    except TidegateError as error:
        return None, (Unrendered((error,)),)
    members = found.members
    if pointed.units:
        members = tuple(one for one in members if is_called(one.unit, *pointed.units))
        found = replace(found, findings=found.findings_of(members))
    return found, tuple(one.rendered for one in members)
