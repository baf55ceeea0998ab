"""Releases that exist in a cluster: rendered as before, and kept as they are recorded."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec

from tidegate.documents import Document
from tidegate.errors import RenderError
from tidegate.model.k8s.helm_order import is_crd_path
from tidegate.model.k8s.json_fields import object_ref
from tidegate.model.k8s.pods import owner_key
from tidegate.model.plans.plan import digest_bytes
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.model.units.chart_request import ChartRequest
from tidegate.model.units.release_history import CrdPolicy, KnownRelease, ReleaseAction, ReleaseSpec
from tidegate.model.units.rendering import FluxDetails
from tidegate.model.units.unit import Unit
from tidegate.render.helm.chart_renderer import is_included
from tidegate.render.helm.worker.files import relative_to_source
from tidegate.render.prescan import SearchPattern, chart_may_contain
from tidegate.source.vendored import read_chart
from tidegate.workers.rendering import RenderSettings
from tidegate.workspace.rendering.charts import chart_cache_key, relative_to_chart
from tidegate.workspace.rendering.context import RenderContext
from tidegate.workspace.rendering.result import RenderedRelease, RenderResult

CAPABILITIES_PATTERN: SearchPattern = lazy_regex(rb"\bCapabilities\b")


async def resolve_release(
    request: ChartRequest, details: FluxDetails, unit: Unit, context: RenderContext
) -> RenderedRelease:
    """Return the release with its revision in the cluster.

    A release that exists is rendered as it was then: as an install, or as an upgrade. Without a
    cluster it is rendered as a first install.
    """
    get_release, spec = context.settings.get_release, unit.policy.release
    if get_release is None:
        return RenderedRelease(msgspec.structs.replace(request, revision=1, is_upgrade=False))
    existing = await get_release(unit) if spec is not None else None
    chart = await asyncio.to_thread(_chart_name, request)
    replaced_chart = _replaced_chart(existing, spec, chart)
    if existing is not None and replaced_chart:
        keeps_history = spec is not None and spec.keeps_history
        existing = KnownRelease(existing.number, is_uninstalled=True) if keeps_history else None
    post_processing = (
        details.labels,
        details.annotations,
        details.post_renderers,
        details.skips_hooks,
    )
    encoded_processing = msgspec.json.encode(post_processing, order="sorted")

    def as_revision(revision: int, *, is_upgrade: bool) -> tuple[ChartRequest, str]:
        revised = msgspec.structs.replace(request, revision=revision, is_upgrade=is_upgrade)
        if spec is not None and is_upgrade:
            action = spec.upgrade
            crds, skip_schema = action.crds is not CrdPolicy.SKIP, not action.checks_values
            revised = msgspec.structs.replace(revised, include_crds=crds, skip_schema=skip_schema)
        without_tests = msgspec.structs.replace(revised, include_tests=False)
        key = chart_cache_key(_without_capabilities(without_tests), context)
        return revised, digest_bytes(key.encode(), encoded_processing) if key else ""

    if existing is None:
        return RenderedRelease(*as_revision(1, is_upgrade=False), None, chart, replaced_chart)
    if (
        existing.is_deployed_or_pending
        and existing.action is not None
        and not (spec and spec.failed_its_tests(existing))
    ):
        unchanged, key = as_revision(
            existing.rendered_revision, is_upgrade=existing.action is ReleaseAction.UPGRADE
        )
        if key and key == existing.key:
            return RenderedRelease(unchanged, key, existing, chart)
    next_revision = as_revision(existing.number + 1, is_upgrade=not existing.is_uninstalled)
    return RenderedRelease(*next_revision, None, chart, replaced_chart)


def _chart_name(request: ChartRequest) -> str:
    """Return the name of a chart; empty for an invalid one, which the worker reports."""
    root = Path(request.root)
    chart = read_chart(root / request.chart.lstrip("/"), root)
    return "" if chart is None else chart.name


def _replaced_chart(existing: KnownRelease | None, spec: ReleaseSpec | None, chart: str) -> str:
    """Return the chart of the existing release if it must be uninstalled for another chart."""
    if (
        existing is None
        or spec is None
        or existing.is_uninstalled
        or not (spec.reinstalls_on_chart_change and chart)
    ):
        return ""
    return existing.chart_name if existing.chart_name != chart else ""


def _without_capabilities(request: ChartRequest) -> ChartRequest:
    """Return a chart that does not use `.Capabilities` without those of its cluster.

    It is the same release when the cluster serves more.
    """
    try:
        uses_capabilities = chart_may_contain(CAPABILITIES_PATTERN, request)
    except (RenderError, OSError):
        uses_capabilities = True  # rendering fails too, with a better message
    return (
        request
        if uses_capabilities
        else msgspec.structs.replace(request, api_versions=(), kube_version="")
    )


async def with_recorded_objects(
    result: RenderResult,
    request: ChartRequest,
    existing: KnownRelease,
    unit: Unit,
    settings: RenderSettings,
) -> RenderResult:
    """Return the objects as the record has them, and the CRDs of `crds/`, which it lacks.

    Templates with lookups may render something else when their own release exists: objects that
    they make only where these are absent would be deleted. Helm does not render a deployed release,
    and whether it could be rendered now does not matter.
    """
    if settings.get_release_manifest is None:
        return result
    crds = [
        document
        for document in result.documents
        if is_crd_path(relative_to_chart(document, request).location.name)
    ]
    recorded = await settings.get_release_manifest(unit, existing)
    objects = [
        msgspec.structs.replace(
            document, location=relative_to_source(document.location, request.chart)
        )
        for document in recorded
        if is_included(document, request)
    ]
    documents = (*crds, *objects)
    pairs = zip(result.documents, result.secret_fields, strict=True)
    fields_by_key = {object_key(document): paths for document, paths in pairs}
    return msgspec.structs.replace(
        result,
        lookup_error=None,
        notes=() if result.lookup_error is not None else result.notes,
        documents=documents,
        secret_fields=tuple(fields_by_key.get(object_key(document), ()) for document in documents),
    )


def object_key(document: Document) -> tuple[str, str, str]:
    """Return kind, namespace and name, which identify an object after a build."""
    return owner_key(object_ref(document.body))
