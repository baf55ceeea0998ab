"""Units of a set that come step by step: what waits for what, and how many are under way.

All units of a step come before all of the next one. Where that would be many edges, a joint stands
between the two; it belongs to the set, which has no objects of its own:

    step 1 ──▶ joint ──▶ step 2
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import msgspec

from tidegate.model.plan import Because, PlannedUnit, Precedence, Slots, Step, digest_step
from tidegate.model.unit import Unit, UnitId
from tidegate.plan.chains import step_id

MOST_EDGES = 64
"""Between two steps; beyond, a joint is put there."""


class Rollouts(msgspec.Struct, frozen=True, kw_only=True):
    """What the steps of all sets come to; a set is a unit where it has joints."""

    precedences: tuple[Precedence, ...] = ()
    slots: tuple[Slots, ...] = ()
    units: tuple[PlannedUnit, ...] = ()
    joints: tuple[Step, ...] = ()


def roll_out(units: Iterable[Unit]) -> Rollouts:
    units = tuple(units)
    known = {unit.id for unit in units}
    sets: dict[tuple[str, str], list[Unit]] = {}
    for unit in units:
        if unit.rollout is not None:
            sets.setdefault((unit.id.cluster, unit.made_by), []).append(unit)
    made = [_roll_out(members) for members in sets.values()]
    return Rollouts(
        precedences=tuple(one for each in made for one in each.precedences),
        slots=tuple(one for each in made for one in each.slots),
        units=tuple(one for each in made for one in each.units if one.id not in known),
        joints=tuple(one for each in made for one in each.joints),
    )


def _roll_out(members: list[Unit]) -> Rollouts:
    steps: dict[int, list[Unit]] = {}
    limits: dict[str, int] = {}
    for unit in members:
        if unit.rollout is not None:
            steps.setdefault(unit.rollout.number, []).append(unit)
            if unit.rollout.limit is not None:
                limits[unit.group] = unit.rollout.limit
    owner = _owner(members[0])
    told: list[Precedence] = []
    joints: list[Step] = []
    where = str(members[0].where.name) if members[0].where else ""
    for before, after in pairwise(sorted(steps)):
        pair = (steps[before], steps[after])
        if len(pair[0]) * len(pair[1]) <= MOST_EDGES:
            told += [_tie(one.id, other.id, where) for one in pair[0] for other in pair[1]]
            continue
        joint = _joint(owner, before)
        joints.append(joint)
        told += [_tie(one.id, joint.id, where) for one in pair[0]]
        told += [_tie(joint.id, one.id, where) for one in pair[1]]
    return Rollouts(
        precedences=tuple(told),
        slots=tuple(Slots(group, limit) for group, limit in limits.items()),
        units=(owner,) if joints else (),
        joints=tuple(joints),
    )


def _owner(member: Unit) -> PlannedUnit:
    kind, namespace, name = member.made_by.split("/", 2)
    home = UnitId(kind, member.id.cluster, namespace, name)
    return PlannedUnit(id=home, cluster=member.destination.cluster, policy=member.policy)


def _joint(owner: PlannedUnit, number: int) -> Step:
    spot = f"step {number}"
    return Step(
        id=step_id(owner, spot),
        unit=owner.id,
        digest=digest_step(()),
        cluster=owner.cluster,
        stage=spot,
    )


def _tie(before: UnitId | str, after: UnitId | str, where: str) -> Precedence:
    return Precedence(before=before, after=after, because=Because.ROLLOUT_STEP, where=where)
