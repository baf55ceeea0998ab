"""Times and durations as controllers in Go write them."""

from __future__ import annotations

from datetime import UTC, datetime

from tidegate.model.moment import HOUR, MINUTE, SECOND, Ms


def stamp(moment: Ms) -> str:
    """RFC 3339, to the second."""
    return f"{datetime.fromtimestamp(moment // SECOND, UTC):%Y-%m-%dT%H:%M:%SZ}"


def go_duration(span: Ms) -> str:
    """As Go prints it: `5m0s`, `1.5s`, `250ms`."""
    if span < SECOND:
        return f"{span}ms" if span else "0s"
    hours, rest = divmod(span, HOUR)
    minutes, rest = divmod(rest, MINUTE)
    seconds = f"{rest // SECOND}.{rest % SECOND:03}".rstrip("0").rstrip(".")
    head = f"{hours}h" if hours else ""
    return f"{head}{minutes}m{seconds}s" if hours or minutes else f"{seconds}s"
