"""What a cluster would refuse of a plan, asked as a rollout asks it, and nothing is done."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from tidegate.engine.drive import Driver, drive
from tidegate.engine.site import Settings
from tidegate.errors import ClusterError
from tidegate.flows.custom_kinds import may_be_custom
from tidegate.flows.field_places import SourceFiles
from tidegate.flows.session import Session, own_name
from tidegate.flows.wiring import why_unserved
from tidegate.model.event import Event, Told
from tidegate.model.finding import Finding, Severity
from tidegate.model.objects import Ref
from tidegate.model.plan import Plan
from tidegate.report.refusals import CODES, refusal_findings
from tidegate.report.rollout.discretion import Discretion

FORBIDDEN = "cluster.forbidden"


class Refusals(NamedTuple):
    """What is wrong with a plan, and with how many of its objects."""

    findings: tuple[Finding, ...]
    objects: int = 0


async def find_refusals(plan: Plan, session: Session) -> Refusals:
    """What is wrong with a plan; in a simulated cluster nothing is merely missing.

    Who may not look cannot be told, and that is said.
    """
    told: list[Event] = []
    settings = Settings(holder=own_name(), only_looks=True)
    try:
        await drive(Driver(session.world, plan, session.craft, settings, told.append))
    except ClusterError as error:
        if error.code != FORBIDDEN:
            raise
        return Refusals((_unasked(error),))
    hide, files = Discretion.of(plan).hide_in, SourceFiles(session.tree)
    refused = [one for one in told if one.told is Told.OBJECT_REFUSED]
    if session.target.simulation is not None:
        refused = [one for one in refused if not _is_missing(one)]
    placed = [hide(files.of_event(one)) for one in refused]
    objects = {(one.cluster, one.ref) for one in placed}
    findings = refusal_findings(placed, _unserved(placed, session))
    return Refusals(tuple(map(_allowing_for_others, findings)), len(objects))


def _allowing_for_others(finding: Finding) -> Finding:
    """Who may only look can still be shown a plan: somebody else may roll it out."""
    if finding.code != CODES["Forbidden"]:
        return finding
    return msgspec.structs.replace(finding, severity=Severity.WARNING)


def _is_missing(event: Event) -> bool:
    """Whether only something around an object is not there: a namespace, or an operator."""
    is_custom = event.ref is not None and may_be_custom(event.ref.kind)
    return event.reason == "NoNamespace" or (event.reason == "NotServed" and is_custom)


def _unserved(events: list[Event], session: Session) -> dict[Ref, str]:
    known = session.craft.rules.known
    refs = (one.ref for one in events if one.ref is not None and one.reason == "NotServed")
    return {ref: why_unserved(session.behind, ref.kind, known) for ref in refs}


def _unasked(error: ClusterError) -> Finding:
    return Finding(
        code="preflight.unasked",
        severity=Severity.WARNING,
        sentence="it is not known whether the cluster would take this",
        where=error.where,
        why=error.problem,
        fix="`sync` asks again before its first write",
    )
