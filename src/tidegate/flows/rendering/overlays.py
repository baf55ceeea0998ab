"""Build an overlay: from the cache, or with kustomize, with remote bases fetched as sources."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from tidegate.errors import RenderError, foreign
from tidegate.flows.rendering.bases import fetch_base
from tidegate.flows.rendering.charts import UNREAD, WHOLE, ChartWay, Sealed
from tidegate.flows.rendering.outcome import Weakened, attempt_all, raise_all
from tidegate.flows.rendering.stand_ins import empty_base, empty_chart
from tidegate.flows.rendering.unsealing import Unsealing
from tidegate.flows.rendering.workshop import Workshop
from tidegate.model.release import ChartDependency
from tidegate.model.rendering import Fetched, Overlay
from tidegate.model.source import ChartSource
from tidegate.render.cache_keys import gathered_key, overlay_key, request_text
from tidegate.render.glimpse import overlay_may_hold
from tidegate.render.kustomize import RemoteError, build
from tidegate.render.kustomize.gather import gather
from tidegate.render.kustomize.kustomization import Chart
from tidegate.source import Access, fetch

Absent: TypeAlias = Mapping[str, Chart | None]
"""What must be fetched, by how the overlay names it; those that are charts of a repository."""


async def build_overlay(
    overlay: Overlay, workshop: Workshop, unsealing: Unsealing, how: ChartWay = WHOLE
) -> Sealed:
    """The objects of an overlay. Kustomize has no network: what lies elsewhere is fetched here."""
    weakened: tuple[Weakened, ...] = ()
    bases: list[str] = []
    while True:
        try:
            made = await _build(overlay, workshop, unsealing, how)
        except RemoteError as error:
            absent = {
                one: error.charts.get(one) for one in error.references if one not in overlay.fetched
            }
            if not absent:
                raise
        except RenderError:
            raise_all(tuple(one.why for one in weakened))
            raise
        else:
            return replace(made, weakened=weakened, bases=tuple(bases))
        fetched, unknown = await _fetch(absent, overlay.root, workshop)
        weakened += unknown
        bases += [one for one, chart in absent.items() if chart is None]
        overlay = msgspec.structs.replace(overlay, fetched={**overlay.fetched, **fetched})


async def _build(
    overlay: Overlay, workshop: Workshop, unsealing: Unsealing, how: ChartWay
) -> Sealed:
    tool, version = workshop.builder
    gathered = gather(overlay, workshop.looked) if how.seeks else None
    if how.seeks and gathered and not overlay_may_hold(how.seeks, gathered):
        return UNREAD
    if not how.keeps:
        key = ""
    elif gathered is not None:
        key = gathered_key(gathered, version)
    else:
        asked = request_text(overlay) + version.encode()
        key = workshop.keys.find(asked, partial(overlay_key, overlay, version))
    known = workshop.renders.find(key) if key else None
    if known is not None:
        return Sealed(known)
    workers = await workshop.workers_if_any()
    async with workshop.crew.builds:
        documents = await build(overlay, tool=tool, decrypt=unsealing.open_input, workers=workers)
    if key and not unsealing.has_met_inputs:
        workshop.renders.keep(key, documents)  # what SOPS has opened is never kept
    return Sealed(documents)


async def _fetch(
    absent: Absent, root: Path, workshop: Workshop
) -> tuple[dict[str, Fetched], tuple[Weakened, ...]]:
    """Each reference; what stands in for it where it cannot be had and may be left out."""
    access = await workshop.access(root)
    wanted = {one: _fetch_one(one, chart, access) for one, chart in absent.items()}
    fetched, errors = await attempt_all(wanted)
    if not (access.offline or workshop.setting.stands_in):
        raise_all(tuple(errors.values()))
    fetched |= {one: await _stand_in(absent[one], access) for one in errors}
    weakened = (
        Weakened(f"what `{foreign(one)}` would add", error) for one, error in errors.items()
    )
    return {one: fetched[one] for one in absent}, tuple(weakened)


async def _fetch_one(reference: str, chart: Chart | None, access: Access) -> Fetched:
    if chart is None:
        return await fetch_base(reference, access)
    source = ChartSource(chart.repository, chart.name, chart.version)
    return Fetched((await fetch(source, access)).root)


async def _stand_in(chart: Chart | None, access: Access) -> Fetched:
    if chart is None:
        return await empty_base(access.cache)
    dependency = ChartDependency(chart.name, chart.version, chart.repository)
    return Fetched(Path((await empty_chart(dependency, access.cache)).path))
