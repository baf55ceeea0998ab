"""AppProject rules of a plan: rejected objects, sync windows and orphaned resources."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import structs

from tidegate.dialect.argo.permits import check_object
from tidegate.errors import Location
from tidegate.flows.discover.projects import denial_finding
from tidegate.flows.looking import get_objects
from tidegate.flows.session import Session
from tidegate.model.finding import Finding, Severity
from tidegate.model.manifest import Manifest, Manifests
from tidegate.model.moment import Ms, format_timestamp
from tidegate.model.plan import ItemAction
from tidegate.model.project import ProjectViolation
from tidegate.model.sync_window import WindowBlock, find_window_block
from tidegate.model.unit import Unit, UnitId

MAX_FINDINGS = 5
"""Findings about single objects of one unit; the others are counted."""


async def find_rejected_objects(manifests: Manifests, session: Session) -> list[Finding]:
    """Return findings about objects that the project of their unit does not allow.

    A single rejected object is enough for Argo CD to reject the sync.
    """
    unit, scope = manifests.unit, manifests.unit.policy.reach
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
        findings.append(_more_objects_finding(unit, len(rejected) - MAX_FINDINGS))
    return findings


async def _exists_already(manifest: Manifest, unit: Unit, session: Session) -> bool:
    """Whether an object is created only if missing, and exists: its project is not checked then."""
    if manifest.action is not ItemAction.CREATE:
        return False
    return bool(await get_objects(session.world, [manifest.ref], cluster=unit.destination.cluster))


def _object_finding(unit: Unit, manifest: Manifest, refusal: ProjectViolation) -> Finding:
    finding = denial_finding(unit, refusal)
    origin = f"the object is at {manifest.origin}; " if manifest.origin else ""
    return structs.replace(finding, reason=f"{origin}{finding.reason}")


def _more_objects_finding(unit: Unit, count: int) -> Finding:
    message = f"project does not allow {count} more objects to `{unit.id}`"
    return Finding(
        code="argo.project",
        severity=Severity.ERROR,
        message=message,
        location=unit.location,
        unit_names=(unit.id.qualified_name,),
    )


def find_window_blocks(units: Iterable[Unit], now: Ms) -> list[tuple[Unit, WindowBlock | None]]:
    """Return the units with sync windows, each with the window that blocks it now, or None."""
    return [
        (unit, find_window_block(unit.policy.windows, now, is_manual=unit.policy.asked))
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
    return Finding(
        code="argo.window",
        severity=Severity.WARNING if block.until else Severity.ERROR,
        message=f"`{unit.id}` is held {end}, if there is something to do",
        location=unit.location,
        reason=f"by the {block.window.title}",
        fix="" if block.until else "correct the window",
    )


def _assumed_time_finding(unit: Unit, now: Ms) -> Finding:
    return Finding(
        code="argo.window-moment",
        severity=Severity.NOTE,
        message=f"sync windows are looked at as of {format_timestamp(now)}",
        location=Location(unit.policy.windows[0].where),
        reason="the simulation begins then",
        fix="`--start MOMENT`, or `start` in a scenario, begins another time",
    )
