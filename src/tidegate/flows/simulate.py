"""The same engine on a simulated cluster, by one set of rules or by several."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import msgspec

from tidegate.errors import TidegateError
from tidegate.flows.approving import approved_by
from tidegate.flows.entering import Found, open_found
from tidegate.flows.planning import make_plan
from tidegate.flows.pointing import Pointed
from tidegate.flows.rendering import Setting
from tidegate.flows.rollout import Rolling, roll_out
from tidegate.flows.session import Session, Target
from tidegate.model.event import Event, Result, Told
from tidegate.model.finding import Finding
from tidegate.model.moment import Ms
from tidegate.model.objects import Ref
from tidegate.model.plan import Plan, items_of
from tidegate.model.semantics import Semantics
from tidegate.model.unit import UnitId
from tidegate.report.rollout.course import Course
from tidegate.report.rollout.evidence import Evidence

HOLDER = "simulation"
OWN = "own"
"""Each unit by the rules of its own dialect, where these differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """What happened by one set of rules.

    `evidence`: what is known of what failed. `unwaited`: objects that were applied, become ready
    some time later, and were not waited for.
    """

    name: str
    plan: Plan
    result: Result
    events: tuple[Event, ...]
    notes: tuple[TidegateError, ...] = ()
    findings: tuple[Finding, ...] = ()
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
    pointed: Pointed,
    engines: Sequence[Semantics | None],
    target: Target,
    setting: Setting,
    *,
    until: Ms,
    approved: Sequence[str] = (),
) -> list[Simulated]:
    """Each on new clusters that begin alike. Without an engine, each unit by its own rules.

    Entries that are alternatives are played one after another. `approved`: units that wait for
    nobody's leave.
    """
    async with open_found(pointed, target, setting) as (_, whole):
        entries = [one.entry_name for one in whole.families] if whole.are_alternatives else [""]
    runs = []
    for entry in entries:
        part = replace(pointed, entry=entry or pointed.entry)
        for rules in engines:
            async with open_found(part, target, setting) as (session, found):
                leave = approved_by(approved, found.members)
                run = await _simulate(found, rules, session, until=until, approved=leave)
                runs.append(replace(run, name=f"{run.name} ({entry})" if entry else run.name))
    return runs


async def _simulate(
    found: Found,
    rules: Semantics | None,
    session: Session,
    *,
    until: Ms,
    approved: frozenset[UnitId],
) -> Simulated:
    planned = await make_plan(found.one, session, rules=rules)
    plan, listener = planned.plan, _Listener(Course(session.world.now()))
    rolling = Rolling(holder=HOLDER, within=until, approved=approved, left_out=planned.refused)
    ended = await roll_out(plan, session, rolling, listener)
    written = {event.ref for event in listener.events if event.told is Told.OBJECT_WRITTEN}
    return Simulated(
        name=_name(plan),
        plan=plan,
        result=ended.result,
        events=tuple(listener.events),
        notes=planned.notes,
        findings=(*found.findings, *planned.findings),
        evidence=ended.evidence,
        unwaited=tuple(ref for ref in _unchecked(plan, session) if ref in written),
    )


def _name(plan: Plan) -> str:
    """Whose rules were played."""
    names = {unit.policy.semantics.name for unit in plan.units}
    return names.pop() if len(names) == 1 else OWN


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
