"""Rendering of a request: a chart, an overlay or a directory of manifests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from tidegate.flows.rendering.charts import EncryptedObjects, RenderMode, render_chart
from tidegate.flows.rendering.outcome import RenderResult
from tidegate.flows.rendering.overlays import build_overlay
from tidegate.flows.rendering.unsealing import Decryption, find_used_secrets
from tidegate.flows.rendering.workshop import RenderContext
from tidegate.model.release import ChartRequest, Parameter
from tidegate.model.rendering import Directory, Overlay, RenderRequest
from tidegate.render.jsonnet import render_directory
from tidegate.render.sops import Keys


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
        secret_fields=decrypted.hidden,
        undecrypted=decrypted.locked,
        mac_errors=tuple(decryption.mac_errors),
        missing_inputs=encrypted.missing_inputs,
        remote_bases=encrypted.remote_bases,
        is_skipped=encrypted.is_skipped,
    )


def _parameter_values(request: RenderRequest) -> Iterator[str]:
    """Yield the values of parameters; one that is part of a Secret is meant to be secret."""
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
