"""Units that another one brings have their place among its steps.

A child begins with the wave that its own object is in, beside the other objects of that wave, and
what comes behind the wave waits for it:

    wave 0 ──▶ joint ──▶ wave 1 ──▶ wave 2
                 └──▶ child ─────────▲

A joint has no objects. It keeps the number of edges at one for each child, however many children
the next wave has. Namespaces and definitions of the wave come before the joint.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import islice

import msgspec

from tidegate.model.manifest import Manifest
from tidegate.model.objects import identity
from tidegate.model.plan import Because, Item, PlannedUnit, Precedence, Step, digest_step
from tidegate.model.policy import Gates, Policy
from tidegate.model.semantics import ChildGates
from tidegate.model.unit import UnitId
from tidegate.plan.chains import keep_items, step_id
from tidegate.plan.stages import STAGES

END = "end"
"""Behind everything of a unit, and of the units in its last wave."""
GROUND = frozenset({("", "Namespace"), ("apiextensions.k8s.io", "CustomResourceDefinition")})
"""What a unit may need before anything of it can be written."""


def with_joints(
    steps: Iterable[Step],
    members: Mapping[str, tuple[Manifest, ...]],
    unit: PlannedUnit,
    aside: Container[UnitId] = (),
) -> tuple[list[Step], list[Precedence]]:
    """The steps of a unit with joints where it brings others, and what comes of that.

    `members` are the manifests of each step, by its id. Those `aside` are not waited for.
    """
    found: list[Step] = []
    begins: dict[UnitId, tuple[Step, Manifest]] = {}
    for step in steps:
        mine = members.get(step.id, ())
        children = [one for one in mine if any(name not in begins for name in one.brings)]
        first, rest = _parted(step) if children else (None, step)
        found += [first] if first else []
        if children:
            found.append(_joint(step))
            for one in children:
                for name in one.brings:
                    begins.setdefault(name, (found[-1], one))
        found += [rest] if rest.batches else []
    policy = unit.policy
    awaited = {
        name
        for name, (joint, child) in begins.items()
        if name not in aside and not joint.rescues and _is_awaited(child, policy)
    }
    joints = {begins[name][0].id: begins[name][0] for name in awaited}
    at_end = policy.semantics.children is ChildGates.GATES
    behind = {name: None if at_end else step_behind(found, one) for name, one in joints.items()}
    if None in behind.values():
        end = end_of(unit)
        found.append(end)
        behind = {name: step or end for name, step in behind.items()}
    return found, list(_precedences(begins, awaited, behind))


def end_of(unit: PlannedUnit) -> Step:
    name, nothing = step_id(unit, END), digest_step(())
    return Step(id=name, unit=unit.id, digest=nothing, cluster=unit.cluster, stage=END)


def step_behind(steps: Sequence[Step], joint: Step) -> Step | None:
    """The first step behind the wave or stage of a joint."""
    at = next(place for place, step in enumerate(steps) if step.id == joint.id)
    others = (one for one in islice(steps, at + 1, None) if one.spot != joint.spot)
    return next((one for one in others if not one.rescues), None)


def _parted(step: Step) -> tuple[Step | None, Step]:
    """What units of the same wave stand on, and the rest; stages part that by themselves."""
    first = None if step.stage in STAGES else keep_items(step, _is_ground)
    if first is None or not first.batches:
        return None, step
    rest = keep_items(step, lambda item: not _is_ground(item))
    if rest is None:
        return first, msgspec.structs.replace(step, batches=())
    return first, msgspec.structs.replace(rest, id=f"{step.id}.rest", part=2)


def _is_ground(item: Item) -> bool:
    return (item.ref.kind.group, item.ref.kind.name) in GROUND


def _joint(step: Step) -> Step:
    return msgspec.structs.replace(step, id=f"{step.id}.0", batches=(), digest=digest_step(()))


def _is_awaited(child: Manifest, policy: Policy) -> bool:
    match policy.semantics.children:
        case ChildGates.ALWAYS:
            return True
        case ChildGates.GATES if policy.gates is Gates.ALL:
            return True
        case ChildGates.GATES if policy.gates is Gates.LISTED:
            return identity(child.ref) in map(identity, policy.listed)
        case ChildGates.NEVER:
            return child.awaited
        case _:
            return False


def _precedences(
    begins: Mapping[UnitId, tuple[Step, Manifest]],
    awaited: Container[UnitId],
    behind: Mapping[str, Step | None],
) -> Iterator[Precedence]:
    for name, (joint, child) in begins.items():
        where = child.origin
        yield Precedence(before=joint.id, after=name, because=Because.PARENT, where=where)
        after = behind.get(joint.id)
        if after is not None and name in awaited:
            yield Precedence(before=name, after=after.id, because=Because.PARENT, where=where)
