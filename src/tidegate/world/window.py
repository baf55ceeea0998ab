"""How many calls one cluster takes at a time.

Grows while answers come as quickly as before; shrinks when the server throttles, when answers are
lost, or when they come much later than they used to.
"""

from __future__ import annotations

from tidegate.model.moment import SECOND, Ms

START = 16.0
LEAST = 1.0
MOST = 64.0
URGENT_EXTRA = 4
"""Urgent calls need not wait for a place: a few may go above the window."""

PATIENT_MS = 200.0
"""Answers faster than this are never too slow, whatever they were before."""
SLOWER = 2.0
RECENT = 0.1
USUAL = 0.01


class Window:
    """Additive growth, multiplicative shrinking, at most one cut a second."""

    def __init__(self) -> None:
        self.size = START
        self._recent: float | None = None
        self._usual = 0.0
        self._next_cut = Ms(0)

    def has_room(self, in_flight: int, *, urgent: bool) -> bool:
        return in_flight < int(self.size) + (URGENT_EXTRA if urgent else 0)

    def answered(self, latency: Ms, now: Ms, *, in_flight: int) -> None:
        """An answer came, after `latency`. A window that is not used does not grow."""
        if self._recent is None:
            self._recent = self._usual = float(latency)
        self._recent += RECENT * (latency - self._recent)
        self._usual += USUAL * (latency - self._usual)
        if self._recent > PATIENT_MS and self._recent > SLOWER * self._usual:
            self._cut(0.8, now)
        elif in_flight >= int(self.size):
            self.size = min(MOST, self.size + 1 / self.size)

    def refused(self, now: Ms) -> None:
        """The server has too much to do, or went away."""
        self._cut(0.5, now)

    def _cut(self, factor: float, now: Ms) -> None:
        if now < self._next_cut:
            return
        self.size = max(LEAST, self.size * factor)
        self._next_cut = Ms(now + SECOND)
