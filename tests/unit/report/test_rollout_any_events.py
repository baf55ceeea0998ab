"""Any events of a rollout, in any order, can be shown and fit."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as some

from tests.unit.report.rollout_events import SHOP, a_ref, a_step, plan_of
from tidegate.model.plans.plan import Plan
from tidegate.model.rollouts.causes import failing_objects
from tidegate.model.rollouts.event import Event, EventType
from tidegate.model.rollouts.rollout_progress import RolloutProgress
from tidegate.model.times import Ms
from tidegate.model.units.unit import UnitId
from tidegate.report.rollout.explain import explain_failure
from tidegate.report.rollout.lines import RolloutLog
from tidegate.report.rollout.live import ViewOptions, final_rows, view_rows
from tidegate.report.rollout.summary import NO_NEXT_COMMANDS, stopped_rows, summary_rows
from tidegate.report.styled_text import ASCII_SYMBOLS, UNICODE_SYMBOLS, plain_text, row_width

REFS = [a_ref("web"), a_ref("db"), a_ref("a-name-that-is-longer-than-some-screens-" * 4)]
STEPS = [
    a_step("wave 0", REFS[0], REFS[1]),
    a_step("wave 1", REFS[2]),
    a_step("wave 0", unit="other"),
    a_step("syncfail", REFS[0], rescues=True),
]
NAMES = ["", *(step.id for step in STEPS), "nobody/planned/this", "odd"]
MOMENTS = some.integers(0, 200_000).map(Ms)
SENTENCES = some.sampled_from(
    ["", "no pod yet", "Deployment default/web: \x1b[31mbad\n", "データ " * 40, "x" * 500]
)
EVENTS = some.builds(
    Event,
    at=MOMENTS,
    type=some.sampled_from(EventType),
    step=some.sampled_from(NAMES),
    ref=some.sampled_from([None, *REFS]),
    reason=some.sampled_from(["", "passed", "failed", "stopped", "invalid", "Unready"]),
    message=SENTENCES,
    until=MOMENTS,
    unit=some.sampled_from([None, SHOP, UnitId("", "east", "default", "second")]),
    cluster=some.sampled_from(["", "east"]),
)
STORIES = some.lists(EVENTS, max_size=40)
VIEWS = some.builds(
    ViewOptions,
    width=some.integers(1, 200),
    height=some.integers(1, 40),
    symbols=some.sampled_from([ASCII_SYMBOLS, UNICODE_SYMBOLS]),
    tick=some.integers(0, 100),
    min_height=some.integers(0, 60),
    title=some.sampled_from(["", "default/first"]),
    notice=some.sampled_from(["", "stopping"]),
)


PLANS = some.sampled_from([plan_of(), plan_of(*STEPS)])


def course_of(events: list[Event], plan: Plan) -> RolloutProgress:
    progress = RolloutProgress(Ms(0))
    progress.add_plan(plan)
    for event in events:
        progress.add_event(event)
    return progress


@given(STORIES, VIEWS, MOMENTS, PLANS)
def test_a_picture_never_exceeds_its_frame(
    events: list[Event], view: ViewOptions, now: Ms, plan: Plan
) -> None:
    progress = course_of(events, plan)

    rows = view_rows(progress, view, now)

    assert 1 <= len(rows) <= view.height
    assert all(row_width(row) <= view.width for row in [*rows, *final_rows(progress, view)])


@given(STORIES, VIEWS, MOMENTS)
def test_a_picture_has_no_marks_that_move_a_cursor(
    events: list[Event], view: ViewOptions, now: Ms
) -> None:
    rows = view_rows(course_of(events, plan_of(*STEPS)), view, now)

    assert all(plain_text(row).isprintable() for row in rows)


@given(STORIES, PLANS)
def test_lines_are_in_the_order_of_their_times(events: list[Event], plan: Plan) -> None:
    lines = RolloutLog(course_of([], plan))
    ordered = sorted(events, key=lambda event: event.at)

    messages = [line for event in ordered for line in lines.add_event(event)]

    times = [float(line.split("s")[0]) for line in messages]
    assert times == sorted(times)
    assert all(line.isprintable() for line in messages)


@given(STORIES, PLANS)
def test_a_summary_can_always_be_printed(events: list[Event], plan: Plan) -> None:
    progress = course_of(events, plan)

    failing_objects(progress)
    rows = [
        *summary_rows(progress),
        *stopped_rows(progress, NO_NEXT_COMMANDS),
        *explain_failure(progress),
    ]

    assert all(plain_text(row).isprintable() for row in rows)
