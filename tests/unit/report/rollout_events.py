"""Events in a few words: a clock that moves, and a step with its objects."""

from __future__ import annotations

from tidegate.model.k8s.objects import Kind, Ref
from tidegate.model.plans.plan import Plan, PlanFragment, PlanItem, PlannedUnit, Step
from tidegate.model.rollouts.event import Event, EventType
from tidegate.model.rollouts.rollout_progress import RolloutProgress
from tidegate.model.times import Ms
from tidegate.model.units.unit import UnitId

DEPLOYMENT = Kind("apps", "v1", "Deployment")
SHOP = UnitId.plain("default", "shop")


def a_ref(name: str, kind: Kind = DEPLOYMENT) -> Ref:
    return Ref(kind, "default", name)


def a_step(name: str, *refs: Ref, unit: str = "shop", rescues: bool = False) -> Step:
    phase, _, wave = name.partition(" ")
    place = phase if rescues else "sync"
    whole = UnitId.plain("default", unit)
    number = int(wave or "0")
    items = tuple(PlanItem(ref=ref) for ref in refs)
    return Step(
        id=f"{whole}/{place}/{number}",
        unit=whole,
        digest="",
        phase=place,
        wave=number,
        batches=(items,),
        only_on_failure=rescues,
    )


def plan_of(*steps: Step) -> Plan:
    units = tuple(PlannedUnit(id=name) for name in dict.fromkeys(step.unit for step in steps))
    return Plan.from_fragment(PlanFragment(units=units, steps=steps))


def course_of(*steps: Step) -> RolloutProgress:
    progress = RolloutProgress(Ms(0))
    progress.add_plan(plan_of(*steps))
    return progress


def applied(step: Step, at: int, result: EventType = EventType.OBJECT_WRITTEN) -> list[Event]:
    """All of a step's objects are written, and its gate begins."""
    refs = [item.ref for batch in step.batches for item in batch]
    return [
        Event(Ms(at), EventType.STEP_CHECKING, step.id),
        Event(Ms(at), EventType.STEP_APPLYING, step.id),
        *(Event(Ms(at), result, step.id, ref) for ref in refs),
        Event(Ms(at), EventType.STEP_GATING, step.id),
    ]


def waits(step: Step, at: int, ref: Ref, message: str, until: int = 600_000) -> Event:
    return Event(Ms(at), EventType.GATE_WAITING, step.id, ref, "Unready", message, Ms(until))


def ready(step: Step, at: int, ref: Ref) -> Event:
    return Event(Ms(at), EventType.OBJECT_READY, step.id, ref)


def passed(step: Step, at: int) -> list[Event]:
    return [
        Event(Ms(at), EventType.GATE_OPENED, step.id),
        Event(Ms(at), EventType.STEP_PASSED, step.id),
    ]


def failed(step: Step, at: int, message: str, ref: Ref | None = None) -> Event:
    type_ = EventType.STEP_FAILED
    return Event(Ms(at), type_, step.id, None, "Failed", message, failed_object=ref)


def ended(at: int, reason: str = "passed", message: str = "") -> Event:
    return Event(Ms(at), EventType.ROLLOUT_FINISHED, reason=reason, message=message)
