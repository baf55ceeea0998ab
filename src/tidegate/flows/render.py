"""What units render to: charts, overlays, and directories of manifests."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from pathlib import Path

import msgspec

from tidegate.errors import Place, RenderError, TidegateError, errors_of
from tidegate.files import StrayPathError, follow
from tidegate.flows.pointing import Words, point_at
from tidegate.flows.rendering import Rendered, Setting, Unrendered, Workshop, render_request
from tidegate.flows.rendering.capabilities import Capabilities
from tidegate.flows.rendering.values import fetch_values
from tidegate.model.release import DEFAULT_KUBE_VERSION, Layer, Release, ValuesAddress, ValuesText
from tidegate.model.rendering import Detected, Overlay, Request, Tool
from tidegate.model.source import LocalSource, SourceRef
from tidegate.model.unit import Unit, UnitSource
from tidegate.render.helm.value_files import without_query
from tidegate.render.sops import Keys
from tidegate.render.tool_choice import detected_tool
from tidegate.source import Cache, default_cache_root, fetch, read_repository_map

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
    async with Workshop(setting) as workshop, asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(_render(unit, cluster, workshop, room), name=f"render {unit.id}")
            for unit, cluster in units
        ]
    return tuple(task.result() for task in tasks)


async def _render(
    unit: Unit, cluster: Capabilities, workshop: Workshop, room: asyncio.Semaphore
) -> Rendered | Unrendered:
    async with room:
        try:
            parts = [await _render_source(one, cluster, workshop) for one in unit.sources]
            return parts[0] if len(parts) == 1 else Rendered.together(parts)
        except TidegateError as error:
            return Unrendered((error,))
        except ExceptionGroup as group:
            ours, others = group.split(TidegateError)
            if ours is None or others is not None:
                raise
            return Unrendered(tuple(errors_of(ours)))


async def _render_source(wanted: UnitSource, cluster: Capabilities, workshop: Workshop) -> Rendered:
    root = await _root_of(wanted.source, workshop)
    match _chosen(wanted.request, root, str(wanted.source)):
        case Release() as chart:
            layers = await _with_values(chart.layers, workshop)
            asked: Request = msgspec.structs.replace(
                chart,
                root=str(root),
                layers=layers,
                kube_version=chart.kube_version or cluster.kube_version or DEFAULT_KUBE_VERSION,
                api_versions=chart.api_versions or cluster.api_versions,
            )
        case Overlay(helm=helm) as overlay if helm is not None:
            seen = msgspec.structs.replace(
                helm,
                kube_version=helm.kube_version or cluster.kube_version or DEFAULT_KUBE_VERSION,
                api_versions=helm.api_versions or cluster.api_versions,
            )
            asked = msgspec.structs.replace(overlay, root=root, helm=seen)
        case request:
            asked = msgspec.structs.replace(request, root=root)
    return await render_request(asked, workshop)


async def _root_of(source: SourceRef, workshop: Workshop) -> Path:
    if isinstance(source, LocalSource):
        return Path(source.path)
    return (await fetch(source, await workshop.access(None))).root


def _chosen(request: Request | Detected, root: Path, where: str) -> Request:
    """What the files speak for, as Argo CD decides it."""
    if not isinstance(request, Detected):
        return request
    place = root / request.path
    try:
        is_there = follow(place, root).is_dir()
    except StrayPathError:
        is_there = False
    if not is_there:
        problem = f"`{request.path}` is not a directory of {where}"
        hint = "name a chart, an overlay or a directory of manifests"
        raise RenderError("render.path", problem, where=Place(where), hint=hint)
    choices: dict[Tool, Request] = {Tool.HELM: request.chart, Tool.KUSTOMIZE: request.overlay}
    tool = detected_tool(entry.name for entry in place.iterdir())
    return choices.get(tool, request.directory)


async def _with_values(layers: tuple[Layer, ...], workshop: Workshop) -> tuple[Layer, ...]:
    """The layers with what lies at web addresses."""
    urls = [one.url for one in layers if isinstance(one, ValuesAddress)]
    texts = await fetch_values(urls, workshop) if urls else {}
    return tuple(
        ValuesText(texts[one.url], without_query(one.url), is_file=True)
        if isinstance(one, ValuesAddress)
        else one
        for one in layers
    )
