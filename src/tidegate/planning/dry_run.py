"""Preflight checks of a plan without a rollout."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from tidegate.clusters.sandboxes import explain_unserved
from tidegate.clusters.session import Session, holder_identity
from tidegate.engine.context import RolloutSettings
from tidegate.engine.driver import Driver, drive
from tidegate.errors import ClusterError
from tidegate.model.finding import Finding, Severity
from tidegate.model.k8s.objects import Ref
from tidegate.model.plans.plan import Plan
from tidegate.model.redaction import Redactor
from tidegate.model.rollouts.event import Event, EventType
from tidegate.planning.refusals import (
    NOT_SERVED,
    PREFLIGHT_CODES,
    is_missing_dependency,
    refusal_findings,
)
from tidegate.workspace.locations import FieldLocator

FORBIDDEN = "cluster.forbidden"


class DryRunResult(NamedTuple):
    """Problems of a plan, and the number of objects that have one."""

    findings: tuple[Finding, ...]
    objects: int = 0


async def dry_run_plan(plan: Plan, session: Session) -> DryRunResult:
    """Return the problems that preflight finds, without missing dependencies in a simulation.

    If the user may not read the cluster, return a finding about the skipped checks.
    """
    events: list[Event] = []
    settings = RolloutSettings(holder=holder_identity(), preflight_only=True)
    try:
        await drive(Driver(session.world, plan, session.evaluator, settings, events.append))
    except ClusterError as error:
        if error.code != FORBIDDEN:
            raise
        return DryRunResult((_skipped_finding(error),))
    redact, locator = Redactor.from_plan(plan).redact_event, FieldLocator(session.repository.root)
    rejected = [event for event in events if event.type is EventType.OBJECT_REFUSED]
    if session.targets.simulation is not None:
        rejected = [event for event in rejected if not is_missing_dependency(event)]
    located = [redact(locator.locate_event(event)) for event in rejected]
    objects = {(event.cluster, event.ref) for event in located}
    findings = refusal_findings(located, _unserved_reasons(located, session))
    return DryRunResult(tuple(map(_downgrade_forbidden, findings)), len(objects))


def _downgrade_forbidden(finding: Finding) -> Finding:
    """Return a Forbidden finding as a warning: another user may be allowed to roll out."""
    if finding.code != PREFLIGHT_CODES["Forbidden"]:
        return finding
    return msgspec.structs.replace(finding, severity=Severity.WARNING)


def _unserved_reasons(events: list[Event], session: Session) -> dict[Ref, str]:
    catalog = session.evaluator.rules.catalog
    refs = (event.ref for event in events if event.ref is not None and event.reason == NOT_SERVED)
    return {ref: explain_unserved(session.raw_world, ref.kind, catalog) for ref in refs}


def _skipped_finding(error: ClusterError) -> Finding:
    return Finding(
        code="preflight.skipped",
        severity=Severity.WARNING,
        message="preflight checks could not run on the cluster",
        location=error.location,
        reason=error.problem,
        fix="run `sync`; it repeats the checks before its first write",
    )
