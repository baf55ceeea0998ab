"""Rendering of units: charts, overlays, and directories of manifests."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

from tidegate.documents import Document, duplicate_errors
from tidegate.errors import TidegateError
from tidegate.model.finding import Finding, warning_from_error
from tidegate.model.k8s.objects import FieldPath
from tidegate.model.units.unit import UnitId
from tidegate.workers.rendering import RenderSettings, WorkerPool
from tidegate.workspace.completeness import incomplete_finding
from tidegate.workspace.discovery.discover import matches_name
from tidegate.workspace.discovery.object_checks import find_typos
from tidegate.workspace.rendering.result import RenderFailure, RenderResult
from tidegate.workspace.request import LoadRequest
from tidegate.workspace.workspace import load_without_cluster

MAX_CONCURRENT = 16
"""Number of paths rendered concurrently; their workers and downloads are limited elsewhere."""


class RenderedPart(msgspec.Struct, frozen=True):
    """A unit, its root unit, its render result, and the findings about it."""

    result: RenderResult | RenderFailure
    unit: UnitId | None = None
    root: UnitId | None = None
    findings: tuple[Finding, ...] = ()

    @property
    def objects(self) -> list[tuple[Document, tuple[FieldPath, ...]]]:
        """The objects, each with the fields that were encrypted."""
        if isinstance(self.result, RenderFailure):
            return []
        return [*zip(self.result.documents, self.result.secret_fields, strict=True)]

    @property
    def errors(self) -> tuple[TidegateError, ...]:
        """Errors that prevented rendering, in whole or in part."""
        if isinstance(self.result, RenderFailure):
            return self.result.errors
        return (
            *(missing_input.error for missing_input in self.result.missing_inputs),
            *(unknown.error for unknown in self.result.unknown_variables),
            *self.result.refusals,
        )

    @property
    def notes(self) -> tuple[TidegateError, ...]:
        """Notes about values that no key decrypts, and about failed MAC checks."""
        result = self.result
        return (
            () if isinstance(result, RenderFailure) else (*result.undecrypted, *result.mac_errors)
        )


class RenderedParts(msgspec.Struct, frozen=True):
    """Render results of a path or URL, unit by unit, with findings."""

    parts: tuple[RenderedPart, ...]
    findings: tuple[Finding, ...] = ()


async def render_requests(
    requests: Iterable[LoadRequest], render_settings: RenderSettings
) -> tuple[RenderedParts, ...]:
    """Render several paths or URLs concurrently, for no cluster in particular."""
    semaphore = asyncio.Semaphore(MAX_CONCURRENT)

    async def render(request: LoadRequest, render_settings: RenderSettings) -> RenderedParts:
        async with semaphore:
            return await _render_request(request, render_settings)

    async with (
        WorkerPool(render_settings.cores) as pool,
        asyncio.TaskGroup() as group,
    ):
        shared_settings = replace(render_settings, worker_pool=pool)
        tasks = [group.create_task(render(request, shared_settings)) for request in requests]
    return tuple(task.result() for task in tasks)


async def _render_request(request: LoadRequest, render_settings: RenderSettings) -> RenderedParts:
    try:
        workspace = await load_without_cluster(request, render_settings)
    except TidegateError as error:
        return RenderedParts((RenderedPart(RenderFailure((error,))),))
    names = workspace.selected_names
    selected = [
        (unit_tree.root_id, member)
        for unit_tree in workspace.unit_trees
        for member in unit_tree.members
        if not names or matches_name(member.unit, *names)
    ]
    findings = workspace.findings
    if names:
        selected_members = [selected_member for _, selected_member in selected]
        typo_findings = find_typos(selected_members, workspace.scan.locator)
        findings = tuple(dict.fromkeys((*workspace.findings_for(selected_members), *typo_findings)))
    findings_by_unit = workspace.findings_by_unit
    parts = (
        RenderedPart(
            selected_member.result,
            selected_member.unit.id,
            root,
            findings_by_unit.get((selected_member.unit.id, selected_member.unit.location), ()),
        )
        for root, selected_member in selected
    )
    incomplete_findings = incomplete_finding(selected_member for _, selected_member in selected)
    duplicate_findings = (
        warning_from_error(error)
        for _, selected_member in selected
        if selected_member.unit.is_path
        for document in selected_member.documents
        for error in duplicate_errors(document)
    )
    return RenderedParts(tuple(parts), (*findings, *incomplete_findings, *duplicate_findings))
