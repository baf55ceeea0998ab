"""The picture of a running rollout."""

from __future__ import annotations

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
from tidegate.model.rollouts.event import Event, EventType
from tidegate.model.rollouts.rollout_progress import RolloutProgress
from tidegate.model.times import Ms
from tidegate.model.units.unit import UnitId
from tidegate.report.rollout.live import ViewOptions, final_rows, view_rows
from tidegate.report.styled_text import plain_text

WEB, DB = a_ref("web"), a_ref("db")
ONE, TWO = a_step("wave 1", WEB, DB), a_step("wave 2", a_ref("late"))

SHOP = UnitId.plain("default", "shop")


def seen(progress: RolloutProgress, at: int, **look: int) -> list[str]:
    view = ViewOptions(width=look.get("width", 60), height=look.get("height", 20), title="shop")
    return [plain_text(row) for row in view_rows(progress, view, Ms(at))]


def read_result(progress: RolloutProgress, *events: Event) -> RolloutProgress:
    for event in events:
        progress.add_event(event)
    return progress


def test_before_the_first_step_the_checked_objects_are_counted(wording: RecordedWording) -> None:
    progress = course_of(ONE, TWO)

    wording(seen(progress, 300))
    assert len(seen(progress, 300, height=2)) == 2


def test_a_gate_shows_each_object_that_holds_it_with_its_reason(wording: RecordedWording) -> None:
    progress = read_result(course_of(ONE, TWO), *applied(ONE, 0), waits(ONE, 0, WEB, "no pod yet"))

    wording(seen(progress, 3_200))


def test_an_object_that_is_ready_is_shown_no_longer() -> None:
    progress = read_result(
        course_of(ONE),
        *applied(ONE, 0),
        waits(ONE, 0, WEB, "no pod yet"),
        waits(ONE, 0, DB, "restoring"),
        ready(ONE, 2_000, WEB),
    )

    shown = seen(progress, 3_000)

    assert not any("default/web" in row for row in shown)
    assert any("default/db" in row for row in shown)


def test_an_object_is_waited_for_since_it_first_held_the_gate() -> None:
    progress = read_result(
        course_of(ONE),
        *applied(ONE, 0),
        waits(ONE, 1_000, DB, "restoring"),
        waits(ONE, 8_000, DB, "replaying"),
    )

    (row,) = [row for row in seen(progress, 9_000) if "default/db" in row]

    assert "replaying" in row
    assert row.endswith("8.0s")


def test_a_limited_number_of_objects_is_shown_and_the_rest_counted(
    wording: RecordedWording,
) -> None:
    refs = [a_ref(f"web-{number}") for number in range(40)]
    step = a_step("wave 0", *refs)
    progress = read_result(course_of(step), *applied(step, 0))
    read_result(progress, *(waits(step, 0, ref, "no pod yet") for ref in refs))

    shown = seen(progress, 1_000)

    assert sum("no pod yet" in row for row in shown) == 7
    (rest,) = [row for row in shown if "33" in row]
    wording(rest)


def test_done_steps_fold_into_one_row_each(wording: RecordedWording) -> None:
    progress = read_result(course_of(ONE, TWO), *applied(ONE, 0), *passed(ONE, 12_300))

    wording(seen(progress, 12_300)[0])


def test_many_done_steps_fold_into_one_row_so_that_the_picture_fits(
    wording: RecordedWording,
) -> None:
    steps = [a_step(f"wave {wave}", a_ref(f"web-{wave}")) for wave in range(50)]
    progress = course_of(*steps, a_step("wave 99", a_ref("late")))
    for wave, step in enumerate(steps):
        read_result(progress, *applied(step, wave * 1_000), *passed(step, wave * 1_000 + 500))

    shown = seen(progress, 60_000, height=8)

    wording(shown[0])
    assert [row[:9] for row in shown[1:6]] == [f"✓ wave {wave}" for wave in range(45, 50)]
    assert len(shown) == 8


