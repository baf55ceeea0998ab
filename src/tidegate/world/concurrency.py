"""Adaptive limit of the concurrent calls to one cluster.

The window grows while responses are as fast as before. It shrinks when the server throttles, when
there is no response, or when responses become much slower.
"""

from __future__ import annotations

from tidegate.model.times import SECOND, Ms

INITIAL_SIZE = 16.0
MIN_SIZE = 1.0
MAX_SIZE = 64.0
URGENT_EXTRA = 4
"""How many urgent calls may be in flight beyond the window."""
FAST_MS = 200.0
"""Responses faster than this are never too slow, whatever the baseline is."""
SLOWDOWN_FACTOR = 2.0
RECENT_WEIGHT = 0.1
BASELINE_WEIGHT = 0.01


class ConcurrencyWindow:
    """Additive increase and multiplicative decrease, with at most one decrease a second."""

    def __init__(self) -> None:
        self.size = INITIAL_SIZE
        self._recent: float | None = None
        self._baseline = 0.0
        self._next_shrink = Ms(0)

    def has_room(self, in_flight: int, *, urgent: bool) -> bool:
        """Return whether another call may be sent."""
        return in_flight < int(self.size) + (URGENT_EXTRA if urgent else 0)

    def on_response(self, latency: Ms, now: Ms, *, in_flight: int) -> None:
        """Record the latency of a response. A window that is not used up does not grow."""
        if self._recent is None:
            self._recent = self._baseline = float(latency)
        self._recent += RECENT_WEIGHT * (latency - self._recent)
        self._baseline += BASELINE_WEIGHT * (latency - self._baseline)
        if self._recent > FAST_MS and self._recent > SLOWDOWN_FACTOR * self._baseline:
            self._shrink(0.8, now)
        elif in_flight >= int(self.size):
            self.size = min(MAX_SIZE, self.size + 1 / self.size)

    def on_overload(self, now: Ms) -> None:
        """Shrink: the server is overloaded or disconnected."""
        self._shrink(0.5, now)

    def _shrink(self, factor: float, now: Ms) -> None:
        if now < self._next_shrink:
            return
        self.size = max(MIN_SIZE, self.size * factor)
        self._next_shrink = Ms(now + SECOND)
