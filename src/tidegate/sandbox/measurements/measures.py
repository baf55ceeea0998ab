"""Measured durations by metric and selector, and reasons for what was not measured."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import msgspec

from tidegate.model.times import MINUTE, Ms

MAX_DURATION = Ms(60 * MINUTE)
"""Longer durations are due to a later change: timestamps show only the last change."""


class RuleSelector(NamedTuple):
    """The fields of the `when` of a profile rule."""

    kind: str = ""
    """The kind of an owner or custom resource."""
    name: str = ""
    """The name of the object, which may have wildcards."""
    container: str = ""
    """The name of the container."""
    image: str = ""
    """The image, which may have wildcards."""
    group: str = ""
    """The API group of a custom resource."""
    stage: str = ""
    """The stage of a custom resource."""

    @property
    def to_when(self) -> dict[str, str]:
        """The non-empty fields, by name."""
        return {key: value for key, value in self._asdict().items() if value}


class Measurements(msgspec.Struct):
    """Measured durations, by metric (`pull`, `run`, `after`) and selector."""

    durations: dict[str, dict[RuleSelector, list[Ms]]] = msgspec.field(default_factory=dict)
    """The durations by metric and selector."""
    skipped: Counter[str] = msgspec.field(default_factory=Counter)
    """Reasons why a duration was not measured, with their number."""

    def record(self, metric: str, selector: RuleSelector, duration: Ms) -> None:
        """Record a duration; impossible ones are skipped."""
        if duration < 0 or duration > MAX_DURATION:
            self.skipped["times of a later change"] += 1
            return
        self.durations.setdefault(metric, {}).setdefault(selector, []).append(duration)

    def for_metric(self, metric: str) -> dict[RuleSelector, list[Ms]]:
        """Return the durations of a metric, by selector."""
        return self.durations.get(metric, {})
