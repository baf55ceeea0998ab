"""Resolution of what depends on the tree of a source: files, overrides and the tool.

A dialect reads a source before its tree is fetched. With the tree, the remaining parts are filled
in: values files by their patterns, variables of the build, and the override files of Argo CD.
"""

from __future__ import annotations

import asyncio
import posixpath
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from tidegate.dialect.argo.source import SourceContext, apply_source_overrides, read_source
from tidegate.documents import read_documents
from tidegate.errors import Location, RenderError, SourceError, UsageError
from tidegate.files import PathEscapeError, RootedFiles, open_file, resolve_within
from tidegate.model.k8s.capabilities import Capabilities
from tidegate.model.k8s.objects import Json
from tidegate.model.units.chart_request import (
    DEFAULT_KUBE_VERSION,
    ChartRequest,
    InlineValues,
    ValuesFile,
    ValuesLayer,
    ValuesText,
    ValuesUrl,
)
from tidegate.model.units.rendering import (
    ArgoDetails,
    ArgoOverrides,
    ArgoPlugin,
    Directory,
    Overlay,
    RenderRequest,
    Tool,
    ToolDetection,
)
from tidegate.model.units.source import BucketSource, GitSource, LocalSource, OciSource, Snapshot
from tidegate.model.units.unit import Unit, UnitSource
from tidegate.render.helm import RemoteValuesError, ValueFiles, argo_layers, find_file_parameter
from tidegate.render.helm.value_files import find_value_files, redact_query
from tidegate.render.tool_detection import detect_tool
from tidegate.source import FetchOptions, fetch_file
from tidegate.source.web import FILE_NAME
from tidegate.workspace.rendering.context import RenderContext
from tidegate.workspace.rendering.result import gather_results, raise_all


async def find_values(
    entries: Iterable[str], value_files: ValueFiles, context: RenderContext
) -> tuple[ValuesFile | ValuesText, ...]:
    """Return the layers that entries of `valueFiles` name, with remote files fetched."""
    entries = tuple(entries)
    try:
        return find_value_files(entries, value_files)
    except RemoteValuesError as error:
        fetched = await fetch_values(error.urls, context)
    return find_value_files(entries, msgspec.structs.replace(value_files, fetched=fetched))


async def fetch_values(urls: Iterable[str], context: RenderContext) -> dict[str, str]:
    """Return the text at each URL. Raises all errors.

    A chart renders other objects without some of its values, so that nothing replaces missing ones.
    Files are fetched like sources: bounded, and cached for offline use.
    """
    options = await context.fetch_options(None)
    texts, errors = await gather_results({url: _fetch_values_file(url, options) for url in urls})
    raise_all(tuple(errors.values()))
    return texts


async def _fetch_values_file(url: str, options: FetchOptions) -> str:
    tree = await fetch_file(url, options)
    return await asyncio.to_thread(_read_values, tree.root / FILE_NAME, redact_query(url))


