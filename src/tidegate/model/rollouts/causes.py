"""Causes of a failed or waiting object: the objects to examine, and the messages about them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tidegate.model.display import count_noun
from tidegate.model.k8s.objects import ClusterRef
from tidegate.model.rollouts.evidence import (
    ContainerFailure,
    Evidence,
    KubeEvent,
    MissingRef,
    PodFailure,
    ProducerRef,
    StepRelation,
)
from tidegate.model.rollouts.rollout_progress import (
    GateWait,
    ObjectNote,
    RolloutProgress,
    StepProgress,
)

WHY = "why"
MAX_EVENTS = 6
MAX_MISSING = 5


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


def _missing_message(progress: RolloutProgress, missing: MissingRef) -> str:
    if not missing.producers:
        return f"{missing.ref} not found, and nothing in the plan creates it"
    producer = missing.producers[0]
    producer_text = (
        "the plan contains it" if producer.ref == missing.ref else f"{producer.ref} creates it"
    )
    if producer.ref != missing.ref and producer.relation is StepRelation.BEFORE:
        producer_text = f"{producer.ref} has not created it"
    return f"{missing.ref} not found; {producer_text} {_producer_location(progress, producer)}"


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
        others = f" (and {count_noun(len(names) - 1, 'more pod')})" if len(names) > 1 else ""
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
    """Return the objects that the cluster would reject, each once."""
    objects = (_refused_object(progress, note) for note in progress.refused[:MAX_REFUSED])
    return list(dict.fromkeys(cluster_ref for cluster_ref in objects if cluster_ref is not None))


def _refused_object(progress: RolloutProgress, note: ObjectNote) -> ClusterRef | None:
    step = progress.steps.get(note.step)
    return ClusterRef(step.cluster if step else "", note.ref) if note.ref else None


def pending_waits(progress: RolloutProgress) -> list[tuple[StepProgress, GateWait]]:
    """Return the first objects that gates wait for, with their steps."""
    waits = [(step, wait) for step in progress.active.values() for wait in step.waits.values()]
    return waits[:MAX_FAILURES]


def failing_object(step: StepProgress) -> ClusterRef | None:
    """Return the object of a step that made it fail; None if it is an object of another step.

    One object that the cluster rejects makes all steps of its unit fail.
    """
    ref = step.failed_object
    is_own = ref in step.refs or ref in step.object_results or ref in step.waits
    return ClusterRef(step.cluster, ref) if ref is not None and is_own else None


COMMON_WARNINGS = frozenset({"Unhealthy", "BackOff"})
"""Warnings of every normal start, and warnings that container statuses report better."""
CRASH_LOOP = "CrashLoopBackOff"
"""The message of this reason only names the back-off delay."""


def find_cause(evidence: Evidence) -> str:
    """Return the most likely cause why an object is not ready; empty if none is known."""
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
    yield from (f"{missing.ref} not found" for missing in evidence.missing)


def _container_message(container: ContainerFailure) -> str:
    """Return `container web: ImagePullBackOff: ...` with the last log line."""
    code = "" if container.exit_code is None else f", exit code {container.exit_code}"
    message = (
        f": {container.message}" if container.message and container.reason != CRASH_LOOP else ""
    )
    log_line = f"; last log line: {container.log[-1]}" if container.log else ""
    return f"container {container.name}: {container.reason}{code}{message}{log_line}"
