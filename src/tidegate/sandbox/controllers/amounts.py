"""Counts as Kubernetes reads and writes them."""

from __future__ import annotations

from tidegate.model.objects import Json

HUNDRED = 100


def share(value: Json, *, of: int, rounds_up: bool) -> int:
    """A count, or so many percent of a whole."""
    if isinstance(value, str) and value.endswith("%"):
        percent = int(value[:-1])
        return -(-of * percent // HUNDRED) if rounds_up else of * percent // HUNDRED
    return value if isinstance(value, int) else 0


def without_zeros(counts: dict[str, Json]) -> dict[str, Json]:
    """Counts as Kubernetes writes those that it leaves out when they are zero."""
    return {name: count for name, count in counts.items() if count}
