"""Rows and names that fit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from tests.support.recorded_wording import RecordedWording
from tests.unit.report.rollout_events import SHOP
from tidegate.model.display import format_limit, format_running, join_limited, shorten_wait_message
from tidegate.model.k8s.objects import Kind, Ref
from tidegate.model.plans.plan import Step
from tidegate.model.rollouts.event import Event, EventType
from tidegate.model.rollouts.names import shorten_unit_names, step_name
from tidegate.model.rollouts.rollout_progress import RolloutProgress
from tidegate.model.times import Ms
from tidegate.report.styled_text import (
    Span,
    Style,
    justify,
    plain_text,
    row_width,
    text_width,
    truncate,
    truncate_middle,
    wrap_row,
)


def test_a_long_name_loses_its_middle() -> None:
    assert truncate_middle("shop/a-very-long-name-1", 12) == "shop/a…ame-1"


def test_a_long_sentence_loses_its_end() -> None:
    assert truncate("a text that is too long", 12) == "a text that…"


@given(some.text(), some.integers(0, 30))
def test_truncated_text_fits(text: str, width: int) -> None:
    assert text_width(truncate_middle(text, width)) <= width
    assert text_width(truncate(text, width)) <= width


def test_wide_letters_take_two_columns() -> None:
    assert text_width("データ") == 6
    assert truncate("データベース", 5) == "デー…"


def test_right_aligned_text_takes_precedence_over_left_aligned() -> None:
    left = (Span("wave -2", Style.STRONG),)

    assert plain_text(justify(left, "88.0s", 14)) == "wave -2  88.0s"
    assert plain_text(justify(left, "88.0s", 11)) == "wave -2"


@given(some.lists(some.text(max_size=20), max_size=4), some.text(max_size=9), some.integers(1, 60))
def test_a_row_never_gets_too_wide(texts: list[str], right: str, width: int) -> None:
    row = tuple(map(Span, texts))

    assert row_width(justify(row, right, width)) <= width
    assert all(row_width(part) <= width for part in wrap_row(row, width))


def test_continued_lines_are_aligned_with_the_text_of_the_label() -> None:
    row = (Span("  why      "), Span("Service default/db has no ready endpoints"))

    assert [plain_text(part) for part in wrap_row(row, 36)] == [
        "  why      Service default/db has no",
        "           ready endpoints",
    ]


def test_continued_lines_after_a_long_label_are_indented() -> None:
    row = (Span("x wave 0 failed"), Span(" after 19.0s: Job default/migrate gave up"))

    assert [plain_text(part) for part in wrap_row(row, 40)] == [
        "x wave 0 failed after 19.0s: Job",
        "    default/migrate gave up",
    ]


@pytest.mark.parametrize(
    ("phase", "wave", "stage", "name"),
    [
        ("sync", -2, "", "wave -2"),
        ("presync", 0, "", "PreSync"),
        ("postsync", 1, "", "PostSync wave 1"),
        ("delete", 3, "", "wave 3"),
        ("sync", 0, "classes", "classes"),
    ],
)
def test_a_step_has_a_name_that_people_know(phase: str, wave: int, stage: str, name: str) -> None:
    step = Step(id="x", unit=SHOP, digest="", phase=phase, wave=wave, stage=stage)

    assert step_name(step) == name


@pytest.mark.parametrize(
    ("id_", "cluster", "unit", "name"),
    [
        ("default/shop/sync/-3", "", "default/shop", "wave -3"),
        ("east/default/shop/definitions", "east", "east/default/shop", "definitions"),
    ],
)
def test_a_step_that_was_not_planned_is_named_after_its_id(
    id_: str, cluster: str, unit: str, name: str
) -> None:
    progress = RolloutProgress(Ms(0))

    progress.add_event(Event(Ms(0), EventType.STEP_CHECKING, id_, unit=SHOP, cluster=cluster))

    (step,) = progress.steps.values()
    assert (step.unit, step.name) == (unit, name)


def test_a_part_of_a_step_is_named_by_its_number(wording: RecordedWording) -> None:
    step = Step(id="x", unit=SHOP, digest="", wave=2, part=3)

    wording(step_name(step))


def test_units_are_named_as_shortly_as_they_can_be_distinguished() -> None:
    assert shorten_unit_names(["default/shop"]) == {"default/shop": ""}
    assert shorten_unit_names(["a/shop", "a/db"]) == {"a/shop": "shop", "a/db": "db"}
    assert shorten_unit_names(["a/shop", "b/shop"]) == {"a/shop": "a/shop", "b/shop": "b/shop"}


@pytest.mark.parametrize(
    ("span", "expected"),
    [(0, "0.0s"), (3_249, "3.2s"), (42_900, "42s"), (102_000, "1m42s"), (7_500_000, "2h05m")],
)
def test_longer_durations_are_shown_less_precisely(span: int, expected: str) -> None:
    assert format_running(Ms(span)) == expected


def test_a_limit_is_shown_in_round_figures() -> None:
    assert [format_limit(span) for span in (90_000, 600_000, 600_040)] == ["1m30s", "10m", "10m"]


def test_a_wait_message_is_shortened() -> None:
    text = "Waiting for rollout to finish: 0 of 1 updated replicas are available..."

    assert shorten_wait_message(text) == "0 of 1 updated replicas are available"


def test_many_objects_are_named_in_part(wording: RecordedWording) -> None:
    refs = [Ref(Kind("", "v1", "Secret"), "a", f"s{number}") for number in range(14)]

    wording(join_limited(refs, 2))
