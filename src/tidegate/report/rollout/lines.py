"""Progress of a rollout as timestamped lines, for pipes and logs.

Not every event is a line. A closed gate is reported once it has been closed for a moment, again
when its reason changes, and at intervals, so that a long wait does not look like a hang.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from tidegate.errors import escape_line, sanitize
from tidegate.model.display import (
    cluster_noun,
    count_noun,
    format_limit,
    format_seconds,
    join_limited,
    shorten_wait_message,
)
from tidegate.model.k8s.objects import Ref
from tidegate.model.rollouts.event import (
    FAILURE_IGNORED,
    OWNED_OBJECT_DELETED,
    Event,
    EventType,
    StepState,
)
from tidegate.model.rollouts.rollout_progress import (
    STEP_STATES,
    GateWait,
    RolloutProgress,
    StepProgress,
    is_blocked,
)
from tidegate.model.times import MINUTE, SECOND, Ms, format_timestamp
from tidegate.report.rollout.summary import headline

MIN_WAIT = Ms(1 * SECOND)
"""Shorter waits are not reported."""
REPEAT_ON_CHANGE = Ms(15 * SECOND)
"""Interval between two reports of a wait whose reason has changed."""
REPEAT_UNCHANGED = Ms(1 * MINUTE)
"""Interval between two reports of an unchanged wait."""
APPROVAL = "Approval"
"""Reason of a step that waits for approval."""
MAX_WAITS = 3
MAX_NAMED = 3
MAX_STEPS = 3


class _StepReport(msgspec.Struct):
    """What was last reported of a running step, and when the next report is due."""

    next_at: Ms
    last_at: Ms | None = None
    reported_reasons: dict[Ref, str] = msgspec.field(default_factory=dict)
    """Reported reason per object."""

    def waits_to_report(self, step: StepProgress) -> list[GateWait]:
        """Return all waits after a long silence, else the waits with a new reason."""
        waits = list(step.waits.values())
        if self.last_at is None or self.next_at >= self.last_at + REPEAT_UNCHANGED:
            return waits
        return [wait for wait in waits if self.reported_reasons.get(wait.ref) != wait.message]

    def report_soon(self, now: Ms) -> None:
        """Schedule a report after `MIN_WAIT`, but not too soon after the last one."""
        soon = Ms(now + MIN_WAIT)
        self.next_at = min(
            self.next_at,
            soon if self.last_at is None else max(soon, Ms(self.last_at + REPEAT_ON_CHANGE)),
        )


class RolloutLog:
    """Converts events and the passing of time to lines."""

    def __init__(self, progress: RolloutProgress) -> None:
        self.progress = progress
        self._reports: dict[str, _StepReport] = {}
        self._skipped: list[StepProgress] = []
        self._silence_reports: dict[str, Ms] = {}
        """When it was repeated last that a cluster does not answer."""
        self._width = 0

    def add_event(self, event: Event) -> list[str]:
        """Return the lines for an event, preceded by reports that were due before it."""
        lines = [] if self._continues_skipped(event) else self._flush_skipped()
        lines += self.advance(event.at)
        self.progress.add_event(event)
        step = self.progress.steps.get(event.step)
        if step is None:
            return [*lines, *self._rollout_lines(event)]
        if event.type is EventType.LOG_LINE:
            return [
                *lines,
                self._line(event.at, step, f"{event.ref} | {escape_line(event.message)}"),
            ]
        lines += self._step_lines(step, event)
        self._schedule(step, event)
        return lines

    def advance(self, now: Ms) -> list[str]:
        """Return the reports of running steps that are due at a time."""
        lines = (
            self._flush_skipped() if self._skipped and now > self._skipped[0].state_since else []
        )
        while self._reports:
            name, report = min(self._reports.items(), key=lambda pair: pair[1].next_at)
            if report.next_at > now:
                break
            lines += self._report(self.progress.steps[name], report)
        return [*lines, *self._repeat_silences(now)]

    def _repeat_silences(self, now: Ms) -> Iterator[str]:
        """Yield the clusters that still do not answer."""
        for cluster, wait in self.progress.silent_clusters.items():
            reported_at = max(wait.since, self._silence_reports.get(cluster, wait.since))
            if now >= reported_at + REPEAT_UNCHANGED:
                self._silence_reports[cluster] = now
                yield self._line(now, None, _silence_message(cluster, wait.message))

    def _report(self, step: StepProgress, report: _StepReport) -> list[str]:
        """Return what a step waits for. Of a cluster that does not answer, nothing new is known."""
        at = report.next_at
        waits = report.waits_to_report(step)
        messages = list(_wait_messages(waits, at) if step.waits else _activity_messages(step, at))
        if step.cluster in self.progress.silent_clusters:
            messages = []
        if messages or report.last_at is None:
            report.last_at = at
        repeat_at = Ms(report.last_at + REPEAT_UNCHANGED)
        report.next_at = repeat_at if repeat_at > at else Ms(at + REPEAT_UNCHANGED)
        report.reported_reasons = {wait.ref: wait.message for wait in step.waits.values()}
        return [self._line(at, step, message) for message in messages]

    def _schedule(self, step: StepProgress, event: Event) -> None:
        """Schedule the next report of a step."""
        if step.id not in self.progress.active or step.state is StepState.WAITING:
            self._reports.pop(step.id, None)
            return
        report = self._reports.get(step.id)
        if report is None or event.type in {EventType.STEP_CHECKING, EventType.STEP_GATING}:
            self._reports[step.id] = report = _StepReport(Ms(event.at + REPEAT_ON_CHANGE))
        if event.type is EventType.GATE_WAITING:
            report.report_soon(event.at)

    def _step_lines(self, step: StepProgress, event: Event) -> Iterator[str]:
        match event.type:
            case EventType.STEP_GATING if EventType.OBJECT_WRITTEN in step.object_results.values():
                yield self._line(event.at, step, _applied_message(step))
            case EventType.STEP_PASSED:
                ignored_failure = sanitize(event.message) if event.reason == FAILURE_IGNORED else ""
                yield self._line(event.at, step, ignored_failure or _passed_message(step))
            case EventType.STEP_FAILED:
                yield self._line(event.at, step, f"failed: {step.message or step.reason}")
            case EventType.STEP_SKIPPED | EventType.STEP_SUPERSEDED if not step.is_unused:
                self._skipped.append(step)
            case EventType.RETRY_SCHEDULED:
                delay = format_limit(event.until - event.at)
                yield self._line(event.at, step, f"retrying in {delay}: {step.message}")
            case EventType.STEP_WAITING if event.until or is_blocked(event):
                yield self._line(event.at, step, _waiting_message(event))
            case event_type if event_type in NOTE_PREFIXES and not self._is_omitted(event):
                yield self._line(
                    event.at,
                    step,
                    f"{_note_prefix(event)} {event.ref}: {_event_message(event)}",
                )
            case _:
                return

    def _is_omitted(self, event: Event) -> bool:
        """Return whether an event is not shown.

        Objects that are refused before the first step are reported together as findings. A
        cause that is gone is not reported: the gate opens soon, or there is another cause.
        """
        if event.type is EventType.GATE_EXPLAINED:
            return not event.message
        return event.type is EventType.OBJECT_REFUSED and self.progress.is_before_first_step

    def _cluster_lines(self, event: Event) -> Iterator[str]:
        if event.type is EventType.CLUSTER_WAITING:
            yield self._line(event.at, None, _silence_message(event.cluster, _event_message(event)))
        elif event.type is EventType.CLUSTER_ANSWERED:
            yield self._line(event.at, None, f"{cluster_noun(event.cluster)} answers again")

    def _rollout_lines(self, event: Event) -> Iterator[str]:
        yield from self._cluster_lines(event)
        if event.type is EventType.ROLLOUT_STARTED:
            steps = self.progress.counted_steps
            objects = sum(step.size for step in steps)
            if steps:
                message = (
                    f"starts: {count_noun(len(steps), 'step')}, {count_noun(objects, 'object')}"
                )
                yield self._line(event.at, None, message)
        elif event.type is EventType.UNIT_WAITING:
            yield self._line(
                event.at, None, f"waiting for unit {event.unit}: {_event_message(event)}"
            )
        elif event.type is EventType.UNIT_ACQUIRED:
            yield self._line(event.at, None, f"continues with unit {event.unit}")
        elif event.type is EventType.ROLLOUT_SUPERSEDED:
            yield self._line(event.at, None, "continues with a newer plan")
        elif event.type is EventType.ROLLOUT_FINISHED:
            yield self._line(event.at, None, headline(self.progress))

    def _continues_skipped(self, event: Event) -> bool:
        """Return whether an event skips another step like the events before it."""
        return bool(self._skipped) and STEP_STATES.get(event.type) is self._skipped[0].state

    def _flush_skipped(self) -> list[str]:
        """Return one line for all steps that were skipped in a row."""
        if not self._skipped:
            return []
        steps, self._skipped = self._skipped, []
        names = join_limited([*map(self.progress.step_title, steps)], MAX_STEPS)
        objects = sum(step.size for step in steps)
        label = "superseded" if steps[0].state is StepState.SUPERSEDED else "skipped"
        message = f"{label} {names} ({count_noun(objects, 'object')})"
        return [self._line(steps[0].state_since, None, message)]

    def _line(self, at: Ms, step: StepProgress | None, message: str) -> str:
        name = "rollout" if step is None else self.progress.step_title(step)
        if not self._width:
            titles = [
                len(self.progress.step_title(other)) for other in self.progress.steps.values()
            ]
            self._width = max([len("rollout"), *titles])
        self._width = max(self._width, len(name))
        return f"{(at - self.progress.start) / SECOND:8.1f}s  {name:{self._width}}  {message}"


NOTE_PREFIXES = {
    EventType.OBJECT_REFUSED: "rejected",
    EventType.OBJECT_ADOPTED: "takes over",
    EventType.OBJECT_DRIFTED: "drifted, not corrected:",
    EventType.GATE_UNPROVEN: "unverified:",
    EventType.GATE_EXPLAINED: "not ready:",
}


def _note_prefix(event: Event) -> str:
    is_deleted = event.type is EventType.OBJECT_ADOPTED and event.reason == OWNED_OBJECT_DELETED
    return "deletes" if is_deleted else NOTE_PREFIXES[event.type]


def _waiting_message(event: Event) -> str:
    """Return why a step waits without an unmet edge: until a time, or for an approval."""
    if event.until:
        return f"held until {format_timestamp(event.until)}: {_event_message(event)}"
    hint = f": `tidegate approve --unit {event.unit}`" if event.reason == APPROVAL else ""
    return f"waiting: {_event_message(event)}{hint}"


def _silence_message(cluster: str, message: str) -> str:
    return f"waiting for {cluster_noun(cluster)}: {message}"


def _event_message(event: Event) -> str:
    return sanitize(event.message or event.reason)


def _passed_message(step: StepProgress) -> str:
    """Return the message of a passed step, with deletions: they were in progress until now."""
    elapsed = f"passed in {format_seconds(step.elapsed(step.state_since))}"
    deleted = sorted(
        ref
        for ref, event_type in step.object_results.items()
        if event_type is EventType.OBJECT_PRUNED
    )
    if deleted:
        return (
            f"{elapsed}; deleted {count_noun(len(deleted), 'object')}:"
            f" {join_limited(deleted, MAX_NAMED)}"
        )
    has_changed = any(
        event_type is not EventType.OBJECT_UNCHANGED for event_type in step.object_results.values()
    )
    return elapsed if has_changed else f"{elapsed}, {count_noun(step.size, 'object')} unchanged"


def _applied_message(step: StepProgress) -> str:
    """Return what a step has written and what was unchanged."""
    parts = []
    for event_type, label in (
        (EventType.OBJECT_WRITTEN, "applied"),
        (EventType.OBJECT_UNCHANGED, "unchanged"),
    ):
        refs = [ref for ref, result in step.object_results.items() if result is event_type]
        if refs:
            parts.append(
                f"{label} {count_noun(len(refs), 'object')}: {join_limited(refs, MAX_NAMED)}"
            )
    return "; ".join(parts)


def _activity_messages(step: StepProgress, now: Ms) -> Iterator[str]:
    elapsed = format_seconds(step.elapsed(now))
    if step.state is StepState.APPLYING:
        yield (
            f"applying, {len(step.object_results):,} of {count_noun(step.size, 'object')} after"
            f" {elapsed}"
        )
    elif step.state is StepState.CHECKING:
        yield f"checking {count_noun(step.size, 'object')} ({elapsed})"


def _wait_messages(waits: list[GateWait], now: Ms) -> Iterator[str]:
    yield from (_wait_message(wait, now) for wait in waits[:MAX_WAITS])
    if len(waits) > MAX_WAITS:
        yield f"waiting for {count_noun(len(waits) - MAX_WAITS, 'more object')}"


def _wait_message(wait: GateWait, now: Ms) -> str:
    timeout = f", timeout {format_limit(wait.deadline - wait.since)}" if wait.deadline else ""
    duration = f"{format_limit(now - wait.since)}{timeout}"
    return f"waiting for {wait.ref}: {shorten_wait_message(wait.message)} ({duration})"
