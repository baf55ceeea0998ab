"""How a rollout ended, for programs: the last line of its events."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from tidegate.model.moment import Ms
from tidegate.model.objects import Ref
from tidegate.report.rollout.course import Course
from tidegate.report.rollout.evidence import Evidence
from tidegate.report.rollout.reasons import grounds
from tidegate.report.rollout.summary import PASSED, STOPPED


class Failure(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is known of an object that failed: why, what its pods printed last, its Events."""

    ref: Ref
    why: list[str] = []
    log: list[str] = []
    events: list[str] = []


class RolloutEnding(
    msgspec.Struct, frozen=True, omit_defaults=True, tag_field="told", tag="rollout.explained"
):
    """How it ended, and all that is known of what failed. `lasted` in milliseconds."""

    outcome: str
    lasted: Ms
    sentence: str = ""
    failures: tuple[Failure, ...] = ()


def has_failed(course: Course) -> bool:
    return course.result not in {"", PASSED, STOPPED}


def rollout_ending(course: Course, evidence: Iterable[Evidence]) -> RolloutEnding:
    failed = [step.sentence for step in course.failures()]
    return RolloutEnding(
        outcome=course.result,
        lasted=Ms(course.now - course.start),
        sentence=failed[0] if failed else course.sentence,
        failures=failures_of(course, evidence),
    )


def failures_of(course: Course, evidence: Iterable[Evidence]) -> tuple[Failure, ...]:
    return tuple(Failure(one.ref, **grounds(course, one)) for one in evidence)
