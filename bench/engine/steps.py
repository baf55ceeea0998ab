"""What `decide` costs for each step, with few and with many: no world, answers out of thin air."""

from __future__ import annotations

import sys
import time
from collections import deque
from itertools import pairwise
from types import FrameType

from tidegate.engine.decide import decide
from tidegate.engine.messages import (
    Apply,
    Command,
    ComparedObject,
    CompareResult,
    CompareStep,
    HealthChanged,
    Input,
    RolloutStarted,
    StepCompared,
    WriteFinished,
    WrittenObject,
)
from tidegate.engine.state.rollout import Rollout
from tidegate.model.k8s.objects import ClusterRef, Kind, Ref
from tidegate.model.k8s.verdict import Health, Verdict
from tidegate.model.plans.plan import Edge, Plan, PlanFragment, PlanItem, PlannedUnit, Step
from tidegate.model.times import Ms
from tidegate.model.units.unit import UnitId

SIZES = (100, 1_000, 10_000)
STEPS = 20_000
"""Steps that are timed of each size, in as many rollouts as that takes."""
PER_STEP = 3
CONFIG_MAP = Kind("", "v1", "ConfigMap")
WELL = Verdict(Health.HEALTHY)
UNIT = UnitId.plain("bench", "unit")


def a_plan_of(size: int, *, chained: bool) -> Plan:
    """Steps one after another, or all side by side."""
    steps = tuple(_step(number) for number in range(size))
    edges = [Edge(item.id, then.id) for item, then in pairwise(steps)]
    units = (PlannedUnit(id=UNIT),)
    return Plan.from_fragment(
        PlanFragment(units=units, steps=steps, edges=tuple(edges if chained else ()))
    )


def _step(number: int) -> Step:
    names = (f"m{number}-{part}" for part in range(PER_STEP))
    items = tuple(PlanItem(ref=Ref(CONFIG_MAP, "bench", name), digest=name) for name in names)
    return Step(id=f"step-{number}", unit=UNIT, digest=f"{number}", batches=(items,))


def play(plan: Plan) -> float:
    """CPU seconds of one rollout in which everything goes well."""
    steps = {step.id: step for step in plan.steps}
    rollout = Rollout()
    messages: deque[Input] = deque([RolloutStarted(plan)])
    start = time.process_time()
    while messages:
        for command in decide(rollout, messages.popleft(), Ms(0)).commands:
            messages.extend(answers(command, steps))
    spent = time.process_time() - start
    if not rollout.ended or rollout.failed:
        raise RuntimeError("the rollout did not pass")
    return spent


def count_calls(plan: Plan) -> int:
    """Python's own count, which knows no caches and no neighbours."""
    calls = 0

    def count_call(_: FrameType, event: str, __: object) -> None:
        nonlocal calls
        calls += event in {"call", "c_call"}

    sys.setprofile(count_call)
    try:
        play(plan)
    finally:
        sys.setprofile(None)
    return calls


def answers(command: Command, steps: dict[str, Step]) -> list[Input]:
    match command:
        case CompareStep(step=name):
            items = steps[name].batches[0]
            absent = (
                ComparedObject(ClusterRef("", item.ref), CompareResult.ABSENT) for item in items
            )
            return [StepCompared(name, tuple(absent))]
        case Apply(step=name, object_ref=object_ref):
            written = WrittenObject("uid", 1, "1", changed=True)
            return [
                HealthChanged(object_ref, "uid", 1, "1", WELL),
                WriteFinished(name, object_ref, written),
            ]
        case _:
            return []


def measure() -> dict[str, float]:
    """Microseconds for each step of three objects, of the quickest rollout of a size."""
    figures: dict[str, float] = {}
    for shape in ("chain", "row"):
        for size in SIZES:
            plan = a_plan_of(size, chained=shape == "chain")
            best = min(play(plan) for _ in range(max(5, STEPS // size)))
            figures[f"decide, {shape} of {size:,}, us/step"] = best / size * 1e6
            figures[f"decide, {shape} of {size:,}, calls/step"] = count_calls(plan) / size
        few, many = (figures[f"decide, {shape} of {size:,}, us/step"] for size in SIZES[::2])
        figures[f"decide, {shape}, many / few"] = many / few
    return figures
