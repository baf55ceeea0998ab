"""Units that are excluded from the plan: suspended, manual, blocked, faulty or unchanged."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from tidegate.clusters.session import Session
from tidegate.dialect.controllers.known import CONTROLLERS, is_paused_by_us
from tidegate.dialect.controllers.requests import is_suspended
from tidegate.engine.records.markers import SUSPENSIONS
from tidegate.errors import Location, TidegateError
from tidegate.model.finding import Finding, Severity
from tidegate.model.k8s.json_fields import get_text
from tidegate.model.k8s.objects import JsonObject, object_body
from tidegate.model.units.semantics import ARGOCD, FLUX, TIDEGATE, ChildGates
from tidegate.model.units.unit import Dependency, Unit, UnitId
from tidegate.workspace.discovery.unit_tree import RenderedUnit, UnitTree
from tidegate.world.messages import Forbidden
from tidegate.world.requests import Selection


def exclude_units(members: Iterable[RenderedUnit]) -> tuple[list[RenderedUnit], list[Finding]]:
    """Return the units to roll out, with findings; children of an excluded unit are excluded."""
    included: list[RenderedUnit] = []
    findings: list[Finding] = []
    units: dict[UnitId, Unit] = {}
    excluded: set[UnitId] = set()
    for member in members:
        unit = member.unit
        units[unit.id] = unit
        parent = units.get(unit.parent) if unit.parent and unit.parent.kind else None
        if unit.is_suspended or unit.parent in excluded:
            findings.append(_suspended_finding(unit))
        elif _is_manual(unit):
            findings.append(_manual_sync_finding(unit, parent))
        if unit.is_suspended or unit.parent in excluded or (parent and _is_manual(unit)):
            excluded.add(unit.id)
        else:
            included.append(member)
    included, blocked = _without_blocked(included, excluded, units)
    findings += blocked
    findings += (
        finding
        for rendered_unit in included
        for finding in _unawaited_findings(rendered_unit.unit, excluded)
    )
    return included, findings


def _without_blocked(
    members: list[RenderedUnit], excluded: set[UnitId], units: Mapping[UnitId, Unit]
) -> tuple[list[RenderedUnit], list[Finding]]:
    """Remove Flux units that depend on an excluded unit, and those that depend on them."""
    findings: list[Finding] = []
    waiting = [member for member in members if member.unit.policy.semantics.name == FLUX.name]
    while True:
        blocked = [
            member
            for member in waiting
            if member.unit.id not in excluded and _blocking_dependency(member.unit, excluded)
        ]
        if not blocked:
            return [member for member in members if member.unit.id not in excluded], findings
        reported = (member.unit for member in blocked if member.unit.parent not in excluded)
        findings += [
            _blocked_finding(unit, _blocking_dependency(unit, excluded), units) for unit in reported
        ]
        excluded |= {member.unit.id for member in blocked}


def _blocking_dependency(unit: Unit, excluded: Collection[UnitId]) -> Dependency | None:
    """Return the excluded unit that blocks a unit: its parent or a dependency; else None."""
    if unit.parent in excluded:
        return Dependency(unit=unit.parent, location=unit.location)
    return next(
        (dependency for dependency in unit.dependencies if dependency.unit in excluded), None
    )


def _blocked_finding(
    unit: Unit, dependency: Dependency | None, units: Mapping[UnitId, Unit]
) -> Finding:
    blocker = units.get(dependency.unit) if dependency and dependency.unit else None
    is_suspended = blocker is not None and blocker.is_suspended
    return Finding(
        code="units.blocked",
        severity=Severity.WARNING,
        message=f"`{unit.id}` never starts: it waits for `{dependency.unit if dependency else ''}`",
        location=dependency.location if dependency else unit.location,
        reason=(
            "the dependency is suspended, so it never becomes Ready"
            if is_suspended
            else "the dependency is not deployed, so it never becomes Ready"
        ),
        fix="remove `suspend` from the dependency, or the entry from `dependsOn`"
        if is_suspended
        else "fix what blocks the dependency",
        semantics=(FLUX.name,),
    )


def without_tidegate_dependencies(
    members: list[RenderedUnit],
) -> tuple[list[RenderedUnit], list[Finding]]:
    """Remove `tidegate.dev/depends-on` dependencies of units that run with other semantics."""
    result: list[RenderedUnit] = []
    findings: list[Finding] = []
    for member in members:
        unit = member.unit
        ignored = [
            dependency for dependency in unit.dependencies if dependency.is_tidegate_annotation
        ]
        if not ignored or unit.policy.semantics.name == TIDEGATE.name:
            result.append(member)
            continue
        findings.append(_ignored_dependency_finding(unit, ignored[0]))
        remaining = tuple(
            dependency for dependency in unit.dependencies if not dependency.is_tidegate_annotation
        )
        changed = msgspec.structs.replace(unit, dependencies=remaining)
        result.append(replace(member, unit=changed))
    return result, findings


def _ignored_dependency_finding(unit: Unit, dependency: Dependency) -> Finding:
    semantics = unit.policy.semantics.name
    return Finding(
        code="units.ignored-annotation",
        severity=Severity.NOTE,
        message=f"`{unit.id}` ignores `tidegate.dev/depends-on`",
        location=dependency.location,
        reason=f"`{semantics}` semantics do not support the annotation",
        semantics=(semantics,),
    )


def _is_manual(unit: Unit) -> bool:
    """Return whether Argo CD does not sync a unit by itself.

    With RollingSync the ApplicationSet controller syncs the units that match a step, and no
    others.
    """
    is_rolling = unit.rolling_sync_step is not None and unit.rolling_sync_step.is_enforced
    is_synced = (
        bool(unit.rolling_sync_step.number)
        if unit.rolling_sync_step and is_rolling
        else unit.policy.auto_sync
    )
    return unit.policy.semantics.name == ARGOCD.name and not is_synced


def _suspended_finding(unit: Unit) -> Finding:
    why = "" if unit.is_suspended else f"its parent `{unit.parent}` is suspended or skipped"
    return Finding(
        code="units.suspended",
        severity=Severity.NOTE,
        message=f"`{unit.id}` is suspended" if unit.is_suspended else f"`{unit.id}` is skipped",
        location=unit.location,
        reason=why,
        fix="" if why else "remove `suspend` from the unit, or run `tidegate resume`",
    )


def _manual_sync_finding(unit: Unit, parent: Unit | None) -> Finding:
    """Return the finding about a unit without automated sync; a root unit is planned anyway."""
    consequence = "skipped" if parent else "simulated as if it were synced manually"
    if parent and parent.policy.semantics.child_gates is ChildGates.ALWAYS:
        consequence = f"skipped, but later waves of `{parent.id}` wait until it is synced manually"
    return Finding(
        code="argo.manual",
        severity=Severity.WARNING if parent else Severity.NOTE,
        message=f"`{unit.id}` has no automated sync; {consequence}",
        location=unit.location,
        reason="`syncPolicy.automated` is not set, so Argo CD waits for a manual sync",
        unit_names=(unit.id.qualified_name,),
        unit=unit.id,
        fix="add `automated: {}` to `syncPolicy`",
        semantics=(ARGOCD.name,),
    )


def _unawaited_findings(unit: Unit, excluded: Collection[UnitId]) -> Iterator[Finding]:
    for dependency in unit.dependencies:
        if dependency.unit in excluded:
            yield Finding(
                code="units.dependency-suspended",
                severity=Severity.NOTE,
                message=f"`{unit.id}` does not wait for `{dependency.unit}`",
                location=dependency.location,
                reason="the dependency is suspended or skipped",
            )


def fault_findings(unit: Unit, errors: Iterable[TidegateError]) -> list[Finding]:
    """Return findings for the errors that keep a unit from being rolled out."""
    return [
        replace(
            Finding.from_error(error, unit=unit), unit_problem=error.unit_problem or error.problem
        )
        for error in errors
    ]


def unpruned_finding(unit: Unit) -> Finding:
    return Finding(
        code="units.unpruned",
        severity=Severity.WARNING,
        message=f"`{unit.id}` is not pruned",
        location=unit.location,
        reason="some of its objects are unknown, so an object that looks removed may still be"
        " in Git",
    )


async def apply_suspensions(
    unit_trees: Sequence[UnitTree], session: Session
) -> tuple[tuple[UnitTree, ...], tuple[Finding, ...]]:
    """Return the trees with units that are suspended in the cluster marked as such, and findings.

    Units are suspended on their unit resources or by a Tidegate record. A finding names what
    cannot be listed. A unit whose controller is paused by Tidegate is not suspended.
    """
    ids = [
        member.unit.id
        for unit_tree in unit_trees
        for member in unit_tree.members
        if member.unit.id.kind
    ]
    suspended, unlisted = await _list_suspended(ids, session)
    result = (
        tuple(_mark_suspended(unit_tree, suspended) for unit_tree in unit_trees)
        if suspended
        else tuple(unit_trees)
    )
    return result, tuple(map(_unlisted_finding, unlisted))


def _unlisted_finding(resource: str) -> Finding:
    return Finding(
        code="units.suspension-unknown",
        severity=Severity.NOTE,
        message=f"cannot read whether units are suspended in the cluster: {resource}",
        reason="listing is forbidden; these units are assumed not to be suspended",
    )


def _mark_suspended(unit_tree: UnitTree, suspended: frozenset[UnitId]) -> UnitTree:
    return unit_tree.map_members(
        lambda member: (
            replace(member, unit=replace(member.unit, is_suspended=True))
            if member.unit.id in suspended
            else member
        )
    )


async def find_suspended(ids: Iterable[UnitId], session: Session) -> frozenset[UnitId]:
    """Return those of the units that are suspended in their cluster."""
    suspended, _ = await _list_suspended([*ids], session)
    return suspended


async def _list_suspended(
    ids: Sequence[UnitId], session: Session
) -> tuple[frozenset[UnitId], tuple[str, ...]]:
    """Return the suspended units, and what may not be listed.

    Unit resources are read with one list for each kind and namespace.
    """
    suspended: set[UnitId] = set()
    unlisted: list[str] = []
    for cluster in dict.fromkeys(unit_id.cluster for unit_id in ids):
        if cluster not in session.targets.contexts:
            continue
        cluster_ids = [unit_id for unit_id in ids if unit_id.cluster == cluster]
        selections = (SUSPENSIONS, *await _unit_resource_selections(cluster_ids, cluster, session))
        listing = await session.reader(cluster).list_each(selections)
        listing.raise_errors(
            "listing suspended units", Location("unit resources"), ignored=Forbidden
        )
        unlisted += [
            f"{selection.kind.name} in `{selection.namespace}`" for selection in listing.errors
        ]
        records = listing.pages.pop(SUSPENSIONS, [])
        tracking_ids = {get_text(object_body(record), "data", "unit") for record in records}
        suspended |= {unit_id for unit_id in cluster_ids if unit_id.tracking_id in tracking_ids}
        suspended |= {
            UnitId(live.ref.kind.name, cluster, live.ref.namespace, live.ref.name)
            for live in listing.items
            if _is_suspended_by_user(object_body(live))
        }
    return frozenset(suspended), tuple(unlisted)


async def _unit_resource_selections(
    ids: list[UnitId], cluster: str, session: Session
) -> list[Selection]:
    """Return selections of the unit resources whose kinds the cluster serves."""
    kinds = {
        (served_kind.kind.group, served_kind.kind.name): served_kind.kind
        for served_kind in await session.kinds(cluster)
    }
    groups = {unit_id: (_controller_group(unit_id.kind), unit_id.kind) for unit_id in ids}
    pairs = dict.fromkeys(
        (kinds[groups[unit_id]], unit_id.namespace) for unit_id in ids if groups[unit_id] in kinds
    )
    return [Selection(*pair) for pair in pairs]


def _controller_group(kind: str) -> str:
    return CONTROLLERS[kind].group if kind in CONTROLLERS else ""


def _is_suspended_by_user(unit_resource: JsonObject) -> bool:
    return is_suspended(unit_resource) and not is_paused_by_us(unit_resource)
