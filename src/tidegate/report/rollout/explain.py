"""Explanation of a failed or timed-out rollout, as rows and as JSON documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from tidegate.model.display import count_noun, format_seconds, join_limited, shorten_wait_message
from tidegate.model.k8s.objects import ClusterRef, Ref
from tidegate.model.plans.plan import Plan
from tidegate.model.rollouts.causes import (
    MAX_FAILURES,
    WHY,
    explain_evidence,
    failing_object,
    failing_objects,
    pending_waits,
)
from tidegate.model.rollouts.documents import ObjectIdentity
from tidegate.model.rollouts.event import RolloutOutcome, StepState
from tidegate.model.rollouts.evidence import (
    Evidence,
)
from tidegate.model.rollouts.rollout_progress import (
    RolloutProgress,
    StepProgress,
)
from tidegate.model.times import Ms
from tidegate.report.rollout.summary import (
    NO_NEXT_COMMANDS,
    PASSED,
    STOPPED,
    NextCommands,
    result_summary,
)
from tidegate.report.styled_text import UNICODE_SYMBOLS, Row, Span, Style, Symbols

LABEL_WIDTH = 11
"""Width of the label column."""


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


MAX_NAMED = 8


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


def explain_stop(progress: RolloutProgress, evidence: Iterable[Evidence]) -> list[Row]:
    """Return which steps were still retried, and at a timeout what gates waited for, and why."""
    return [
        *(
            (Span(f"  {progress.step_title(step)} was still retried: "), Span(step.last_error))
            for step in progress.retried_steps()[:MAX_FAILURES]
        ),
        *(_timeout_rows(progress, evidence) if progress.has_timed_out else ()),
    ]


def _timeout_rows(progress: RolloutProgress, evidence: Iterable[Evidence]) -> list[Row]:
    evidence_by_object = {ClusterRef(item.cluster, item.ref): item for item in evidence}
    rows: list[Row] = []
    for step, wait in pending_waits(progress):
        prefix = f"  {progress.step_title(step)} is still waiting for {wait.ref}: "
        rows.append((Span(prefix), Span(shorten_wait_message(wait.message))))
        item_evidence = evidence_by_object.get(ClusterRef(step.cluster, wait.ref))
        rows += evidence_rows(progress, item_evidence) if item_evidence else ()
    return rows


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


def _refusal_rows(progress: RolloutProgress, symbols: Symbols) -> Iterator[Row]:
    """Yield that the cluster refused objects, where this ended the rollout.

    What is wrong with which object is a finding of its own.
    """
    if progress.failed_steps():
        return
    extent = (
        "rollout incomplete"
        if any(step.object_results for step in progress.steps.values())
        else "nothing was written"
    )
    title = Span(f"{symbols.failed} {extent}: ", Style.BAD)
    if not progress.refused:
        message = progress.message or "the rollout stopped before its first step"
        yield (title, Span(message))
        return
    yield (title, Span(refusal_summary(progress)))


def refusal_summary(progress: RolloutProgress) -> str:
    """Return how many objects the cluster would refuse."""
    return (
        "the cluster would reject"
        f" {count_noun(len({note.ref for note in progress.refused}), 'object')}"
    )


def _remaining_rows(progress: RolloutProgress) -> Iterator[Row]:
    """Yield which objects were applied and which were not."""
    applied = [ref for step in progress.steps.values() for ref in step.object_results]
    if applied:
        summary = [f"{count_noun(len(applied), 'object')} ({result_summary(progress)})"]
        yield from labelled_rows("applied", [*summary, join_limited(applied, MAX_NAMED)])
    waiting = [
        f"{progress.step_title(step)}: {join_limited(missing, MAX_NAMED)}"
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
        lines.append(commands.repeat + ("   # resumes from here" if can_resume else ""))
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
    duration: Ms
    """Duration in milliseconds."""
    message: str = ""
    failures: tuple[FailureDocument, ...] = ()


class WaitExplanation(
    msgspec.Struct, frozen=True, omit_defaults=True, tag_field="event", tag="wait.explained"
):
    """Last line of the JSON output of `argocd app wait`: why waiting failed."""

    outcome: RolloutOutcome
    message: str
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
    messages += [step.last_error for step in progress.retried_steps()]
    return RolloutExplanation(
        outcome=RolloutOutcome.TIMED_OUT if progress.has_timed_out else progress.outcome,
        duration=Ms(progress.now - progress.start),
        message=messages[0] if messages else progress.message,
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
        yield (Span(f"  {item.ref} is not healthy"),)
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