def _read_values(path: Path, name: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        problem = "the fetched values file is not UTF-8"
        raise RenderError("render.helm.file", problem, location=Location(name)) from None


OVERRIDE_FILES = (".argocd-source.yaml", ".argocd-source-{}.yaml")
MAX_OVERRIDE_SIZE = 1_000_000


async def resolve_source(
    source: UnitSource,
    tree: Snapshot,
    refs: Mapping[str, Path],
    capabilities: Capabilities,
    context: RenderContext,
) -> RenderRequest:
    """Return the request for a source whose tree is fetched. `refs`: trees by their names."""
    details, names = source.details, _list_directory(source.path, context.rooted_files(tree.root))
    if isinstance(details, ArgoDetails) and names:
        original, source = source, _with_overrides(source, details, names, tree.root)
        names = (
            names
            if source is original
            else _list_directory(source.path, context.rooted_files(tree.root))
        )
    request = _choose_request(source, names, tree.root)
    if isinstance(details, ArgoDetails) and isinstance(source.details, ArgoDetails):
        request = await _with_details(request, source.details, tree, refs, context)
    return await _for_cluster(request, tree.root, capabilities, context)


def _list_directory(path: str, files: RootedFiles) -> list[str] | None:
    """Return the names in a directory of a tree; none for a file, and None if nothing exists."""
    try:
        return files.list_directory(path or ".")
    except NotADirectoryError:
        return []
    except (OSError, PathEscapeError):
        return None


def _with_overrides(
    source: UnitSource, details: ArgoDetails, file_names: list[str], root: Path
) -> UnitSource:
    """Return the source with the overrides in files of its directory."""
    names = (name.format(details.build.name) for name in OVERRIDE_FILES)
    contents = [
        _read_override(root, f"{source.path}/{name}") for name in names if name in file_names
    ]
    overrides = [content for content in contents if content is not None]
    if not overrides or isinstance(source.request, ArgoPlugin | None):
        return source
    build = details.build
    owner = SourceContext(
        name=build.name,
        location=Location(f"{source.path}/{OVERRIDE_FILES[0]}"),
        namespace=build.namespace,
        project=build.project,
    )
    overridden, findings = read_source(
        apply_source_overrides(details.source_json, overrides), owner
    )
    if overridden is None:
        messages = "; ".join(finding.message for finding in findings)
        problem = f"invalid source after applying its overrides: {messages}"
        raise RenderError("render.override", problem, location=owner.location)
    merged = msgspec.structs.replace(overridden, source=source.source)
    return msgspec.structs.replace(merged, details=_with_original_ref(overridden, details))


def _with_original_ref(overridden: UnitSource, details: ArgoDetails) -> ArgoDetails:
    """Return the details with the original name and Application of the source."""
    new_details = overridden.details if isinstance(overridden.details, ArgoDetails) else details
    return msgspec.structs.replace(new_details, ref=details.ref, build=details.build)


def _read_override(root: Path, name: str) -> dict[str, Json] | None:
    try:
        with open_file(resolve_within(root / name, root)) as file:
            content = file.read(MAX_OVERRIDE_SIZE)
    except (OSError, PathEscapeError):
        return None
    documents = read_documents(content, name)
    return documents[0].body if documents else None


def _choose_request(source: UnitSource, names: list[str] | None, root: Path) -> RenderRequest:
    """Return the request that the files determine, as Argo CD does."""
    request = source.request
    if isinstance(request, ArgoPlugin | None):
        name = f" `{request.name}`" if request is not None and request.name else ""
        problem = f"cannot run the Argo CD config management plugin{name} that renders this source"
        hint = "set PATH to the rendered manifests, or render with Helm, Kustomize or Jsonnet"
        raise RenderError(
            "render.plugin", problem, location=Location(str(source.source)), hint=hint
        )
    if names is None:
        owner = "here" if isinstance(source.source, LocalSource) else f"in {source.source}"
        problem = f"path `{source.path}` not found {owner}"
        hint = "correct the path, or check that the revision contains it"
        raise SourceError("source.path", problem, location=Location(str(source.source)), hint=hint)
    if isinstance(request, ChartRequest) and not isinstance(
        source.source, LocalSource | GitSource | BucketSource
    ):
        return msgspec.structs.replace(request, chart=_find_chart(root, request.chart))
    if not isinstance(request, ToolDetection):
        return request
    choices: dict[Tool, RenderRequest] = {Tool.HELM: request.chart, Tool.KUSTOMIZE: request.overlay}
    tool = detect_tool(names)
    if tool is not Tool.HELM and source.details is None:
        _require_no_values(request.chart, source)
    return choices.get(tool, request.directory)


def _require_no_values(chart: ChartRequest, source: UnitSource) -> None:
    """Raise UsageError if values are set for a source that is not a chart."""
    if any(not isinstance(layer, InlineValues) for layer in chart.layers):
        problem = "values are set, but the source is not a chart"
        hint = "remove `--values` and `--set`, or set PATH to a chart"
        raise UsageError("usage.values", problem, location=Location(str(source.source)), hint=hint)


def _find_chart(root: Path, path: str) -> str:
    """Return the path of the chart in a tree: an artifact may have it in a directory of its own."""
    subdirectories = [chart_file.parent.name for chart_file in (root / path).glob("*/Chart.yaml")]
    is_at_path = (root / path / "Chart.yaml").exists()
    return (
        path
        if is_at_path or len(subdirectories) != 1
        else posixpath.normpath(f"{path}/{subdirectories[0]}")
    )


async def _with_details(
    request: RenderRequest,
    details: ArgoDetails,
    tree: Snapshot,
    refs: Mapping[str, Path],
    context: RenderContext,
) -> RenderRequest:
    """Return the request with the files and variables that an Application names."""
    build = msgspec.structs.replace(details.build, revision=tree.revision.hex)
    variables = build.variables()
    match request:
        case ChartRequest():
            value_files = ValueFiles(
                root=tree.root,
                chart=request.chart,
                refs=refs,
                variables=variables,
                ignore_missing=details.ignore_missing,
            )
            layers = argo_layers(
                await find_values(details.value_files, value_files, context),
                text=details.values_text,
                parameters=details.parameters,
                file_parameters=[
                    find_file_parameter(name, path, value_files)
                    for name, path in details.file_parameters
                ],
                variables=variables,
            )
            return msgspec.structs.replace(request, layers=layers)
        case Overlay(overrides=ArgoOverrides() as overrides):
            build_overrides = msgspec.structs.replace(overrides, variables=variables)
            return msgspec.structs.replace(request, overrides=build_overrides)
        case Directory(jsonnet=jsonnet) if jsonnet is not None:
            build_jsonnet = msgspec.structs.replace(jsonnet, variables=variables)
            return msgspec.structs.replace(request, jsonnet=build_jsonnet)
    return request


async def _for_cluster(
    request: RenderRequest, root: Path, capabilities: Capabilities, context: RenderContext
) -> RenderRequest:
    version = capabilities.kube_version or DEFAULT_KUBE_VERSION
    match request:
        case ChartRequest() as chart:
            return msgspec.structs.replace(
                chart,
                root=str(root),
                layers=await _with_remote_values(chart.layers, context),
                kube_version=chart.kube_version or version,
                api_versions=chart.api_versions or capabilities.api_versions,
            )
        case Overlay(helm=helm) as overlay if helm is not None:
            cluster_helm = msgspec.structs.replace(
                helm,
                kube_version=helm.kube_version or version,
                api_versions=helm.api_versions or capabilities.api_versions,
            )
            return msgspec.structs.replace(overlay, root=root, helm=cluster_helm)
    return msgspec.structs.replace(request, root=root)


async def _with_remote_values(
    layers: tuple[ValuesLayer, ...], context: RenderContext
) -> tuple[ValuesLayer, ...]:
    """Return the layers with the content of remote values files."""
    urls = [layer.url for layer in layers if isinstance(layer, ValuesUrl)]
    texts = await fetch_values(urls, context) if urls else {}
    return tuple(
        ValuesText(texts[layer.url], redact_query(layer.url), is_file=True)
        if isinstance(layer, ValuesUrl)
        else layer
        for layer in layers
    )


def with_artifact(request: RenderRequest, tree: Snapshot, unit: Unit) -> RenderRequest:
    """Return a release with its artifact, where its chart is from an OCIRepository.

    A layer that is copied and not extracted is the chart itself, in one file.
    """
    is_artifact = isinstance(tree.source, OciSource) and tree.revision.digest
    if not isinstance(request, ChartRequest) or unit.policy.release is None or not is_artifact:
        return request
    chart = tree.files[0] if len(tree.files) == 1 else request.chart
    return msgspec.structs.replace(request, chart=chart, artifact=str(tree.revision))
