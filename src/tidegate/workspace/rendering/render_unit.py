"""Rendering of a unit: its sources are fetched, resolved, rendered and post-processed.

Data in other objects (`valuesFrom`, `substituteFrom`, keys) is found by a function that knows the
objects around a unit. Unknown data is an error, and the unit has no objects.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
from msgspec.structs import replace

from tidegate.documents import Document
from tidegate.documents.dump import to_yaml
from tidegate.errors import RenderError, TidegateError, flatten_errors, redact_urls, sanitize
from tidegate.model.k8s.capabilities import Capabilities
from tidegate.model.k8s.json_fields import get_text, object_kind
from tidegate.model.units.chart_request import ChartRequest
from tidegate.model.units.rendering import (
    ArgoDetails,
    FluxDetails,
    FluxOverrides,
    LoadRestriction,
    Overlay,
    RenderRequest,
)
from tidegate.model.units.source import (
    ChartSource,
    GitSource,
    OciSource,
    Snapshot,
    SourceObject,
    SourceRef,
)
from tidegate.model.units.unit import Unit, UnitSource
from tidegate.render.helm import flux_layers
from tidegate.render.scratch import scratch_directory
from tidegate.workspace.rendering.charts import LookupRenderer
from tidegate.workspace.rendering.context import RenderContext
from tidegate.workspace.rendering.decryption import redact_error
from tidegate.workspace.rendering.existing_releases import (
    object_key,
    resolve_release,
    with_recorded_objects,
)
from tidegate.workspace.rendering.flux_inputs import FluxInputs, is_helm_hook
from tidegate.workspace.rendering.overlays import render_request
from tidegate.workspace.rendering.resolve import resolve_source, with_artifact
from tidegate.workspace.rendering.result import RenderedSource, RenderFailure, RenderResult
from tidegate.workspace.rendering.sources import Data, FindData, fetch_tree


def find_no_data(_kind: str, _namespace: str, _name: str) -> Data | None:
    """Return None: for a unit without objects around it."""
    return None


async def render_unit(
    unit: Unit,
    capabilities: Capabilities,
    context: RenderContext,
    find_data: FindData = find_no_data,
) -> RenderResult | RenderFailure:
    """Render a unit; its errors are its result."""
    trees = list[Snapshot]()
    try:
        for source in unit.sources:
            trees.append(await fetch_tree(source, context, find_data))
        refs = {
            source.details.ref: tree.root
            for source, tree in zip(unit.sources, trees, strict=True)
            if isinstance(source.details, ArgoDetails) and source.details.ref
        }
        parts, sources = [], []
        for source, tree in zip(unit.sources, trees, strict=True):
            request = None
            if source.request is not None:
                request = with_artifact(
                    await resolve_source(source, tree, refs, capabilities, context), tree, unit
                )
                part = await _render_source(request, source, unit, context, find_data)
                parts.append(_with_remote_locations(tree, part, context))
            root, revision = tree.original_root or tree.root, tree.revision
            is_chart = _renders_charts(request)
            sources.append(RenderedSource(root, revision, _tool_name(request), is_chart))
        result = parts[0] if len(parts) == 1 else RenderResult.merge(parts)
        result = replace(result, sources=tuple(sources))
        is_argo = any(isinstance(source.details, ArgoDetails) for source in unit.sources)
        return _drop_duplicates(result, unit) if is_argo else result
    except TidegateError as error:
        return RenderFailure((error,), _roots(trees))
    except ExceptionGroup as group:
        known_errors, others = group.split(TidegateError)
        if known_errors is None or others is not None:
            raise
        return RenderFailure(tuple(flatten_errors(known_errors)), _roots(trees))


def _roots(trees: Iterable[Snapshot]) -> tuple[Path, ...]:
    return tuple(tree.original_root or tree.root for tree in trees)


def _with_remote_locations(
    tree: Snapshot, result: RenderResult, context: RenderContext
) -> RenderResult:
    """Replace the locations of fetched files by their address, as the user has no such file."""
    root = tree.original_root or tree.root
    if not root.is_relative_to(context.settings.cache.root):
        return result
    label = sanitize(_address(tree.source))
    documents = (
        msgspec.structs.replace(
            document, location=document.location.with_name(f"{label}//{document.location.name}")
        )
        for document in result.documents
    )
    return replace(result, documents=tuple(documents))


def _address(source: SourceRef | SourceObject) -> str:
    match source:
        case GitSource(url, at):
            return redact_urls(f"{url}@{at}")
        case ChartSource(repository, chart, version):
            return redact_urls(f"{repository}/{chart}@{version or 'latest'}")
        case OciSource(url):
            return redact_urls(url)
        case _:
            return str(source)


def _renders_charts(request: RenderRequest | None) -> bool:
    return isinstance(request, ChartRequest) or (
        isinstance(request, Overlay) and request.helm is not None
    )


def _tool_name(request: RenderRequest | None) -> str:
    """Return the tool that renders, as Argo CD names it."""
    match request:
        case None:
            return ""
        case ChartRequest():
            return "Helm"
        case Overlay():
            return "Kustomize"
        case _:
            return "Directory"


def _drop_duplicates(result: RenderResult, unit: Unit) -> RenderResult:
    """Keep the last of duplicate objects; Argo CD continues with a warning, too."""
    last: dict[tuple[str, str, str, str], int] = {}
    notes = []
    for index, document in enumerate(result.documents):
        kind = object_kind(document.body)
        namespace = get_text(
            document.body, "metadata", "namespace", default=unit.destination.namespace
        )
        name = get_text(document.body, "metadata", "name")
        key = (kind.group, kind.name, namespace, name)
        if name and key in last:
            problem = f"duplicate {kind.name} `{name}`: the last one is used"
            first = result.documents[last[key]].location
            hint = f"remove one of the two; the first is at {first}"
            notes.append(
                RenderError("render.duplicate", problem, location=document.location, hint=hint)
            )
        last[key if name else ("", "", "", str(index))] = index
    if not notes:
        return result
    indexes = sorted(last.values())
    return replace(
        result,
        documents=tuple(result.documents[index] for index in indexes),
        secret_fields=tuple(result.secret_fields[index] for index in indexes),
        notes=(*result.notes, *notes),
    )


async def _render_source(
    request: RenderRequest,
    source: UnitSource,
    unit: Unit,
    context: RenderContext,
    find_data: FindData,
) -> RenderResult:
    details = source.details
    if not isinstance(details, FluxDetails):
        return await render_request(request, context)
    inputs = FluxInputs(unit, details, find_data, requires_data=context.settings.requires_data)
    try:
        return await _render_flux(request, details, inputs, context)
    except TidegateError as error:
        raise redact_error(error, inputs.secrets) from None


async def _render_flux(
    request: RenderRequest, details: FluxDetails, inputs: FluxInputs, context: RenderContext
) -> RenderResult:
    await inputs.load_live_data(context.settings)
    if isinstance(request, ChartRequest):
        result = await _render_release(request, details, inputs, context)
    else:
        result = await _render_or_skip(request, inputs, context)
    return inputs.post_process(result)


async def _render_or_skip(
    request: RenderRequest, inputs: FluxInputs, context: RenderContext
) -> RenderResult:
    """Render; the result is skipped where no searched text can be added after the build either."""
    search_pattern, keys = context.settings.search_pattern, await inputs.keys(context.settings)
    use_cache = not inputs.has_secrets
    result = await render_request(request, context, keys=keys, use_cache=use_cache)
    if result.is_skipped and not (search_pattern and not inputs.may_add(search_pattern)):
        return await render_request(
            request, context, keys=keys, use_cache=use_cache, ignore_search=True
        )
    return result


async def _render_release(
    request: ChartRequest, details: FluxDetails, inputs: FluxInputs, context: RenderContext
) -> RenderResult:
    if details.value_references:
        request = msgspec.structs.replace(request, layers=flux_layers(inputs.values()))
    release = await resolve_release(request, details, inputs.unit, context)
    lookups = LookupRenderer(inputs.unit, context.settings, inputs.secrets)
    request, result = await lookups.render(
        release.request, lambda with_lookups: _render_or_skip(with_lookups, inputs, context)
    )
    if result.is_skipped:
        return result
    if result.lookup_error is not None and release.existing is None:
        return replace(result, release=msgspec.structs.replace(release, request=request))
    if request.lookups and release.existing is not None:
        result = await with_recorded_objects(
            result, request, release.existing, inputs.unit, context.settings
        )
    else:
        for overrides in details.post_renderers:
            result = await _post_render(result, overrides, details, context)
    return replace(result, release=msgspec.structs.replace(release, request=request))


async def _post_render(
    result: RenderResult, overrides: FluxOverrides, details: FluxDetails, context: RenderContext
) -> RenderResult:
    """Return what kustomize makes of the objects of a chart; they keep their locations."""
    hooks = [
        document for document in result.documents if details.skips_hooks and is_helm_hook(document)
    ]
    with scratch_directory() as directory:
        texts = "---\n".join(
            to_yaml(document.body) for document in result.documents if document not in hooks
        )
        await asyncio.to_thread((directory / "all.yaml").write_text, texts, encoding="utf-8")
        overlay = Overlay(
            root=directory, overrides=overrides, restriction=LoadRestriction.ROOT_ONLY
        )
        built = await render_request(overlay, context, use_cache=False)
    known = dict(_by_key(result.documents, result.secret_fields))
    pairs = [(document, known.get(object_key(document))) for document in (*hooks, *built.documents)]
    return replace(
        result,
        documents=tuple(
            msgspec.structs.replace(document, location=original[0].location)
            if original
            else document
            for document, original in pairs
        ),
        secret_fields=tuple(original[1] if original else () for _, original in pairs),
    )


def _by_key(
    documents: Iterable[Document], secret_fields: Iterable[tuple[tuple[str | int, ...], ...]]
) -> Iterator[tuple[tuple[str, str, str], tuple[Document, tuple[tuple[str | int, ...], ...]]]]:
    for document, paths in zip(documents, secret_fields, strict=True):
        yield object_key(document), (document, paths)
