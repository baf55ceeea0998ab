"""What only a tree can settle of a source: which files are meant, what overrides it, which tool.

A dialect reads a source before its tree is there. With the tree, the rest is filled in here: values
files by their patterns, variables of the build, the files with which Argo CD overrides a source.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from pathlib import Path

import msgspec

from tidegate.dialect.argo.source import Owner, override_source, read_source
from tidegate.documents import read
from tidegate.errors import Place, RenderError, SourceError, WordsError
from tidegate.files import StrayPathError, Within, follow, open_file
from tidegate.flows.rendering.capabilities import Capabilities
from tidegate.flows.rendering.values import fetch_values, find_values
from tidegate.flows.rendering.workshop import Workshop
from tidegate.model.objects import Json
from tidegate.model.release import (
    DEFAULT_KUBE_VERSION,
    Inline,
    Layer,
    Release,
    ValuesAddress,
    ValuesText,
)
from tidegate.model.rendering import (
    ArgoDetails,
    ArgoOverrides,
    ArgoPlugin,
    Detected,
    Directory,
    Overlay,
    Request,
    Tool,
)
from tidegate.model.source import BucketSource, GitSource, LocalSource, OciSource, Snapshot
from tidegate.model.unit import Unit, UnitSource
from tidegate.render.helm import ValueFiles, argo_layers, find_file_parameter
from tidegate.render.helm.value_files import without_query
from tidegate.render.tool_choice import detected_tool

OVERRIDES = (".argocd-source.yaml", ".argocd-source-{}.yaml")
LARGEST_OVERRIDE = 1_000_000


async def settle(
    wanted: UnitSource,
    tree: Snapshot,
    refs: Mapping[str, Path],
    cluster: Capabilities,
    workshop: Workshop,
) -> Request:
    """The request for a source, now that its tree is there. `refs` are trees by their names."""
    details, names = wanted.details, _names_at(wanted.path, workshop.within(tree.root))
    if isinstance(details, ArgoDetails) and names:
        written, wanted = wanted, _overridden(wanted, details, names, tree.root)
        names = names if wanted is written else _names_at(wanted.path, workshop.within(tree.root))
    request = _chosen(wanted, names, tree.root)
    if isinstance(details, ArgoDetails) and isinstance(wanted.details, ArgoDetails):
        request = await _with_details(request, wanted.details, tree, refs, workshop)
    return await _for_cluster(request, tree.root, cluster, workshop)


def _names_at(path: str, tree: Within) -> list[str] | None:
    """What lies in a directory of a tree; of a file nothing, and None where nothing is."""
    try:
        return tree.names(path or ".")
    except NotADirectoryError:
        return []
    except (OSError, StrayPathError):
        return None


def _overridden(
    wanted: UnitSource, details: ArgoDetails, here: list[str], root: Path
) -> UnitSource:
    """The source with what files of its directory say instead."""
    names = (name.format(details.build.name) for name in OVERRIDES)
    found = [_read_override(root, f"{wanted.path}/{name}") for name in names if name in here]
    overrides = [one for one in found if one is not None]
    if not overrides or isinstance(wanted.request, ArgoPlugin | None):
        return wanted
    build = details.build
    owner = Owner(
        name=build.name,
        where=Place(f"{wanted.path}/{OVERRIDES[0]}"),
        namespace=build.namespace,
        project=build.project,
    )
    again, findings = read_source(override_source(details.written, overrides), owner)
    if again is None:
        told = "; ".join(one.sentence for one in findings)
        problem = f"with its overrides the source cannot be read: {told}"
        raise RenderError("render.override", problem, where=owner.where)
    kept = msgspec.structs.replace(again, source=wanted.source)
    return msgspec.structs.replace(kept, details=_with_ref(again, details))


def _with_ref(again: UnitSource, details: ArgoDetails) -> ArgoDetails:
    """A source keeps its name, and the application that it is of, whatever overrides it."""
    found = again.details if isinstance(again.details, ArgoDetails) else details
    return msgspec.structs.replace(found, ref=details.ref, build=details.build)


def _read_override(root: Path, name: str) -> dict[str, Json] | None:
    try:
        with open_file(follow(root / name, root)) as file:
            content = file.read(LARGEST_OVERRIDE)
    except (OSError, StrayPathError):
        return None
    documents = read(content, name)
    return documents[0].body if documents else None


def _chosen(wanted: UnitSource, names: list[str] | None, root: Path) -> Request:
    """What the files speak for, as Argo CD decides it."""
    request = wanted.request
    if isinstance(request, ArgoPlugin | None):
        name = f" `{request.name}`" if request is not None and request.name else ""
        problem = f"the plugin{name} of Argo CD, which renders this source, is not here"
        hint = "point at what it renders to, or render it with a tool that Argo CD has itself"
        raise RenderError("render.plugin", problem, where=Place(str(wanted.source)), hint=hint)
    if names is None:
        inside = "here" if isinstance(wanted.source, LocalSource) else f"in {wanted.source}"
        problem = f"there is no `{wanted.path}` {inside}"
        hint = "correct the path, or look whether the revision has it"
        raise SourceError("source.path", problem, where=Place(str(wanted.source)), hint=hint)
    if isinstance(request, Release) and not isinstance(
        wanted.source, LocalSource | GitSource | BucketSource
    ):
        return msgspec.structs.replace(request, chart=_chart_in(root, request.chart))
    if not isinstance(request, Detected):
        return request
    choices: dict[Tool, Request] = {Tool.HELM: request.chart, Tool.KUSTOMIZE: request.overlay}
    tool = detected_tool(names)
    if tool is not Tool.HELM and wanted.details is None:
        _refuse_values(request.chart, wanted)
    return choices.get(tool, request.directory)


def _refuse_values(chart: Release, wanted: UnitSource) -> None:
    """Raise where somebody gives values to what takes none."""
    if any(not isinstance(one, Inline) for one in chart.layers):
        problem = "values are for a chart, and this is none"
        hint = "leave out `--values` and `--set`, or point at a chart"
        raise WordsError("words.values", problem, where=Place(str(wanted.source)), hint=hint)


def _chart_in(root: Path, path: str) -> str:
    """Where in a tree the chart is: an artifact may hold it in a directory of its own."""
    inside = [one.parent.name for one in (root / path).glob("*/Chart.yaml")]
    is_here = (root / path / "Chart.yaml").exists()
    return path if is_here or len(inside) != 1 else posixpath.normpath(f"{path}/{inside[0]}")


async def _with_details(
    request: Request,
    details: ArgoDetails,
    tree: Snapshot,
    refs: Mapping[str, Path],
    workshop: Workshop,
) -> Request:
    """The request with the files and variables that an Application names."""
    build = msgspec.structs.replace(details.build, revision=tree.revision.hex)
    variables = build.variables()
    match request:
        case Release():
            among = ValueFiles(
                root=tree.root,
                chart=request.chart,
                refs=refs,
                variables=variables,
                ignore_missing=details.ignore_missing,
            )
            layers = argo_layers(
                await find_values(details.value_files, among, workshop),
                text=details.values_text,
                parameters=details.parameters,
                file_parameters=[
                    find_file_parameter(name, path, among) for name, path in details.file_parameters
                ],
                variables=variables,
            )
            return msgspec.structs.replace(request, layers=layers)
        case Overlay(overrides=ArgoOverrides() as overrides):
            known = msgspec.structs.replace(overrides, variables=variables)
            return msgspec.structs.replace(request, overrides=known)
        case Directory(jsonnet=jsonnet) if jsonnet is not None:
            known_to = msgspec.structs.replace(jsonnet, variables=variables)
            return msgspec.structs.replace(request, jsonnet=known_to)
    return request


async def _for_cluster(
    request: Request, root: Path, cluster: Capabilities, workshop: Workshop
) -> Request:
    version = cluster.kube_version or DEFAULT_KUBE_VERSION
    match request:
        case Release() as chart:
            return msgspec.structs.replace(
                chart,
                root=str(root),
                layers=await _with_values(chart.layers, workshop),
                kube_version=chart.kube_version or version,
                api_versions=chart.api_versions or cluster.api_versions,
            )
        case Overlay(helm=helm) as overlay if helm is not None:
            seen = msgspec.structs.replace(
                helm,
                kube_version=helm.kube_version or version,
                api_versions=helm.api_versions or cluster.api_versions,
            )
            return msgspec.structs.replace(overlay, root=root, helm=seen)
    return msgspec.structs.replace(request, root=root)


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


def stamped(asked: Request, tree: Snapshot, unit: Unit) -> Request:
    """A release whose chart an OCIRepository has tells which artifact that is.

    What is copied and not unpacked is the chart itself, in one file.
    """
    is_artifact = isinstance(tree.source, OciSource) and tree.revision.digest
    if not isinstance(asked, Release) or unit.policy.release is None or not is_artifact:
        return asked
    chart = tree.files[0] if len(tree.files) == 1 else asked.chart
    return msgspec.structs.replace(asked, chart=chart, artifact=str(tree.revision))
