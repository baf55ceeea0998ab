"""The live view of a large rollout at real pace: how much of one core it takes.

A thousand objects in ten waves, and ten hooks before each of them. Events come at the times at
which a cluster would tell them; the view draws ten times a second on a terminal of 160 columns.
Figures are CPU time of a process that does nothing else.
"""

from __future__ import annotations

import asyncio
import gc
import io
import time
from collections.abc import Iterator

from tidegate.cli.screen.outputs import LineOutput, LiveOutput
from tidegate.cli.screen.terminal import SafeStream, TerminalCapabilities
from tidegate.model.k8s.objects import Kind, Ref
from tidegate.model.plans.plan import Plan, PlanFragment, PlanItem, PlannedUnit, Step
from tidegate.model.redaction import Redactor
from tidegate.model.rollouts.event import Event, EventType
from tidegate.model.rollouts.rollout_progress import RolloutProgress
from tidegate.model.times import Ms
from tidegate.model.units.unit import UnitId
from tidegate.report.styled_text import UNICODE_SYMBOLS

WAVES, OBJECTS, HOOKS = 10, 100, 10
REASONS = 4
"""How often the reason of a wait changes."""
LASTS = 10.0
"""Seconds of real time that the rollout takes."""
DRAWS = 0.1
SIZE = (160, 50)
UNIT = UnitId.plain("default", "shop")
JOB = Kind("batch", "v1", "Job")
DEPLOYMENT = Kind("apps", "v1", "Deployment")


def a_plan() -> Plan:
    steps: list[Step] = []
    for wave in range(WAVES):
        hooks = [Ref(JOB, "shop", f"hook-{wave}-{number}") for number in range(HOOKS)]
        steps += [_step(wave, [ref], f"hook {number}") for number, ref in enumerate(hooks)]
        refs = [Ref(DEPLOYMENT, "shop", f"some-app-{wave}-{number}") for number in range(OBJECTS)]
        steps.append(_step(wave, refs, ""))
    return Plan.from_fragment(PlanFragment(units=(PlannedUnit(id=UNIT),), steps=tuple(steps)))


def _step(wave: int, refs: list[Ref], stage: str) -> Step:
    items = tuple(PlanItem(ref=ref) for ref in refs)
    name = f"default/shop/{stage or 'sync'}/{wave}"
    return Step(id=name, unit=UNIT, digest="", wave=wave, stage=stage, batches=(items,))


def events_of(plan: Plan) -> list[Event]:
    """The events of the rollout, spread over its time."""
    span = LASTS * 1_000 / len(plan.steps)
    matches = [
        event
        for place, step in enumerate(plan.steps)
        for event in _step_events(step, Ms(round(place * span)), span)
    ]
    return [*matches, Event(Ms(round(LASTS * 1_000)), EventType.ROLLOUT_FINISHED, reason="passed")]


def _step_events(step: Step, at: Ms, span: float) -> Iterator[Event]:
    refs = [item.ref for batch in step.batches for item in batch]
    until = Ms(at + 600_000)
    yield Event(at, EventType.STEP_CHECKING, step.id)
    yield Event(at, EventType.STEP_APPLYING, step.id)
    yield from (Event(at, EventType.OBJECT_WRITTEN, step.id, ref) for ref in refs)
    yield Event(at, EventType.STEP_GATING, step.id)
    for turn in range(REASONS):
        now = Ms(round(at + span * turn / REASONS))
        why = f"Waiting for rollout to finish: {turn} of 9 updated replicas are available..."
        for ref in refs:
            yield Event(now, EventType.GATE_WAITING, step.id, ref, "Unready", why, until)
    end = Ms(round(at + span))
    yield from (Event(end, EventType.OBJECT_READY, step.id, ref) for ref in refs)
    yield Event(end, EventType.GATE_OPENED, step.id)
    yield Event(end, EventType.STEP_PASSED, step.id)


async def _play(form: LiveOutput | LineOutput, plan: Plan, events: list[Event]) -> float:
    """Replay the events at their times; the share of one core that it took."""
    loop = asyncio.get_running_loop()
    discretion = Redactor.from_plan(plan)
    waiting = iter(events)
    coming = next(waiting, None)
    gc.collect()
    begun, spent = loop.time(), time.process_time()
    while coming is not None:
        now = Ms(round((loop.time() - begun) * 1_000))
        while coming is not None and coming.at <= now:
            form.on_event(discretion.redact_event(coming))
            coming = next(waiting, None)
        form.refresh(now)
        await asyncio.sleep(DRAWS)
    return (time.process_time() - spent) / (loop.time() - begun)


def measure() -> dict[str, float]:
    plan = a_plan()
    events = events_of(plan)
    figures: dict[str, float] = {"events": len(events), "steps": len(plan.steps)}
    for name in ("picture", "lines"):
        progress = RolloutProgress(Ms(0))
        progress.add_plan(plan)
        sheet = io.StringIO()
        outlet = SafeStream(sheet)
        ability = TerminalCapabilities(is_interactive=True, has_colors=True)
        form: LiveOutput | LineOutput = (
            LiveOutput(progress, outlet, ability, lambda: SIZE)
            if name == "picture"
            else LineOutput(progress, outlet, UNICODE_SYMBOLS)
        )
        figures[f"{name}, % of one core"] = 100 * asyncio.run(_play(form, plan, events))
        figures[f"{name}, kB written"] = len(sheet.getvalue()) / 1_000
    return figures


if __name__ == "__main__":
    for name, value in measure().items():
        print(f"{name:32} {value:12.2f}")
