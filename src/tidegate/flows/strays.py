"""Objects in the namespaces of a project that belong to nobody: `orphanedResources`."""

from __future__ import annotations

from collections.abc import Iterable

from tidegate.dialect.argo.customizing import CORE_EXCLUSIONS
from tidegate.dialect.argo.permits import check_object, matches_kind
from tidegate.flows.looking import object_body
from tidegate.flows.session import Session
from tidegate.model.finding import Finding, Severity
from tidegate.model.manifest import Manifests
from tidegate.model.objects import Kind, LiveObject, Ref, versionless_key
from tidegate.model.project import OrphanRules, ProjectScope
from tidegate.model.reading import get_list
from tidegate.model.unit import Unit
from tidegate.world.ask import send_requests
from tidegate.world.calls import List, Selection
from tidegate.world.facts import ListPage

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
        scope, namespace = unit.policy.reach, unit.destination.namespace
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
    requests = (List(Selection(kind, namespace)) for kind in kinds.values())
    pages = await send_requests(session.world, *requests, cluster=cluster)
    live_objects = [live for page in pages if isinstance(page, ListPage) for live in page.items]
    services = {live.ref.name for live in live_objects if live.ref.kind.name == "Service"}
    return [live for live in live_objects if not _is_service_endpoints(live.ref, services)]


def _is_service_endpoints(ref: Ref, services: set[str]) -> bool:
    """Whether the object is the Endpoints of a Service, which has no owner reference."""
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
    names = ", ".join(f"{orphan.kind.name} `{orphan.name}`" for orphan in orphans[:MAX_LISTED])
    more = f" and {len(orphans) - MAX_LISTED} more" if len(orphans) > MAX_LISTED else ""
    is_single = len(orphans) == 1
    count = "1 object belongs" if is_single else f"{len(orphans)} objects belong"
    return Finding(
        code="argo.orphaned",
        severity=Severity.WARNING,
        message=f"beside `{unit.id}`, {count} to nobody: {names}{more}",
        location=unit.location,
        reason=f"{scope.project.location_of_list('orphanedResources')} asks for a warning",
        fix="add them to Git, delete them, or name them in `ignore` there",
    )
