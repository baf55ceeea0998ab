"""Event queue of the simulation. The simulated clock moves from one entry to the next."""

from __future__ import annotations

import heapq
from collections.abc import Callable

from tidegate.model.times import Ms

Callback = Callable[[], None]
"""An action of the queue."""


class EventQueue:
    """Callbacks in order of time; those for the same time keep the order of insertion."""

    def __init__(self) -> None:
        self._entries: list[tuple[Ms, int, Callback]] = []
        self._count = 0

    def add(self, time: Ms, callback: Callback) -> None:
        """Add a callback for a time."""
        self._count += 1
        heapq.heappush(self._entries, (time, self._count, callback))

    def next_time(self) -> Ms | None:
        """Return the time of the next entry, or None if the queue is empty."""
        return self._entries[0][0] if self._entries else None

    def pop_due(self, now: Ms) -> Callback | None:
        """Remove and return the next callback that is due, or None."""
        if self._entries and self._entries[0][0] <= now:
            return heapq.heappop(self._entries)[2]
        return None
