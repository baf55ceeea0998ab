"""Windows: when something may be synced, and how long that takes."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.errors import Place
from tidegate.lint.rule import RuleRemark, rule
from tidegate.lint.scene import LintScene
from tidegate.model.finding import Severity
from tidegate.model.moment import format_duration
from tidegate.model.semantics import ARGOCD


@rule(
    "ORD031",
    "A window is shorter than what is to be synced in it",
    Severity.WARNING,
    why="when the window closes, Argo CD holds a sync that is under way until it opens again: half"
    " of the objects are new, and half are old",
    fix="make the window longer, let a sync that has begun go on (`syncOverrun: true`), or part the"
    " Application",
)
def short_window(scene: LintScene) -> Iterator[RuleRemark]:
    """By what is known of how long objects take to be ready; nobody waits for windows of others."""
    for unit, span in scene.spans.items():
        policy = scene.units[unit].policy if unit in scene.units else None
        allowing = [one for one in policy.windows if one.allows] if policy is not None else []
        longest = max(allowing, key=lambda one: one.duration, default=None)
        if longest is None or longest.duration >= span or any(one.overruns for one in allowing):
            continue
        least, most = format_duration(span), format_duration(longest.duration)
        yield RuleRemark(
            sentence=f"`{unit}` takes {least} at the least, and no window that allows it is open"
            f" for longer than {most}",
            at=_spot(longest.where),
            also=(scene.units[unit].where,),
            semantics=(ARGOCD.name,),
        )


def _spot(where: str) -> Place | None:
    """A place as it was written down: a file, and a line of it."""
    file, _, line = where.rpartition(":")
    return Place(file, int(line)) if file and line.isdigit() else Place(where) if where else None
