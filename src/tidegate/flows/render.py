"""What paths and addresses render to: charts, overlays, and directories of manifests."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from tidegate.errors import Place, RenderError, TidegateError
from tidegate.files import StrayPathError, follow
from tidegate.flows.rendering import (
    Asked,
    Rendered,
    Setting,
    Unrendered,
    Workshop,
    render_unit,
)
from tidegate.flows.rendering.bases import read_base
from tidegate.flows.rendering.capabilities import Capabilities
from tidegate.flows.rendering.outcome import errors_of
from tidegate.flows.rendering.values import fetch_values
from tidegate.model.source import ChartSource, GitRef, OciSource, RefKind, SourceRef
from tidegate.render.helm import Inline, Parameter, Release, ValuesFile, ValuesText
from tidegate.render.helm.release import DEFAULT_KUBE_VERSION
from tidegate.render.helm.value_files import without_query
from tidegate.render.kustomize import Helm, Overlay
from tidegate.render.plain import Directory
from tidegate.render.sops import Keys
from tidegate.render.tool_choice import Tool, detected_tool
from tidegate.source import Cache, default_cache_root, fetch, read_repository_map
from tidegate.source.semver import read_range, read_version

AT_ONCE = 16
"""Units on their way at a time: what they wait for is limited elsewhere."""
PACKED_CHART = ".tgz"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is to be rendered, and what a chart is told.

    `what` is a path, or the address of a Git repository, written as kustomize takes it, of an
    artifact in a registry, or with `chart` of a Helm repository. `values` are paths and web
    addresses. Where nothing is given, charts see the usual; `for_cluster` takes it from a cluster.
    """

    what: str
    revision: str = ""
    chart: str = ""
    name: str = ""
    namespace: str = "default"
    values: tuple[str | Path, ...] = ()
    parameters: tuple[tuple[str, str], ...] = ()
    kube_version: str = ""
    api_versions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Spot:
    """Where the files are: in a tree, a directory or a packed chart, and its name."""

    root: Path
    inside: str
    name: str


def own_setting(*, offline: bool = False, maps: Iterable[str] = ()) -> Setting:
    """The user's own cache, keys and credentials. A map is `URL=PATH`."""
    return Setting(
        cache=Cache(default_cache_root()),
        keys=Keys.from_environment(os.environ),
        environment=os.environ,
        maps=tuple(read_repository_map(text) for text in maps),
        offline=offline,
    )


def for_cluster(wanted: Wanted, cluster: Capabilities) -> Wanted:
    """What is wanted for a cluster: what the user has not given, the cluster says."""
    return replace(
        wanted,
        kube_version=wanted.kube_version or cluster.kube_version,
        api_versions=wanted.api_versions or cluster.api_versions,
    )


def refuse_nowhere(wanted: Wanted) -> None:
    """Raise a RenderError for what is no directory or chart here, and no address either."""
    if _find_here(wanted) is None:
        _source(wanted)


async def render_all(
    wanted: Iterable[Wanted], setting: Setting
) -> tuple[Rendered | Unrendered, ...]:
    """Render many, on all cores; the results come in the order of what is wanted.

    What goes wrong with one is its own result.
    """
    room = asyncio.Semaphore(AT_ONCE)
    async with Workshop(setting) as workshop, asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(_render(one, workshop, room), name=f"render {one.what}")
            for one in wanted
        ]
    return tuple(task.result() for task in tasks)


async def _render(
    wanted: Wanted, workshop: Workshop, room: asyncio.Semaphore
) -> Rendered | Unrendered:
    async with room:
        try:
            spot = await _find(wanted, workshop)
            addresses = (one for one in map(str, wanted.values) if is_address(one))
            texts = await fetch_values(addresses, workshop)
            return await render_unit(_asked(wanted, spot, texts), workshop)
        except TidegateError as error:
            return Unrendered((error,))
        except ExceptionGroup as group:
            ours, others = group.split(TidegateError)
            if ours is None or others is not None:
                raise
            return Unrendered(tuple(errors_of(ours)))


