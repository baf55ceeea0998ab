"""Units that are excluded from the plan: suspended, manual, blocked, faulty or unchanged."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

import msgspec
from msgspec.structs import replace

from tidegate.errors import TidegateError
from tidegate.flows.discover.families import RenderedUnit
from tidegate.model.finding import Finding, Severity
from tidegate.model.semantics import ARGOCD, FLUX, TIDEGATE, ChildGates
from tidegate.model.unit import Dependency, Unit, UnitId


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
        code="units.held",
        severity=Severity.WARNING,
        message=f"`{unit.id}` never begins: it waits for `{dependency.unit if dependency else ''}`",
        location=dependency.location if dependency else unit.location,
        reason="nothing is done to that one, so that it does not become ready",
        fix="remove `suspend` from it, or the entry from `dependsOn`"
        if is_suspended
        else "mend what keeps that one from beginning",
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
        code="units.inert",
        severity=Severity.NOTE,
        message=f"`{unit.id}` does not wait for what `tidegate.dev/depends-on` names",
        location=dependency.location,
        reason=f"the rules of `{semantics}` do not know that annotation",
        semantics=(semantics,),
    )


def _is_manual(unit: Unit) -> bool:
    """Whether Argo CD does not sync a unit by itself.

    With RollingSync the ApplicationSet controller syncs the units that match a step, and no
    others.
    """
    is_rolling = unit.rolling_sync_step is not None and unit.rolling_sync_step.is_enforced
    is_synced = (
        bool(unit.rolling_sync_step.number)
        if unit.rolling_sync_step and is_rolling
        else unit.policy.starts
    )
    return unit.policy.semantics.name == ARGOCD.name and not is_synced


def _suspended_finding(unit: Unit) -> Finding:
    why = "" if unit.is_suspended else f"`{unit.parent}`, which brings it, is left alone"
    return Finding(
        code="units.suspended",
        severity=Severity.NOTE,
        message=f"nothing is done to `{unit.id}`",
        location=unit.location,
        reason=why or "somebody has suspended it",
        fix="" if why else "remove `suspend` from it, or `tidegate resume` it, to go on",
    )


def _manual_sync_finding(unit: Unit, parent: Unit | None) -> Finding:
    """Return the finding about a unit without automated sync; a root unit is planned anyway."""
    consequence = "it is left out" if parent else "it is played as if somebody did"
    if parent and parent.policy.semantics.children is ChildGates.ALWAYS:
        consequence = (
            f"it is left out, though later waves of `{parent.id}` wait until somebody does"
        )
    return Finding(
        code="argo.manual",
        severity=Severity.WARNING if parent else Severity.NOTE,
        message=f"nobody syncs `{unit.id}`: {consequence}",
        location=unit.location,
        reason="it has no `syncPolicy.automated`, so that Argo CD waits for a person",
        unit_names=(unit.id.qualified_name,),
        fix="add `automated: {}` to its syncPolicy",
        semantics=(ARGOCD.name,),
    )


def _unawaited_findings(unit: Unit, excluded: Collection[UnitId]) -> Iterator[Finding]:
    for dependency in unit.dependencies:
        if dependency.unit in excluded:
            yield Finding(
                code="units.unawaited",
                severity=Severity.NOTE,
                message=f"`{unit.id}` does not wait for `{dependency.unit}`",
                location=dependency.location,
                reason="nothing is done to that one now",
            )


def fault_findings(unit: Unit, errors: Iterable[TidegateError]) -> list[Finding]:
    """Return findings for the errors that keep a unit from being rolled out."""
    return [
        Finding(
            code=error.code,
            severity=Severity.ERROR,
            message=f"`{unit.id}`: {error.problem}",
            location=error.location or unit.location,
            fix=error.hint,
        )
        for error in errors
    ]


def unpruned_finding(unit: Unit) -> Finding:
    return Finding(
        code="units.unpruned",
        severity=Severity.WARNING,
        message=f"nothing of `{unit.id}` is pruned",
        location=unit.location,
        reason="not all of its objects are known: what seems to have left Git may still be there",
    )
