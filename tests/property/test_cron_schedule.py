"""A schedule comes when a walk through every minute says that it comes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tidegate.model.times import MINUTE, Ms
from tidegate.model.units.schedule import FixedInterval, ScheduleError, parse_schedule

WALK = 3 * 24 * 60
"""The number of tested minutes: three days."""
BOUNDS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata")
NAMES = {3: ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]}
NAMES[4] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]


@st.composite
def pieces(draw: st.DrawFn, place: int) -> str:
    low, high = BOUNDS[place]
    first = draw(st.integers(low, high))
    last = draw(st.integers(first, high))
    step = draw(st.integers(1, 40))
    words = NAMES.get(place)
    text = words[first - low].upper() if words and draw(st.booleans()) else str(first)
    forms = (text, f"{first}-{last}", f"{first}-{last}/{step}", f"*/{step}", f"{first}/{step}")
    return draw(st.sampled_from(("*", "?", *forms)))


def fields(place: int) -> st.SearchStrategy[str]:
    return st.lists(pieces(place), min_size=1, max_size=3).map(",".join)


SCHEDULES = st.tuples(*(fields(place) for place in range(5))).map(" ".join)
MOMENTS = st.integers(
    int(datetime(2025, 1, 1, tzinfo=UTC).timestamp()),
    int(datetime(2027, 1, 1, tzinfo=UTC).timestamp()),
).map(lambda second: Ms(second * 1_000))


def fits_piece(piece: str, value: int, place: int) -> bool:
    """Straight from the words: the oracle shares nothing with the parser."""
    low, high = BOUNDS[place]
    span, _, step = piece.partition("/")
    if span in "*?":
        return (value - low) % int(step or 1) == 0
    start, dash, end = span.lower().partition("-")
    words = NAMES.get(place, [])
    first = words.index(start) + low if start in words else int(start)
    last = int(end) if dash else (high if step else first)
    return first <= value <= last and (value - first) % int(step or 1) == 0


def fits(schedule: str, local: datetime) -> bool:
    values = (local.minute, local.hour, local.day, local.month, local.isoweekday() % 7)
    texts = schedule.split()
    held = [
        any(fits_piece(piece, value, place) for piece in text.split(","))
        for place, (text, value) in enumerate(zip(texts, values, strict=True))
    ]
    free = [
        any(piece in ("*", "?", "*/1") for piece in text.split(","))
        for text in (texts[2], texts[4])
    ]
    day = (held[2] and held[4]) if any(free) else (held[2] or held[4])
    return held[0] and held[1] and held[3] and day


def walk(schedule: str, zone: str, moment: Ms) -> Ms | None:
    """The first minute after a moment that fits, of the next three days."""
    place = ZoneInfo(zone)
    minute = moment // MINUTE + 1
    for later in range(minute, minute + WALK):
        local = datetime.fromtimestamp(later * 60, UTC).astimezone(place)
        if fits(schedule, local):
            return Ms(later * MINUTE)
    return None


@settings(max_examples=150, deadline=None)
@given(schedule=SCHEDULES, zone=st.sampled_from(ZONES), moment=MOMENTS)
@example("30 2 * * *", "Europe/Berlin", Ms(1_774_700_000_000))
@example("30 2 * * *", "Europe/Berlin", Ms(1_792_850_000_000))
@example("*/20 * * * *", "Australia/Lord_Howe", Ms(1_775_300_000_000))
@example("0 0 13 * fri", "UTC", Ms(1_767_225_600_000))
def test_a_schedule_matches_a_minute_by_minute_search(schedule: str, zone: str, moment: Ms) -> None:
    walked = walk(schedule, zone, moment)

    coming = parse_schedule(schedule, zone).next_time(moment)

    if walked is None:
        assert coming is None or coming > (moment // MINUTE + WALK) * MINUTE
    else:
        assert coming == walked


@given(moment=MOMENTS)
def test_schedule_names_equal_their_expressions(moment: Ms) -> None:
    lines = {
        "@yearly": "0 0 1 1 *",
        "@monthly": "0 0 1 * *",
        "@weekly": "0 0 * * 0",
        "@daily": "0 0 * * *",
        "@hourly": "0 * * * *",
    }

    coming = {word: parse_schedule(word).next_time(moment) for word in lines}

    assert coming == {word: parse_schedule(line).next_time(moment) for word, line in lines.items()}


def test_a_day_that_no_month_has_never_matches() -> None:
    schedule = parse_schedule("0 0 31 2 *")

    assert schedule.next_time(Ms(1_767_225_600_000)) is None


def test_a_zone_can_be_named_in_the_line_itself() -> None:
    midnight = Ms(int(datetime(2026, 1, 1, tzinfo=UTC).timestamp()) * 1_000)

    named = parse_schedule("TZ=Asia/Tokyo 0 12 * * *").next_time(midnight)
    given_beside = parse_schedule("0 12 * * *", "Asia/Tokyo").next_time(midnight)

    noon = datetime(2026, 1, 1, 12, tzinfo=ZoneInfo("Asia/Tokyo"))
    assert named == given_beside == int(noon.timestamp()) * 1_000


def test_an_interval_counts_from_the_time_before() -> None:
    schedule = parse_schedule("@every 90s")

    assert isinstance(schedule, FixedInterval)
    assert schedule.next_time(Ms(1_000)) == timedelta(seconds=91) // timedelta(milliseconds=1)


@pytest.mark.parametrize(
    "line",
    ["", "* * * *", "* * * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *",
     "* * * * 7", "5-1 * * * *", "*/0 * * * *", "a * * * *", "-1 * * * *", "1-2-3 * * * *",
     "@sometimes", "@every soon", "TZ=Nowhere/Else * * * * *", "+5 * * * *", "* * * foo *"],
)  # fmt: skip
def test_an_invalid_schedule_is_rejected(line: str) -> None:
    with pytest.raises(ScheduleError):
        parse_schedule(line)