async def _find(wanted: Wanted, workshop: Workshop) -> Spot:
    here = _find_here(wanted)
    if here is not None:
        return here
    source, inside = _source(wanted)
    snapshot = await fetch(source, await workshop.access(None))
    try:
        is_there = follow(snapshot.root / inside, snapshot.root).is_dir()
    except StrayPathError:
        is_there = False
    if not is_there:
        raise _not_a_directory(wanted)
    name = wanted.chart or Path(inside).name or wanted.what.rstrip("/").rpartition("/")[2]
    return Spot(snapshot.root, inside, name.removesuffix(".git"))


def _find_here(wanted: Wanted) -> Spot | None:
    path = Path(wanted.what).resolve()
    if wanted.chart or not path.exists():
        return None
    is_packed = path.is_file() and path.name.endswith(PACKED_CHART)
    if wanted.revision or not (path.is_dir() or is_packed):
        raise _not_a_directory(wanted)
    root = root_of(path if path.is_dir() else path.parent)
    return Spot(root, path.relative_to(root).as_posix(), path.name.removesuffix(PACKED_CHART))


def _source(wanted: Wanted) -> tuple[SourceRef, str]:
    """What an address means, and the directory in it."""
    if wanted.chart:
        return ChartSource(wanted.what, wanted.chart, wanted.revision), "."
    if wanted.what.startswith("oci://"):
        return _artifact(wanted.what, wanted.revision), "."
    base = read_base(wanted.what, submodules=False)
    if base is None:
        raise _not_a_directory(wanted)
    at = GitRef(RefKind.ANY, wanted.revision) if wanted.revision else base.source.at
    return msgspec.structs.replace(base.source, at=at), base.path


def _artifact(url: str, revision: str) -> OciSource:
    if revision.startswith("sha256:"):
        return OciSource(url, digest=revision)
    if read_version(revision) is None and read_range(revision) is not None and revision:
        return OciSource(url, range=revision)
    return OciSource(url, tag=revision.replace("+", "_"))


def _not_a_directory(wanted: Wanted) -> RenderError:
    problem = f"`{wanted.what}` is not a directory"
    if wanted.revision and Path(wanted.what).exists():
        problem = f"`{wanted.what}` is a directory here, and has no revisions"
    hint = "name a chart, an overlay or a directory of manifests, or the address of a repository"
    return RenderError("render.path", problem, where=Place(wanted.what), hint=hint)


def root_of(path: Path) -> Path:
    """The repository of a path: overlays and charts may reach that far, and no farther."""
    return next((one for one in (path, *path.parents) if (one / ".git").exists()), path)


def is_address(values: str) -> bool:
    """Whether values lie on a web server."""
    return values.lower().startswith(("https://", "http://"))


def _asked(wanted: Wanted, spot: Spot, texts: Mapping[str, str]) -> Asked:
    """What the files speak for, as Argo CD decides it."""
    place = spot.root / spot.inside
    is_packed = place.is_file()
    tool = Tool.HELM if is_packed else detected_tool(entry.name for entry in place.iterdir())
    match tool:
        case Tool.HELM:
            return _release(wanted, spot, texts)
        case Tool.KUSTOMIZE:
            version = wanted.kube_version or DEFAULT_KUBE_VERSION
            helm = Helm(kube_version=version, api_versions=wanted.api_versions)
            return Overlay(root=spot.root, path=spot.inside, helm=helm)
        case _:
            return Directory(root=spot.root, path=spot.inside, recurse=True)


def _release(wanted: Wanted, spot: Spot, texts: Mapping[str, str]) -> Release:
    files = (_values(str(one), texts) for one in wanted.values)
    parameters = (Parameter(name, value) for name, value in wanted.parameters)
    return Release(
        root=str(spot.root),
        chart=spot.inside,
        name=wanted.name or spot.name,
        namespace=wanted.namespace,
        layers=(*files, Inline(), *parameters),
        kube_version=wanted.kube_version or DEFAULT_KUBE_VERSION,
        api_versions=wanted.api_versions,
    )


def _values(path: str, texts: Mapping[str, str]) -> ValuesFile | ValuesText:
    if path in texts:
        return ValuesText(texts[path], without_query(path), is_file=True)
    place = Path(path).resolve()
    return ValuesFile(place.name, root=str(place.parent))
