"""Sync windows: time spans in which a unit may be synced, or may not.

A window is active for its duration after each time of its schedule. The schedule is evaluated in
the local time of its time zone, with the UTC offset of the time in question.

Like `CanSync` of `SyncWindows` in `pkg/apis/application/v1alpha1/types.go` of Argo CD 3.6.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from itertools import pairwise

import msgspec

from tidegate.model.times import HOUR, SECOND, Ms
from tidegate.model.units.schedule import (
    CronSchedule,
    FixedInterval,
    ScheduleError,
    parse_schedule,
    parse_time_zone,
)

DAY = Ms(24 * HOUR)
MAX_LOOKAHEAD = 366 * DAY
"""A window that does not open within a year is reported to never open."""
MAX_CHANGES = 20_000
"""Maximum number of times that are examined."""


class SyncWindow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A sync window that applies to a unit."""

    allows: bool
    """Whether it allows syncs. If not, it denies them."""
    schedule: str
    duration: Ms
    zone: str = ""
    manual: bool = False
    """Whether manual syncs are exempt."""
    overruns: bool = False
    """Whether a sync that started while it was allowed may continue."""
    where: str = ""
    """The location of its definition."""

    @property
    def kind(self) -> str:
        return "allow" if self.allows else "deny"

    @property
    def title(self) -> str:
        zone = f" {self.zone}" if self.zone else ""
        return f"`{self.kind}` window `{self.schedule}`{zone} at {self.where}"


class WindowBlock(msgspec.Struct, frozen=True):
    """The window that blocks a unit, and when it stops blocking; 0 is never."""

    window: SyncWindow
    until: Ms


@lru_cache(maxsize=256)
def find_window_block(
    windows: tuple[SyncWindow, ...], now: Ms, *, is_manual: bool, started_at: Ms | None = None
) -> WindowBlock | None:
    """Return the window that blocks a unit at a time. Returns None if no window does.

    `is_manual`: whether a person requested the sync. `started_at`: its start, if it is running.
    """
    window = find_blocking_window(windows, now, is_manual=is_manual, started_at=started_at)
    if window is None:
        return None
    for at in _possible_changes(windows, now, allows_manual=is_manual or started_at is not None):
        if find_blocking_window(windows, at, is_manual=is_manual, started_at=started_at) is None:
            return WindowBlock(window, at)
    return WindowBlock(window, Ms(0))


def is_active(window: SyncWindow, at: Ms) -> bool:
    local = _local_time(window.zone, at)
    active_since = _parse_cached_schedule(window.schedule).next_time(Ms(local - window.duration))
    return active_since is not None and active_since < local


def find_blocking_window(
    windows: Sequence[SyncWindow], at: Ms, *, is_manual: bool, started_at: Ms | None = None
) -> SyncWindow | None:
    """Return the blocking window: one that denies, else an allowing window that is not active.

    Returns None if no window blocks.
    """
    denying = [window for window in windows if not window.allows and is_active(window, at)]
    if not denying and any(window.allows and is_active(window, at) for window in windows):
        return None
    blocking = denying or [window for window in windows if window.allows]
    if not blocking or (is_manual and all(window.manual for window in blocking)):
        return None
    may_overrun = started_at is not None and all(window.overruns for window in blocking)
    if (
        may_overrun
        and started_at is not None
        and not find_blocking_window(windows, started_at, is_manual=is_manual)
    ):
        return None
    return next((window for window in blocking if not (is_manual and window.manual)), blocking[0])


def _possible_changes(
    windows: Sequence[SyncWindow], now: Ms, *, allows_manual: bool
) -> Iterator[Ms]:
    """Yield the later times at which a block may end, in order.

    While a window denies, these are the ends of denying windows; else the starts of allowing
    windows. For a manual sync, a denying window that exempts manual syncs may end a block too.
    """
    last, at = Ms(now + MAX_LOOKAHEAD), now
    for _ in range(MAX_CHANGES):
        denied = any(not window.allows and is_active(window, at) for window in windows)
        times = [_next_offset_change(window.zone, at) for window in windows]
        if denied:
            times += [_next_end(window, at) for window in windows if not window.allows]
        else:
            times += [
                _next_start(window, at) for window in windows if window.allows or allows_manual
            ]
        later = [time for time in times if at < time <= last]
        if not later:
            return
        at = min(later)
        yield at


def _next_start(window: SyncWindow, at: Ms) -> Ms:
    """Return the next start of a window with the current UTC offset; 0 is never."""
    local = _local_time(window.zone, at)
    start = _parse_cached_schedule(window.schedule).next_time(local)
    return Ms(at + start - local + 1) if start is not None else Ms(0)


def _next_end(window: SyncWindow, at: Ms) -> Ms:
    """Return when an active window may end; 0 if it is not active."""
    schedule, local = _parse_cached_schedule(window.schedule), _local_time(window.zone, at)
    active_since = schedule.next_time(Ms(local - window.duration))
    if active_since is None or active_since >= local:
        return Ms(0)
    next_start = schedule.next_time(local)
    is_extended = next_start is not None and next_start < active_since + window.duration
    last_start = next_start if is_extended and next_start is not None else active_since
    return Ms(at + last_start + window.duration - local)


def _next_offset_change(zone: str, at: Ms) -> Ms:
    """Return the next change of the UTC offset of a zone; 0 if there is none.

    The search covers this year and the next.
    """
    if zone in {"", "UTC"}:
        return Ms(0)
    year = datetime.fromtimestamp(at // SECOND, UTC).year
    changes = (*_offset_changes(zone, year), *_offset_changes(zone, year + 1))
    return next((time for time in changes if time > at), Ms(0))


@lru_cache(maxsize=256)
def _offset_changes(zone: str, year: int) -> tuple[Ms, ...]:
    """Return the changes of the UTC offset of a zone in a year, to the second."""
    first = int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) * SECOND
    days = [Ms(first + day * DAY) for day in range(367)]
    changes = []
    for low, high in pairwise(days):
        before = _local_time(zone, low) - low
        if _local_time(zone, high) - high != before:
            left, right = low // SECOND, high // SECOND
            while left + 1 < right:
                middle = (left + right) // 2
                is_same = _local_time(zone, Ms(middle * SECOND)) - middle * SECOND == before
                left, right = (middle, right) if is_same else (left, middle)
            changes.append(Ms(right * SECOND))
    return tuple(changes)


@lru_cache(maxsize=256)
def _parse_cached_schedule(text: str) -> CronSchedule | FixedInterval:
    return parse_schedule(text)


def _local_time(zone: str, at: Ms) -> Ms:
    """Return a time in the local time of a zone. An unknown zone is UTC."""
    if zone in {"", "UTC"}:
        return at
    try:
        time_zone = parse_time_zone(zone)
    except ScheduleError:
        return at
    offset = datetime.fromtimestamp(at // SECOND, UTC).astimezone(time_zone).utcoffset()
    return Ms(at + (int(offset.total_seconds()) * SECOND if offset else 0))
