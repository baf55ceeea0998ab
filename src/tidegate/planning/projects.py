"""AppProject rules of a plan: rejected objects, sync windows and orphaned resources."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import structs

from tidegate.clusters.session import Session
from tidegate.dialect.argo.argocd_cm import CORE_EXCLUSIONS
from tidegate.dialect.argo.project_permissions import check_object, matches_kind
from tidegate.errors import Location
from tidegate.model.display import count_noun, join_limited
from tidegate.model.finding import Finding, Severity
from tidegate.model.k8s.json_fields import get_list
from tidegate.model.k8s.objects import Kind, LiveObject, Ref, object_body, versionless_key
from tidegate.model.plans.manifest import Manifest, Manifests
from tidegate.model.plans.plan import ItemAction
from tidegate.model.times import Ms, format_timestamp
from tidegate.model.units.project import OrphanRules, ProjectScope, ProjectViolation
from tidegate.model.units.sync_window import WindowBlock, find_window_block
from tidegate.model.units.unit import Unit, UnitId
from tidegate.workspace.discovery.projects import denial_finding
from tidegate.world.requests import Selection

MAX_FINDINGS = 5
"""Findings about single objects of one unit; the others are counted."""


async def find_rejected_objects(manifests: Manifests, session: Session) -> list[Finding]:
    """Return findings about objects that the project of their unit does not allow.

    A single rejected object is enough for Argo CD to reject the sync.
    """
    unit, scope = manifests.unit, manifests.unit.policy.project_scope
    if scope is None or unit.project_request is None:
        return []
    rejected: list[tuple[Manifest, ProjectViolation]] = []
    for manifest in manifests.manifests:
        refusal = check_object(scope, manifest.ref, namespaced=bool(manifest.ref.namespace))
        if refusal is not None and not await _exists_already(manifest, unit, session):
            rejected.append((manifest, refusal))
    findings = [
        _object_finding(unit, manifest, refusal) for manifest, refusal in rejected[:MAX_FINDINGS]
    ]
    if len(rejected) > MAX_FINDINGS:
        more = _more_objects_message(unit, len(rejected) - MAX_FINDINGS)
        findings.append(structs.replace(findings[-1], message=more, reason=""))
    return findings


async def _exists_already(manifest: Manifest, unit: Unit, session: Session) -> bool:
    """Return whether an object is only created if missing, and exists; no project check then."""
    if manifest.action is not ItemAction.CREATE:
        return False
    return await session.reader(unit.destination.cluster).get(manifest.ref) is not None


def _object_finding(unit: Unit, manifest: Manifest, refusal: ProjectViolation) -> Finding:
    finding = denial_finding(unit, refusal)
    origin = f"the object is at {manifest.origin}; " if manifest.origin else ""
    return structs.replace(
        finding, reason=f"{origin}{finding.reason}", cause=f"{unit.id} {refusal.rule}"
    )


def _more_objects_message(unit: Unit, count: int) -> str:
    return f"project does not permit {count} more objects for `{unit.id}`"


def find_window_blocks(units: Iterable[Unit], now: Ms) -> list[tuple[Unit, WindowBlock | None]]:
    """Return the units with sync windows, each with the window that blocks it now, or None."""
    return [
        (unit, find_window_block(unit.policy.windows, now, is_manual=unit.policy.is_manual))
        for unit in units
        if unit.policy.windows
    ]


def permanently_closed(blocks: Iterable[tuple[Unit, WindowBlock | None]]) -> dict[UnitId, str]:
    """Return the units whose windows do not open within a year, with the reason."""
    why = "its sync windows do not open within a year"
    return {unit.id: why for unit, block in blocks if block is not None and not block.until}


def window_findings(
    blocks: Iterable[tuple[Unit, WindowBlock | None]], session: Session
) -> Iterator[Finding]:
    """Yield findings about closed windows; in a simulation, also about the assumed time."""
    for index, (unit, block) in enumerate(blocks):
        if session.targets.simulation is not None and not index:
            yield _assumed_time_finding(unit, session.world.now())
        if block is not None:
            yield _closed_window_finding(unit, block)


def _closed_window_finding(unit: Unit, block: WindowBlock) -> Finding:
    end = f"until {format_timestamp(block.until)}" if block.until else "for longer than a year"
    problem = f"is blocked by a sync window {end} if it has changes"
    return Finding(
        code="argo.window",
        severity=Severity.WARNING if block.until else Severity.ERROR,
        message=f"`{unit.id}` {problem}",
        location=unit.location,
        reason=f"the {block.window.title} blocks it",
        fix="" if block.until else "correct the window",
        unit=unit.id,
        unit_problem=problem,
    )


def _assumed_time_finding(unit: Unit, now: Ms) -> Finding:
    return Finding(
        code="argo.window-time",
        severity=Severity.NOTE,
        message=f"sync windows are evaluated as of {format_timestamp(now)}",
        location=Location(unit.policy.windows[0].where),
        reason="the simulation starts at this time",
        fix="set another start with `--start TIME`, or with `start` in a scenario",
    )


MAX_LISTED = 5
DEFAULT_OBJECTS = frozenset(
    [
        ("Service", "default", "kubernetes"),
        ("ConfigMap", "", "kube-root-ca.crt"),
        ("ServiceAccount", "", "default"),
    ]
)
"""Kind, namespace and name of objects that every cluster has.

