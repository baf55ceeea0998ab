"""What a deletion would do, as people read it before they agree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tidegate.model.objects import Ref
from tidegate.model.plan import Deed, Plan, items_of
from tidegate.report.plan import step_name


def deletion_lines(plan: Plan, staying: Sequence[Ref], asking: Sequence[Ref]) -> Iterator[str]:
    """Each step with what is done to its objects, then what is left alone."""
    several = len({step.unit for step in plan.steps}) > 1
    names = {step.id: step_name(step, several=several) for step in plan.steps}
    width = max((len(name) for name in names.values()), default=0)
    for step in plan.steps:
        name = names[step.id]
        for item in items_of(step):
            if item.asks and item.ref in asking:
                continue
            deed = "delete" if item.deed is Deed.DELETE else "run"
            yield f"  {name:{width}}  {deed:6}  {item.ref}"
            name = ""
    for ref in staying:
        why = "asks for confirmation" if ref in asking else "is not to be deleted"
        yield f"  {'':{width}}  keep    {ref} ({why})"
