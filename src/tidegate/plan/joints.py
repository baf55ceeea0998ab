"""Units that another one brings have their place among its steps.

A child begins with the wave that its own object is in, beside the other objects of that wave, and
what comes behind the wave waits for it:

    wave 0 ──▶ joint ──▶ wave 1 ──▶ wave 2
                 └──▶ child ─────────▲

A joint has no objects. It keeps the number of edges at one for each child, however many children
the next wave has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from tidegate.model.manifest import Manifest
from tidegate.model.objects import identity
from tidegate.model.plan import Because, PlannedUnit, Precedence, Step, digest_step
from tidegate.model.policy import Gates, Policy
from tidegate.model.semantics import Children
from tidegate.plan.chains import step_id

END = "end"
"""Behind everything of a unit, and of the units in its last wave."""


def with_joints(
    steps: Iterable[Step], members: Mapping[str, tuple[Manifest, ...]], unit: PlannedUnit
) -> tuple[list[Step], list[Precedence]]:
    """The steps of a unit with joints where it brings others, and what comes of that.

    `members` are the manifests of each step, by its id.
    """
    found: list[Step] = []
    begins: list[tuple[int, Manifest]] = []
    for step in steps:
        children = [one for one in members.get(step.id, ()) if one.brings]
        if children:
            begins += [(len(found), child) for child in children]
            found.append(_joint(step))
        if step.batches:
            found.append(step)
    awaited = [at for at, child in begins if _is_awaited(child, unit.policy)]
    at_end = unit.policy.semantics.children is Children.GATES
    if any(at_end or _behind(found, at) is None for at in awaited):
        name = step_id(unit, END)
        found.append(
            Step(id=name, unit=unit.id, digest=digest_step(()), cluster=unit.cluster, stage=END)
        )
    return found, list(_precedences(found, begins, unit.policy))


def _behind(steps: list[Step], at: int) -> Step | None:
    """The first step behind the wave or stage of another one."""
    joint = steps[at]
    spot = (joint.phase, joint.wave, joint.stage)
    others = (one for one in steps[at + 1 :] if (one.phase, one.wave, one.stage) != spot)
    return next((one for one in others if not one.rescues), None)


def _joint(step: Step) -> Step:
    if not step.batches:
        return step
    return msgspec.structs.replace(step, id=f"{step.id}.0", batches=(), digest=digest_step(()))


def _is_awaited(child: Manifest, policy: Policy) -> bool:
    match policy.semantics.children:
        case Children.ALWAYS:
            return True
        case Children.GATES if policy.gates is Gates.ALL:
            return True
        case Children.GATES if policy.gates is Gates.LISTED:
            return identity(child.ref) in map(identity, policy.listed)
        case _:
            return False


def _precedences(
    steps: list[Step], begins: list[tuple[int, Manifest]], policy: Policy
) -> Iterator[Precedence]:
    at_end = policy.semantics.children is Children.GATES
    for at, child in begins:
        origin, after = child.origin, steps[-1] if at_end else _behind(steps, at)
        is_awaited = after is not None and _is_awaited(child, policy)
        for unit in child.brings:
            yield Precedence(before=steps[at].id, after=unit, because=Because.PARENT, where=origin)
            if after is not None and is_awaited:
                yield Precedence(before=unit, after=after.id, because=Because.PARENT, where=origin)
