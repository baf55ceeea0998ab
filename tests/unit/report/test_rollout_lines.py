"""Lines with times."""

from __future__ import annotations

from collections.abc import Iterable

from tests.support.recorded_wording import RecordedWording
from tests.unit.report.rollout_events import (
    a_ref,
    a_step,
    applied,
    course_of,
    ended,
    failed,
    passed,
    ready,
    waits,
)
from tidegate.model.plans.plan import Step
from tidegate.model.rollouts.event import Event, EventType
from tidegate.model.times import Ms
from tidegate.model.units.unit import UnitId
from tidegate.report.rollout.lines import RolloutLog

WEB, DB = a_ref("web"), a_ref("db")
ONE, TWO, THREE = a_step("wave 1", WEB, DB), a_step("wave 2"), a_step("wave 3", a_ref("late"))

SHOP = UnitId.plain("default", "shop")


def lines_of(events: Iterable[Event], *steps: Step) -> list[str]:
    lines = RolloutLog(course_of(*(steps or (ONE,))))
    return [line for event in events for line in lines.add_event(event)]


def test_applied_objects_of_a_step_are_one_line(wording: RecordedWording) -> None:
    wording(lines_of(applied(ONE, 2_040)))


def test_deleted_objects_are_reported_after_their_deletion(wording: RecordedWording) -> None:
    events = [
        Event(Ms(0), EventType.STEP_CHECKING, ONE.id),
        Event(Ms(0), EventType.STEP_GATING, ONE.id),
        *(Event(Ms(3_000), EventType.OBJECT_PRUNED, ONE.id, ref) for ref in (WEB, DB)),
        *passed(ONE, 3_000),
        ended(3_000),
    ]

    wording(lines_of(events)[-2:])


def test_an_adopted_object_is_reported_with_its_reason(wording: RecordedWording) -> None:
    why = ("Adopted", "owned by `mail`")

    (line,) = lines_of([Event(Ms(0), EventType.OBJECT_ADOPTED, ONE.id, WEB, *why)])

    wording(line)


def test_a_short_wait_is_not_reported() -> None:
    events = [
        *applied(ONE, 0),
        waits(ONE, 10, WEB, "no pod yet"),
        ready(ONE, 900, WEB),
        *passed(ONE, 900),
        ended(5_000),
    ]

    assert not any("no pod yet" in line for line in lines_of(events))


def test_a_long_wait_is_reported_with_its_reason_start_and_end(wording: RecordedWording) -> None:
    events = [*applied(ONE, 0), waits(ONE, 10, WEB, "no pod yet"), *passed(ONE, 9_000)]

    _, *lines = lines_of(events)
    wording(lines)


def test_a_reason_that_changes_often_is_reported_every_15_seconds() -> None:
    events = applied(ONE, 0)
    events += [waits(ONE, at * 1_000, WEB, f"{at} of 50 pods are ready") for at in range(50)]

    messages = [line for line in lines_of([*events, *passed(ONE, 50_000)]) if " of 50 " in line]

    assert [line.split()[0] for line in messages] == ["1.0s", "16.0s", "31.0s", "46.0s"]


def test_a_long_wait_without_news_is_reported_again_every_minute() -> None:
    events = [*applied(ONE, 0), waits(ONE, 0, WEB, "no pod yet"), *passed(ONE, 150_000)]

    messages = [line for line in lines_of(events) if "no pod yet" in line]

    assert [line.split()[0] for line in messages] == ["1.0s", "61.0s", "121.0s"]


def test_time_alone_makes_a_line() -> None:
    lines = RolloutLog(course_of(ONE))
    for event in [*applied(ONE, 0), waits(ONE, 0, WEB, "no pod yet")]:
        lines.add_event(event)

    assert lines.advance(Ms(999)) == []
    assert len(lines.advance(Ms(1_500))) == 1
    assert lines.advance(Ms(2_000)) == []


def test_a_gate_that_waits_for_many_counts_most_of_them(wording: RecordedWording) -> None:
    refs = [a_ref(f"web-{number}") for number in range(40)]
    step = a_step("wave 0", *refs)
    events = applied(step, 0) + [waits(step, 0, ref, "no pod yet") for ref in refs]

    _, *lines, _ = lines_of([*events, *passed(step, 5_000)], step)

    assert sum("no pod yet" in line for line in lines) == 3
    assert len(lines) == 4
    wording(lines[-1])


def test_skipped_steps_are_one_line(wording: RecordedWording) -> None:
    events = [
        *applied(ONE, 0),
        failed(ONE, 3_000, "Deployment default/web: it crashed"),
        Event(Ms(3_000), EventType.STEP_SKIPPED, TWO.id),
        Event(Ms(3_000), EventType.STEP_SKIPPED, THREE.id),
        ended(3_000, "failed"),
    ]

    wording(lines_of(events, ONE, TWO, THREE)[1:])


def test_a_retry_is_reported_with_its_reason(wording: RecordedWording) -> None:
    again = Event(
        Ms(50), EventType.RETRY_SCHEDULED, ONE.id, None, "Busy", "too many requests", Ms(5_050)
    )

    wording(lines_of([*applied(ONE, 0)[:2], again]))


def test_an_object_refused_during_the_rollout_is_reported_at_once(wording: RecordedWording) -> None:
    refused = Event(Ms(50), EventType.OBJECT_REFUSED, ONE.id, WEB, "Invalid", "spec.replicas: -1")

    wording(lines_of([*applied(ONE, 0)[:2], refused]))


def test_a_rollout_without_changes_is_reported(wording: RecordedWording) -> None:
    events = [*applied(ONE, 0, EventType.OBJECT_UNCHANGED), *passed(ONE, 20), ended(20)]

    wording(lines_of(events))


def test_a_step_has_its_unit_before_its_name_where_there_are_several() -> None:
    other = a_step("wave 0", a_ref("other"), unit="other")

    (line,) = lines_of(applied(ONE, 0), ONE, other)
    assert line.startswith("     0.0s  shop wave 1   ")


def test_a_step_without_a_reason_to_wait_prints_nothing() -> None:
    lines = RolloutLog(course_of(ONE))
    for event in applied(ONE, 0):
        lines.add_event(event)

    assert lines.advance(Ms(10_000_000)) == []


def test_skipped_steps_are_reported_though_nothing_follows(wording: RecordedWording) -> None:
    lines = RolloutLog(course_of(ONE, TWO))
    lines.add_event(Event(Ms(3_000), EventType.STEP_SKIPPED, TWO.id))

    wording(lines.advance(Ms(3_100)))


def test_a_unit_locked_by_another_client_is_reported_until_it_is_acquired(
    wording: RecordedWording,
) -> None:
    held = "locked by `ci-7`"
    events = [
        Event(Ms(1_000), EventType.UNIT_WAITING, reason="LeaseHeld", message=held, unit=SHOP),
        Event(Ms(9_000), EventType.UNIT_ACQUIRED, unit=SHOP),
    ]

    wording(lines_of(events))
