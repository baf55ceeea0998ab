"""The same engine on a simulated cluster, by one set of rules or by several."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count, product

import msgspec
from msgspec.structs import replace

from tidegate.dialect.units import is_own_kind
from tidegate.errors import TidegateError
from tidegate.flows.aftermath import aftermath_of
from tidegate.flows.approving import approved_by
from tidegate.flows.assuming import open_assuming
from tidegate.flows.committing import committing
from tidegate.flows.custom_kinds import builtin_groups
from tidegate.flows.entering import Found
from tidegate.flows.late_clusters import asks_late
from tidegate.flows.meanwhile import Meanwhile, unbegun
from tidegate.flows.planning import make_plan
from tidegate.flows.pointing import Pointed
from tidegate.flows.releases import has_releases, histories_of, make_releases
from tidegate.flows.rendering import Setting
from tidegate.flows.resyncing import Resyncing
from tidegate.flows.rollout import Rolling, roll_out
from tidegate.flows.session import Session, Target
from tidegate.flows.weakness import weakness_of
from tidegate.flows.wiring import commits_of
from tidegate.health.judge import ARGO
from tidegate.model.absence import Absence
from tidegate.model.drift import Drift
from tidegate.model.event import Event, Result, Told
from tidegate.model.expectation import Expectation
from tidegate.model.finding import Finding
from tidegate.model.ledger import ReleaseHistory
from tidegate.model.moment import Ms
from tidegate.model.objects import Ref
from tidegate.model.plan import Plan, own_items_of
from tidegate.model.resync import Resync
from tidegate.model.semantics import Semantics
from tidegate.model.unit import UnitId
from tidegate.model.uptake import Uptake
from tidegate.report.refusals import faults_of_rollout
from tidegate.report.rollout.course import Course
from tidegate.report.rollout.evidence import Evidence

HOLDER = "simulation"
OWN = "own"
"""Each unit by the rules of its own dialect, where these differ."""


class Simulated(msgspec.Struct, frozen=True, kw_only=True):
    """What happened by one set of rules.

    `expecting`: which end of the range of each duration was played. `absences`: what was leaned on
    and not brought. `evidence`: what is known of what failed.
    `unwaited`: objects that were applied, become ready some time later, and were not waited for.
    `unplayed`: objects that the dialect has a check for, and of which nobody knows what their
    operator writes. `aftermath`: what of last waves, which nobody waits for, did not become well.
    `drifts`: what others did to objects, as the scenario says, and what became of it. `uptakes`:
    what units did with what was committed meanwhile. `resyncs`: what was synced twice. `weakness`:
    what was not known. `releases`: the records of Helm releases. `faulty`: units of which nothing
    was played, as they are at fault.
    """

    name: str
    plan: Plan
    result: Result
    events: tuple[Event, ...]
    notes: tuple[TidegateError, ...] = ()
    findings: tuple[Finding, ...] = ()
    absences: tuple[Absence, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    unwaited: tuple[Ref, ...] = ()
    unplayed: tuple[Ref, ...] = ()
    aftermath: tuple[tuple[Ref, str], ...] = ()
    drifts: tuple[Drift, ...] = ()
    uptakes: tuple[Uptake, ...] = ()
    resyncs: tuple[Resync, ...] = ()
    weakness: tuple[Finding, ...] = ()
    releases: tuple[ReleaseHistory, ...] = ()
    faulty: tuple[UnitId, ...] = ()
    expecting: Expectation = Expectation.LIKELY


class Playing(msgspec.Struct, frozen=True, kw_only=True):
    """How it is played: at most `until` then, in the cluster's own time.

    What units lean on is there already, unless it is `greenfield`. `approved`: units that wait for
    nobody's leave. `expectations`: once for each of them.
    """

    until: Ms
    greenfield: bool = False
    approved: Sequence[str] = ()
    expectations: Sequence[Expectation] = (Expectation.LIKELY,)


class _Listener(msgspec.Struct):
    """Takes down all that is told."""

    course: Course
    hear: Callable[[Event], None] | None = None
    events: list[Event] = msgspec.field(default_factory=list)

    def begin(self, plan: Plan, *, clock: Callable[[], Ms], stop: Callable[[str], None]) -> None:  # noqa: ARG002 - nobody interrupts
        self.course.start = self.course.now = clock()
        self.course.expect(plan)

    def follow(self, plan: Plan) -> None:
        self.course.expect(plan)

    def emit(self, event: Event) -> None:
        self.events.append(event)
        self.course.take(event)
        if self.hear is not None:
            self.hear(event)


async def simulate(
    pointed: Pointed,
    engines: Sequence[Semantics | None],
    target: Target,
    setting: Setting,
    playing: Playing,
) -> list[Simulated]:
    """Each on new clusters that begin alike. Without an engine, each unit by its own rules.

    Entries that are alternatives are played one after another.
    """
    greenfield = playing.greenfield
    setting = replace(setting, stands_in=not greenfield)
    runs: list[Simulated] = []
    entries = [""]
    for entry in entries:  # it grows where several are met that are alternatives
        part, aim, absences = replace(pointed, entry=entry or pointed.entry), target, None
        for rules, expecting in product(engines, playing.expectations):
            aim = _expecting(aim, expecting)
            opened = open_assuming(part, aim, setting, greenfield=greenfield)
            async with opened as (session, found, absent):
                if found.are_alternatives and not entry:
                    entries += [one.entry_name for one in found.families]
                    break
                # What was assumed for the first is there for the next, and not absent any more.
                aim, absences = session.target, absent if absences is None else absences
                run = await _simulate(found, part, rules, session, playing)
                name = f"{run.name} ({entry})" if entry else run.name
                leant = tuple(dict.fromkeys((*absences, *run.absences)))
                runs.append(replace(run, name=name, absences=leant, expecting=expecting))
    return runs


def _expecting(target: Target, expecting: Expectation) -> Target:
    if target.simulation is None:
        return target
    return replace(target, simulation=replace(target.simulation, expecting=expecting))


async def _simulate(
    found: Found, pointed: Pointed, rules: Semantics | None, session: Session, playing: Playing
) -> Simulated:
    until, approved = playing.until, approved_by(playing.approved, found.members)
    planned, start = await make_plan(found.one, session, rules=rules), session.world.now()
    simulation = session.target.simulation
    left_out = {**unbegun(found, planned), **planned.refused}
    releases = await make_releases(planned, session, describes=False)
    rolling = Rolling(
        holder=HOLDER, within=until, approved=approved, left_out=left_out, releases=releases
    )
    syncs = count(1)

    async def sync(part: Plan) -> Result:
        now = session.world.now()
        own = Rolling(
            holder=f"{HOLDER}-{next(syncs)}",
            within=Ms(max(0, start + until - now)),
            releases=behind.releases,
        )
        return (await roll_out(part, session, own, _Listener(Course(now)))).result

    resyncing = Resyncing(sync, lambda: behind.planned.plan, session.world.now)
    listener = _Listener(Course(start), resyncing.hear)
    with committing(session.tree, commits_of(simulation) if simulation else ()) as commits:
        end = Ms(start + until)
        behind = Meanwhile(
            session, pointed, rules, found, planned, commits, sync, end, releases, resyncing
        )
        if commits is not None or asks_late(planned.plan) or has_releases(planned.plan):
            rolling = replace(rolling, read_again=behind.read_again)
        ended = await resyncing.beside(roll_out(planned.plan, session, rolling, listener))
        uptakes = await behind.take_up(listener.events)
    found, planned = behind.found, behind.planned
    drifts, unmet = await behind.drifts(listener.events)
    plan, faults = planned.plan, faults_of_rollout(listener.course, ended.evidence)
    written = {event.ref for event in listener.events if event.told is Told.OBJECT_WRITTEN}
    return Simulated(
        name=_name(plan),
        plan=plan,
        result=ended.result,
        events=tuple(listener.events),
        notes=planned.notes,
        findings=(*found.findings, *planned.findings, *faults, *unmet),
        weakness=weakness_of(found.members, found.findings),
        drifts=drifts,
        uptakes=uptakes,
        resyncs=resyncing.resyncs,
        absences=behind.absences,
        releases=await histories_of(plan, session),
        faulty=tuple(one for one in planned.faults if one not in found.opaque),
        evidence=ended.evidence,
        unwaited=tuple(ref for ref in _unchecked(plan, session) if ref in written),
        unplayed=tuple(ref for ref in _unplayed(plan, session) if ref in written),
        aftermath=await aftermath_of(plan, session, listener.course)
        if ended.result is Result.PASSED
        else (),
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
        for item in own_items_of(step) if unit is not None and not step.last else ():
            row = craft.rules.known.row_of(item.ref.kind)
            if unit is None or row is None or not row.ready_when:
                continue
            body = msgspec.json.decode(item.body)
            if craft.script(unit, body, now) is None and not craft.judge(unit, body, now).checked:
                yield item.ref


def _unplayed(plan: Plan, session: Session) -> Iterator[Ref]:
    """Objects of kinds that Argo CD ships a script for, and that have no row to be played by."""
    craft, now = session.craft, session.world.now()
    units = {unit.id: unit for unit in plan.units if unit.policy.rules == ARGO}
    for step in plan.steps:
        unit = units.get(step.unit)
        for item in own_items_of(step) if unit is not None else ():
            kind = item.ref.kind
            if unit is None or "." not in kind.group or is_own_kind(kind):
                continue
            is_builtin = kind.group in builtin_groups()
            if not is_builtin and craft.rules.known.row_of(kind) is None:
                body = msgspec.json.decode(item.body)
                if craft.judge(unit, body, now).checked:
                    yield item.ref
