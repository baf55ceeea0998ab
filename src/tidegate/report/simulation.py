"""Simulated rollouts side by side: when each step was applied, and when its gate opened."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from tidegate.model.drift import Drift
from tidegate.model.event import Event, Told
from tidegate.model.expectation import Expectation
from tidegate.model.ledger import ReleaseHistory
from tidegate.model.moment import SECOND, Ms
from tidegate.model.objects import Ref
from tidegate.model.plan import Plan
from tidegate.model.resync import Resync
from tidegate.model.unit import UnitId
from tidegate.model.uptake import Uptake
from tidegate.report.plan import step_name
from tidegate.report.rollout.course import Course as Rollout
from tidegate.report.rollout.evidence import Evidence
from tidegate.report.rollout.names import count, fold, listing
from tidegate.report.rollout.reasons import reasons
from tidegate.report.rollout.rows import plain
from tidegate.report.rollout.summary import INVALID, PASSED, STOPPED

NEVER = "-"
MOST_NAMED = 3
DEPLOYED = "deployed"
ENDS = {
    Told.STEP_PASSED: "",
    Told.STEP_FAILED: "failed",
    Told.STEP_SKIPPED: "skipped",
    Told.STEP_SUPERSEDED: "superseded",
}


class EngineRun(msgspec.Struct, frozen=True):
    """What one engine did: its events, what is known of what failed, what it did not wait for.

    `unplayed`: what it has a check for, and nobody knows what the operator writes. `expecting`:
    which end of the range of each duration, where several were played.
    """

    name: str
    plan: Plan
    events: Sequence[Event]
    evidence: Sequence[Evidence] = ()
    unwaited: Sequence[Ref] = ()
    unplayed: Sequence[Ref] = ()
    expecting: Expectation | None = None
    aftermath: Sequence[tuple[Ref, str]] = ()
    """What failed when it had passed, as nobody waited for it; and how."""
    drifts: Sequence[Drift] = ()
    """What others did to objects, and what became of it."""
    uptakes: Sequence[Uptake] = ()
    """What units did with what was committed meanwhile."""
    resyncs: Sequence[Resync] = ()
    """What was synced twice."""
    unknown: str = ""
    """What could not be had of it."""
    releases: Sequence[ReleaseHistory] = ()
    """The revisions of Helm releases."""
    faulty: Sequence[UnitId] = ()
    """Units of which nothing was played, as they are at fault."""


class StepTimes(msgspec.Struct):
    """When one step was applied, and when and how it ended."""

    applied: Ms | None = None
    ended: Ms | None = None
    how: str = ""


def step_times(events: Iterable[Event]) -> dict[str, StepTimes]:
    """The last try of each step; times count from the first event."""
    found: dict[str, StepTimes] = {}
    start: Ms | None = None
    for event in events:
        start = event.at if start is None else start
        times = found.setdefault(event.step, StepTimes()) if event.step else StepTimes()
        at = Ms(event.at - start)
        if event.told is Told.STEP_APPLYING:
            times.applied = at
        elif event.told in ENDS:
            times.ended, times.how = at, ENDS[event.told]
    return found


def side_by_side(runs: Sequence[EngineRun]) -> Iterator[str]:
    """A table with a line for each step and two columns for each engine, and how each ended.

    Engines that order a unit in other steps have a table of their own.
    """
    for alike in _by_steps(runs):
        yield from _table(alike)
        yield ""
    for run in runs:
        yield from ending_lines(run, run.name)


def ending_lines(run: EngineRun, name: str) -> Iterator[str]:
    """How one ended, what was tried again, and why it did not pass."""
    yield f"{name}: {_end(run)}"
    yield from _retries(run)
    yield from _waits(run)
    yield from _released(run)
    yield from _synced_twice(run)
    yield from _taken_up(run)
    yield from _drifted(run)
    yield from _reasons(run)


def _by_steps(runs: Sequence[EngineRun]) -> list[list[EngineRun]]:
    """Runs with the same steps together, in the order in which they came."""
    found: dict[tuple[str, ...], list[EngineRun]] = {}
    for run in runs:
        steps = (step.id for step in run.plan.steps if not step.is_joint)
        found.setdefault(tuple(steps), []).append(run)
    return list(found.values())


def _table(runs: Sequence[EngineRun]) -> Iterator[str]:
    plan = runs[0].plan
    steps = [step for step in plan.steps if not step.is_joint]
    told = [(run.name, step_times(run.events)) for run in runs]
    names = [step_name(step, several=len(plan.units) > 1) for step in steps]
    width = max([len("step"), *map(len, names)])
    head = "  ".join(f"{name + ' applies':>18}  {'opens':>14}" for name, _ in told)
    yield f"{'step':{width}}  {head}".rstrip()
    for name, step in zip(names, steps, strict=True):
        cells = "  ".join(_cell(found.get(step.id, StepTimes())) for _, found in told)
        yield f"{name:{width}}  {cells}".rstrip()


def _cell(times: StepTimes) -> str:
    return f"{seconds(times.applied):>18}  {opening(times):>14}"


def opening(times: StepTimes) -> str:
    """When the gate of a step opened, or what became of it."""
    told = f"{times.how} {seconds(times.ended)}" if times.how == "failed" else times.how
    return told or seconds(times.ended)


def _retries(run: EngineRun) -> Iterator[str]:
    """Which steps were not applied once and for all, and why."""
    start, several = run.events[0].at, len(run.plan.units) > 1
    steps = {step.id: step for step in run.plan.steps}
    tries: dict[str, list[Event]] = {}
    for event in run.events:
        if event.told is Told.RETRY_PLANNED and event.step in steps:
            tries.setdefault(event.step, []).append(event)
    for name, told in tries.items():
        last, times = told[-1], f"{len(told)} times, last " if len(told) > 1 else ""
        at = seconds(Ms((last.until or last.at) - start))
        step = step_name(steps[name], several=several)
        yield f"  {step}: tried again {times}at {at}: {last.sentence}"


def _waits(run: EngineRun) -> Iterator[str]:
    """What it still waits for at its end, and since when; what failed behind its back."""
    if run.events[-1].reason == STOPPED:
        course = course_of(run)
        for event in run.events:
            course.take(event)
        for step in course.active.values():
            for wait in [*step.waits.values()][:MOST_NAMED]:
                since = seconds(Ms(wait.since - course.start))
                yield f"  {course.title(step)} waits for {wait.ref} since {since}: {wait.sentence}"
            if len(step.waits) > MOST_NAMED:
                yield f"  {course.title(step)} waits for {len(step.waits) - MOST_NAMED:,} more"
    for ref, how in run.aftermath:
        yield f"  {run.name} does not wait for its last wave: after that, {ref} failed: {how}"


def drift_since(drift: Drift, start: Ms) -> Drift:
    healed = None if drift.healed is None else Ms(drift.healed - start)
    return msgspec.structs.replace(drift, at=Ms(drift.at - start), healed=healed)


def uptake_since(uptake: Uptake, start: Ms) -> Uptake:
    def since(moment: Ms | None) -> Ms | None:
        return None if moment is None else Ms(moment - start)

    return msgspec.structs.replace(
        uptake,
        committed=Ms(uptake.committed - start),
        seen=Ms(uptake.seen - start),
        began=since(uptake.began),
        ended=since(uptake.ended),
    )


def resync_since(resync: Resync, start: Ms) -> Resync:
    ended = None if resync.ended is None else Ms(resync.ended - start)
    turn, at = Ms(resync.turn - start), Ms(resync.at - start)
    return msgspec.structs.replace(resync, turn=turn, at=at, ended=ended)


def _synced_twice(run: EngineRun) -> Iterator[str]:
    """Whose sync began in the second of its turn, so that another one came behind it."""
    resyncs = [resync_since(each, run.events[0].at) for each in run.resyncs]
    for one in (each for each in resyncs if each.ended is not None):
        how = "passed" if one.passed else "failed"
        yield (
            f"  {one.unit} is synced again at {seconds(one.at)}: its sync began in the very second "
            f"of its turn; {listing(one.hooks, MOST_NAMED)} ran again, {how} at "
            f"{seconds(one.ended or one.at)}"
        )
    if idle := [one.unit for one in resyncs if one.ended is None]:
        named = fold(map(str, idle), len(idle), MOST_NAMED)
        yield f"  synced again, which changes nothing (begun in the second of its turn): {named}"


def _released(run: EngineRun) -> Iterator[str]:
    """Releases of which there is more to tell than that they are deployed."""
    for one in run.releases:
        told = [f"{each.number} {each.status}" for each in one.revisions]
        if told and told != [f"{one.revisions[0].number} {DEPLOYED}"]:
            yield f"  the release {one.namespace}/{one.name} has the revisions {', '.join(told)}"


def _taken_up(run: EngineRun) -> Iterator[str]:
    """When units saw what was committed, and when they were synced to it."""
    for one in (uptake_since(each, run.events[0].at) for each in run.uptakes):
        step = f" (step {one.step})" if one.step else ""
        told = f"{one.unit}{step} sees at {seconds(one.seen)} what came at {seconds(one.committed)}"
        if one.began is None:
            yield f"  {told}, and is not synced: {one.stays}"
            continue
        ended = f"well at {seconds(one.ended)}" if one.ended is not None else one.stays
        yield f"  {told}; synced at {seconds(one.began)}, {ended}"
        if one.ahead:
            named = ", ".join(map(str, one.ahead[:MOST_NAMED]))
            yield f"    it overtakes {named}, of an earlier step and well by the old revision"


def _drifted(run: EngineRun) -> Iterator[str]:
    """What others did to objects, and what became of it."""
    for one in (drift_since(each, run.events[0].at) for each in run.drifts):
        times = f", attempt {one.attempts}" if one.attempts > 1 else ""
        end = f"it stays so: {one.stays}"
        if one.healed is not None:
            end = f"it is as wanted again at {seconds(one.healed)}{times}"
        yield f"  {one.unit} is OutOfSync at {seconds(one.at)}: {one.ref} {one.sentence}; {end}"


def _reasons(run: EngineRun) -> Iterator[str]:
    """Why it did not pass, and what it passed by."""
    course = course_of(run)
    for found in run.evidence if run.events[-1].reason != INVALID else ():
        yield from map(plain, reasons(course, found, brief=True))
    if run.unwaited:
        named = listing(run.unwaited, MOST_NAMED)
        yield f"  {run.name} has no health check for {named}, and does not wait for it"
    for kind in dict.fromkeys(ref.kind.name for ref in run.unplayed):
        yield f"  Argo CD has a health script for {kind}; what its operator writes is not played"


def seconds(moment: Ms | None) -> str:
    return NEVER if moment is None else f"{moment / SECOND:.1f}s"


def course_of(run: EngineRun) -> Rollout:
    """Knows the names of the steps."""
    course = Rollout(run.events[0].at)
    course.expect(run.plan)
    return course


def _end(run: EngineRun) -> str:
    """How it ended, and why if it did not pass."""
    events = run.events
    last, why = events[-1], why_ended(events)
    if last.reason == INVALID:
        return f"nothing was applied: {why}" if why else "nothing was applied"
    bounds = ", as far as it is known" if run.unknown and last.reason == PASSED else ""
    if run.faulty and last.reason == PASSED:
        names = listing(run.faulty, MOST_NAMED)
        bounds = f", without {names}: at fault{bounds}"
    lasted = seconds(Ms(last.at - events[0].at))
    return f"{last.reason} after {lasted}{f': {why}' if why else bounds}"


def why_ended(events: Sequence[Event]) -> str:
    """What failed first, or was refused first; nothing where it passed.

    Where time was up, why the last try did not end well.
    """
    failed = [event.sentence for event in events if event.told is Told.STEP_FAILED]
    if events[-1].reason == INVALID:
        refused = {event.ref for event in events if event.told is Told.OBJECT_REFUSED}
        return f"the cluster would refuse {count(len(refused), 'object')}"
    if events[-1].reason == "stopped" and not failed:
        again = [event.sentence for event in events if event.told is Told.RETRY_PLANNED]
        failed = [f"it still tries: {one}" for one in again[-1:]]
    return failed[0] if failed else ""
