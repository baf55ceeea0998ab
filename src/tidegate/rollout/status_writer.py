"""Status patches for unit resources during a rollout.

    progress ── engine    what happened to a unit so far
       │
    status ── dialect     how its kind expresses that
       │
    patch                 only the differences; none if nothing changed

A second run without changes writes nothing: a new timestamp alone is not a change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from tidegate.clusters.session import Session
from tidegate.dialect.status_formats import STATUS_FORMATS, build_event
from tidegate.engine.evaluator import StatusPatch
from tidegate.model.display import join_quoted
from tidegate.model.finding import Finding
from tidegate.model.k8s.json_fields import get_mapping
from tidegate.model.k8s.objects import ClusterRef, JsonObject, Kind, Ref
from tidegate.model.plans.plan import ItemAction, step_items
from tidegate.model.redaction import Redactor
from tidegate.model.rollouts.progress import SourceRevision, UnitProgress
from tidegate.model.units.source import Revision
from tidegate.model.units.unit import UnitId
from tidegate.planning.plan import PlanResult
from tidegate.source import FetchOptions, read_local_revision
from tidegate.source.local import WORKING_TREE
from tidegate.workspace.rendering.context import RenderContext
from tidegate.workspace.rendering.result import RenderedSource, RenderResult

NO_FAULTS: Mapping[UnitId, Finding] = MappingProxyType({})


class UnitResource(NamedTuple):
    """The reference of a unit resource."""

    cluster_ref: ClusterRef
    body: bytes = b""
    """The body that the plan writes; empty if the plan does not write it."""


async def find_unit_resources(
    plan_result: PlanResult, session: Session, groups: Mapping[str, str]
) -> dict[UnitId, UnitResource]:
    """Return the unit resources of units whose kinds are in `groups`.

    In the version that the plan writes, or else one that the cluster serves. A kind that is
    neither served nor written has none.
    """
    resources: dict[UnitId, UnitResource] = {}
    units = [unit.id for unit in plan_result.plan.units if unit.id.kind in groups]
    unit_ids = frozenset(units)
    for step in plan_result.plan.steps if units else ():
        for item in (
            plan_item for plan_item in step_items(step) if plan_item.action is not ItemAction.SKIP
        ):
            kind, ref = item.ref.kind, item.ref
            unit_id = UnitId(kind.name, step.cluster, ref.namespace, ref.name)
            if unit_id in unit_ids and groups[kind.name] == kind.group:
                resources.setdefault(
                    unit_id, UnitResource(ClusterRef(step.cluster, ref), item.body)
                )
    for unit_id in (missing for missing in units if missing not in resources):
        if unit_id.cluster not in session.targets.contexts:
            continue
        for kind in await _served_kinds(unit_id, groups[unit_id.kind], session):
            resources[unit_id] = UnitResource(
                ClusterRef(unit_id.cluster, Ref(kind, unit_id.namespace, unit_id.name))
            )
    return {unit_id: resources[unit_id] for unit_id in units if unit_id in resources}


async def _served_kinds(unit: UnitId, group: str, session: Session) -> list[Kind]:
    kinds = (served_kind.kind for served_kind in await session.kinds(unit.cluster))
    return [kind for kind in kinds if (kind.group, kind.name) == (group, unit.kind)][:1]


class UnitFault(NamedTuple):
    """The error of a unit, and the field of its unit resource that causes it."""

    code: str
    field: str
    message: str
    cycle: tuple[UnitId, ...] = ()
    """The units that wait for each other, if a dependency cycle is the error."""

    @classmethod
    def from_finding(cls, unit: UnitId, error: Finding) -> UnitFault:
        """Return the error of a unit without the name of the unit."""
        message = error.unit_problem if error.unit == unit else ""
        field = error.location.field if error.location else ""
        return cls(error.code, field, message or error.message, error.cycle)


class UnitStatuses(msgspec.Struct, frozen=True):
    """The unit resources of a rollout, and what their statuses are built from."""

    resources: dict[UnitId, ClusterRef]
    source_revisions: dict[UnitId, tuple[SourceRevision, ...]]
    redactor: Redactor
    faults: dict[UnitId, UnitFault] = msgspec.field(default_factory=dict)
    """By unit, the error that keeps it from starting."""

    def update(self, newer: UnitStatuses | None) -> None:
        """Add the units of a newer plan, and replace those that it changes."""
        if newer is not None:
            self.resources.update(newer.resources)
            self.source_revisions.update(newer.source_revisions)
            self.faults.update(newer.faults)

    def unit_resource_ref(self, unit: UnitId) -> ClusterRef | None:
        return self.resources.get(unit)

    def reflects_children(self, unit: UnitId) -> bool:
        return unit in self.resources and STATUS_FORMATS[unit.kind].follows_children

    def build_patch(self, progress: UnitProgress, unit_resource: JsonObject) -> StatusPatch | None:
        """Return the patch that updates a status; None if the status is up to date."""
        if progress.is_valid and progress.unit not in self.source_revisions:
            return None  # the unit is unavailable and its objects are assumed
        status_format, previous = (
            STATUS_FORMATS[progress.unit.kind],
            get_mapping(unit_resource, "status"),
        )
        update = status_format.build(
            unit_resource,
            self._redact_progress(progress),
            self.source_revisions.get(progress.unit, ()),
        )
        if update is None:
            return None
        changed = {name for name, value in update.status.items() if previous.get(name) != value}
        if not (changed - status_format.ignored_fields or previous.keys() - update.status.keys()):
            return None
        patch: JsonObject = {"status": merge_patch(previous, update.status)}
        events = tuple(
            build_event(unit_resource, event, status_format, progress.now)
            for event in update.events
        )
        return StatusPatch(msgspec.json.encode(patch), status_format.manager, events)

    def _redact_progress(self, progress: UnitProgress) -> UnitProgress:
        """Return the progress without secret values in messages."""
        redact = self.redactor.redact
        objects = tuple(
            replace(item, message=redact(item.message)) if item.message else item
            for item in progress.objects
        )
        progress = replace(progress, message=redact(progress.message), objects=objects)
        fault = None if progress.is_valid else self.faults.get(progress.unit)
        if fault is None:
            return progress
        message = redact(fault.message)
        return replace(
            progress, code=fault.code, field=fault.field, message=message, cycle=fault.cycle
        )


def merge_patch(before: JsonObject, after: JsonObject) -> JsonObject:
    """Return the JSON merge patch from one object to another."""
    patch: JsonObject = dict.fromkeys(before.keys() - after.keys())
    for name, new in after.items():
        old = before.get(name)
        if isinstance(new, dict) and isinstance(old, dict):
            inner = merge_patch(old, new)
            patch |= {name: inner} if inner else {}
        elif old != new:
            patch[name] = new
    return patch


async def build_statuses(
    plan_result: PlanResult, session: Session, fault_findings: Mapping[UnitId, Finding] = NO_FAULTS
) -> UnitStatuses | None:
    """Return the statuses of a plan's units; None if no cluster serves their kinds.

    `fault_findings`: by unit, the error that keeps it from starting.
    """
    groups = {kind: status_format.group for kind, status_format in STATUS_FORMATS.items()}
    resources = await find_unit_resources(plan_result, session, groups)
    refs = {unit_id: resource.cluster_ref for unit_id, resource in resources.items()}
    if not refs:
        return None
    rendered = {
        unit_manifests.manifests.unit.id: unit_manifests.rendered
        for unit_manifests in plan_result.unit_manifests
    }
    rendered_by_unit = {unit_id: rendered[unit_id] for unit_id in refs if unit_id in rendered}
    source_revisions = await _source_revisions(rendered_by_unit, session)
    faults = {
        unit: UnitFault.from_finding(unit, fault_findings[unit])
        for unit in refs
        if unit in fault_findings
    }
    return UnitStatuses(refs, source_revisions, Redactor.from_plan(plan_result.plan), faults)


async def _source_revisions(
    rendered: Mapping[UnitId, RenderResult], session: Session
) -> dict[UnitId, tuple[SourceRevision, ...]]:
    """Return the source revisions of each unit; the Git head of a directory is read once."""
    heads: dict[Path, Revision] = {}
    async with RenderContext(session.render_settings) as context:
        fetch_options = await context.fetch_options(None)
        return {
            unit_id: tuple(
                [await _source_revision(built, heads, fetch_options) for built in result.sources]
            )
            for unit_id, result in rendered.items()
        }


async def _source_revision(
    built: RenderedSource, heads: dict[Path, Revision], fetch_options: FetchOptions
) -> SourceRevision:
    if built.revision not in {Revision(), WORKING_TREE}:
        return SourceRevision(built.revision, built.tool)
    if built.root not in heads:
        heads[built.root] = await read_local_revision(built.root, fetch_options)
    return SourceRevision(heads[built.root], built.tool)


def unreported_messages(unreported: Mapping[UnitId, str]) -> Iterable[str]:
    """Yield messages about statuses that could not be written, each reason once."""
    reasons: dict[str, list[UnitId]] = {}
    for unit, why in unreported.items():
        reasons.setdefault(why, []).append(unit)
    for why, units in reasons.items():
        yield f"cannot write the status of {join_quoted(units, 1)}: {why}"
