"""Building of overlays: from the cache or with kustomize, with remote bases fetched as sources.

Also the entry point to render any request.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from tidegate.errors import RenderError, sanitize
from tidegate.model.k8s.objects import JsonObject
from tidegate.model.units.chart_request import ChartDependency, ChartRequest, Parameter
from tidegate.model.units.rendering import Directory, FetchedTree, Overlay, RenderRequest
from tidegate.model.units.source import ChartSource
from tidegate.render.cache.keys import inputs_key, overlay_key, request_text
from tidegate.render.jsonnet.client import render_directory
from tidegate.render.kustomize import RemoteError, build
from tidegate.render.kustomize.collect import collect_inputs
from tidegate.render.kustomize.errors import MissingTargetError
from tidegate.render.kustomize.kustomization import InflatedChart
from tidegate.render.prescan import overlay_may_contain
from tidegate.render.sops import Keys
from tidegate.source import FetchOptions, fetch
from tidegate.workspace.rendering.charts import (
    FULL_RENDER,
    SKIPPED,
    EncryptedObjects,
    RenderMode,
    base_of_targets,
    empty_base,
    empty_chart,
    is_stub,
    render_chart,
)
from tidegate.workspace.rendering.context import RenderContext
from tidegate.workspace.rendering.decryption import Decryption, find_used_secrets
from tidegate.workspace.rendering.result import (
    MissingInput,
    RenderResult,
    gather_results,
    raise_all,
)
from tidegate.workspace.rendering.sources import fetch_base

MissingReferences: TypeAlias = Mapping[str, InflatedChart | None]
"""References to fetch, each with its chart if it is a chart of a repository."""


async def build_overlay(
    overlay: Overlay, context: RenderContext, decryption: Decryption, mode: RenderMode = FULL_RENDER
) -> EncryptedObjects:
    """Return the objects of an overlay. Kustomize has no network: remote parts are fetched here."""
    missing_inputs: tuple[MissingInput, ...] = ()
    remote_bases: list[str] = []
    bases = PatchedBases()
    while True:
        try:
            built = await _build_once(overlay, context, decryption, mode)
        except RemoteError as error:
            references = {
                reference: error.charts.get(reference)
                for reference in error.references
                if reference not in overlay.fetched
            }
            if not references:
                raise
        except RenderError as error:
            substitutes = await bases.with_target(error, context)
            if not substitutes:
                raise_all(tuple(missing_input.error for missing_input in missing_inputs))
                raise
            overlay = msgspec.structs.replace(overlay, fetched={**overlay.fetched, **substitutes})
            continue
        else:
            documents = (document for document in built.documents if not is_stub(document))
            return replace(
                built,
                documents=tuple(documents),
                missing_inputs=missing_inputs,
                remote_bases=tuple(remote_bases),
            )
        fetched, missing = await _fetch_references(references, overlay.root, context)
        missing_inputs += tuple(missing.values())
        bases.references += [reference for reference in missing if references[reference] is None]
        remote_bases += [reference for reference, chart in references.items() if chart is None]
        overlay = msgspec.structs.replace(overlay, fetched={**overlay.fetched, **fetched})


class PatchedBases:
    """Substitutes of bases that were not fetched, with the objects that overlays patch."""

    def __init__(self) -> None:
        self.references: list[str] = []
        """The bases."""
        self._targets: dict[str, list[JsonObject]] = {}

    async def with_target(
        self, error: RenderError, context: RenderContext
    ) -> dict[str, FetchedTree]:
        """Return the substitutes with the object of an error; nothing if no base can have it.

        The object is tried in one base after another, as an overlay patches only its own bases.
        """
        if not isinstance(error, MissingTargetError):
            return {}
        holders = [name for name, targets in self._targets.items() if error.target in targets]
        for holder in holders:
            self._targets[holder].remove(error.target)
        start = self.references.index(holders[0]) + 1 if holders else 0
        if start >= len(self.references):
            return {}
        self._targets.setdefault(self.references[start], []).append(error.target)
        return {
            name: await base_of_targets(targets, context.settings.cache)
            for name, targets in self._targets.items()
        }


async def _build_once(
    overlay: Overlay, context: RenderContext, decryption: Decryption, mode: RenderMode
) -> EncryptedObjects:
    tool, version = context.builder
    inputs = collect_inputs(overlay, context.prescan_inputs) if mode.search_pattern else None
    if mode.search_pattern and inputs and not overlay_may_contain(mode.search_pattern, inputs):
        return SKIPPED
    if not mode.use_cache:
        key = ""
    elif inputs is not None:
        key = inputs_key(inputs, version)
    else:
        encoded_request = request_text(overlay) + version.encode()
        key = context.cache_keys.find(encoded_request, partial(overlay_key, overlay, version))
    cached = context.render_cache.find(key) if key else None
    if cached is not None:
        return EncryptedObjects(cached)
    workers = await context.optional_helm_workers()
    async with context.worker_pool.build_slots:
        documents = await build(
            overlay, tool=tool, decrypt=decryption.decrypt_input, workers=workers
        )
    if key and not decryption.has_encrypted_inputs:
        context.render_cache.store(key, documents)  # decrypted contents are never cached
    return EncryptedObjects(documents)


async def _fetch_references(
    references: MissingReferences, root: Path, context: RenderContext
) -> tuple[dict[str, FetchedTree], dict[str, MissingInput]]:
    """Fetch references; an empty part replaces one that is unavailable and may be left out."""
    options = await context.fetch_options(root)
    fetches = {
        reference: _fetch_reference(reference, chart, options)
        for reference, chart in references.items()
    }
    fetched, errors = await gather_results(fetches)
    if not (options.offline or context.settings.skips_unavailable):
        raise_all(tuple(errors.values()))
    fetched |= {
        reference: await _empty_substitute(references[reference], options) for reference in errors
    }
    missing_inputs = {
        reference: MissingInput(
            f"the objects of base `{sanitize(reference)}`",
            error,
            chart.name if (chart := references[reference]) else reference,
        )
        for reference, error in errors.items()
    }
    return {reference: fetched[reference] for reference in references}, missing_inputs


async def _fetch_reference(
    reference: str, chart: InflatedChart | None, options: FetchOptions
) -> FetchedTree:
    if chart is None:
        return await fetch_base(reference, options)
    source = ChartSource(chart.repository, chart.name, chart.version)
    return FetchedTree((await fetch(source, options)).root)


async def _empty_substitute(chart: InflatedChart | None, options: FetchOptions) -> FetchedTree:
    if chart is None:
        return await empty_base(options.cache)
    dependency = ChartDependency(chart.name, chart.version, chart.repository)
    return FetchedTree(Path((await empty_chart(dependency, options.cache)).path))


async def render_request(
    request: RenderRequest,
    context: RenderContext,
    *,
    keys: Keys | None = None,
    use_cache: bool = True,
    ignore_search: bool = False,
) -> RenderResult:
    """Render a chart, an overlay or a directory, with placeholders where no key decrypts a value.

    `use_cache` is off for values from a Secret. With `ignore_search`, a search pattern of the
    settings does not count.
    """
    settings = context.settings
    decryption = Decryption(replace(keys or settings.keys, offline=settings.offline))
    mode = RenderMode(
        use_cache=use_cache, search_pattern=None if ignore_search else settings.search_pattern
    )
    encrypted = await _render_encrypted(request, context, decryption, mode)
    decryption.secrets |= find_used_secrets(_parameter_values(request), encrypted.documents)
    decrypted = await decryption.decrypt_objects(encrypted.documents, Path(request.root))
    return RenderResult(
        documents=decrypted.documents,
        secret_fields=decrypted.secret_fields,
        undecrypted=decrypted.errors,
        mac_errors=tuple(decryption.mac_errors),
        missing_inputs=encrypted.missing_inputs,
        remote_bases=encrypted.remote_bases,
        is_skipped=encrypted.is_skipped,
    )


def _parameter_values(request: RenderRequest) -> Iterator[str]:
    """Yield the values of parameters; one that is part of a Secret must stay secret."""
    if isinstance(request, ChartRequest):
        yield from (layer.value for layer in request.layers if isinstance(layer, Parameter))


async def _render_encrypted(
    request: RenderRequest, context: RenderContext, decryption: Decryption, mode: RenderMode
) -> EncryptedObjects:
    match request:
        case ChartRequest():
            return await render_chart(request, context, mode)
        case Overlay():
            return await build_overlay(request, context, decryption, mode)
        case Directory():
            workers = await context.worker_pool.jsonnet()
            files, read = context.rooted_files(request.root), context.settings.read
            return EncryptedObjects(await render_directory(request, workers, files, read))
