"""Explanation of a failed or timed-out rollout, as rows and as JSON documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from tidegate.model.k8s.objects import ClusterRef, Ref
from tidegate.model.plans.plan import Plan
from tidegate.model.rollouts.event import RolloutOutcome, StepState
from tidegate.model.times import Ms
from tidegate.report.rollout.course import GateWait, ObjectNote, RolloutProgress, StepProgress
from tidegate.report.rollout.documents import ObjectIdentity
from tidegate.report.rollout.evidence import (
    ContainerFailure,
    Evidence,
    KubeEvent,
    MissingRef,
    PodFailure,
    ProducerRef,
    StepRelation,
)
from tidegate.report.rollout.names import (
    count_noun,
    format_seconds,
    join_refs,
    shorten_wait_message,
)
from tidegate.report.rollout.summary import (
    NO_NEXT_COMMANDS,
    PASSED,
    STOPPED,
    NextCommands,
    result_summary,
)
from tidegate.report.styled_text import UNICODE_SYMBOLS, Row, Span, Style, Symbols

WHY = "why"
MAX_EVENTS = 6
MAX_MISSING = 5
LABEL_WIDTH = 11
"""Width of the label column."""


def explain_evidence(
    progress: RolloutProgress, evidence: Evidence, *, brief: bool = False
) -> dict[str, list[str]]:
    """Return the lines of the diagnosis of one object by label, most important first.

    If `brief`, logs and Events are left out for objects with pods.
    """
    lines = [evidence.not_served_reason] if evidence.not_served_reason else []
    lines += [_missing_message(progress, missing) for missing in evidence.missing[:MAX_MISSING]]
    lines_by_label = {WHY: [*lines, *_pod_messages(evidence.pods)]}
    if not (brief and evidence.pods):
        lines_by_label |= {
            "log": _last_log(evidence.pods),
            "events": _event_messages(evidence.events),
        }
    return {label: lines for label, lines in lines_by_label.items() if lines}


def evidence_rows(
    progress: RolloutProgress, evidence: Evidence, *, brief: bool = False
) -> Iterator[Row]:
    """Yield the diagnosis of one object as rows."""
    for label, lines in explain_evidence(progress, evidence, brief=brief).items():
        yield from labelled_rows(label, lines, Style.PLAIN if label == WHY else Style.FAINT)


def labelled_rows(label: str, lines: Iterable[str], style: Style = Style.PLAIN) -> list[Row]:
    """Return rows of lines with a label before the first line."""
    labels = [f"  {label}"]
    rows: list[Row] = []
    for line in lines:
        head = labels.pop() if labels else ""
        head = f"{head}  " if len(head) >= LABEL_WIDTH else head
        rows.append((Span(f"{head:{LABEL_WIDTH}}", Style.FAINT), Span(line, style)))
    return rows


def _missing_message(progress: RolloutProgress, missing: MissingRef) -> str:
    if not missing.producers:
        return f"{missing.ref} is not there, and nothing in the plan makes it"
    producer = missing.producers[0]
    producer_text = (
        "the plan brings it" if producer.ref == missing.ref else f"{producer.ref} would make it"
    )
    if producer.ref != missing.ref and producer.relation is StepRelation.BEFORE:
        producer_text = f"{producer.ref} has not made it"
    return f"{missing.ref} is not there; {producer_text}, {_producer_location(progress, producer)}"


def _producer_location(progress: RolloutProgress, producer: ProducerRef) -> str:
    step = progress.steps.get(producer.step)
    if producer.relation is StepRelation.SAME_STEP or step is None:
        return producer.relation
    return f"in {progress.step_title(step)}, {producer.relation}"


def _pod_messages(pods: Sequence[PodFailure]) -> list[str]:
    """Return how pods failed: each reason once, with the pods that have it."""
    pods_by_reason: dict[tuple[str, ...], list[str]] = {}
    for pod in pods:
        for container in pod.containers:
            pods_by_reason.setdefault(_container_messages(container), []).append(f"{pod.ref}")
        if not pod.containers:
            parts = (pod.phase, pod.reason, pod.message)
            pods_by_reason.setdefault(tuple(part for part in parts if part), []).append(
                f"{pod.ref}"
            )
    lines: list[str] = []
    for reason, names in pods_by_reason.items():
        others = f" (and {count_noun(len(names) - 1, 'pod')} more)" if len(names) > 1 else ""
        lines += [f"{names[0]}{others}: {reason[0] if reason else 'not ready'}", *reason[1:]]
    return lines


def _container_messages(container: ContainerFailure) -> tuple[str, ...]:
    code = "" if container.exit_code is None else f", exit code {container.exit_code}"
    restarts = f", {count_noun(container.restarts, 'restart')}" if container.restarts else ""
    head = f"container {container.name}: {container.reason}{code}{restarts}"
    return (head, container.message) if container.message else (head,)


def _last_log(pods: Sequence[PodFailure]) -> list[str]:
    """Return the last lines of the newest pod that logged any."""
    logs = (container.log for pod in pods for container in pod.containers)
    return list(next(filter(None, logs), ()))


def _event_messages(events: Sequence[KubeEvent]) -> list[str]:
    """Return the last Events, each message once."""
    counts: dict[str, int] = {}
    for event in events:
        line = f"{event.reason}: {event.message}"
        counts[line] = counts.pop(line, 0) + event.count
    lines = [f"{line} ({count} times)" if count > 1 else line for line, count in counts.items()]
    return lines[-MAX_EVENTS:]


MAX_FAILURES = 3
"""Number of failures that are explained in full."""
MAX_NAMED = 8
MAX_REFUSED = 20


def failing_objects(progress: RolloutProgress) -> list[ClusterRef]:
    """Return the objects to collect evidence for, each once, retried steps included.

    After a timeout without a failure, these are the objects that gates still wait for.
    """
    failing_steps = progress.failed_steps() or progress.retried_steps()
    if progress.has_timed_out and not failing_steps:
        return [ClusterRef(step.cluster, wait.ref) for step, wait in pending_waits(progress)]
    objects = [failing_object(step) for step in failing_steps[:MAX_FAILURES]]
    return list(dict.fromkeys(cluster_ref for cluster_ref in objects if cluster_ref is not None))


def refused_objects(progress: RolloutProgress) -> list[ClusterRef]:
    """Return the objects that the cluster would refuse, each once."""
    objects = (_refused_object(progress, note) for note in progress.refused[:MAX_REFUSED])
    return list(dict.fromkeys(cluster_ref for cluster_ref in objects if cluster_ref is not None))


def _refused_object(progress: RolloutProgress, note: ObjectNote) -> ClusterRef | None:
    step = progress.steps.get(note.step)
    return ClusterRef(step.cluster if step else "", note.ref) if note.ref else None


def explain_failure(
    progress: RolloutProgress,
    evidence: Iterable[Evidence] = (),
    *,
    commands: NextCommands = NO_NEXT_COMMANDS,
    symbols: Symbols = UNICODE_SYMBOLS,
) -> list[Row]:
    """Return the rows that explain a failed rollout."""
    evidence_by_object = {ClusterRef(item.cluster, item.ref): item for item in evidence}
    failures = progress.failed_steps()
    rows: list[Row] = []
    for step in failures[:MAX_FAILURES]:
        rows += _failure_rows(progress, step, evidence_by_object, symbols)
    if len(failures) > MAX_FAILURES:
        names = ", ".join(map(progress.step_title, failures[MAX_FAILURES:]))
        rows.append(labelled_rows("also", [f"failed: {names}"], Style.BAD)[0])
    rows += _refusal_rows(progress, symbols)
    rows += _remaining_rows(progress)
    rows += _next_rows(progress, commands)
    return rows


def explain_timeout(progress: RolloutProgress, evidence: Iterable[Evidence]) -> list[Row]:
    """Return what gates still waited for at the timeout, and why."""
    evidence_by_object = {ClusterRef(item.cluster, item.ref): item for item in evidence}
    rows: list[Row] = []
    for step, wait in pending_waits(progress):
        prefix = f"  {progress.step_title(step)} still waits for {wait.ref}: "
        rows.append((Span(prefix), Span(shorten_wait_message(wait.message))))
        item_evidence = evidence_by_object.get(ClusterRef(step.cluster, wait.ref))
        rows += evidence_rows(progress, item_evidence) if item_evidence else ()
    return rows


def pending_waits(progress: RolloutProgress) -> list[tuple[StepProgress, GateWait]]:
    """Return the first objects that gates wait for, with their steps."""
    waits = [(step, wait) for step in progress.active.values() for wait in step.waits.values()]
    return waits[:MAX_FAILURES]


def _failure_rows(
    progress: RolloutProgress,
    step: StepProgress,
    evidence_by_object: Mapping[ClusterRef, Evidence],
    symbols: Symbols,
) -> Iterator[Row]:
    elapsed = format_seconds(step.state_since - progress.start)
    title = Span(f"{symbols.failed} {progress.step_title(step)} failed", Style.BAD)
    yield (title, Span(f" after {elapsed}: {step.message or step.reason}"))
    failing = failing_object(step)
    object_evidence = evidence_by_object.get(failing) if failing else None
    if object_evidence is not None:
        yield from evidence_rows(progress, object_evidence)


def failing_object(step: StepProgress) -> ClusterRef | None:
    """Return the object that a failure is about: the message starts with its name."""
    refs = {*step.refs, *step.object_results, *step.waits}
    message = step.last_error or step.message
    candidates = [ref for ref in refs if _starts_with_name(message, str(ref))]
    failing = max(candidates, key=lambda ref: len(str(ref)), default=None)
    return None if failing is None else ClusterRef(step.cluster, failing)


def _starts_with_name(message: str, name: str) -> bool:
    return message.startswith(name) and message[len(name) : len(name) + 1] in {"", ":", " "}


def _refusal_rows(progress: RolloutProgress, symbols: Symbols) -> Iterator[Row]:
    """Yield that the cluster refused objects, where this ended the rollout.

    What is wrong with which object is a finding of its own.
    """
    if progress.failed_steps():
        return
    extent = (
        "not all" if any(step.object_results for step in progress.steps.values()) else "nothing"
    )
    title = Span(f"{symbols.failed} {extent} was written: ", Style.BAD)
    if not progress.refused:
        message = progress.message or "the rollout ended before its first step"
        yield (title, Span(message))
        return
    yield (title, Span(refusal_summary(progress)))


def refusal_summary(progress: RolloutProgress) -> str:
    """Return how many objects the cluster would refuse."""
    return (
        "the cluster would refuse"
        f" {count_noun(len({note.ref for note in progress.refused}), 'object')}"
    )


def _remaining_rows(progress: RolloutProgress) -> Iterator[Row]:
    """Yield which objects were applied and which were not."""
    applied = [ref for step in progress.steps.values() for ref in step.object_results]
    if applied:
        summary = [f"{count_noun(len(applied), 'object')} ({result_summary(progress)})"]
        yield from labelled_rows("applied", [*summary, join_refs(applied, MAX_NAMED)])
    waiting = [
        f"{progress.step_title(step)}: {join_refs(missing, MAX_NAMED)}"
        for step in progress.counted_steps
        if step.state is not StepState.PASSED and (missing := _missing_refs(step))
    ]
    if waiting:
        yield from labelled_rows("not yet", waiting[:MAX_NAMED])
        if len(waiting) > MAX_NAMED:
            remaining = count_noun(len(waiting) - MAX_NAMED, "step")
            yield from labelled_rows("", [f"and {remaining} more"])


def _missing_refs(step: StepProgress) -> list[Ref]:
    return [ref for ref in step.refs if ref not in step.object_results]


def _next_rows(progress: RolloutProgress, commands: NextCommands) -> Iterator[Row]:
    lines: list[str] = []
    failing = failing_objects(progress)
    if commands.kubectl and failing:
        ref = failing[0].ref
        namespace_flag = f" -n {ref.namespace}" if ref.namespace else ""
        lines.append(
            f"{commands.kubectl}{namespace_flag} describe {ref.kind.name.lower()} {ref.name}"
        )
    if commands.repeat:
        can_resume = commands.can_resume and progress.result_counts.total() > 0
        lines.append(commands.repeat + ("   # goes on where this ended" if can_resume else ""))
    yield from labelled_rows("next", lines, Style.STRONG)


class FailureDocument(
    ObjectIdentity, frozen=True, kw_only=True, omit_defaults=True, rename="camel"
):
    """JSON document of a failed object: reasons, last log lines, Events."""

    unit: str = ""
    step: str = ""
    cluster: str = ""
    why: tuple[str, ...] = ()
    log: tuple[str, ...] = ()
    events: tuple[str, ...] = ()


class RolloutExplanation(
    msgspec.Struct, frozen=True, omit_defaults=True, tag_field="event", tag="rollout.explained"
):
    """Last line of the JSON events of a rollout: its outcome and the failures."""

    outcome: str
    lasted: Ms
    """Duration in milliseconds."""
    sentence: str = ""
    failures: tuple[FailureDocument, ...] = ()


class WaitExplanation(
    msgspec.Struct, frozen=True, omit_defaults=True, tag_field="event", tag="wait.explained"
):
    """Last line of the JSON output of `app wait`: why waiting failed."""

    outcome: RolloutOutcome
    sentence: str
    failures: tuple[FailureDocument, ...] = ()


def has_failed(progress: RolloutProgress) -> bool:
    return progress.outcome not in {"", PASSED, STOPPED}


def needs_explanation(progress: RolloutProgress) -> bool:
    """Return whether the end of a rollout needs an explanation."""
    return has_failed(progress) or progress.has_timed_out


def rollout_explanation(
    progress: RolloutProgress, evidence: Iterable[Evidence]
) -> RolloutExplanation:
    messages = [step.message for step in progress.failed_steps()]
    return RolloutExplanation(
        outcome=RolloutOutcome.TIMED_OUT if progress.has_timed_out else progress.outcome,
        lasted=Ms(progress.now - progress.start),
        sentence=messages[0] if messages else progress.message,
        failures=failure_documents(progress, evidence),
    )


def wait_explanation(
    plan: Plan, outcome: RolloutOutcome, message: str, evidence: Iterable[Evidence]
) -> WaitExplanation:
    return WaitExplanation(outcome, message, failure_documents(_progress_from_plan(plan), evidence))


def wait_rows(plan: Plan, evidence: Iterable[Evidence]) -> Iterator[Row]:
    """Yield the diagnosis of the objects that are not healthy."""
    progress = _progress_from_plan(plan)
    for item in evidence:
        yield (Span(f"  {item.ref} is not well"),)
        yield from evidence_rows(progress, item)


def _progress_from_plan(plan: Plan) -> RolloutProgress:
    """Return a progress that knows the steps of a plan and no events."""
    progress = RolloutProgress(Ms(0))
    progress.add_plan(plan)
    return progress


def failure_documents(
    progress: RolloutProgress, evidence: Iterable[Evidence]
) -> tuple[FailureDocument, ...]:
    return tuple(_failure_document(progress, item) for item in evidence)


def _failure_document(progress: RolloutProgress, evidence: Evidence) -> FailureDocument:
    steps = (step for step in progress.steps.values() if step.cluster == evidence.cluster)
    step = next((step for step in steps if evidence.ref in step.refs), None)
    lines_by_label, wait = (
        explain_evidence(progress, evidence),
        step.waits.get(evidence.ref) if step and progress.has_timed_out else None,
    )
    return FailureDocument(
        **msgspec.structs.asdict(ObjectIdentity.from_ref(evidence.ref)),
        unit=str(step.unit_id or "") if step else "",
        step=step.id if step else "",
        cluster=evidence.cluster,
        why=(*([wait.message] if wait else ()), *lines_by_label.get(WHY, ())),
        log=tuple(lines_by_label.get("log", ())),
        events=tuple(lines_by_label.get("events", ())),
    )


COMMON_WARNINGS = frozenset({"Unhealthy", "BackOff"})
"""Warnings of every normal start, and warnings that container statuses report better."""
CRASH_LOOP = "CrashLoopBackOff"
"""The message of this reason only names the back-off delay."""


def find_cause(evidence: Evidence) -> str:
    """Return the most likely cause why an object is not ready; empty where none is known."""
    return next(_causes(evidence), "")


def _causes(evidence: Evidence) -> Iterator[str]:
    for pod in evidence.pods:
        yield from (
            _container_message(container)
            for container in pod.containers
            if container.reason and not container.is_running
        )
    warnings = [
        event
        for event in evidence.events
        if event.is_warning and event.reason not in COMMON_WARNINGS
    ]
    yield from (f"{event.reason}: {event.message}" for event in reversed(warnings))
    yield from (f"{missing.ref} is not there" for missing in evidence.missing)


def _container_message(container: ContainerFailure) -> str:
    """Return `container web: ImagePullBackOff: ...` with the last log line."""
    code = "" if container.exit_code is None else f", exit code {container.exit_code}"
    message = (
        f": {container.message}" if container.message and container.reason != CRASH_LOOP else ""
    )
    log_line = f"; it printed: {container.log[-1]}" if container.log else ""
    return f"container {container.name}: {container.reason}{code}{message}{log_line}"
