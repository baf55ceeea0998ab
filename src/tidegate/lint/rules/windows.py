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
    "A window is shorter than what is to be synced in it",
    Severity.WARNING,
    why="when the window closes, Argo CD holds a sync that is under way until it opens again: half"
    " of the objects are new, and half are old",
    fix="make the window longer, let a sync that has begun go on (`syncOverrun: true`), or part the"
    " Application",
)
def short_window(context: LintContext) -> Iterator[Diagnostic]:
    """Yield units that take longer than their longest sync window, as far as durations are known.

    Waiting for windows of other units is not counted.
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
            message=f"`{unit}` takes {needed} at the least, and no window that allows it is open"
            f" for longer than {available}",
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
