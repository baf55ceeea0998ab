"""Cron schedules, as CronJobs write them: five fields, or a word such as `@hourly`.

A day fits where the day of the month and the day of the week fit. Where neither of the two is
`*`, one of them is enough.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from typing import NamedTuple
from zoneinfo import ZoneInfo

from tidegate.model.moment import SECOND, Ms, parse_duration

WORDS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
EVERY = "@every "
MONTH_NAMES = "jan feb mar apr may jun jul aug sep oct nov dec"
MONTHS = {name: number for number, name in enumerate(MONTH_NAMES.split(), 1)}
DAY_NAMES = "sun mon tue wed thu fri sat"
DAYS = {name: number for number, name in enumerate(DAY_NAMES.split())}
FURTHEST = 5
"""A schedule that does not come in so many years never comes."""

Zone = timezone | ZoneInfo


class ScheduleError(ValueError):
    """A schedule that cannot be read."""


class Field(NamedTuple):
    """The values that fit one field. `is_open`: it was written as `*` or `?`."""

    values: frozenset[int]
    is_open: bool


class Schedule(NamedTuple):
    """The minutes, hours and days at which something begins, in a time zone."""

    minute: Field
    hour: Field
    day: Field
    month: Field
    weekday: Field
    zone: Zone

    def next(self, moment: Ms) -> Ms | None:
        """The first moment after this one that fits; None where none ever does."""
        at = datetime.fromtimestamp(moment // SECOND, UTC) + timedelta(seconds=1)
        last = at.year + FURTHEST
        while (local := at.astimezone(self.zone)).year <= last:
            later = self._later(local)
            if later is None:
                return Ms(int(local.timestamp()) * SECOND)
            # A clock that is set forward leaves out hours: never go back behind where we are.
            at = max(later.astimezone(UTC), at + timedelta(seconds=1))
        return None

    def _later(self, local: datetime) -> datetime | None:
        """Where to look next; None where this fits."""
        midnight = local.replace(hour=0, minute=0, second=0, fold=0)
        if local.month not in self.month.values:
            return (midnight.replace(day=1) + timedelta(days=32)).replace(day=1)
        if not self._fits_day(local):
            return midnight + timedelta(days=1)
        # Hours and minutes are counted in real time, as a clock that is set would show them.
        real = local.astimezone(UTC)
        if local.hour not in self.hour.values:
            return real + timedelta(minutes=60 - local.minute, seconds=-local.second)
        if local.minute not in self.minute.values or local.second:
            return real + timedelta(seconds=60 - local.second)
        return None

    def _fits_day(self, local: datetime) -> bool:
        day = local.day in self.day.values
        weekday = local.isoweekday() % 7 in self.weekday.values
        if self.day.is_open or self.weekday.is_open:
            return day and weekday
        return day or weekday


class Interval(NamedTuple):
    """`@every 1h`: so long after the time before."""

    span: Ms

    def next(self, moment: Ms) -> Ms | None:
        return Ms(moment // SECOND * SECOND + self.span)


def parse_schedule(text: str, zone: str = "") -> Schedule | Interval:
    """Raises ScheduleError for what is no schedule."""
    found = re.match(r"(?:CRON_)?TZ=(\S+)\s+", text)
    where = found[1] if found else zone
    line = (text[found.end() :] if found else text).strip()
    if line.startswith(EVERY):
        return _interval(line.removeprefix(EVERY))
    fields = WORDS.get(line, line).split()
    if len(fields) != 5:  # noqa: PLR2004 - what a line of a crontab has
        raise ScheduleError(f"expected exactly 5 fields, found {len(fields)}: [{line}]")
    return Schedule(
        minute=_field(fields[0], 0, 59, {}),
        hour=_field(fields[1], 0, 23, {}),
        day=_field(fields[2], 1, 31, {}),
        month=_field(fields[3], 1, 12, MONTHS),
        weekday=_field(fields[4], 0, 6, DAYS),
        zone=read_zone(where),
    )


def read_zone(name: str) -> Zone:
    """A time zone by its name; the empty one is UTC, as it is for a controller manager."""
    if name in ("", "UTC"):
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ScheduleError(f"unknown time zone {name}") from None


def _interval(text: str) -> Interval:
    try:
        span = parse_duration(text)
    except ValueError:
        raise ScheduleError(f"failed to parse duration {EVERY}{text}") from None
    return Interval(Ms(max(SECOND, span // SECOND * SECOND)))


def _field(text: str, low: int, high: int, names: dict[str, int]) -> Field:
    pieces = [_piece(piece, low, high, names) for piece in text.split(",") if piece]
    values = frozenset(value for own, _ in pieces for value in own)
    return Field(values, any(is_open for _, is_open in pieces))


def _piece(text: str, low: int, high: int, names: dict[str, int]) -> tuple[range, bool]:
    """One range: `*`, `5`, `mon-fri`, `*/15`, `10-50/20`, `5/15` (from five on)."""
    span, slash, stride = text.partition("/")
    step = _number(stride, {}) if slash else 1
    if span in ("*", "?"):
        first, last = low, high
    else:
        begin, dash, end = span.partition("-")
        first = _number(begin, names)
        last = _number(end, names) if dash else (high if slash else first)
    if first < low or last > high or first > last or step < 1:
        raise ScheduleError(f"not a range within {low}-{high}: {text}")
    return range(first, last + 1, step), span in ("*", "?") and step == 1


def _number(text: str, names: dict[str, int]) -> int:
    known = names.get(text.lower())
    if known is not None:
        return known
    if not (text.isascii() and text.isdigit()):
        raise ScheduleError(f"not a number: {text}")
    return int(text)
