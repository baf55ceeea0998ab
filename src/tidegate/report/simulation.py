"""Simulated rollouts compared: times of steps and outcomes, as text and as JSON documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

import msgspec

from tidegate.model.display import count_noun, join_limited
from tidegate.model.k8s.objects import Ref
from tidegate.model.plans.drift import Drift
from tidegate.model.plans.plan import Plan, managed_items
from tidegate.model.rollouts.documents import JsonDocument, ObjectIdentity, struct_document
from tidegate.model.rollouts.event import Event, EventType, RolloutOutcome
from tidegate.model.rollouts.evidence import Evidence
from tidegate.model.rollouts.rollout_progress import RolloutProgress
from tidegate.model.simulation.double_sync import Resync
from tidegate.model.simulation.duration_estimate import DurationEstimate
from tidegate.model.simulation.revision_sync import RevisionSync
from tidegate.model.simulation.verdict import LeftOut, SimulationVerdict
from tidegate.model.times import SECOND, Ms
from tidegate.model.units.release_history import ReleaseHistory
from tidegate.model.views.unit_states import UnitState
from tidegate.report.plan import step_title
from tidegate.report.rollout.explain import FailureDocument, evidence_rows, failure_documents
from tidegate.report.rollout.summary import INVALID, PASSED, STOPPED
from tidegate.report.styled_text import plain_text
from tidegate.report.unit_states import UnitStateDocument, unit_state_lines

NO_TIME = "-"
MAX_NAMED = 3
DEPLOYED = "deployed"
STEP_RESULTS = {
    EventType.STEP_PASSED: "",
    EventType.STEP_FAILED: "failed",
    EventType.STEP_SKIPPED: "skipped",
    EventType.STEP_SUPERSEDED: "superseded",
}


class EngineRun(msgspec.Struct, frozen=True):
    """Simulated rollout with the semantics of one engine."""

    name: str
    plan: Plan
    events: Sequence[Event]
    evidence: Sequence[Evidence] = ()
    without_health_check: Sequence[Ref] = ()
    """Objects without a health check; the engine does not wait for them."""
    not_simulated: Sequence[Ref] = ()
    """Objects with a health check whose status is not simulated."""
    durations: DurationEstimate | None = None
    """Which end of each duration range was used, where several were simulated."""
    failures_after_end: Sequence[tuple[Ref, str]] = ()
    """Objects that failed after the engine had finished, and how."""
    drifts: Sequence[Drift] = ()
    """Changes by other clients, and how the engine reacted."""
    revision_syncs: Sequence[RevisionSync] = ()
    """How units synced to revisions that were committed during the rollout."""
    double_syncs: Sequence[Resync] = ()
    """Applications that were synced at least twice."""
    incomplete_message: str = ""
    """What could not be fetched."""
    releases: Sequence[ReleaseHistory] = ()
    """Revisions of Helm releases."""
    verdict: SimulationVerdict = SimulationVerdict.PASSED
    left_out: Sequence[LeftOut] = ()
    """Units that were not rolled out, by reason."""
    unit_states: Sequence[UnitState] = ()
    """State of each unit at the end, as its engine shows it."""
    later_events: Sequence[Event] = ()
    """Events of the syncs after the rollout."""


class StepTimes(msgspec.Struct):
    """When a step was applied, and when and how it ended."""

    applied_at: Ms | None = None
    ended_at: Ms | None = None
    result: str = ""


def step_times(events: Iterable[Event]) -> dict[str, StepTimes]:
    """Return the times of the last attempt of each step, counted from the first event."""
    times_by_step: dict[str, StepTimes] = {}
    start: Ms | None = None
    for event in events:
        start = event.at if start is None else start
        times = times_by_step.setdefault(event.step, StepTimes()) if event.step else StepTimes()
        at = Ms(event.at - start)
        if event.type is EventType.STEP_APPLYING:
            times.applied_at = at
        elif event.type in STEP_RESULTS:
            times.ended_at, times.result = at, STEP_RESULTS[event.type]
    return times_by_step


def comparison_lines(runs: Sequence[EngineRun]) -> Iterator[str]:
    """Yield a table with a line per step and two columns per engine, then each outcome.

    Engines that order a unit in other steps get a table of their own.
    """
    for group in _group_by_steps(runs):
        yield from _comparison_table(group)
        yield ""
    for run in runs:
        yield from result_lines(run, run.name)


def result_lines(run: EngineRun, name: str) -> Iterator[str]:
    """Yield the outcome of a run, its retries, and why it did not pass."""
    yield f"{name}: {_outcome_text(run)}"
    yield from _retry_lines(run)
    yield from _wait_lines(run)
    yield from _release_lines(run)
    yield from _double_sync_lines(run)
    yield from _revision_sync_lines(run)
    yield from _drift_lines(run)
    yield from _reason_lines(run)
    yield from unit_state_lines(run.unit_states)


def _group_by_steps(runs: Sequence[EngineRun]) -> list[list[EngineRun]]:
    """Return the runs grouped by equal steps, in order."""
    groups: dict[tuple[str, ...], list[EngineRun]] = {}
    for run in runs:
        steps = (step.id for step in run.plan.steps if not step.is_placeholder)
        groups.setdefault(tuple(steps), []).append(run)
    return list(groups.values())


def _comparison_table(runs: Sequence[EngineRun]) -> Iterator[str]:
    plan = runs[0].plan
    steps = [step for step in plan.steps if not step.is_placeholder]
    times_by_run = [(run.name, step_times(run.events)) for run in runs]
    names = [step_title(step, with_unit=len(plan.units) > 1) for step in steps]
    width = max([len("step"), *map(len, names)])
    header = "  ".join(f"{name + ' applies':>18}  {'opens':>14}" for name, _ in times_by_run)
    yield f"{'step':{width}}  {header}".rstrip()
    for name, step in zip(names, steps, strict=True):
        cells = "  ".join(
            _time_cells(step_times_by_id.get(step.id, StepTimes()))
            for _, step_times_by_id in times_by_run
        )
        yield f"{name:{width}}  {cells}".rstrip()


def _time_cells(times: StepTimes) -> str:
    return f"{format_time(times.applied_at):>18}  {gate_time(times):>14}"


def gate_time(times: StepTimes) -> str:
    """Return when the gate of a step opened, or how the step ended."""
    result = (
        f"{times.result} {format_time(times.ended_at)}"
        if times.result == "failed"
        else times.result
    )
    return result or format_time(times.ended_at)


def _retry_lines(run: EngineRun) -> Iterator[str]:
    """Yield the steps that were retried, and why."""
    start, with_unit = run.events[0].at, len(run.plan.units) > 1
    steps = {step.id: step for step in run.plan.steps}
    retries_by_step: dict[str, list[Event]] = {}
    for event in run.events:
        if event.type is EventType.RETRY_SCHEDULED and event.step in steps:
            retries_by_step.setdefault(event.step, []).append(event)
    for name, retries in retries_by_step.items():
        last = retries[-1]
        repeat_text = f"{len(retries)} times, last at " if len(retries) > 1 else "at "
        at = format_time(Ms((last.until or last.at) - start))
        step = step_title(steps[name], with_unit=with_unit)
        yield f"  {step}: retried {repeat_text}{at}: {last.message}"


def _wait_lines(run: EngineRun) -> Iterator[str]:
    """Yield what a stopped run still waits for, and objects that failed after the run."""
    if run.events[-1].reason == STOPPED:
        progress = progress_for_run(run)
        for event in run.events:
            progress.add_event(event)
        for step in progress.active.values():
            for wait in [*step.waits.values()][:MAX_NAMED]:
                since = format_time(Ms(wait.since - progress.start))
                yield (
                    f"  {progress.step_title(step)} has been waiting for {wait.ref} since {since}:"
                    f" {wait.message}"
                )
            if len(step.waits) > MAX_NAMED:
                remaining = len(step.waits) - MAX_NAMED
                yield f"  {progress.step_title(step)} is waiting for {remaining:,} more"
    for ref, failure in run.failures_after_end:
        yield f"  {run.name} does not wait for the last wave; {ref} failed later: {failure}"


def drift_from_start(drift: Drift, start: Ms) -> Drift:
    healed_at = None if drift.healed_at is None else Ms(drift.healed_at - start)
    return msgspec.structs.replace(
        drift, detected_at=Ms(drift.detected_at - start), healed_at=healed_at
    )


def revision_sync_from_start(revision_sync: RevisionSync, start: Ms) -> RevisionSync:
    def since(time: Ms | None) -> Ms | None:
        return None if time is None else Ms(time - start)

    return msgspec.structs.replace(
        revision_sync,
        committed_at=Ms(revision_sync.committed_at - start),
        detected_at=Ms(revision_sync.detected_at - start),
        started_at=since(revision_sync.started_at),
        finished_at=since(revision_sync.finished_at),
    )


def double_sync_from_start(double_sync: Resync, start: Ms) -> Resync:
    ended_at = None if double_sync.finished_at is None else Ms(double_sync.finished_at - start)
    turn_at, at = Ms(double_sync.rollout_at - start), Ms(double_sync.at - start)
    return msgspec.structs.replace(double_sync, rollout_at=turn_at, at=at, finished_at=ended_at)


def _double_sync_lines(run: EngineRun) -> Iterator[str]:
    """Yield the Applications that were synced twice, because the first sync began too early."""
    double_syncs = [double_sync_from_start(resync, run.events[0].at) for resync in run.double_syncs]
    for double_sync in (resync for resync in double_syncs if resync.finished_at is not None):
        result = "passed" if double_sync.passed else "failed"
        yield (
            f"  {double_sync.unit} is synced again at {format_time(double_sync.at)}: its first"
            " sync started in the same second as its step;"
            f" {join_limited(double_sync.hooks, MAX_NAMED)} ran again,"
            f" {result} at {format_time(double_sync.finished_at or double_sync.at)}"
        )
    if unchanged := [
        double_sync.unit for double_sync in double_syncs if double_sync.finished_at is None
    ]:
        names = join_limited(unchanged, MAX_NAMED)
        reason = "the first sync started in the same second as its step"
        yield f"  synced at least twice without changes ({reason}): {names}"


def _release_lines(run: EngineRun) -> Iterator[str]:
    """Yield the releases that have more than one deployed revision."""
    for release in run.releases:
        revisions = [f"{revision.number} {revision.status}" for revision in release.revisions]
        if revisions and revisions != [f"{release.revisions[0].number} {DEPLOYED}"]:
            yield (
                f"  release {release.namespace}/{release.name} has revisions {', '.join(revisions)}"
            )


def _revision_sync_lines(run: EngineRun) -> Iterator[str]:
    """Yield when units noticed a new revision and when they synced to it."""
    for revision_sync in (
        revision_sync_from_start(item, run.events[0].at) for item in run.revision_syncs
    ):
        step = f" (step {revision_sync.step})" if revision_sync.step else ""
        committed = format_time(revision_sync.committed_at)
        detected = format_time(revision_sync.detected_at)
        summary = f"{revision_sync.unit}{step} detects the commit of {committed} at {detected}"
        if revision_sync.started_at is None:
            yield f"  {summary} and is not synced: {revision_sync.not_synced_reason}"
            continue
        result = (
            f"healthy at {format_time(revision_sync.finished_at)}"
            if revision_sync.finished_at is not None
            else revision_sync.not_synced_reason
        )
        yield f"  {summary}; synced at {format_time(revision_sync.started_at)}, {result}"
        if revision_sync.outdated_predecessors:
            names = ", ".join(map(str, revision_sync.outdated_predecessors[:MAX_NAMED]))
            yield f"    it starts before {names} of an earlier step, healthy at the old revision"


def _drift_lines(run: EngineRun) -> Iterator[str]:
    """Yield the changes by other clients, and how the engine reacted."""
    for drift in (drift_from_start(item, run.events[0].at) for item in run.drifts):
        attempt_text = f", attempt {drift.attempts}" if drift.attempts > 1 else ""
        result = f"not corrected: {drift.not_healed_reason}"
        if drift.healed_at is not None:
            result = f"in sync again at {format_time(drift.healed_at)}{attempt_text}"
        yield (
            f"  {drift.unit} is OutOfSync at {format_time(drift.detected_at)}: {drift.ref}"
            f" {drift.message}; {result}"
        )


def _reason_lines(run: EngineRun) -> Iterator[str]:
    """Yield why a run did not pass, and what it did not check."""
    progress = progress_for_run(run)
    for evidence in run.evidence if run.events[-1].reason != INVALID else ():
        yield from map(plain_text, evidence_rows(progress, evidence, brief=True))
    if run.without_health_check:
        names = join_limited(run.without_health_check, MAX_NAMED)
        yield f"  {run.name} has no health check for {names} and does not wait for it"
    for kind in dict.fromkeys(ref.kind.name for ref in run.not_simulated):
        yield f"  Argo CD has a health script for {kind}; its status is not simulated"


def format_time(time: Ms | None) -> str:
    return NO_TIME if time is None else f"{time / SECOND:.1f}s"


def progress_for_run(run: EngineRun) -> RolloutProgress:
    """Return a progress that knows the steps of a run."""
    progress = RolloutProgress(run.events[0].at)
    progress.add_plan(run.plan)
    return progress


def _outcome_text(run: EngineRun) -> str:
    """Return the outcome of a run, and why it did not pass."""
    events = run.events
    last, reason = events[-1], failure_message(events)
    if last.reason == INVALID:
        return f"nothing was applied: {reason}" if reason else "nothing was applied"
    duration = format_time(Ms(last.at - events[0].at))
    if last.reason == PASSED:
        return _passed_text(run, duration)
    outcome = "timed out" if last.reason == RolloutOutcome.TIMED_OUT else last.reason
    return f"{outcome} after {duration}{f': {reason}' if reason else ''}"


def _passed_text(run: EngineRun, duration: str) -> str:
    """Return the verdict on a run that the engine counts as passed."""
    match run.verdict:
        case SimulationVerdict.DEGRADED:
            count = count_noun(len(run.failures_after_end), "object")
            return f"the engine passed after {duration}, but {count} did not become healthy"
        case SimulationVerdict.INCOMPLETE:
            facts = [*map(_left_out_text, run.left_out)]
            if run.incomplete_message and not facts:
                facts = [run.incomplete_message.removeprefix("the result is incomplete: ")]
            if not any(managed_items(step) for step in run.plan.steps):
                return f"incomplete: nothing to apply{''.join(f'; {fact}' for fact in facts)}"
            return f"incomplete: the rest passed after {duration}; {'; '.join(facts)}"
        case _:
            return f"passed after {duration}{' (incomplete)' if run.incomplete_message else ''}"


def _left_out_text(left_out: LeftOut) -> str:
    count = count_noun(len(left_out.units), "unit")
    return f"{count} {left_out.reason}: {join_limited(left_out.units, MAX_NAMED)}"


def failure_message(events: Sequence[Event]) -> str:
    """Return the first failure or the number of refused objects; empty if the run passed.

    After a timeout, this is the failure of the last attempt.
    """
    messages = [event.message for event in events if event.type is EventType.STEP_FAILED]
    if events[-1].reason == INVALID:
        refused = {event.ref for event in events if event.type is EventType.OBJECT_REFUSED}
        return f"the cluster would reject {count_noun(len(refused), 'object')}"
    if events[-1].reason == "stopped" and not messages:
        retry_messages = [
            event.message for event in events if event.type is EventType.RETRY_SCHEDULED
        ]
        messages = [f"still retrying: {message}" for message in retry_messages[-1:]]
    return messages[0] if messages else ""


class EngineResultDocument(
    msgspec.Struct,
    frozen=True,
    omit_defaults=True,
    tag_field="event",
    tag="engine.finished",
    rename="camel",
):
    """Last JSON line of a simulated run with its outcome. Times count from the start."""

    engine: str
    outcome: str
    duration: Ms
    """Duration in milliseconds."""
    duration_estimate: DurationEstimate | None = None
    message: str = ""
    failures: tuple[FailureDocument, ...] = ()
    not_awaited: tuple[ObjectIdentity, ...] = ()
    """Objects without a health check."""
    not_simulated: tuple[ObjectIdentity, ...] = ()
    """Objects with a health check whose status is not simulated."""
    failed_afterwards: tuple[FailureDocument, ...] = ()
    """Objects that failed after the engine had finished."""
    drifts: tuple[JsonDocument, ...] = ()
    """Changes by other clients."""
    revision_syncs: tuple[JsonDocument, ...] = ()
    """How units synced to revisions that were committed during the rollout."""
    double_syncs: tuple[JsonDocument, ...] = ()
    """Applications that were synced at least twice."""
    incomplete: str = ""
    """What could not be fetched; the result is incomplete."""
    releases: tuple[ReleaseHistory, ...] = ()
    """Revisions of Helm releases."""
    skipped_units: tuple[str, ...] = ()
    """Units that were not rolled out."""
    verdict: str = ""
    """The outcome, and how much it rests on."""
    units: tuple[UnitStateDocument, ...] = ()
    """State of each unit at the end, as its engine shows it."""


def engine_result_document(run: EngineRun) -> EngineResultDocument:
    """Return the JSON document of a simulated run."""
    progress = progress_for_run(run)
    first, last = run.events[0], run.events[-1]
    return EngineResultDocument(
        engine=run.name,
        outcome=last.reason,
        duration=Ms(last.at - first.at),
        duration_estimate=run.durations,
        message=failure_message(run.events),
        failures=failure_documents(progress, run.evidence),
        not_awaited=tuple(map(ObjectIdentity.from_ref, run.without_health_check)),
        not_simulated=tuple(map(ObjectIdentity.from_ref, run.not_simulated)),
        failed_afterwards=tuple(
            FailureDocument(**msgspec.structs.asdict(ObjectIdentity.from_ref(ref)), why=(failure,))
            for ref, failure in run.failures_after_end
        ),
        drifts=tuple(struct_document(drift_from_start(drift, first.at)) for drift in run.drifts),
        revision_syncs=tuple(
            struct_document(revision_sync_from_start(revision_sync, first.at))
            for revision_sync in run.revision_syncs
        ),
        double_syncs=tuple(
            struct_document(double_sync_from_start(double_sync, first.at))
            for double_sync in run.double_syncs
        ),
        incomplete=run.incomplete_message,
        releases=tuple(run.releases),
        skipped_units=tuple(str(name) for group in run.left_out for name in group.units),
        verdict=run.verdict,
        units=tuple(map(UnitStateDocument.from_state, run.unit_states)),
    )


TIME_WIDTH = 14


def duration_range_lines(runs: Sequence[EngineRun]) -> Iterator[str]:
    """Yield a table of gate times per engine, and the outcome of each of its runs."""
    for index, (name, group) in enumerate(groupby(runs, key=lambda run: run.name)):
        engine_runs = list(group)
        if index:
            yield ""
        yield from _duration_table(name, engine_runs)
        yield ""
        for run in engine_runs:
            yield from result_lines(run, f"{name}, {run.durations}")


def _duration_table(name: str, runs: Sequence[EngineRun]) -> Iterator[str]:
    plan = runs[0].plan
    steps = [step for step in plan.steps if not step.is_placeholder]
    names = [step_title(step, with_unit=len(plan.units) > 1) for step in steps]
    title = f"{name} opens"
    width = max(map(len, (title, *names)))
    times_by_run = [step_times(run.events) for run in runs]
    yield f"{title:{width}}" + "".join(f"  {run.durations or '':>{TIME_WIDTH}}" for run in runs)
    for step_text, step in zip(names, steps, strict=True):
        cells = (gate_time(times.get(step.id, StepTimes())) for times in times_by_run)
        yield f"{step_text:{width}}" + "".join(f"  {cell:>{TIME_WIDTH}}" for cell in cells)
