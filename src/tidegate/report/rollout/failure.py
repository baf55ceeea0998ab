"""Explanation of a failed or timed-out rollout, as rows and as JSON documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tidegate.model.event import StepState
from tidegate.model.objects import ClusterRef, Ref
from tidegate.report.rollout.course import GateWait, ObjectNote, RolloutProgress, StepProgress
from tidegate.report.rollout.evidence import Evidence
from tidegate.report.rollout.names import (
    count_noun,
    format_seconds,
    join_refs,
    shorten_wait_message,
)
from tidegate.report.rollout.reasons import evidence_rows, labelled_rows
from tidegate.report.rollout.rows import UNICODE_SYMBOLS, Row, Span, Style, Symbols
from tidegate.report.rollout.summary import NO_NEXT_COMMANDS, NextCommands, result_summary

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
