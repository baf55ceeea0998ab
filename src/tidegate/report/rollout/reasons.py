"""Explanation of a failed or timed-out rollout, as rows and as JSON documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tidegate.report.rollout.course import RolloutProgress
from tidegate.report.rollout.evidence import (
    ContainerFailure,
    Evidence,
    KubeEvent,
    MissingRef,
    PodFailure,
    ProducerRef,
    StepRelation,
)
from tidegate.report.rollout.names import count_noun
from tidegate.report.rollout.rows import Row, Span, Style

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
