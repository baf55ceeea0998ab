"""Sync windows: spans of time in which a unit may be synced, or may not.

A window is active behind each moment of its schedule, for its duration. The schedule is read by the
clock on the wall of its time zone, as that is set at the moment that is asked about.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from itertools import pairwise

import msgspec

from tidegate.model.moment import HOUR, SECOND, Ms
from tidegate.model.schedule import Interval, Schedule, ScheduleError, parse_schedule, read_zone

DAY = Ms(24 * HOUR)
FURTHEST = 366 * DAY
"""What does not open in a year is told not to open."""
MOST_CHANGES = 20_000
"""So many moments are looked at."""


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
    def kind(self) -> str:
        return "allow" if self.allows else "deny"

    @property
    def title(self) -> str:
        zone = f" {self.zone}" if self.zone else ""
        return f"`{self.kind}` window `{self.schedule}`{zone} at {self.where}"


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
    holder = find_holder(windows, now, asked=asked, began=began)
    if holder is None:
        return None
    for at in _changes(windows, now, quirks=asked or began is not None):
        if find_holder(windows, at, asked=asked, began=began) is None:
            return WindowHold(holder, at)
    return WindowHold(holder, Ms(0))


def is_active(window: SyncWindow, at: Ms) -> bool:
    local = _local(window.zone, at)
    begun = _schedule(window.schedule).next(Ms(local - window.duration))
    return begun is not None and begun < local


def find_holder(
    windows: Sequence[SyncWindow], at: Ms, *, asked: bool, began: Ms | None = None
) -> SyncWindow | None:
    """The window that holds: one that denies, else one that does not allow any more, or yet."""
    denies = [one for one in windows if not one.allows and is_active(one, at)]
    if not denies and any(one.allows and is_active(one, at) for one in windows):
        return None
    holders = denies or [one for one in windows if one.allows]
    if not holders or (asked and all(one.manual for one in holders)):
        return None
    goes_on = began is not None and all(one.overruns for one in holders)
    if goes_on and began is not None and not find_holder(windows, began, asked=asked):
        return None
    return next((one for one in holders if not (asked and one.manual)), holders[0])


def _changes(windows: Sequence[SyncWindow], now: Ms, *, quirks: bool) -> Iterator[Ms]:
    """The moments behind this one at which a hold may end, in their order.

    While something is denied, that is when a denial ends; else when something is allowed. Where a
    person asks, a denial that lets people pass ends a hold too.
    """
    last, at = Ms(now + FURTHEST), now
    for _ in range(MOST_CHANGES):
        denied = any(not one.allows and is_active(one, at) for one in windows)
        found = [_turn(one.zone, at) for one in windows]
        if denied:
            found += [_end(one, at) for one in windows if not one.allows]
        else:
            found += [_start(one, at) for one in windows if one.allows or quirks]
        later = [one for one in found if at < one <= last]
        if not later:
            return
        at = min(later)
        yield at


def _start(window: SyncWindow, at: Ms) -> Ms:
    """When it is next active, by the clock as it is set now; 0 is never."""
    local = _local(window.zone, at)
    begins = _schedule(window.schedule).next(local)
    return Ms(at + begins - local + 1) if begins is not None else Ms(0)


def _end(window: SyncWindow, at: Ms) -> Ms:
    """When it may cease to be active; 0 where it is not."""
    schedule, local = _schedule(window.schedule), _local(window.zone, at)
    begun = schedule.next(Ms(local - window.duration))
    if begun is None or begun >= local:
        return Ms(0)
    again = schedule.next(local)
    goes_on = again is not None and again < begun + window.duration
    last = again if goes_on and again is not None else begun
    return Ms(at + last + window.duration - local)


def _turn(zone: str, at: Ms) -> Ms:
    """When the clock of a zone is set next; 0 is not within a year or so."""
    if zone in {"", "UTC"}:
        return Ms(0)
    year = datetime.fromtimestamp(at // SECOND, UTC).year
    turns = (*_turns(zone, year), *_turns(zone, year + 1))
    return next((one for one in turns if one > at), Ms(0))


@lru_cache(maxsize=256)
def _turns(zone: str, year: int) -> tuple[Ms, ...]:
    """When the clock of a zone is set in a year, to the second."""
    first = int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) * SECOND
    days = [Ms(first + day * DAY) for day in range(367)]
    found = []
    for low, high in pairwise(days):
        before = _local(zone, low) - low
        if _local(zone, high) - high != before:
            left, right = low // SECOND, high // SECOND
            while left + 1 < right:
                middle = (left + right) // 2
                is_same = _local(zone, Ms(middle * SECOND)) - middle * SECOND == before
                left, right = (middle, right) if is_same else (left, middle)
            found.append(Ms(right * SECOND))
    return tuple(found)


@lru_cache(maxsize=256)
def _schedule(text: str) -> Schedule | Interval:
    return parse_schedule(text)


def _local(zone: str, at: Ms) -> Ms:
    """The moment as the clock on the wall shows it; a zone that nobody knows is UTC."""
    if zone in {"", "UTC"}:
        return at
    try:
        known = read_zone(zone)
    except ScheduleError:
        return at
    offset = datetime.fromtimestamp(at // SECOND, UTC).astimezone(known).utcoffset()
    return Ms(at + (int(offset.total_seconds()) * SECOND if offset else 0))
