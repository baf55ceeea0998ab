"""Rendering of charts: from the cache or by a worker, with dependencies fetched as sources.

Also their lookups in a cluster, and empty charts and bases in place of unavailable ones.
"""

from __future__ import annotations

import posixpath
from functools import partial
from pathlib import Path

import msgspec
from msgspec.structs import replace

from tidegate.documents import Document
from tidegate.errors import Location, RenderError, sanitize
from tidegate.flows.rendering.outcome import MissingInput, gather_results, raise_all
from tidegate.flows.rendering.stand_ins import empty_chart
from tidegate.flows.rendering.workshop import RenderContext
from tidegate.model.release import ChartDependency, ChartRequest, FetchedChart
from tidegate.model.source import ChartSource
from tidegate.render.cache_keys import release_key, request_text
from tidegate.render.glimpse import Marks, chart_may_hold
from tidegate.render.helm import DependencyError, render
from tidegate.render.helm.files import in_tree
from tidegate.render.helm.sheets import ChartSheet, describe
from tidegate.source import Access, fetch

REPOSITORY_SCHEMES = ("https://", "http://", "oci://")


class EncryptedObjects(msgspec.Struct, frozen=True):
    """Objects before decryption."""

    documents: tuple[Document, ...]
    missing_inputs: tuple[MissingInput, ...] = ()
    """Inputs that are missing, so that objects are."""
    is_skipped: bool = False
    """Whether nothing was rendered, as it cannot contain the searched text."""
    remote_bases: tuple[str, ...] = ()
    """Remote bases that the objects are made of."""


SKIPPED = EncryptedObjects((), is_skipped=True)


class RenderMode(msgspec.Struct, frozen=True):
    """How to render: with the cache or not, and all or what may contain a text."""

    use_cache: bool = True
    search_pattern: Marks | None = None


FULL_RENDER = RenderMode()


async def render_chart(
    request: ChartRequest, context: RenderContext, mode: RenderMode = FULL_RENDER
) -> EncryptedObjects:
    """Return the objects of a chart. Workers have no network: missing charts are fetched here."""
    request = msgspec.structs.replace(request, repositories=())
    missing_inputs: tuple[MissingInput, ...] = ()
    while True:
        try:
            attempt = await _render_attempt(request, context, mode)
        except RenderError:
            raise_all(tuple(missing_input.error for missing_input in missing_inputs))
            raise
        if isinstance(attempt, EncryptedObjects):
            documents = tuple(
                msgspec.structs.replace(
                    document, location=in_tree(document.location, request.chart)
                )
                for document in attempt.documents
            )
            return replace(attempt, documents=documents, missing_inputs=missing_inputs)
        fetched, missing = await _fetch_dependencies(attempt, request, context)
        missing_inputs += missing
        request = msgspec.structs.replace(request, fetched=(*request.fetched, *fetched))


def relative_to_chart(document: Document, request: ChartRequest) -> Document:
    """Return a document with its location relative to the chart, as Helm names it."""
    location, chart = document.location, posixpath.normpath(request.chart.lstrip("/"))
    name = location.name.rpartition("//")[2].removeprefix(f"{chart}/")
    return msgspec.structs.replace(document, location=location.with_name(name))


async def describe_chart(request: ChartRequest, context: RenderContext) -> ChartSheet:
    """Return what a release record stores about its chart. Raises the errors of rendering."""
    request = msgspec.structs.replace(request, repositories=())
    while True:
        try:
            return await describe(request, await context.worker_pool.helm())
        except DependencyError as error:
            if {chart.dependency for chart in request.fetched} & {*error.dependencies}:
                raise
            fetched, _ = await _fetch_dependencies(error.dependencies, request, context)
        request = msgspec.structs.replace(request, fetched=(*request.fetched, *fetched))


async def _render_attempt(
    request: ChartRequest, context: RenderContext, mode: RenderMode
) -> EncryptedObjects | tuple[ChartDependency, ...]:
    """Return the objects, or the dependencies that must be fetched before."""
    if mode.search_pattern and not chart_may_hold(mode.search_pattern, request):
        return SKIPPED
    # What is found in a cluster may be secret, and something else the next time.
    key = chart_cache_key(request, context) if mode.use_cache and not request.lookups else ""
    cached = _find_cached(key, context) if key else None
    if cached is not None:
        return cached
    try:
        documents = await render(request, await context.worker_pool.helm())
    except DependencyError as error:
        if {chart.dependency for chart in request.fetched} & {*error.dependencies}:
            raise
        if key:
            context.render_cache.keep_needs(key, error.dependencies)
        return error.dependencies
    if key:
        context.render_cache.keep(key, documents)
    return EncryptedObjects(documents)


def _find_cached(
    key: str, context: RenderContext
) -> EncryptedObjects | tuple[ChartDependency, ...] | None:
    """Return the objects, or the missing dependencies, of the last time; None without either."""
    documents = context.render_cache.find(key)
    return (
        EncryptedObjects(documents)
        if documents is not None
        else context.render_cache.find_needs(key) or None
    )


def chart_cache_key(request: ChartRequest, context: RenderContext) -> str:
    """Return the cache key of a chart; empty for an invalid one, which the worker reports."""
    try:
        return context.cache_keys.find(request_text(request), partial(release_key, request))
    except (RenderError, OSError):
        return ""


async def _fetch_dependencies(
    dependencies: tuple[ChartDependency, ...], request: ChartRequest, context: RenderContext
) -> tuple[tuple[FetchedChart, ...], tuple[MissingInput, ...]]:
    """Fetch dependencies; an empty chart replaces one that is unavailable and may be left out."""
    for dependency in dependencies:
        _check_repository(dependency, request)
    options = await context.fetch_options(Path(request.root))
    fetched, errors = await gather_results(
        {dependency: _fetch_dependency(dependency, options) for dependency in dependencies}
    )
    if not (options.offline or context.settings.skips_unavailable):
        raise_all(tuple(errors.values()))
    fetched |= {dependency: await empty_chart(dependency, options.cache) for dependency in errors}
    missing_inputs = (
        MissingInput(f"what the chart `{sanitize(chart.name)}` would add", error)
        for chart, error in errors.items()
    )
    return tuple(fetched[chart] for chart in dependencies), tuple(missing_inputs)


async def _fetch_dependency(dependency: ChartDependency, options: Access) -> FetchedChart:
    snapshot = await fetch(
        ChartSource(dependency.repository, dependency.name, dependency.version), options
    )
    return FetchedChart(dependency, str(snapshot.root))


def _check_repository(dependency: ChartDependency, request: ChartRequest) -> None:
    if not dependency.repository.startswith(REPOSITORY_SCHEMES):
        problem = (
            f"the chart needs `{sanitize(dependency.name)}` from"
            f" `{sanitize(dependency.repository)}`"
        )
        hint = "write the repository's address: " + ", ".join(
            f"`{scheme}`" for scheme in REPOSITORY_SCHEMES
        )
        location = Location(f"{request.chart}/Chart.yaml", field="dependencies")
        raise RenderError("render.helm.repository", problem, location=location, hint=hint)
