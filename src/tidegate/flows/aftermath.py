"""What becomes of the last waves that an engine does not wait for."""

from __future__ import annotations

import msgspec

from tidegate.flows.evidence import Background, collect_evidence
from tidegate.flows.session import Session
from tidegate.model.moment import MINUTE, Ms
from tidegate.model.objects import Kind, Ref, Spot
from tidegate.model.plan import Plan, PlannedUnit, items_of
from tidegate.model.verdict import Health, Verdict
from tidegate.report.rollout.course import Course
from tidegate.report.rollout.discretion import Discretion
from tidegate.report.rollout.reasons import WHY, grounds
from tidegate.world.ask import ask
from tidegate.world.calls import Get
from tidegate.world.facts import Done

JOB = Kind("batch", "v1", "Job")
LASTING = frozenset(
    {JOB, *(Kind("apps", "v1", name) for name in ("Deployment", "StatefulSet", "DaemonSet"))}
)
AFTERWARDS = (Ms(MINUTE), Ms(10 * MINUTE))
"""How long it is looked what becomes of what nobody waits for: most of it is well soon."""
AT_REST = frozenset({Health.HEALTHY, Health.SUSPENDED})


async def aftermath_of(plan: Plan, session: Session, course: Course) -> tuple[tuple[Ref, str], ...]:
    """What becomes of Jobs and workloads in last waves that their engine does not wait for."""
    units = {unit.id: unit for unit in plan.units if not unit.policy.semantics.gates_last}
    left = {
        Spot(step.cluster, item.ref): units[step.unit]
        for step in plan.steps
        if step.last and step.unit in units
        for item in items_of(step)
        if item.ref.kind in LASTING and item.hook is None
    }
    found: dict[Spot, Verdict] = {}
    for pause in AFTERWARDS if left else ():
        await session.world.party().wait(Ms(session.world.now() + pause))
        found = {spot: await _judged(spot, unit, session) for spot, unit in left.items()}
        left = {spot: unit for spot, unit in left.items() if found[spot].health not in AT_REST}
        if not left:
            break
    unwell = {
        spot: verdict.sentence
        for spot, verdict in found.items()
        if verdict.health is Health.DEGRADED
        or (verdict.health is Health.PROGRESSING and spot.ref.kind != JOB)
    }
    background = Background(
        plan=plan,
        catalogue=session.craft.rules.known,
        discretion=Discretion.of(plan),
        behind=session.behind,
    )
    known = await collect_evidence(session.world, unwell, background)
    whys = (grounds(course, one, brief=True).get(WHY, [])[:1] for one in known)
    told = zip(unwell.items(), whys, strict=True)
    return tuple((spot.ref, ": ".join((how, *why))) for (spot, how), why in told)


async def _judged(spot: Spot, unit: PlannedUnit, session: Session) -> Verdict:
    """How an object is now; one that is gone is at rest."""
    (outcome,) = await ask(session.world, Get(spot.ref), cluster=spot.cluster)
    if not isinstance(outcome, Done) or outcome.live is None:
        return Verdict(Health.HEALTHY)
    body = msgspec.json.decode(outcome.live.body)
    return session.craft.judge(unit, body, session.world.now())
