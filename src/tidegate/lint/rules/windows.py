"""Rules about sync windows."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.errors import Location
from tidegate.lint.context import LintContext
from tidegate.lint.rule import Diagnostic, rule
from tidegate.model.finding import Severity
from tidegate.model.times import format_duration
from tidegate.model.units.semantics import ARGOCD


@rule(
    "ORD031",
    "Sync window is shorter than the sync",
    Severity.WARNING,
    why="when the window closes, Argo CD pauses a running sync until the next window opens;"
    " meanwhile some objects are new and some are old",
    fix="extend the window, set `syncOverrun: true` so that a running sync continues, or split the"
    " Application",
)
def short_window(context: LintContext) -> Iterator[Diagnostic]:
    """Yield units that take longer than their longest sync window, if durations are known.

    Durations do not include waiting for the windows of other units.
    """
    for unit, duration in context.durations.items():
        policy = context.units[unit].policy if unit in context.units else None
        allow_windows = (
            [window for window in policy.windows if window.allows] if policy is not None else []
        )
        longest = max(allow_windows, key=lambda window: window.duration, default=None)
        if (
            longest is None
            or longest.duration >= duration
            or any(window.overruns for window in allow_windows)
        ):
            continue
        needed, available = format_duration(duration), format_duration(longest.duration)
        yield Diagnostic(
            message=f"a sync of `{unit}` takes at least {needed}, but its longest sync window is"
            f" {available}",
            at=_parse_location(longest.where),
            related=(context.units[unit].location,),
            semantics=(ARGOCD.name,),
        )


def _parse_location(location: str) -> Location | None:
    """Parse a location of a file and a line."""
    file, _, line = location.rpartition(":")
    return (
        Location(file, int(line))
        if file and line.isdigit()
        else Location(location)
        if location
        else None
    )
