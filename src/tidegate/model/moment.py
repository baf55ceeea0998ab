"""Time as whole milliseconds, and durations as people write them.

Floats lose a moment now and then, and a loop that waits for that moment never ends.
"""

from __future__ import annotations

from datetime import UTC, datetime
from fractions import Fraction
from typing import Annotated, NewType, TypeAlias

import msgspec

from tidegate.model.patterns import late

Ms = NewType("Ms", int)

SECOND = Ms(1_000)
MINUTE = Ms(60_000)
HOUR = Ms(3_600_000)

Span: TypeAlias = Annotated[Ms, msgspec.Meta(ge=0, extra={"step": 1})]
"""A duration as users write it, like `1m30s`."""
Seconds: TypeAlias = Annotated[Ms, msgspec.Meta(ge=0, extra={"step": SECOND})]
"""The same without fractions, as times in statuses and headers are."""
SomeSeconds: TypeAlias = Annotated[Ms, msgspec.Meta(ge=SECOND, extra={"step": SECOND})]

_UNITS = {
    "ns": Fraction(1, 1_000_000),
    "us": Fraction(1, 1_000),
    "\u00b5s": Fraction(1, 1_000),  # the micro sign, as Go prints it
    "\u03bcs": Fraction(1, 1_000),  # the Greek letter, which Go reads as well
    "ms": Fraction(1),
    "s": Fraction(SECOND),
    "m": Fraction(MINUTE),
    "h": Fraction(HOUR),
}
_PART = late(rf"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)({'|'.join(_UNITS)})")
_DURATION = late(rf"([+-]?)(0|(?:{_PART.pattern})+)")
_LONGEST = Fraction(2**63 - 1, 1_000_000)
"""What fits into Go's nanoseconds: 292 years."""


def after(moment: Ms, pause: Ms) -> Ms:
    """The moment that lies `pause` behind `moment`."""
    return Ms(moment + pause)


def parse_duration(text: str) -> Ms:
    """A duration as Go reads it: `1m30s`, `250ms`, `1.5h`, `-2s`, `0`.

    Raises ValueError for what is none, and for parts of a millisecond, which Go would keep.
    """
    span = _exact(text)
    if span.denominator != 1:
        raise ValueError("finer than a millisecond")
    return Ms(span.numerator)


def parse_measured(text: str) -> Ms:
    """A duration that a program has measured, to the nearest millisecond: `13.351690873s`."""
    return Ms(round(_exact(text)))


def _exact(text: str) -> Fraction:
    found = _DURATION.fullmatch(text)
    if found is None:
        raise ValueError("not a duration")
    sign, parts = found[1], _PART.findall(found[2])
    span = sum((Fraction(number) * _UNITS[unit] for number, unit in parts), Fraction(0))
    if span > _LONGEST:
        raise ValueError("longer than 292 years")
    return -span if sign == "-" else span


def parse_moment(text: str) -> Ms:
    """A moment as RFC 3339 has it, such as `2026-11-17T22:00:00Z`; without a zone it is UTC."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return Ms(int(moment.timestamp()) * SECOND + moment.microsecond // 1_000)


def format_moment(moment: Ms) -> str:
    """A moment for people, to the second."""
    return f"{datetime.fromtimestamp(moment // SECOND, UTC):%Y-%m-%d %H:%M:%S} UTC"


def format_duration(span: Ms) -> str:
    """A duration as short as it can be written, for people and for `parse_duration`."""
    if span < 0:
        return f"-{format_duration(Ms(-span))}"
    if span < SECOND:
        return f"{span}ms" if span else "0s"
    hours, rest = divmod(span, HOUR)
    minutes, rest = divmod(rest, MINUTE)
    seconds = f"{rest // SECOND}.{rest % SECOND:03}".rstrip("0").rstrip(".")
    parts = ((hours, f"{hours}h"), (minutes, f"{minutes}m"), (rest, f"{seconds}s"))
    return "".join(written for amount, written in parts if amount)
