"""Sync windows: spans of time in which a unit may be synced, or may not.

A window is active behind each moment of its schedule, for its duration. The schedule is read by the
clock on the wall of its time zone, as that is set at the moment that is asked about.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import lru_cache

import msgspec

from tidegate.model.moment import HOUR, SECOND, Ms
from tidegate.model.schedule import Interval, Schedule, ScheduleError, parse_schedule, read_zone

FURTHEST = 366 * 24 * HOUR
"""What does not open in a year is told not to open."""


class SyncWindow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One window, for the units that it fits.

    `allows`: else it denies. `manual`: it does not count where a person asks. `overruns`: what
    began while it was allowed may go on. `where`: the place that says so.
    """

    allows: bool
    schedule: str
    duration: Ms
    zone: str = ""
    manual: bool = False
    overruns: bool = False
    where: str = ""

    @property
    def title(self) -> str:
        kind = "allow" if self.allows else "deny"
        zone = f" {self.zone}" if self.zone else ""
        return f"`{kind}` window `{self.schedule}`{zone} at {self.where}"


class WindowHold(msgspec.Struct, frozen=True):
    """Which window holds a unit, and when it lets go; never is 0."""

    window: SyncWindow
    until: Ms


@lru_cache(maxsize=256)
def find_hold(
    windows: tuple[SyncWindow, ...], now: Ms, *, asked: bool, began: Ms | None = None
) -> WindowHold | None:
    """What holds a unit at a moment, if something does.

    `asked`: a person wants the sync. `began`: when it began, if it is under way.
    """
    holder = _holder(windows, now, asked=asked, began=began)
    if holder is None:
        return None
    moments = _changes(windows, now)
    free = (one for one in moments if _holder(windows, one, asked=asked, began=began) is None)
    return WindowHold(holder, next(free, Ms(0)))


def is_active(window: SyncWindow, at: Ms) -> bool:
    local = _local(window, at)
    begun = _schedule(window.schedule).next(Ms(local - window.duration))
    return begun is not None and begun < local


def _holder(
    windows: Sequence[SyncWindow], at: Ms, *, asked: bool, began: Ms | None
) -> SyncWindow | None:
    """The window that holds: one that denies, else one that does not allow any more, or yet."""
    denies = [one for one in windows if not one.allows and is_active(one, at)]
    if not denies and any(one.allows and is_active(one, at) for one in windows):
        return None
    holders = denies or [one for one in windows if one.allows]
    if not holders or (asked and all(one.manual for one in holders)):
        return None
    goes_on = began is not None and all(one.overruns for one in holders)
    if goes_on and began is not None and not _holder(windows, began, asked=asked, began=None):
        return None
    return next((one for one in holders if not (asked and one.manual)), holders[0])


def _changes(windows: Sequence[SyncWindow], now: Ms) -> Iterator[Ms]:
    """The moments behind this one at which a window may become active, or cease to be."""
    last, at = Ms(now + FURTHEST), now
    while at < last:
        found = [one for window in windows for one in _next_changes(window, at) if one > at]
        if not found:
            return
        at = min(found)
        yield at


def _next_changes(window: SyncWindow, at: Ms) -> Iterator[Ms]:
    schedule, local = _schedule(window.schedule), _local(window, at)
    begins = schedule.next(local)
    if begins is not None:
        yield Ms(at + begins - local + 1)
    begun = schedule.next(Ms(local - window.duration))
    if begun is not None and begun < local:
        yield Ms(at + begun + window.duration - local)
    if window.zone not in {"", "UTC"}:  # clocks are set at whole hours
        yield Ms((at // HOUR + 1) * HOUR)


@lru_cache(maxsize=256)
def _schedule(text: str) -> Schedule | Interval:
    return parse_schedule(text)


def _local(window: SyncWindow, at: Ms) -> Ms:
    """The moment as the clock on the wall shows it; a zone that nobody knows is UTC."""
    try:
        zone = read_zone(window.zone)
    except ScheduleError:
        zone = UTC
    offset = datetime.fromtimestamp(at // SECOND, UTC).astimezone(zone).utcoffset()
    return Ms(at + (int(offset.total_seconds()) * SECOND if offset else 0))
