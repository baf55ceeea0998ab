"""Plans and deletions as rows for people and as JSON documents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tidegate.model.objects import Ref
from tidegate.model.plan import ItemAction, Plan, step_items
from tidegate.report.plan import step_title


def deletion_lines(
    plan: Plan, retained: Sequence[Ref], unconfirmed: Sequence[Ref]
) -> Iterator[str]:
    """Yield each step with the actions on its objects, then the objects that are kept."""
    with_unit = len({step.unit for step in plan.steps}) > 1
    names = {step.id: step_title(step, with_unit=with_unit) for step in plan.steps}
    width = max((len(name) for name in names.values()), default=0)
    for step in plan.steps:
        name = names[step.id]
        for item in step_items(step):
            if item.asks and item.ref in unconfirmed:
                continue
            action = "delete" if item.deed is ItemAction.DELETE else "run"
            yield f"  {name:{width}}  {action:6}  {item.ref}"
            name = ""
    for ref in retained:
        reason = "asks for confirmation" if ref in unconfirmed else "is not to be deleted"
        yield f"  {'':{width}}  keep    {ref} ({reason})"
