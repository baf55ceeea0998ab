"""Timestamps and durations in the format of Go controllers."""

from __future__ import annotations

from tidegate.model.times import HOUR, MINUTE, SECOND, Ms


def format_go_duration(duration: Ms) -> str:
    """Format a duration like Go: `5m0s`, `1.5s`, `250ms`."""
    if duration < SECOND:
        return f"{duration}ms" if duration else "0s"
    hours, remainder = divmod(duration, HOUR)
    minutes, remainder = divmod(remainder, MINUTE)
    seconds = f"{remainder // SECOND}.{remainder % SECOND:03}".rstrip("0").rstrip(".")
    head = f"{hours}h" if hours else ""
    return f"{head}{minutes}m{seconds}s" if hours or minutes else f"{seconds}s"
