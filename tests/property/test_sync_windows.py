"""When a window lets go is when a walk through every minute says so."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.model.times import MINUTE, SECOND, Ms
from tidegate.model.units.sync_window import SyncWindow, find_blocking_window, find_window_block

WALK = 3 * 24 * 60
FIRST = int(datetime(2026, 3, 27, tzinfo=UTC).timestamp()) * SECOND
"""Clocks are set two days later in Berlin."""
SCHEDULES = ("0 22 * * *", "30 8 * * 1-5", "*/20 6-9 * * *", "15 2 * * sun", "0 12 29 3 *")
WINDOWS = st.builds(
    SyncWindow,
    allows=st.booleans(),
    schedule=st.sampled_from(SCHEDULES),
    duration=st.sampled_from([MINUTE, Ms(45 * MINUTE), Ms(9 * 60 * MINUTE)]),
    zone=st.sampled_from(["", "Europe/Berlin", "America/New_York", "Asia/Kolkata"]),
    manual=st.booleans(),
    overruns=st.booleans(),
)


@settings(max_examples=20, deadline=None)
@given(
    windows=st.lists(WINDOWS, min_size=1, max_size=3).map(tuple),
    minute=st.integers(0, WALK),
    is_manual=st.booleans(),
)
def test_a_unit_waits_until_the_first_minute_that_its_windows_allow(
    windows: tuple[SyncWindow, ...], minute: int, *, is_manual: bool
) -> None:
    now = Ms(FIRST + minute * MINUTE + 1)

    hold = find_window_block(windows, now, is_manual=is_manual)

    if hold is None:
        return
    walked = (Ms(now + step * MINUTE) for step in range(1, WALK))
    free = next(
        (item for item in walked if not find_blocking_window(windows, item, is_manual=is_manual)),
        None,
    )
    if free is None:
        assert not hold.until or hold.until > now + (WALK - 1) * MINUTE
    else:
        assert free - MINUTE < hold.until <= free
        assert find_blocking_window(windows, hold.until, is_manual=is_manual) is None
        assert find_blocking_window(windows, Ms(hold.until - 1), is_manual=is_manual) is not None
