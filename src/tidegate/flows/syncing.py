"""A repository as it is rolled out: its plan, the ends of what has left Git, and its faults."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from tidegate.errors import PlanError
from tidegate.flows.assuming import find_again
from tidegate.flows.entering import Found
from tidegate.flows.former_releases import with_ends
from tidegate.flows.journal import forget_unit
from tidegate.flows.keeping import minding_drift
from tidegate.flows.late_clusters import asks_late
from tidegate.flows.planning import Planned, make_plan
from tidegate.flows.pointing import Pointed
from tidegate.flows.releases import has_releases
from tidegate.flows.rendering import refuse_unsound
from tidegate.flows.session import Session
from tidegate.flows.suspended import with_suspended
from tidegate.model.finding import Finding
from tidegate.model.plan import Plan
from tidegate.model.semantics import TIDEGATE
from tidegate.model.unit import UnitId


class Prepared(msgspec.Struct, frozen=True):
    """What is to be rolled out, what is said of it, and by unit why nothing of it is done."""

    planned: Planned
    findings: tuple[Finding, ...]
    left_out: Mapping[UnitId, str]


async def prepare(
    found: Found, session: Session, resources: tuple[str, ...], *, keeps_going: bool
) -> Prepared:
    """The plan of what was found. Without `keeps_going` a fault keeps everything from going."""
    left_out = found.at_fault if keeps_going else None
    families, unseen = await with_suspended(found.one, session)
    families = minding_drift(families)
    planned = await make_plan(families, session, resources, TIDEGATE, left_out=left_out)
    if not resources:
        planned = await with_ends(planned, session)
    faults = {unit: why for unit, why in planned.faults.items() if unit not in found.opaque}
    return Prepared(planned, (*found.findings, *planned.findings, *unseen), faults)


def may_change(plan: Plan, session: Session) -> bool:
    """Whether there may be another plan before this one is rolled out.

    In a simulated world nobody commits anything; but each try of a release is another revision, and
    a set may have to generate for another cluster.
    """
    return session.target.simulation is None or has_releases(plan) or asks_late(plan)


async def plan_again(
    pointed: Pointed,
    session: Session,
    resources: tuple[str, ...],
    left_out: Mapping[UnitId, str],
    *,
    takes_broken_seals: bool,
) -> Planned:
    """The plan of what is there by now. Raises where something is wrong with it.

    What is wrong with units that are `left_out` already is wrong with nobody else.
    """
    found, _ = await find_again(session, pointed)
    prepared = await prepare(found, session, resources, keeps_going=bool(left_out))
    is_known = bool(left_out) and prepared.left_out.keys() <= left_out.keys()
    found.refuse_faults(prepared.planned.findings, keeps_going=is_known)
    faults = dict(prepared.left_out)
    if session.target.simulation is None:
        faults = refuse_unknown(
            prepared, keeps_going=is_known, takes_broken_seals=takes_broken_seals
        )
    return replace(prepared.planned, refused=faults)


def refuse_other(plan: Plan, shown: str) -> None:
    """Raise a PlanError where somebody agreed to a plan, and it is no longer this one."""
    if shown and shown != plan.digest:
        problem = "what was shown is not what would be rolled out any more"
        hint = "nothing was written; run the command again, and look at what it shows"
        raise PlanError("plan.moved", problem, hint=hint)


def refuse_unknown(
    prepared: Prepared, *, keeps_going: bool, takes_broken_seals: bool
) -> dict[UnitId, str]:
    """By unit, why a real cluster gets nothing of it. Raises where nobody shall be left out."""
    planned = prepared.planned
    if keeps_going:
        unsound = planned.unsound(takes_broken_seals=takes_broken_seals)
        return {**prepared.left_out, **unsound}
    refuse_unsound(planned.rendered, takes_broken_seals=takes_broken_seals)
    return {**prepared.left_out}


async def forget_leaving(planned: Planned, session: Session) -> None:
    """Forget the units that are gone."""
    for unit in planned.leaving:
        await forget_unit(unit, session.world)
