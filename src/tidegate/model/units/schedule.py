"""Cron schedules of CronJobs and sync windows: five fields, or an alias such as `@hourly`.

A day matches if the day of the month and the day of the week match. If neither of the two fields is
`*`, one match is enough. Like `spec.go` of robfig/cron.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from typing import NamedTuple
from zoneinfo import ZoneInfo

from tidegate.model.times import SECOND, Ms, parse_duration

ALIASES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
EVERY_PREFIX = "@every "
MONTH_NAMES = "jan feb mar apr may jun jul aug sep oct nov dec"
MONTHS = {name: number for number, name in enumerate(MONTH_NAMES.split(), 1)}
DAY_NAMES = "sun mon tue wed thu fri sat"
DAYS = {name: number for number, name in enumerate(DAY_NAMES.split())}
MAX_YEARS = 5
"""Years after which a schedule without a match is considered to never match."""
TimeZone = timezone | ZoneInfo


class ScheduleError(ValueError):
    """A schedule that cannot be parsed."""


class CronField(NamedTuple):
    """The values that match one field."""

    values: frozenset[int]
    is_wildcard: bool
    """Whether the field is `*` or `?`."""


class CronSchedule(NamedTuple):
    """The minutes, hours and days of a schedule, in a time zone."""

    minute: CronField
    hour: CronField
    day: CronField
    month: CronField
    weekday: CronField
    zone: TimeZone

    def next_time(self, time: Ms) -> Ms | None:
        """Return the first matching time after this one. Returns None if there is none."""
        candidate = datetime.fromtimestamp(time // SECOND, UTC) + timedelta(seconds=1)
        last_year = candidate.year + MAX_YEARS
        while (local := candidate.astimezone(self.zone)).year <= last_year:
            later = self._next_candidate(local)
            if later is None:
                return Ms(int(local.timestamp()) * SECOND)
            # Hours are skipped when the clock is set forward: never go back in time.
            candidate = max(later.astimezone(UTC), candidate + timedelta(seconds=1))
        return None

    def _next_candidate(self, local: datetime) -> datetime | None:
        """Return the next time to try. Returns None if this one matches."""
        midnight = local.replace(hour=0, minute=0, second=0, fold=0)
        if local.month not in self.month.values:
            return (midnight.replace(day=1) + timedelta(days=32)).replace(day=1)
        if not self._matches_day(local):
            return midnight + timedelta(days=1)
        # Hours and minutes are counted in UTC, so clock changes are handled.
        real = local.astimezone(UTC)
        if local.hour not in self.hour.values:
            return real + timedelta(minutes=60 - local.minute, seconds=-local.second)
        if local.minute not in self.minute.values or local.second:
            return real + timedelta(seconds=60 - local.second)
        return None

    def _matches_day(self, local: datetime) -> bool:
        day = local.day in self.day.values
        weekday = local.isoweekday() % 7 in self.weekday.values
        if self.day.is_wildcard or self.weekday.is_wildcard:
            return day and weekday
        return day or weekday


class FixedInterval(NamedTuple):
    """A fixed interval, such as `@every 1h`."""

    duration: Ms

    def next_time(self, time: Ms) -> Ms | None:
        return Ms(time // SECOND * SECOND + self.duration)


def parse_schedule(text: str, zone: str = "") -> CronSchedule | FixedInterval:
    """Parse a schedule. Raises ScheduleError."""
    match = re.match(r"(?:CRON_)?TZ=(\S+)\s+", text)
    zone_name = match[1] if match else zone
    line = (text[match.end() :] if match else text).strip()
    if line.startswith(EVERY_PREFIX):
        return _parse_interval(line.removeprefix(EVERY_PREFIX))
    fields = ALIASES.get(line, line).split()
    if len(fields) != 5:  # noqa: PLR2004 - what a line of a crontab has
        raise ScheduleError(f"expected exactly 5 fields, found {len(fields)}: [{line}]")
    return CronSchedule(
        minute=_parse_field(fields[0], 0, 59, {}),
        hour=_parse_field(fields[1], 0, 23, {}),
        day=_parse_field(fields[2], 1, 31, {}),
        month=_parse_field(fields[3], 1, 12, MONTHS),
        weekday=_parse_field(fields[4], 0, 6, DAYS),
        zone=parse_time_zone(zone_name),
    )


def parse_time_zone(name: str) -> TimeZone:
    """Return a time zone by name; the empty name is UTC, as for a controller manager.

    Raises ScheduleError for an unknown name.
    """
    if name in ("", "UTC"):
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ScheduleError(f"unknown time zone {name}") from None


def _parse_interval(text: str) -> FixedInterval:
    try:
        duration = parse_duration(text)
    except ValueError:
        raise ScheduleError(f"failed to parse duration {EVERY_PREFIX}{text}") from None
    return FixedInterval(Ms(max(SECOND, duration // SECOND * SECOND)))


def _parse_field(text: str, low: int, high: int, names: dict[str, int]) -> CronField:
    pieces = [_parse_range(piece, low, high, names) for piece in text.split(",") if piece]
    values = frozenset(value for piece_values, _ in pieces for value in piece_values)
    return CronField(values, any(is_wildcard for _, is_wildcard in pieces))


def _parse_range(text: str, low: int, high: int, names: dict[str, int]) -> tuple[range, bool]:
    """Parse one range, and return whether it is a wildcard.

    Forms: `*`, `5`, `mon-fri`, `*/15`, `10-50/20`, `5/15` (from five on).
    """
    bounds, slash, stride = text.partition("/")
    step = _parse_number(stride, {}) if slash else 1
    if bounds in ("*", "?"):
        first, last = low, high
    else:
        start, dash, end = bounds.partition("-")
        first = _parse_number(start, names)
        last = _parse_number(end, names) if dash else (high if slash else first)
    if first < low or last > high or first > last or step < 1:
        raise ScheduleError(f"not a range within {low}-{high}: {text}")
    return range(first, last + 1, step), bounds in ("*", "?") and step == 1


def _parse_number(text: str, names: dict[str, int]) -> int:
    named = names.get(text.lower())
    if named is not None:
        return named
    if not (text.isascii() and text.isdigit()):
        raise ScheduleError(f"not a number: {text}")
    return int(text)
