"""Units and their manifests become a plan."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TypeAlias

import msgspec

from tidegate.errors import Place, PlanError
from tidegate.model.depends_on import AwaitedState
from tidegate.model.manifest import Manifests
from tidegate.model.objects import Spot, identity
from tidegate.model.plan import (
    Foreign,
    Fragment,
    Plan,
    PlannedUnit,
    Precedence,
    Slots,
    Step,
    digest_bytes,
    digest_step,
)
from tidegate.model.policy import Order
from tidegate.model.unit import Unit, UnitId
from tidegate.plan.chains import link_chain, mark_last, step_id
from tidegate.plan.cycles import depended_on, put_in_order, refuse_circles
from tidegate.plan.gates import FIRST, await_step, awaited_by, hold_steps, set_gates
from tidegate.plan.items import Budget, make_item
from tidegate.plan.joints import end_of, with_joints
from tidegate.plan.precedence import make_edges, pairs_of, part_steps
from tidegate.plan.releases import GROUND as CRDS
from tidegate.plan.releases import group_by_release
from tidegate.plan.rollouts import roll_out
from tidegate.plan.stages import GROUND, group_by_stage
from tidegate.plan.waves import StepGroup, group_by_wave

Brought: TypeAlias = tuple[str, str, str, str, str]
"""A cluster, and what is the same in all versions of an object's kind."""


def build_plan(
    wanted: Iterable[Manifests],
    precedences: Iterable[Precedence] = (),
    foreign: Iterable[Foreign] = (),
    *,
    slots: tuple[Slots, ...] = (),
    budget: Budget,
) -> Plan:
    """The plan for these units. Raises PlanError for what cannot be put in order."""
    return Plan.of(build_fragment(wanted, precedences, foreign, slots=slots, budget=budget))


def build_fragment(
    wanted: Iterable[Manifests],
    precedences: Iterable[Precedence] = (),
    foreign: Iterable[Foreign] = (),
    *,
    slots: tuple[Slots, ...] = (),
    budget: Budget,
) -> Fragment:
    """The same for a part of a plan, such as a step expands to."""
    known = _told_apart(wanted)
    refuse_circles(_dependencies(known.values()))
    brought = {
        (one.unit.destination.cluster, *identity(manifest.ref))
        for one in known.values()
        for manifest in one.manifests
    }
    aside = _behind_parents(one.unit for one in known.values())
    jointed = {
        name: _steps(one, brought, aside.get(name, ()), budget) for name, one in known.items()
    }
    rollouts = roll_out(one.unit for one in known.values())
    told = [*precedences, *_declared(known.values(), brought), *rollouts.precedences]
    told += [one for _, mine in jointed.values() for one in mine]
    pairs, foreign = pairs_of(told), list(foreign)
    held = {one.after for one in foreign}
    chains = {
        name: mark_last(
            hold_steps(part_steps(steps, pairs, held), plan_unit(known[name].unit), foreign)
        )
        for name, (steps, _) in jointed.items()
    }
    steps = _by_id([*chains.values(), rollouts.joints])
    edges = [edge for chain in chains.values() for edge in link_chain(chain)]
    edges += make_edges(told, chains)
    return Fragment(
        units=digest_units(
            (*(plan_unit(one.unit) for one in known.values()), *rollouts.units), steps.values()
        ),
        steps=put_in_order(steps, edges),
        edges=tuple(dict.fromkeys(edges)),
        slots=(*slots, *rollouts.slots, *_crews(one.unit for one in known.values())),
    )


def plan_unit(unit: Unit) -> PlannedUnit:
    """What the plan says of a unit, before its objects are counted."""
    return PlannedUnit(
        id=unit.id,
        source=", ".join(one.place for one in unit.sources),
        cluster=unit.destination.cluster,
        policy=unit.policy,
        group=unit.group or _crew_of(unit),
        parent=unit.parent,
    )


def _crew_of(unit: Unit) -> str:
    """The controller whose workers a unit takes one of, where these are counted."""
    is_counted = bool(unit.policy.semantics.workers)
    named = (unit.policy.manager, unit.id.cluster)
    return " of ".join(filter(None, named)) if is_counted else ""


def _crews(units: Iterable[Unit]) -> Iterator[Slots]:
    found = {_crew_of(one): one.policy.semantics.workers for one in units if not one.group}
    return (Slots(crew, workers, rests=True) for crew, workers in found.items() if crew)


def digest_units(units: Iterable[PlannedUnit], steps: Iterable[Step]) -> tuple[PlannedUnit, ...]:
    """The units, each with a digest of what Git says of it."""
    told: dict[UnitId, list[bytes]] = {}
    for step in steps:
        told.setdefault(step.unit, []).append(f"{step.id} {step.digest}".encode())
    return tuple(
        msgspec.structs.replace(unit, digest=digest_bytes(*told.get(unit.id, ()))) for unit in units
    )


