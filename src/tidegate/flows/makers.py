"""Who in a plan makes an object: the plan itself, or an operator from what the plan holds."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from tidegate.knowledge.catalogue import KnownRows
from tidegate.knowledge.references import products_of
from tidegate.knowledge.templates import scope_of
from tidegate.model.objects import Json, Kind, Ref, identity
from tidegate.model.plan import Deed, Item, Plan, Step
from tidegate.model.reading import text
from tidegate.report.rollout.evidence import Comes, Maker


def find_makers(
    plan: Plan, wanted: Ref, catalogue: KnownRows, *, here: str, cluster: str
) -> Iterator[Maker]:
    """Those that would make it, in the order of the plan; `here` is the step that wants it."""
    for step in (one for one in plan.steps if one.cluster == cluster):
        for item in (item for batch in step.batches for item in batch):
            if identity(wanted) in _made_by(item, catalogue):
                yield Maker(ref=item.ref, step=step.id, comes=_comes(plan, here, step.id))


def step_of(plan: Plan, ref: Ref, cluster: str) -> Step | None:
    here = (step for step in plan.steps if step.cluster == cluster)
    return next((step for step in here if find_item(step, ref) is not None), None)


def find_item(step: Step, ref: Ref) -> Item | None:
    return next((item for batch in step.batches for item in batch if item.ref == ref), None)


def _made_by(item: Item, catalogue: KnownRows) -> set[tuple[str, str, str, str]]:
    """The object itself, and what its operator makes of it."""
    if item.deed is Deed.DELETE:
        return set()
    kind = item.ref.kind
    made = {identity(item.ref)}
    row = catalogue.row_of(kind)
    if row is not None:
        scope = scope_of(msgspec.json.decode(item.body), kind)
        made |= {identity(_ref_of(one.body)) for one in products_of(row, scope)}
    return made


def _ref_of(body: dict[str, Json]) -> Ref:
    kind = Kind.of(text(body, "apiVersion"), text(body, "kind"))
    return Ref(kind, text(body, "metadata", "namespace"), text(body, "metadata", "name"))


def _comes(plan: Plan, here: str, there: str) -> Comes:
    if here == there:
        return Comes.SAME
    if there in _behind(plan, here):
        return Comes.BEHIND
    return Comes.BEFORE if here in _behind(plan, there) else Comes.BESIDE


def _behind(plan: Plan, first: str) -> set[str]:
    """A step, and all that start only after it: a plan's steps stand in the order of its edges."""
    entering: dict[str, set[str]] = {}
    for edge in plan.edges:
        entering.setdefault(edge.after, set()).add(edge.before)
    found = {first}
    for step in plan.steps:
        if entering.get(step.id, set()) & found:
            found.add(step.id)
    return found
