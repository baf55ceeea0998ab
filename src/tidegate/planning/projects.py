"""AppProject rules of a plan: rejected objects, sync windows and orphaned resources."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from msgspec import structs

from tidegate.dialect.argo.argocd_cm import CORE_EXCLUSIONS
from tidegate.dialect.argo.project_permissions import check_object, matches_kind
from tidegate.errors import Location
from tidegate.model.display import count_noun, join_limited
from tidegate.model.finding import Finding, Severity
from tidegate.model.k8s.json_fields import get_list
from tidegate.model.k8s.kinds import NAMESPACE
from tidegate.model.k8s.objects import (
    ClusterRef,
    JsonObject,
    Kind,
    LiveObject,
    Ref,
    ServedKind,
    object_body,
    versionless_key,
)
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


def find_rejected_objects(manifests: Manifests, existing: Collection[ClusterRef]) -> list[Finding]:
    """Return findings about objects that the project of their unit does not allow.

    A single rejected object is enough for Argo CD to reject the sync. A namespace that is only
    created if it is missing is not checked if it is one of the `existing`.
    """
    unit, scope = manifests.unit, manifests.unit.policy.project_scope
    if scope is None or unit.project_request is None:
        return []
    rejected: list[tuple[Manifest, ProjectViolation]] = []
    for manifest in manifests.manifests:
        refusal = check_object(scope, manifest.ref, namespaced=bool(manifest.ref.namespace))
        ref = ClusterRef(unit.destination.cluster, manifest.ref)
        exists_already = manifest.action is ItemAction.CREATE and ref in existing
        if refusal is not None and not exists_already:
            rejected.append((manifest, refusal))
    findings = [
        _object_finding(unit, manifest, refusal) for manifest, refusal in rejected[:MAX_FINDINGS]
    ]
    if len(rejected) > MAX_FINDINGS:
        more = _more_objects_message(unit, len(rejected) - MAX_FINDINGS)
        findings.append(structs.replace(findings[-1], message=more, reason=""))
    return findings


def find_unpermitted_namespaces(units: Iterable[Unit]) -> Iterator[ClusterRef]:
    """Yield the namespaces that units create if missing, although their projects forbid it."""
    for unit in units:
        scope, destination = unit.policy.project_scope, unit.destination
        if scope is None or unit.project_request is None or not unit.policy.create_namespace:
            continue
        ref = Ref(NAMESPACE, "", destination.namespace)
        if destination.namespace and check_object(scope, ref, namespaced=False) is not None:
            yield ClusterRef(destination.cluster, ref)


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
    blocks: Iterable[tuple[Unit, WindowBlock | None]], now: Ms, *, is_simulated: bool
) -> Iterator[Finding]:
    """Yield findings about closed windows; in a simulation, also about the assumed time."""
    for index, (unit, block) in enumerate(blocks):
        if is_simulated and not index:
            yield _assumed_time_finding(unit, now)
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


def find_orphan_namespaces(units: Iterable[Unit]) -> Iterator[tuple[str, str]]:
    """Yield the clusters and namespaces in which a project warns about orphaned resources."""
    destinations = (unit.destination for unit in units if _orphan_rules(unit) is not None)
    yield from dict.fromkeys((item.cluster, item.namespace) for item in destinations)


def _orphan_rules(unit: Unit) -> tuple[ProjectScope, OrphanRules] | None:
    """Return the rules of a unit whose project warns about orphaned resources."""
    scope = unit.policy.project_scope
    rules = scope.project.orphans if scope is not None else None
    is_checked = unit.destination.namespace and unit.project_request is not None
    if scope is None or rules is None or not rules.warns or not is_checked:
        return None
    return scope, rules


def select_possible_orphans(kinds: Iterable[ServedKind], namespace: str) -> Iterator[Selection]:
    """Yield the selections of all objects of a namespace that may be orphaned."""
    selected: dict[tuple[str, str], Kind] = {}
    for served in kinds:
        kind = served.kind
        is_excluded = any(
            exclusion.matches(kind.group, kind.name, "") for exclusion in CORE_EXCLUSIONS
        )
        if served.namespaced and "list" in served.verbs and not is_excluded:
            selected.setdefault((kind.group, kind.name), kind)
    return (Selection(kind, namespace) for kind in selected.values())


def find_orphaned_resources(
    manifests: Iterable[Manifests],
    live_objects: Mapping[tuple[str, str], Collection[LiveObject]],
    find_owner: Callable[[JsonObject], str],
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
    findings = []
    for unit in (unit_manifests.unit for unit_manifests in manifests):
        applying = _orphan_rules(unit)
        if applying is None:
            continue
        in_namespace = live_objects.get((unit.destination.cluster, unit.destination.namespace), ())
        services = {live.ref.name for live in in_namespace if live.ref.kind.name == "Service"}
        orphans = [
            live.ref
            for live in in_namespace
            if versionless_key(live.ref) not in planned
            and not _is_service_endpoints(live.ref, services)
            and not find_owner(object_body(live))
            and _is_orphan(live, *applying)
        ]
        findings += [_orphaned_finding(unit, applying[0], orphans)] if orphans else []
    return findings


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
