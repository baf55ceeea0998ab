"""Build an overlay: from the cache, or with kustomize, with remote bases fetched as sources."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TypeAlias

import msgspec

from tidegate.errors import RenderError, TidegateError, foreign
from tidegate.flows.rendering.bases import fetch_base
from tidegate.flows.rendering.charts import Made
from tidegate.flows.rendering.outcome import Weakened, raise_all
from tidegate.flows.rendering.stand_ins import empty_base, empty_chart
from tidegate.flows.rendering.unsealing import Unsealing
from tidegate.flows.rendering.workshop import Workshop
from tidegate.model.release import ChartDependency
from tidegate.model.rendering import Fetched, Overlay
from tidegate.model.source import ChartSource
from tidegate.render.cache_keys import overlay_key, program_version, request_text
from tidegate.render.kustomize import Builder, RemoteError, build, find_tool
from tidegate.render.kustomize.plugins import Chart
from tidegate.source import Access, fetch

Absent: TypeAlias = Mapping[str, Chart | None]
"""What must be fetched, by how the overlay names it; those that are charts of a repository."""


async def build_overlay(
    overlay: Overlay, workshop: Workshop, unsealing: Unsealing, *, keeps: bool = True
) -> Made:
    """The objects of an overlay. Kustomize has no network: what lies elsewhere is fetched here."""
    weakened: tuple[Weakened, ...] = ()
    while True:
        try:
            made = await _build(overlay, workshop, unsealing, keeps=keeps)
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
            return Made(made.documents, weakened)
        fetched, unknown = await _fetch(absent, overlay.root, workshop)
        weakened += unknown
        overlay = msgspec.structs.replace(overlay, fetched={**overlay.fetched, **fetched})


async def _build(
    overlay: Overlay, workshop: Workshop, unsealing: Unsealing, *, keeps: bool
) -> Made:
    tool = find_tool()
    key = await _key(overlay, tool, workshop) if keeps else ""
    known = workshop.renders.find(key) if key else None
    if known is not None:
        return Made(known)
    workers = await workshop.workers_if_any()
    async with workshop.builds:
        documents = await build(overlay, tool=tool, decrypt=unsealing.open_input, workers=workers)
    if key and not unsealing.has_met_inputs:
        workshop.renders.keep(key, documents)  # what SOPS has opened is never kept
    return Made(documents)


async def _key(overlay: Overlay, tool: Builder, workshop: Workshop) -> str:
    asked = request_text(overlay) + program_version(tool.argv).encode()
    return await workshop.keys.find(asked, partial(overlay_key, overlay, tool))


async def _fetch(
    absent: Absent, root: Path, workshop: Workshop
) -> tuple[dict[str, Fetched], tuple[Weakened, ...]]:
    """Each reference; offline, what stands in for it where it cannot be had."""
    access = await workshop.access(root)
    async with asyncio.TaskGroup() as group:
        tasks = {
            one: group.create_task(_fetch_one(one, chart, access), name=f"fetch {one}")
            for one, chart in absent.items()
        }
    found = {one: task.result() for one, task in tasks.items()}
    errors = {one: got for one, got in found.items() if isinstance(got, TidegateError)}
    if not access.offline:
        raise_all(tuple(errors.values()))
    fetched = {
        one: await _stand_in(absent[one], access) if isinstance(got, TidegateError) else got
        for one, got in found.items()
    }
    weakened = (
        Weakened(f"what `{foreign(one)}` would add", error) for one, error in errors.items()
    )
    return fetched, tuple(weakened)


async def _fetch_one(
    reference: str, chart: Chart | None, access: Access
) -> Fetched | TidegateError:
    try:
        if chart is None:
            return await fetch_base(reference, access)
        source = ChartSource(chart.repository, chart.name, chart.version)
        return Fetched((await fetch(source, access)).root)
    except TidegateError as error:
        return error


async def _stand_in(chart: Chart | None, access: Access) -> Fetched:
    if chart is None:
        return await empty_base(access.cache)
    dependency = ChartDependency(chart.name, chart.version, chart.repository)
    return Fetched(Path((await empty_chart(dependency, access.cache)).path))