Without a namespace, the object exists in every namespace.
"""


async def find_orphaned_resources(
    manifests: Iterable[Manifests], session: Session
) -> list[Finding]:
    """Return a finding for each Application whose project warns of orphaned resources.

    Orphaned resources are live objects in the namespace that belong to no Application.
    """
    manifests = tuple(manifests)
    planned = {
        versionless_key(manifest.ref)
        for unit_manifests in manifests
        for manifest in unit_manifests.manifests
    }
    live_objects: dict[tuple[str, str], list[LiveObject]] = {}
    findings = []
    for unit in (unit_manifests.unit for unit_manifests in manifests):
        scope, namespace = unit.policy.project_scope, unit.destination.namespace
        rules = scope.project.orphans if scope is not None else None
        if (
            scope is None
            or rules is None
            or not rules.warns
            or not namespace
            or unit.project_request is None
        ):
            continue
        destination = (unit.destination.cluster, namespace)
        if destination not in live_objects:
            live_objects[destination] = await _list_namespace(destination, session)
        unplanned = (
            live for live in live_objects[destination] if versionless_key(live.ref) not in planned
        )
        orphans = [
            live.ref
            for live in unplanned
            if not session.evaluator.find_owner(object_body(live))
            and _is_orphan(live, scope, rules)
        ]
        findings += [_orphaned_finding(unit, scope, orphans)] if orphans else []
    return findings


async def _list_namespace(destination: tuple[str, str], session: Session) -> list[LiveObject]:
    """Return all live objects of a namespace whose kinds can be listed."""
    cluster, namespace = destination
    kinds: dict[tuple[str, str], Kind] = {}
    for served in await session.kinds(cluster):
        kind = served.kind
        is_excluded = any(
            exclusion.matches(kind.group, kind.name, "") for exclusion in CORE_EXCLUSIONS
        )
        if served.namespaced and "list" in served.verbs and not is_excluded:
            kinds.setdefault((kind.group, kind.name), kind)
    selections = (Selection(kind, namespace) for kind in kinds.values())
    live_objects = (await session.reader(cluster).list_each(selections)).items
    services = {live.ref.name for live in live_objects if live.ref.kind.name == "Service"}
    return [live for live in live_objects if not _is_service_endpoints(live.ref, services)]


def _is_service_endpoints(ref: Ref, services: set[str]) -> bool:
    """Return whether the object is the Endpoints of a Service, which has no owner reference."""
    return ref.kind.name == "Endpoints" and ref.name in services


def _is_orphan(live: LiveObject, scope: ProjectScope, rules: OrphanRules) -> bool:
    body, ref = object_body(live), live.ref
    names = {(ref.kind.name, namespace, ref.name) for namespace in ("", ref.namespace)}
    if names & DEFAULT_OBJECTS or get_list(body, "metadata", "ownerReferences"):
        return False
    if any(matches_kind(rule, ref, named=True) for rule in rules.ignored):
        return False
    return check_object(scope, ref, namespaced=True) is None


def _orphaned_finding(unit: Unit, scope: ProjectScope, orphans: list[Ref]) -> Finding:
    names = join_limited([f"{ref.kind.name} `{ref.name}`" for ref in orphans], MAX_LISTED)
    count = count_noun(len(orphans), "orphaned object")
    return Finding(
        code="argo.orphaned",
        severity=Severity.WARNING,
        message=f"{count} in the namespace of `{unit.id}`: {names}",
        location=unit.location,
        reason=f"{scope.project.location_of_list('orphanedResources')} enables this warning",
        fix="add them to Git, delete them, or add them to `ignore` in `orphanedResources`",
    )