def test_units_that_passed_are_one_row_each_in_a_small_terminal(
    wording: RecordedWording,
) -> None:
    units = [f"unit-{number}" for number in range(3)]
    steps = [
        a_step(f"wave {wave}", a_ref(f"{unit[-1]}-{wave}"), unit=unit)
        for unit in units
        for wave in range(4)
    ]
    progress = course_of(*steps)
    for step in steps[:-1]:
        read_result(progress, *applied(step, 0), *passed(step, 2_000))

    shown = seen(progress, 3_000, height=8)

    wording(shown[:3])


def test_a_retry_is_shown_with_its_delay_and_reason(wording: RecordedWording) -> None:
    again = Event(
        Ms(1_000),
        EventType.RETRY_SCHEDULED,
        ONE.id,
        None,
        "Failed",
        "the server is busy",
        Ms(6_000),
    )
    progress = read_result(course_of(ONE), *applied(ONE, 0), again)

    wording(seen(progress, 2_000)[0])


def test_a_failed_step_shows_its_reason() -> None:
    progress = read_result(
        course_of(ONE), *applied(ONE, 0), failed(ONE, 900, "Deployment default/web: bad")
    )

    row = seen(progress, 900)[0]
    assert row.startswith("✗ wave 1 ")
    assert "Deployment default/web: bad" in row


def test_skipped_rescue_steps_of_a_successful_rollout_are_not_shown() -> None:
    rescue = a_step("syncfail", a_ref("clean-up"), rescues=True)
    progress = read_result(course_of(ONE, rescue), *applied(ONE, 0), *passed(ONE, 10))
    read_result(progress, Event(Ms(10), EventType.STEP_SKIPPED, rescue.id), ended(10))

    assert not any("SyncFail" in row for row in seen(progress, 10))


def test_progress_never_decreases() -> None:
    progress = course_of(ONE, TWO)
    events = [
        *applied(ONE, 0),
        waits(ONE, 0, WEB, "no pod yet"),
        waits(ONE, 0, DB, "restoring"),
        ready(ONE, 1, WEB),
        ready(ONE, 2, DB),
        *passed(ONE, 2),
        *applied(TWO, 2),
        *passed(TWO, 3),
    ]

    settled: dict[int, int] = {}
    for event in events:
        progress.add_event(event)
        settled[event.at] = sum(step.settled_count for step in progress.counted_steps)

    assert settled == {0: 0, 1: 1, 2: 2, 3: 3}


def test_a_picture_is_at_least_as_high_as_the_one_before() -> None:
    progress = read_result(course_of(ONE, TWO), *applied(ONE, 0), waits(ONE, 0, WEB, "no pod yet"))

    rows = view_rows(progress, ViewOptions(height=20, min_height=9), Ms(1_000))

    assert len(rows) == 9
    assert plain_text(rows[-1]).startswith("━")


def test_a_stopped_rollout_still_shows_its_unfinished_steps(wording: RecordedWording) -> None:
    progress = read_result(course_of(ONE, TWO), *applied(ONE, 0), waits(ONE, 0, WEB, "no pod yet"))
    read_result(progress, ended(5_000, "stopped", "interrupted"))

    shown = [plain_text(row) for row in final_rows(progress, ViewOptions(width=60))]

    wording(shown[:2])


def test_a_step_that_writes_shows_its_progress(wording: RecordedWording) -> None:
    progress = read_result(course_of(ONE), *applied(ONE, 0)[:3])

    wording(seen(progress, 500)[0])


def test_a_unit_locked_by_another_client_is_shown_until_it_is_acquired(
    wording: RecordedWording,
) -> None:
    held = Event(Ms(1_000), EventType.UNIT_WAITING, message="locked by `ci-7`", unit=SHOP)
    waiting = seen(read_result(course_of(ONE), held), 9_000)
    taken = seen(
        read_result(course_of(ONE), held, Event(Ms(9_000), EventType.UNIT_ACQUIRED, unit=SHOP)),
        9_000,
    )

    wording(waiting[0])
    assert not [row for row in taken if "ci-7" in row]
