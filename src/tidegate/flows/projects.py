"""What projects say of a plan: objects that they do not allow, and windows that hold units."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import structs

from tidegate.dialect.argo.permits import refuse_object
from tidegate.errors import Place
from tidegate.flows.discover.projects import refused
from tidegate.flows.looking import look_at
from tidegate.flows.session import Session
from tidegate.model.finding import Finding, Severity
from tidegate.model.manifest import Manifest, Manifests
from tidegate.model.moment import Ms, format_moment
from tidegate.model.plan import Deed
from tidegate.model.project import Refusal
from tidegate.model.sync_window import WindowHold, find_hold
from tidegate.model.unit import Unit, UnitId

MOST_TOLD = 5
"""Objects of one unit; of the others the number is told."""


async def refused_objects(wanted: Manifests, session: Session) -> list[Finding]:
    """The objects of a unit that its project does not allow. One of them is enough for Argo CD."""
    unit, reach = wanted.unit, wanted.unit.policy.reach
    if reach is None or unit.claim is None:
        return []
    found: list[tuple[Manifest, Refusal]] = []
    for one in wanted.manifests:
        refusal = refuse_object(reach, one.ref, namespaced=bool(one.ref.namespace))
        if refusal is not None and not await _is_there(one, unit, session):
            found.append((one, refusal))
    told = [_of_object(unit, one, refusal) for one, refusal in found[:MOST_TOLD]]
    if len(found) > MOST_TOLD:
        told.append(_more(unit, len(found) - MOST_TOLD))
    return told


async def _is_there(one: Manifest, unit: Unit, session: Session) -> bool:
    """Whether it is only made where it is missing, and is not missing: then nobody asks."""
    if one.deed is not Deed.CREATE:
        return False
    return bool(await look_at(session.world, [one.ref], cluster=unit.destination.cluster))


def _of_object(unit: Unit, one: Manifest, refusal: Refusal) -> Finding:
    finding = refused(unit, refusal)
    origin = f"the object is at {one.origin}; " if one.origin else ""
    return structs.replace(finding, why=f"{origin}{finding.why}")


def _more(unit: Unit, count: int) -> Finding:
    said = f"project does not allow {count} more objects to `{unit.id}`"
    return Finding(
        code="argo.project",
        severity=Severity.ERROR,
        sentence=said,
        where=unit.where,
        about=(unit.id.called,),
    )


def find_holds(units: Iterable[Unit], now: Ms) -> list[tuple[Unit, WindowHold | None]]:
    """The units with windows, and what holds each at this moment."""
    return [
        (unit, find_hold(unit.policy.windows, now, asked=unit.policy.asked))
        for unit in units
        if unit.policy.windows
    ]


def closed_for_good(holds: Iterable[tuple[Unit, WindowHold | None]]) -> dict[UnitId, str]:
    """Of these, those that nobody will see open, and why nothing is done to them."""
    why = "its sync windows do not open within a year"
    return {unit.id: why for unit, hold in holds if hold is not None and not hold.until}


def window_findings(
    holds: Iterable[tuple[Unit, WindowHold | None]], session: Session
) -> Iterator[Finding]:
    """Who is held until when; what now is, where it is simulated."""
    for number, (unit, hold) in enumerate(holds):
        if session.target.simulation is not None and not number:
            yield _assumed(unit, session.world.now())
        if hold is not None:
            yield _held(unit, hold)


def _held(unit: Unit, hold: WindowHold) -> Finding:
    end = f"until {format_moment(hold.until)}" if hold.until else "for longer than a year"
    return Finding(
        code="argo.window",
        severity=Severity.WARNING if hold.until else Severity.ERROR,
        sentence=f"`{unit.id}` is held {end}, if there is something to do",
        where=unit.where,
        why=f"by the {hold.window.title}",
        fix="" if hold.until else "correct the window",
    )


def _assumed(unit: Unit, now: Ms) -> Finding:
    return Finding(
        code="argo.window-moment",
        severity=Severity.NOTE,
        sentence=f"sync windows are looked at as of {format_moment(now)}",
        where=Place(unit.policy.windows[0].where),
        why="the simulation begins then",
        fix="`--start MOMENT`, or `start` in a scenario, begins another time",
    )
