"""Estimate of durations that vary: optimistic, likely or pessimistic."""

from __future__ import annotations

from enum import StrEnum


class DurationEstimate(StrEnum):
    """The point in the range of each duration that a simulation uses."""

    OPTIMISTIC = "optimistic"
    LIKELY = "likely"
    PESSIMISTIC = "pessimistic"
