"""A plan that runs one Job or hook again, and behind it what waits for it, in all units.

What is run makes room for itself first, as hooks do; what comes before it is not in the plan.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from tidegate.model.objects import Ref
from tidegate.model.plan import (
    Because,
    Deed,
    Edge,
    Fragment,
    HookPolicy,
    Item,
    Plan,
    PlannedUnit,
    Step,
    digest_step,
    items_of,
)
from tidegate.model.unit import UnitId
from tidegate.plan.build import digest_units
from tidegate.plan.chains import mark_last, narrow

JOB = ("batch", "Job")
ROOM = "makes room"


def is_run(item: Item) -> bool:
    """Whether it does something once, and is not kept for what it is: a Job, or a hook."""
    kind = item.ref.kind
    return item.deed is Deed.APPLY and (item.hook is not None or (kind.group, kind.name) == JOB)


def runs_in(plan: Plan) -> list[tuple[Step, Item]]:
    """All Jobs and hooks of a plan, in its order."""
    return [(step, item) for step in plan.steps for item in items_of(step) if is_run(item)]


def units_behind(plan: Plan, step: Step) -> list[PlannedUnit]:
    """The unit of a step, and those in which something waits for it."""
    behind = _behind(plan, step) | {step.id}
    touched = {one.unit for one in plan.steps if one.id in behind}
    return [one for one in plan.units if one.id in touched]


def rerun(plan: Plan, step: Step, ref: Ref, done: Mapping[UnitId, str]) -> Plan:
    """The plan that runs this object of this step again.

    `done`: of each unit in which something is done, the digest of what was last brought of it.
    Where that is all of it, it stays so; else the unit counts as brought in part, and is not done
    behind this.
    """
    behind = _behind(plan, step)

    def cut(one: Step) -> Step | None:
        if one.id == step.id:
            return _again(one, only=ref)
        return _again(one) if one.id in behind else None

    left = narrow(plan, cut)
    units = [_partial(one, left, done[one.id]) for one in units_behind(plan, step)]
    steps, edges = _with_room(left)
    return Plan.of(Fragment(units=tuple(units), steps=steps, edges=edges))


def _partial(unit: PlannedUnit, left: Plan, done: str) -> PlannedUnit:
    (partial,) = digest_units((unit,), left.steps)
    policy = msgspec.structs.replace(unit.policy, prunes=False, runs_hooks=True)
    digest = unit.digest if done == unit.digest else partial.digest
    planned: PlannedUnit = msgspec.structs.replace(
        unit, policy=policy, digest=digest, group="", parent=None
    )
    return planned


def _with_room(plan: Plan) -> tuple[tuple[Step, ...], tuple[Edge, ...]]:
    """Before each step with Jobs that are kept, one in which these are deleted."""
    steps: list[Step] = []
    rooms: dict[str, Step] = {}
    for step in plan.steps:
        jobs = tuple(one for one in items_of(step) if is_run(one) and one.hook is None)
        if jobs:
            batches = (tuple(Item(ref=one.ref, deed=Deed.DELETE) for one in jobs),)
            room = msgspec.structs.replace(
                step,
                id=f"{step.id}/{ROOM}",
                stage=ROOM,
                batches=batches,
                digest=digest_step(batches),
                last=False,
            )
            rooms[step.id] = room
            steps.append(room)
        steps.append(step)
    known = {one.id for one in steps}
    edges = [
        msgspec.structs.replace(one, after=rooms[one.after].id if one.after in rooms else one.after)
        for one in plan.edges
        if one.before in known and one.after in known
    ]
    edges += [Edge(room.id, name, Because.STAGE) for name, room in rooms.items()]
    by_unit: dict[UnitId, list[Step]] = {}
    for step in steps:
        by_unit.setdefault(step.unit, []).append(step)
    marked = {one.id: one for mine in by_unit.values() for one in mark_last(mine)}
    return tuple(marked[one.id] for one in steps), tuple(edges)


def _behind(plan: Plan, step: Step) -> set[str]:
    """The steps that wait for one, and those that rescue the units of all of them."""
    after: dict[str, list[str]] = {}
    for edge in plan.edges:
        after.setdefault(edge.before, []).append(edge.after)
    found, way = set[str](), [step.id]
    while way:
        for name in after.get(way.pop(), ()):
            if name not in found:
                found.add(name)
                way.append(name)
    touched = {one.unit for one in plan.steps if one.id in found or one.id == step.id}
    return found | {one.id for one in plan.steps if one.unit in touched and one.rescues}


def _again(step: Step, only: Ref | None = None) -> Step | None:
    """The step with what is run in it as hooks that make room for themselves."""
    batches = tuple(
        tuple(_anew(item) for item in batch if only is None or item.ref == only)
        for batch in step.batches
    )
    kept = tuple(batch for batch in batches if batch)
    if not kept and step.batches:
        return None
    return msgspec.structs.replace(step, batches=kept, digest=digest_step(kept, step.expands))


def _anew(item: Item) -> Item:
    """A hook makes room for itself; a Job that was removed as its time was over is made again."""
    if not is_run(item):
        return item
    if item.hook is None:
        return msgspec.structs.replace(item, expires=False)
    policies = dict.fromkeys((HookPolicy.BEFORE_CREATION, *item.hook))
    return msgspec.structs.replace(item, hook=tuple(policies))
