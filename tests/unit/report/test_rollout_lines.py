"""Lines with times."""

from __future__ import annotations

from collections.abc import Iterable

from tests.unit.report.telling import (
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


def test_what_a_step_applied_is_one_line() -> None:
    assert lines_of(applied(ONE, 2_040)) == [
        "     2.0s  wave 1   applied 2 objects: Deployment default/web, Deployment default/db"
    ]


def test_what_a_step_deleted_is_told_when_it_is_gone() -> None:
    events = [
        Event(Ms(0), EventType.STEP_CHECKING, ONE.id),
        Event(Ms(0), EventType.STEP_GATING, ONE.id),
        *(Event(Ms(3_000), EventType.OBJECT_PRUNED, ONE.id, ref) for ref in (WEB, DB)),
        *passed(ONE, 3_000),
        ended(3_000),
    ]

    gone, end = lines_of(events)[-2:]

    assert gone == (
        "     3.0s  wave 1   passed in 3.0s; deleted 2 objects:"
        " Deployment default/db, Deployment default/web"
    )
    assert end == "     3.0s  rollout  passed in 3.0s: 2 deleted"


def test_what_another_unit_loses_is_told() -> None:
    why = ("Taken", "it belongs to the unit `mail`, which loses it")

    (line,) = lines_of([Event(Ms(0), EventType.OBJECT_ADOPTED, ONE.id, WEB, *why)])

    assert line == f"     0.0s  wave 1   takes over Deployment default/web: {why[1]}"


def test_a_wait_that_is_over_in_a_moment_is_not_told() -> None:
    events = [
        *applied(ONE, 0),
        waits(ONE, 10, WEB, "no pod yet"),
        ready(ONE, 900, WEB),
        *passed(ONE, 900),
        ended(5_000),
    ]

    assert not any("waits" in line for line in lines_of(events))


def test_a_wait_that_holds_is_told_with_its_reason_its_begin_and_its_end() -> None:
    events = [*applied(ONE, 0), waits(ONE, 10, WEB, "no pod yet"), *passed(ONE, 9_000)]

    _, result, end = lines_of(events)
    assert result == (
        "     1.0s  wave 1   waits for Deployment default/web: no pod yet"
        " (since 0.0s, at most until 600.0s)"
    )
    assert end == "     9.0s  wave 1   passed in 9.0s"


def test_a_reason_that_changes_often_is_told_now_and_then() -> None:
    events = applied(ONE, 0)
    events += [waits(ONE, at * 1_000, WEB, f"{at} of 50 pods are ready") for at in range(50)]

    messages = [line for line in lines_of([*events, *passed(ONE, 50_000)]) if "waits" in line]

    assert [line.split()[0] for line in messages] == ["1.0s", "16.0s", "31.0s", "46.0s"]


def test_a_long_wait_without_news_is_told_again_every_minute() -> None:
    events = [*applied(ONE, 0), waits(ONE, 0, WEB, "no pod yet"), *passed(ONE, 150_000)]

    messages = [line for line in lines_of(events) if "waits" in line]

    assert [line.split()[0] for line in messages] == ["1.0s", "61.0s", "121.0s"]


def test_time_alone_brings_a_line() -> None:
    lines = RolloutLog(course_of(ONE))
    for event in [*applied(ONE, 0), waits(ONE, 0, WEB, "no pod yet")]:
        lines.add_event(event)

    assert lines.advance(Ms(999)) == []
    assert len(lines.advance(Ms(1_500))) == 1
    assert lines.advance(Ms(2_000)) == []


def test_a_gate_that_waits_for_many_counts_most_of_them() -> None:
    refs = [a_ref(f"web-{number}") for number in range(40)]
    step = a_step("wave 0", *refs)
    events = applied(step, 0) + [waits(step, 0, ref, "no pod yet") for ref in refs]

    messages = [line for line in lines_of([*events, *passed(step, 5_000)], step) if "waits" in line]

    assert len(messages) == 4
    assert messages[-1].endswith("waits for 37 objects more")


def test_steps_that_are_left_out_are_one_line() -> None:
    events = [
        *applied(ONE, 0),
        failed(ONE, 3_000, "Deployment default/web: it crashed"),
        Event(Ms(3_000), EventType.STEP_SKIPPED, TWO.id),
        Event(Ms(3_000), EventType.STEP_SKIPPED, THREE.id),
        ended(3_000, "failed"),
    ]

    assert lines_of(events, ONE, TWO, THREE)[1:] == [
        "     3.0s  wave 1   failed: Deployment default/web: it crashed",
        "     3.0s  rollout  skipped wave 2, wave 3 (1 object)",
        "     3.0s  rollout  failed after 3.0s",
    ]


def test_another_try_is_told_with_its_reason() -> None:
    again = Event(
        Ms(50), EventType.RETRY_SCHEDULED, ONE.id, None, "Busy", "too many requests", Ms(5_050)
    )

    assert lines_of([*applied(ONE, 0)[:2], again]) == [
        "     0.1s  wave 1   tries again in 5.0s: too many requests"
    ]


def test_what_the_cluster_refuses_on_the_way_is_told_at_once() -> None:
    refused = Event(Ms(50), EventType.OBJECT_REFUSED, ONE.id, WEB, "Invalid", "spec.replicas: -1")

    assert lines_of([*applied(ONE, 0)[:2], refused]) == [
        "     0.1s  wave 1   refused Deployment default/web: spec.replicas: -1"
    ]


def test_a_rollout_that_changes_nothing_says_so() -> None:
    events = [*applied(ONE, 0, EventType.OBJECT_UNCHANGED), *passed(ONE, 20), ended(20)]

    assert lines_of(events) == [
        "     0.0s  wave 1   passed in 0.0s, 2 objects unchanged",
        "     0.0s  rollout  nothing changed: looked at 2 objects in 0.0s, wrote nothing",
    ]


def test_a_step_has_its_unit_before_its_name_where_there_are_several() -> None:
    other = a_step("wave 0", a_ref("other"), unit="other")

    (line,) = lines_of(applied(ONE, 0), ONE, other)
    assert line.startswith("     0.0s  shop wave 1   applied 2 objects")


def test_a_step_that_waits_for_nothing_in_particular_is_silent_and_time_goes_on() -> None:
    lines = RolloutLog(course_of(ONE))
    for event in applied(ONE, 0):
        lines.add_event(event)

    assert lines.advance(Ms(10_000_000)) == []


def test_steps_that_are_left_out_are_told_though_nothing_follows() -> None:
    lines = RolloutLog(course_of(ONE, TWO))
    lines.add_event(Event(Ms(3_000), EventType.STEP_SKIPPED, TWO.id))

    assert lines.advance(Ms(3_100)) == ["     3.0s  rollout  skipped wave 2 (0 objects)"]


def test_a_unit_that_somebody_else_holds_is_told_until_it_is_ours() -> None:
    held = "`ci-7` holds it"
    events = [
        Event(Ms(1_000), EventType.UNIT_WAITING, reason="Held", message=held, unit=SHOP),
        Event(Ms(9_000), EventType.UNIT_ACQUIRED, unit=SHOP),
    ]

    assert lines_of(events) == [
        "     1.0s  rollout  waits for unit default/shop: `ci-7` holds it",
        "     9.0s  rollout  goes on with unit default/shop",
    ]
