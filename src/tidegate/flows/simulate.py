"""The same engine on a simulated cluster, by one set of rules or by several."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import msgspec

from tidegate.dialect.semantics import run_by
from tidegate.errors import TidegateError
from tidegate.flows.planning import make_plan
from tidegate.flows.rendering import Setting
from tidegate.flows.rollout import Rolling, roll_out
from tidegate.flows.session import Session, Target, open_session
from tidegate.model.event import Event, Result, Told
from tidegate.model.moment import Ms
from tidegate.model.objects import Ref
from tidegate.model.plan import Plan, items_of
from tidegate.model.semantics import Semantics
from tidegate.model.unit import Unit
from tidegate.report.rollout.course import Course
from tidegate.report.rollout.evidence import Evidence

HOLDER = "simulation"


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """What happened by one set of rules.

    `evidence`: what is known of what failed. `unwaited`: objects that were applied, become ready
    some time later, and were not waited for.
    """

    semantics: Semantics
    plan: Plan
    result: Result
    events: tuple[Event, ...]
    notes: tuple[TidegateError, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    unwaited: tuple[Ref, ...] = ()


@dataclass(slots=True)
class _Listener:
    """Takes down all that is told."""

    course: Course
    events: list[Event] = field(default_factory=list)

    def begin(self, plan: Plan, *, clock: Callable[[], Ms], stop: Callable[[str], None]) -> None:  # noqa: ARG002 - nobody interrupts
        self.course.start = self.course.now = clock()
        self.course.expect(plan)

    def emit(self, event: Event) -> None:
        self.events.append(event)
        self.course.take(event)


async def simulate(
    units: Sequence[Unit],
    engines: Iterable[Semantics],
    target: Target,
    setting: Setting,
    *,
    until: Ms,
) -> list[Simulated]:
    """Each on new clusters that begin alike."""
    found = []
    for rules in engines:
        async with open_session(target, setting) as session:
            ruled = [_ruled(unit, rules) for unit in units]
            found.append(await _simulate(ruled, rules, session, until=until))
    return found


def _ruled(unit: Unit, rules: Semantics) -> Unit:
    return msgspec.structs.replace(unit, policy=run_by(unit.policy, rules))


async def _simulate(
    units: Sequence[Unit], rules: Semantics, session: Session, *, until: Ms
) -> Simulated:
    planned = await make_plan(units, session)
    plan, listener = planned.plan, _Listener(Course(session.world.now()))
    ended = await roll_out(plan, session, Rolling(holder=HOLDER, within=until), listener)
    written = {event.ref for event in listener.events if event.told is Told.OBJECT_WRITTEN}
    return Simulated(
        semantics=rules,
        plan=plan,
        result=ended.result,
        events=tuple(listener.events),
        notes=planned.notes,
        evidence=ended.evidence,
        unwaited=tuple(ref for ref in _unchecked(plan, session) if ref in written),
    )


def _unchecked(plan: Plan, session: Session) -> Iterator[Ref]:
    """Objects of operators that their unit has no check for, where something comes behind."""
    craft, now = session.craft, session.world.now()
    units = {unit.id: unit for unit in plan.units if not unit.policy.semantics.falls_back}
    for step in plan.steps:
        unit = units.get(step.unit)
        for item in items_of(step) if unit is not None and not step.last else ():
            row = craft.rules.known.row_of(item.ref.kind)
            if unit is None or row is None or not row.ready_when:
                continue
            body = msgspec.json.decode(item.body)
            if craft.script(unit, body, now) is None and not craft.judge(unit, body, now).checked:
                yield item.ref
