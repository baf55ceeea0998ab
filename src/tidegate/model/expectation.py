"""What is expected of durations that vary: the best, the likely, the worst."""

from __future__ import annotations

from enum import StrEnum


class Expectation(StrEnum):
    """Where in the range of each duration a simulation is."""

    OPTIMISTIC = "optimistic"
    LIKELY = "likely"
    PESSIMISTIC = "pessimistic"
