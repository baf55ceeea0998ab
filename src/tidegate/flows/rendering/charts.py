"""Render a chart: from the cache, or by a worker, with its dependencies fetched as sources."""

from __future__ import annotations

import posixpath
from functools import partial
from pathlib import Path

import msgspec
from msgspec.structs import replace

from tidegate.documents import Document
from tidegate.errors import Place, RenderError, foreign
from tidegate.flows.rendering.outcome import Weakened, attempt_all, raise_all
from tidegate.flows.rendering.stand_ins import empty_chart
from tidegate.flows.rendering.workshop import Workshop
from tidegate.model.release import ChartDependency, FetchedChart, Release
from tidegate.model.source import ChartSource
from tidegate.render.cache_keys import release_key, request_text
from tidegate.render.glimpse import Marks, chart_may_hold
from tidegate.render.helm import DependencyError, render
from tidegate.render.helm.files import in_tree
from tidegate.render.helm.sheets import ChartSheet, describe
from tidegate.source import Access, fetch

REPOSITORIES = ("https://", "http://", "oci://")


class Sealed(msgspec.Struct, frozen=True):
    """Objects before decryption, what is not among them, and remote bases that they are made of."""

    documents: tuple[Document, ...]
    weakened: tuple[Weakened, ...] = ()
    is_unread: bool = False
    bases: tuple[str, ...] = ()


UNREAD = Sealed((), is_unread=True)


class ChartWay(msgspec.Struct, frozen=True):
    """Whether the cache `keeps` it, and what somebody `seeks` in it."""

    keeps: bool = True
    seeks: Marks | None = None


WHOLE = ChartWay()


async def render_chart(release: Release, workshop: Workshop, how: ChartWay = WHOLE) -> Sealed:
    """The objects of a chart. Workers have no network: what is absent is fetched here."""
    release = msgspec.structs.replace(release, repositories=())
    weakened: tuple[Weakened, ...] = ()
    while True:
        try:
            tried = await _try(release, workshop, how)
        except RenderError:
            raise_all(tuple(one.why for one in weakened))
            raise
        if isinstance(tried, Sealed):
            documents = tuple(
                msgspec.structs.replace(one, place=in_tree(one.place, release.chart))
                for one in tried.documents
            )
            return replace(tried, documents=documents, weakened=weakened)
        fetched, unknown = await _fetch(tried, release, workshop)
        weakened += unknown
        release = msgspec.structs.replace(release, fetched=(*release.fetched, *fetched))


def inside_chart(document: Document, release: Release) -> Document:
    """With its place seen from the chart, as Helm names it."""
    where, chart = document.place, posixpath.normpath(release.chart.lstrip("/"))
    name = where.name.rpartition("//")[2].removeprefix(f"{chart}/")
    return msgspec.structs.replace(document, place=where.named(name))


async def describe_chart(release: Release, workshop: Workshop) -> ChartSheet:
    """What a record of a release keeps of its chart. Raises what rendering raises."""
    release = msgspec.structs.replace(release, repositories=())
    while True:
        try:
            return await describe(release, await workshop.crew.helm())
        except DependencyError as error:
            if {one.dependency for one in release.fetched} & {*error.dependencies}:
                raise
            fetched, _ = await _fetch(error.dependencies, release, workshop)
        release = msgspec.structs.replace(release, fetched=(*release.fetched, *fetched))


async def _try(
    release: Release, workshop: Workshop, how: ChartWay
) -> Sealed | tuple[ChartDependency, ...]:
    """The objects, or what must be fetched before there are any."""
    if how.seeks and not chart_may_hold(how.seeks, release):
        return UNREAD
    # What is found in a cluster may be secret, and something else the next time.
    key = chart_key(release, workshop) if how.keeps and not release.lookups else ""
    known = _known(key, workshop) if key else None
    if known is not None:
        return known
    try:
        documents = await render(release, await workshop.crew.helm())
    except DependencyError as error:
        if {one.dependency for one in release.fetched} & {*error.dependencies}:
            raise
        if key:
            workshop.renders.keep_needs(key, error.dependencies)
        return error.dependencies
    if key:
        workshop.renders.keep(key, documents)
    return Sealed(documents)


def _known(key: str, workshop: Workshop) -> Sealed | tuple[ChartDependency, ...] | None:
    """What was had, or asked for, the last time."""
    known = workshop.renders.find(key)
    return Sealed(known) if known is not None else workshop.renders.find_needs(key) or None


def chart_key(release: Release, workshop: Workshop) -> str:
    """Empty for what cannot be rendered: the worker says it better."""
    try:
        return workshop.keys.find(request_text(release), partial(release_key, release))
    except (RenderError, OSError):
        return ""


async def _fetch(
    needs: tuple[ChartDependency, ...], release: Release, workshop: Workshop
) -> tuple[tuple[FetchedChart, ...], tuple[Weakened, ...]]:
    """Each dependency; what stands in for it where it cannot be had and may be left out."""
    for one in needs:
        _refuse_repository(one, release)
    access = await workshop.access(Path(release.root))
    fetched, errors = await attempt_all({one: _fetch_one(one, access) for one in needs})
    if not (access.offline or workshop.setting.stands_in):
        raise_all(tuple(errors.values()))
    fetched |= {one: await empty_chart(one, access.cache) for one in errors}
    weakened = (
        Weakened(f"what the chart `{foreign(need.name)}` would add", error)
        for need, error in errors.items()
    )
    return tuple(fetched[need] for need in needs), tuple(weakened)


async def _fetch_one(one: ChartDependency, access: Access) -> FetchedChart:
    snapshot = await fetch(ChartSource(one.repository, one.name, one.version), access)
    return FetchedChart(one, str(snapshot.root))


def _refuse_repository(one: ChartDependency, release: Release) -> None:
    if not one.repository.startswith(REPOSITORIES):
        problem = f"the chart needs `{foreign(one.name)}` from `{foreign(one.repository)}`"
        hint = "write the repository's address: " + ", ".join(f"`{each}`" for each in REPOSITORIES)
        where = Place(f"{release.chart}/Chart.yaml", field="dependencies")
        raise RenderError("render.helm.repository", problem, where=where, hint=hint)
