"""How a rollout ended, for programs: the last line of its events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from tidegate.model.event import Result
from tidegate.model.moment import Ms
from tidegate.model.plan import Plan
from tidegate.report.rollout.course import Course
from tidegate.report.rollout.documents import ObjectName
from tidegate.report.rollout.evidence import Evidence
from tidegate.report.rollout.reasons import WHY, grounds, reasons
from tidegate.report.rollout.rows import Row, Span
from tidegate.report.rollout.summary import PASSED, STOPPED


class Failure(ObjectName, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """What is known of an object that failed: why, what its pods printed last, its Events."""

    unit: str = ""
    step: str = ""
    cluster: str = ""
    why: tuple[str, ...] = ()
    log: tuple[str, ...] = ()
    events: tuple[str, ...] = ()


class RolloutEnding(
    msgspec.Struct, frozen=True, omit_defaults=True, tag_field="event", tag="rollout.explained"
):
    """How it ended, and all that is known of what failed. `lasted` in milliseconds."""

    outcome: str
    lasted: Ms
    sentence: str = ""
    failures: tuple[Failure, ...] = ()


class WaitEnding(
    msgspec.Struct, frozen=True, omit_defaults=True, tag_field="event", tag="wait.explained"
):
    """Why somebody has waited in vain, and all that is known of what is not well."""

    outcome: Result
    sentence: str
    failures: tuple[Failure, ...] = ()


def has_failed(course: Course) -> bool:
    return course.result not in {"", PASSED, STOPPED}


def is_explained(course: Course) -> bool:
    """Whether there is more to say of its end than that it came."""
    return has_failed(course) or course.is_late


def rollout_ending(course: Course, evidence: Iterable[Evidence]) -> RolloutEnding:
    failed = [step.sentence for step in course.failures()]
    return RolloutEnding(
        outcome=Result.LATE if course.is_late else course.result,
        lasted=Ms(course.now - course.start),
        sentence=failed[0] if failed else course.sentence,
        failures=failures_of(course, evidence),
    )


def wait_ending(
    plan: Plan, outcome: Result, sentence: str, evidence: Iterable[Evidence]
) -> WaitEnding:
    return WaitEnding(outcome, sentence, failures_of(_known(plan), evidence))


def wait_rows(plan: Plan, evidence: Iterable[Evidence]) -> Iterator[Row]:
    """The same for people."""
    course = _known(plan)
    for one in evidence:
        yield (Span(f"  {one.ref} is not well"),)
        yield from reasons(course, one)


def _known(plan: Plan) -> Course:
    """Knows the names of steps, and nothing that has happened."""
    course = Course(Ms(0))
    course.expect(plan)
    return course


def failures_of(course: Course, evidence: Iterable[Evidence]) -> tuple[Failure, ...]:
    return tuple(_failure(course, one) for one in evidence)


def _failure(course: Course, one: Evidence) -> Failure:
    steps = (step for step in course.steps.values() if step.cluster == one.cluster)
    step = next((step for step in steps if one.ref in step.refs), None)
    told, wait = grounds(course, one), step.waits.get(one.ref) if step and course.is_late else None
    return Failure(
        **msgspec.structs.asdict(ObjectName.of(one.ref)),
        unit=str(step.owner or "") if step else "",
        step=step.id if step else "",
        cluster=one.cluster,
        why=(*([wait.sentence] if wait else ()), *told.get(WHY, ())),
        log=tuple(told.get("log", ())),
        events=tuple(told.get("events", ())),
    )
