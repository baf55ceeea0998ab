"""Durations as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.recorded_wording import RecordedWording
from tests.unit.model.invalid_values import invalid_value_error
from tidegate.model.times import (
    Ms,
    format_duration,
    format_timestamp,
    parse_duration,
    parse_timestamp,
)

YEARS_292 = 292 * 365 * 24 * 3_600_000


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("0", 0),
        ("0s", 0),
        ("-0", 0),
        ("250ms", 250),
        ("1.5s", 1_500),
        (".5s", 500),
        ("1.s", 1_000),
        ("1m30s", 90_000),
        ("2h", 7_200_000),
        ("1.5h", 5_400_000),
        ("1s1h", 3_601_000),
        ("1000us", 1),
        ("2000\u00b5s", 2),
        ("3000\u03bcs", 3),
        ("5000000ns", 5),
        ("0.5us999.5us", 1),
        ("+2s", 2_000),
        ("-2s", -2_000),
    ],
)
def test_a_duration_is_read_like_go(text: str, span: int) -> None:
    assert parse_duration(text) == span


def test_an_invalid_duration_is_refused(wording: RecordedWording) -> None:
    texts = ["", "2", "s", ".s", "2 s", " 2s", "2s ", "1:30", "2d", "1m30", "--2s", "1e3s"]
    texts += ["\u0662s", "2S"]

    wording(f"`{text}`: {invalid_value_error(parse_duration, text)}" for text in texts)


def test_durations_below_a_millisecond_are_rejected(wording: RecordedWording) -> None:
    texts = ["1us", "1.0005s", "0.1ms"]

    wording(f"`{text}`: {invalid_value_error(parse_duration, text)}" for text in texts)


def test_a_duration_is_no_longer_than_go_can_count(wording: RecordedWording) -> None:
    assert parse_duration("2562047h47m16.854s") == 9_223_372_036_854

    wording(invalid_value_error(parse_duration, "2562047h47m16.855s"))


@pytest.mark.parametrize(
    ("span", "text"),
    [
        (0, "0s"),
        (250, "250ms"),
        (1_500, "1.5s"),
        (10_000, "10s"),
        (90_000, "1m30s"),
        (60_250, "1m0.25s"),
        (7_200_000, "2h"),
        (3_601_000, "1h1s"),
        (-1_500, "-1.5s"),
    ],
)
def test_a_duration_is_written_short(span: int, text: str) -> None:
    assert format_duration(Ms(span)) == text


@given(st.integers(-YEARS_292, YEARS_292))
def test_a_written_duration_is_read_back(span: int) -> None:
    assert parse_duration(format_duration(Ms(span))) == span


def test_a_timestamp_is_in_its_time_zone_or_utc() -> None:
    assert parse_timestamp("2026-01-01T01:00:00+01:00") == 1_767_225_600_000
    assert parse_timestamp("2026-01-01T00:00:00.250Z") == 1_767_225_600_250
    assert parse_timestamp("2026-01-01 00:00:00") == 1_767_225_600_000
    assert format_timestamp(parse_timestamp("2026-01-01T00:00:00Z")) == "2026-01-01 00:00:00 UTC"
