"""What will happen, when. The clock of the sandbox moves from one entry to the next."""

from __future__ import annotations

import heapq
from collections.abc import Callable

from tidegate.model.moment import Ms

Chore = Callable[[], None]


class Agenda:
    """Deeds in order of their time; of those due at one moment, the first entered is first."""

    def __init__(self) -> None:
        self._entries: list[tuple[Ms, int, Chore]] = []
        self._count = 0

    def add(self, moment: Ms, deed: Chore) -> None:
        self._count += 1
        heapq.heappush(self._entries, (moment, self._count, deed))

    def next_moment(self) -> Ms | None:
        return self._entries[0][0] if self._entries else None

    def take(self, now: Ms) -> Chore | None:
        """The next deed that is due, if any is."""
        if self._entries and self._entries[0][0] <= now:
            return heapq.heappop(self._entries)[2]
        return None
