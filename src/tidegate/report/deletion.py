"""What a deletion would do, as people read it before they agree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tidegate.model.objects import Ref
from tidegate.model.plan import Deed, Item, Plan
from tidegate.report.plan import step_name

PHASES = {"predelete": "PreDelete", "postdelete": "PostDelete"}


def deletion_lines(plan: Plan, staying: Sequence[Ref], asking: Sequence[Ref]) -> Iterator[str]:
    """Each step with what is done to its objects, then what is left alone."""
    names = {
        step.id: PHASES.get(step.phase) or step_name(step).removeprefix(step.phase).strip()
        for step in plan.steps
    }
    names = {name: shown or "wave 0" for name, shown in names.items()}
    width = max((len(name) for name in names.values()), default=0)
    for step in plan.steps:
        name = names[step.id]
        items = (item for batch in step.batches for item in batch)
        for item in (item for item in items if not (item.asks and item.ref in asking)):
            yield f"  {name:{width}}  {_deed(item):6}  {item.ref}"
            name = ""
    for ref in staying:
        why = "asks for confirmation" if ref in asking else "is not to be deleted"
        yield f"  {'':{width}}  keep    {ref} ({why})"


def _deed(item: Item) -> str:
    return "delete" if item.deed is Deed.DELETE else "run"
