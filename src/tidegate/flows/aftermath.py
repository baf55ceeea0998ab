"""Health of the last waves that an engine does not wait for."""

from __future__ import annotations

import msgspec

from tidegate.flows.evidence import DiagnosisContext, collect_evidence
from tidegate.flows.session import Session
from tidegate.model.moment import MINUTE, Ms
from tidegate.model.objects import ClusterRef, Kind, Ref
from tidegate.model.plan import Plan, PlannedUnit, step_items
from tidegate.model.verdict import Health, Verdict
from tidegate.report.rollout.course import RolloutProgress
from tidegate.report.rollout.discretion import Redactor
from tidegate.report.rollout.reasons import WHY, explain_evidence
from tidegate.world.ask import send_requests
from tidegate.world.calls import Get
from tidegate.world.facts import Success

JOB = Kind("batch", "v1", "Job")
WORKLOAD_KINDS = frozenset(
    {JOB, *(Kind("apps", "v1", name) for name in ("Deployment", "StatefulSet", "DaemonSet"))}
)
OBSERVATION_DELAYS = (Ms(MINUTE), Ms(10 * MINUTE))
"""Delays after which the health is read again: most objects become healthy soon."""
SETTLED = frozenset({Health.HEALTHY, Health.SUSPENDED})


async def find_unhealthy_afterwards(
    plan: Plan, session: Session, progress: RolloutProgress
) -> tuple[tuple[Ref, str], ...]:
    """Return Jobs and workloads in last waves that do not become healthy, with the cause.

    Only units whose engine does not wait for the last wave are observed.
    """
    units = {unit.id: unit for unit in plan.units if not unit.policy.semantics.gates_last}
    pending = {
        ClusterRef(step.cluster, item.ref): units[step.unit]
        for step in plan.steps
        if step.last and step.unit in units
        for item in step_items(step)
        if item.ref.kind in WORKLOAD_KINDS and item.hook is None
    }
    verdicts: dict[ClusterRef, Verdict] = {}
    for delay in OBSERVATION_DELAYS if pending else ():
        await session.world.client().wait(Ms(session.world.now() + delay))
        verdicts = {
            cluster_ref: await _current_verdict(cluster_ref, unit, session)
            for cluster_ref, unit in pending.items()
        }
        pending = {
            cluster_ref: unit
            for cluster_ref, unit in pending.items()
            if verdicts[cluster_ref].health not in SETTLED
        }
        if not pending:
            break
    unhealthy = {
        cluster_ref: verdict.message
        for cluster_ref, verdict in verdicts.items()
        if verdict.health is Health.DEGRADED
        or (verdict.health is Health.PROGRESSING and cluster_ref.ref.kind != JOB)
    }
    context = DiagnosisContext(
        plan=plan,
        catalogue=session.evaluator.rules.known,
        redactor=Redactor.from_plan(plan),
        raw_world=session.raw_world,
    )
    evidence = await collect_evidence(session.world, unhealthy, context)
    causes = (
        explain_evidence(progress, item_evidence, brief=True).get(WHY, [])[:1]
        for item_evidence in evidence
    )
    explained = zip(unhealthy.items(), causes, strict=True)
    return tuple(
        (cluster_ref.ref, ": ".join((message, *cause)))
        for (cluster_ref, message), cause in explained
    )


async def _current_verdict(cluster_ref: ClusterRef, unit: PlannedUnit, session: Session) -> Verdict:
    """Return the current verdict of an object; a deleted object counts as healthy."""
    (outcome,) = await send_requests(
        session.world, Get(cluster_ref.ref), cluster=cluster_ref.cluster
    )
    if not isinstance(outcome, Success) or outcome.live is None:
        return Verdict(Health.HEALTHY)
    body = msgspec.json.decode(outcome.live.body)
    return session.evaluator.evaluate_health(unit, body, session.world.now())
