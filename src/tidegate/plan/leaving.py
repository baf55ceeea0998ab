"""The ends of many units as one plan: what was brought last goes first, across all of them.

    delete wave 1 ──▶ joint ──▶ delete wave 0 ──▶ end
                        └──▶ child ────▲

A child goes before the wave of its parent that its own object is in, and so before the namespaces
it stands on. Who depends on a unit goes before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import msgspec

from tidegate.model.manifest import Manifests
from tidegate.model.objects import identity
from tidegate.model.plan import (
    Because,
    Fragment,
    Item,
    Plan,
    PlannedUnit,
    Precedence,
    Step,
    digest_step,
)
from tidegate.model.policy import Order
from tidegate.model.reading import listed
from tidegate.model.unit import Unit, UnitId
from tidegate.plan.chains import link_chain, step_id
from tidegate.plan.cycles import put_in_order
from tidegate.plan.deletion import AFTER, DELETE
from tidegate.plan.joints import end_of
from tidegate.plan.precedence import make_edges

Name = tuple[str, str, str, str]


def join_deletions(parts: Sequence[tuple[Manifests, Plan]]) -> Plan:
    """One plan of the deletions of units, each with what it would deploy."""
    chains: dict[UnitId, list[Step]] = {}
    told: list[Precedence] = []
    known = {wanted.unit.id: wanted.unit for wanted, _ in parts}
    for wanted, plan in parts:
        children = _children(wanted, known)
        unit, guarded = plan.units[0], _guarded(wanted, known)
        own = [_releasing(step, guarded) for step in plan.steps]
        chains[unit.id], joints = _with_children(own, unit, children)
        told += joints
    told += (one for unit in known.values() for one in _turned(unit, known))
    told += _one_by_one(unit for name, unit in known.items() if chains[name])
    steps = {step.id: step for chain in chains.values() for step in chain}
    edges = [edge for chain in chains.values() for edge in link_chain(chain)]
    edges += make_edges(told, chains)
    units = tuple(plan.units[0] for _, plan in parts)
    ordered = put_in_order(steps, edges)
    return Plan.of(Fragment(units=units, steps=ordered, edges=tuple(dict.fromkeys(edges))))


def _children(wanted: Manifests, known: Mapping[UnitId, Unit]) -> dict[int, list[UnitId]]:
    """By wave, the units that a unit brings; where stages order it there is one of them."""
    is_staged = wanted.unit.policy.order is Order.STAGES
    found: dict[int, list[UnitId]] = {}
    for one in wanted.manifests:
        mine = [name for name in one.brings if name in known]
        if mine:
            found.setdefault(0 if is_staged else one.wave, []).extend(mine)
    return found


def _guarded(wanted: Manifests, known: Mapping[UnitId, Unit]) -> dict[Name, tuple[str, ...]]:
    """The finalizers of units that go themselves: nobody but us would take them off."""
    found: dict[Name, tuple[str, ...]] = {}
    for one in wanted.manifests:
        if any(name in known for name in one.brings):
            finalizers = listed(msgspec.json.decode(one.body), "metadata", "finalizers")
            found[identity(one.ref)] = tuple(map(str, finalizers))
    return found


def _releasing(step: Step, guarded: Mapping[Name, tuple[str, ...]]) -> Step:
    def released(item: Item) -> Item:
        finalizers = guarded.get(identity(item.ref), ())
        return msgspec.structs.replace(item, releases=finalizers) if finalizers else item

    batches = tuple(tuple(map(released, batch)) for batch in step.batches)
    return msgspec.structs.replace(step, batches=batches)


def _with_children(
    steps: list[Step], unit: PlannedUnit, children: dict[int, list[UnitId]]
) -> tuple[list[Step], list[Precedence]]:
    """The steps of a unit's end, with a joint before each wave that brought others."""
    if not children:
        return steps, []
    joints = {wave: _joint(unit, wave) for wave in children}
    last = next((at for at, step in enumerate(steps) if step.phase == AFTER), len(steps))
    chain = [*steps[:last], *joints.values()]
    chain.sort(key=_place)
    chain += [*steps[last:], end_of(unit)]
    behind = {one.id: other.id for one, other in pairwise(chain)}
    told = []
    for wave, names in children.items():
        joint = joints[wave].id
        for name in names:
            told.append(Precedence(before=joint, after=name, because=Because.PARENT))
            told.append(Precedence(before=name, after=behind[joint], because=Because.PARENT))
    return chain, told


def _joint(unit: PlannedUnit, wave: int) -> Step:
    name = f"{step_id(unit, DELETE, wave)}.0"
    nothing, cluster = digest_step(()), unit.cluster
    return Step(id=name, unit=unit.id, digest=nothing, cluster=cluster, phase=DELETE, wave=wave)


def _place(step: Step) -> tuple[bool, int, bool]:
    """Hooks first, then from the last wave to the first, each behind its joint."""
    return step.phase == DELETE, -step.wave, not step.is_joint


def _one_by_one(units: Iterable[Unit]) -> Iterable[Precedence]:
    """Units of a set that asks for it: from its last step to the first, never two at once."""
    sets: dict[tuple[str, str], list[tuple[int, UnitId]]] = {}
    for unit in units:
        if unit.rollout is not None and unit.rollout.turned and unit.rollout.number:
            members = sets.setdefault((unit.id.cluster, unit.made_by), [])
            members.append((-unit.rollout.number, unit.id))
    for members in sets.values():
        for (_, before), (_, after) in pairwise(sorted(members)):
            yield Precedence(before=before, after=after, because=Because.ROLLOUT_STEP)


def _turned(unit: Unit, known: Mapping[UnitId, Unit]) -> Iterable[Precedence]:
    """What a unit depends on goes behind it, unless that brings the unit itself."""
    above: set[UnitId] = set()
    parent = unit.parent
    while parent is not None and parent not in above:
        above.add(parent)
        parent = known[parent].parent if parent in known else None
    for one in unit.dependencies:
        if one.unit is not None and one.unit in known and one.unit not in above:
            yield Precedence(before=unit.id, after=one.unit, where=str(one.where or ""))