def _behind_parents(units: Iterable[Unit]) -> dict[UnitId, set[UnitId]]:
    """By unit, those that wait for it in turn: it cannot wait for them, though it brings them."""
    units = list(units)
    waiting: dict[UnitId, list[UnitId]] = {}
    for unit in units:
        for one in unit.dependencies:
            if one.unit is not None:
                waiting.setdefault(one.unit, []).append(unit.id)
    parents = {unit.id: unit.parent for unit in units if unit.parent is not None}
    found: dict[UnitId, set[UnitId]] = {}
    for name in {*parents.values()} & waiting.keys():
        reached, pending = found.setdefault(name, set()), [*waiting[name]]
        while pending:
            waiter = pending.pop()
            if waiter not in reached and waiter != name:
                reached.add(waiter)
                pending += waiting.get(waiter, [])
                pending += [parents[waiter]] if waiter in parents else []
    return found


def _steps(
    wanted: Manifests, brought: Collection[Brought], aside: Collection[UnitId], budget: Budget
) -> tuple[list[Step], list[Precedence]]:
    """The steps of a unit in their order, with what it waits for and nobody here brings.

    Beside them, where among them the units have their place that it brings.
    """
    unit, planned = wanted.unit, plan_unit(wanted.unit)
    if not wanted.is_known:
        return [end_of(planned)], []
    release = unit.policy.release
    if unit.policy.order is Order.STAGES:
        groups = group_by_stage(wanted.manifests, unit.policy.first_kinds)
    elif release is not None:
        groups = group_by_release(wanted.manifests, release.action)
    else:
        groups = group_by_wave(wanted.manifests, namespace=unit.destination.namespace)
    made = [_step(planned, group, budget) for group in groups]
    members = {step.id: group.manifests for step, group in zip(made, groups, strict=True)}
    units = {identity(one.ref) for one in wanted.manifests if one.brings}
    steps, children = with_joints(set_gates(made, planned, units), members, planned, aside)
    if unit.policy.asks_late and not steps:
        steps = [end_of(planned)]  # by then it may bring something
    first = awaited_by(unit, brought)
    return [*([await_step(planned, FIRST, first)] if first else ()), *steps], children


def _step(unit: PlannedUnit, group: StepGroup, budget: Budget) -> Step:
    batches = tuple(
        tuple(make_item(manifest, group.event, budget) for manifest in batch)
        for batch in group.batches
    )
    spot = (group.stage,) if group.stage else (group.phase, group.wave)
    return Step(
        id=step_id(unit, *spot),
        unit=unit.id,
        digest=digest_step(batches),
        cluster=unit.cluster,
        phase=group.phase,
        wave=group.wave,
        stage=group.stage,
        batches=batches,
        rescues=group.is_rescue,
        ground=group.stage in {*GROUND, CRDS},
    )


def _declared(wanted: Iterable[Manifests], brought: Collection[Brought]) -> Iterator[Precedence]:
    """What units say they depend on, where somebody here brings it."""
    for unit in (one.unit for one in wanted):
        for one in unit.dependencies:
            spot = None if one.ref is None else Spot(unit.destination.cluster, one.ref)
            if one.state is AwaitedState.ABSENT:
                continue
            if spot is not None and (spot.cluster, *identity(spot.ref)) not in brought:
                continue
            before = one.unit or spot
            if before is not None:
                where = str(one.where or "")
                strength = one.strength
                yield Precedence(before=before, after=unit.id, strength=strength, where=where)


def _dependencies(wanted: Iterable[Manifests]) -> dict[UnitId, dict[UnitId, Place | None]]:
    """By unit, those it depends on, and where it says so. Raises PlanError for an unknown one."""
    units = {one.unit.id: one.unit for one in wanted}
    found: dict[UnitId, dict[UnitId, Place | None]] = {}
    for name, unit in units.items():
        found[name] = depended_on(unit)
        for one in unit.dependencies:
            if one.unit is not None and one.unit not in units:
                problem = f"`{name}` depends on `{one.unit}`, which is not there"
                hint = "correct the name in `dependsOn`, or add that unit"
                raise PlanError("plan.unknown", problem, where=one.where, hint=hint)
    return found


def _told_apart(wanted: Iterable[Manifests]) -> dict[UnitId, Manifests]:
    known: dict[UnitId, Manifests] = {}
    for one in wanted:
        if one.unit.id in known:
            raise _twice(str(one.unit.id))
        known[one.unit.id] = one
    return known


def _by_id(chains: Iterable[Iterable[Step]]) -> dict[str, Step]:
    steps: dict[str, Step] = {}
    for step in (step for chain in chains for step in chain):
        if step.id in steps:
            raise _twice(step.id)
        steps[step.id] = step
    return steps


def _twice(name: str) -> PlanError:
    problem = f"two units, or steps of them, are called `{name}`"
    return PlanError("plan.twice", problem, hint="give one of the units another name")
