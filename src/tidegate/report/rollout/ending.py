"""Explanation of a failed or timed-out rollout, as rows and as JSON documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from tidegate.model.event import RolloutOutcome
from tidegate.model.moment import Ms
from tidegate.model.plan import Plan
from tidegate.report.rollout.course import RolloutProgress
from tidegate.report.rollout.documents import ObjectIdentity
from tidegate.report.rollout.evidence import Evidence
from tidegate.report.rollout.reasons import WHY, evidence_rows, explain_evidence
from tidegate.report.rollout.rows import Row, Span
from tidegate.report.rollout.summary import PASSED, STOPPED


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
