"""Timestamps and durations in whole milliseconds.

Floats lose precision, and a loop that waits for an exact time would then never end.
"""

from __future__ import annotations

from datetime import UTC, datetime
from fractions import Fraction
from typing import Annotated, NewType, TypeAlias

import msgspec

from tidegate.model.text.lazy_regex import lazy_regex

Ms = NewType("Ms", int)
SECOND = Ms(1_000)
MINUTE = Ms(60_000)
HOUR = Ms(3_600_000)
SIMULATION_START = Ms(1_767_225_600_000)
"""The default start of the simulated clock: the beginning of 2026."""
Duration: TypeAlias = Annotated[Ms, msgspec.Meta(ge=0, extra={"step": 1})]
"""A duration in a user file, such as `1m30s`."""
WholeSeconds: TypeAlias = Annotated[Ms, msgspec.Meta(ge=0, extra={"step": SECOND})]
"""A duration in whole seconds, like the times in statuses and headers."""
PositiveSeconds: TypeAlias = Annotated[Ms, msgspec.Meta(ge=SECOND, extra={"step": SECOND})]
_UNITS = {
    "ns": Fraction(1, 1_000_000),
    "us": Fraction(1, 1_000),
    "\u00b5s": Fraction(1, 1_000),  # the micro sign, as Go prints it
    "\u03bcs": Fraction(1, 1_000),  # the Greek letter, which Go also accepts
    "ms": Fraction(1),
    "s": Fraction(SECOND),
    "m": Fraction(MINUTE),
    "h": Fraction(HOUR),
}
_PART = lazy_regex(rf"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)({'|'.join(_UNITS)})")
_DURATION = lazy_regex(rf"([+-]?)(0|(?:{_PART.pattern})+)")
_MAX_DURATION = Fraction(2**63 - 1, 1_000_000)
"""The longest duration that fits into Go's nanoseconds: 292 years."""


def add_duration(time: Ms, duration: Ms) -> Ms:
    """Return the time that is `duration` after `time`."""
    return Ms(time + duration)


def parse_duration(text: str) -> Ms:
    """Parse a duration in Go's format: `1m30s`, `250ms`, `1.5h`, `-2s`, `0`.

    Raises ValueError for an invalid text, and for fractions of a millisecond.
    """
    duration = _parse_exact(text)
    if duration.denominator != 1:
        raise ValueError("more precise than a millisecond")
    return Ms(duration.numerator)


def parse_optional_duration(text: str) -> Ms | None:
    """Parse a duration in Go's format; None for an empty or invalid text."""
    try:
        return parse_duration(text) if text else None
    except ValueError:
        return None


def format_rfc3339(time: Ms) -> str:
    """Format a time as RFC 3339, in whole seconds."""
    return f"{datetime.fromtimestamp(time // SECOND, UTC):%Y-%m-%dT%H:%M:%SZ}"


def parse_measured_duration(text: str) -> Ms:
    """Parse a measured duration such as `13.351690873s`, rounded to milliseconds.

    Raises ValueError.
    """
    return Ms(round(_parse_exact(text)))


def _parse_exact(text: str) -> Fraction:
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError("not a duration")
    sign, parts = match[1], _PART.findall(match[2])
    duration = sum((Fraction(number) * _UNITS[unit] for number, unit in parts), Fraction(0))
    if duration > _MAX_DURATION:
        raise ValueError("longer than 292 years")
    return -duration if sign == "-" else duration


def parse_timestamp(text: str) -> Ms:
    """Parse an RFC 3339 timestamp such as `2026-11-17T22:00:00Z`. Without a zone it is UTC."""
    parsed = datetime.fromisoformat(text)
    if parsed.tzinfo is None:
        parsed = parsed.replace(tzinfo=UTC)
    return Ms(int(parsed.timestamp()) * SECOND + parsed.microsecond // 1_000)


def format_timestamp(timestamp: Ms) -> str:
    """Format a timestamp for people, to the second."""
    return f"{datetime.fromtimestamp(timestamp // SECOND, UTC):%Y-%m-%d %H:%M:%S} UTC"


def format_duration(duration: Ms) -> str:
    """Format a duration in its shortest form, which `parse_duration` can read."""
    if duration < 0:
        return f"-{format_duration(Ms(-duration))}"
    if duration < SECOND:
        return f"{duration}ms" if duration else "0s"
    hours, remainder = divmod(duration, HOUR)
    minutes, remainder = divmod(remainder, MINUTE)
    seconds = f"{remainder // SECOND}.{remainder % SECOND:03}".rstrip("0").rstrip(".")
    parts = ((hours, f"{hours}h"), (minutes, f"{minutes}m"), (remainder, f"{seconds}s"))
    return "".join(text for amount, text in parts if amount)
