"""RollingSync steps of ApplicationSets: the order of their units, and the concurrency limits.

All units of a step come before all units of the next one. If that needs many edges, a placeholder
is
added between them. It belongs to the ApplicationSet, which has no objects itself:

    step 1 ──▶ placeholder ──▶ step 2
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import msgspec

from tidegate.model.plans.plan import (
    ConcurrencyLimit,
    EdgeReason,
    PlannedUnit,
    Precedence,
    Step,
    digest_step,
)
from tidegate.model.units.unit import Unit, UnitId
from tidegate.plan.build.chains import step_id

MAX_EDGES = 64
"""Maximum between two steps; above, a placeholder is added."""


class RollingSyncPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Precedences, limits and placeholders for the steps of ApplicationSets."""

    precedences: tuple[Precedence, ...] = ()
    concurrency_limits: tuple[ConcurrencyLimit, ...] = ()
    units: tuple[PlannedUnit, ...] = ()
    """ApplicationSets that own placeholders."""
    placeholders: tuple[Step, ...] = ()


def plan_rolling_syncs(units: Iterable[Unit]) -> RollingSyncPlan:
    """Return the plan for the RollingSync steps of all units."""
    units = tuple(units)
    unit_ids = {unit.id for unit in units}
    units_by_set: dict[tuple[str, str], list[Unit]] = {}
    for unit in units:
        if unit.rolling_sync_step is not None:
            units_by_set.setdefault((unit.id.cluster, unit.generated_by), []).append(unit)
    plans = [_plan_rolling_sync(members) for members in units_by_set.values()]
    return RollingSyncPlan(
        precedences=tuple(precedence for plan in plans for precedence in plan.precedences),
        concurrency_limits=tuple(limit for plan in plans for limit in plan.concurrency_limits),
        units=tuple(
            planned_unit
            for plan in plans
            for planned_unit in plan.units
            if planned_unit.id not in unit_ids
        ),
        placeholders=tuple(placeholder for plan in plans for placeholder in plan.placeholders),
    )


def _plan_rolling_sync(members: list[Unit]) -> RollingSyncPlan:
    steps: dict[int, list[Unit]] = {}
    limits: dict[str, int] = {}
    for unit in members:
        if unit.rolling_sync_step is not None:
            steps.setdefault(unit.rolling_sync_step.number, []).append(unit)
            if unit.rolling_sync_step.limit is not None:
                limits[unit.concurrency_group] = unit.rolling_sync_step.limit
    owner = _owner(members[0])
    precedences: list[Precedence] = []
    placeholders: list[Step] = []
    location = str(members[0].location.name) if members[0].location else ""
    for before, after in pairwise(sorted(steps)):
        pair = (steps[before], steps[after])
        if len(pair[0]) * len(pair[1]) <= MAX_EDGES:
            precedences += [
                _step_precedence(earlier.id, later.id, location)
                for earlier in pair[0]
                for later in pair[1]
            ]
            continue
        placeholder = _placeholder(owner, before)
        placeholders.append(placeholder)
        precedences += [
            _step_precedence(earlier.id, placeholder.id, location) for earlier in pair[0]
        ]
        precedences += [_step_precedence(placeholder.id, later.id, location) for later in pair[1]]
    return RollingSyncPlan(
        precedences=tuple(precedences),
        concurrency_limits=tuple(ConcurrencyLimit(group, limit) for group, limit in limits.items()),
        units=(owner,) if placeholders else (),
        placeholders=tuple(placeholders),
    )


def _owner(member: Unit) -> PlannedUnit:
    kind, namespace, name = member.generated_by.split("/", 2)
    unit_id = UnitId(kind, member.id.cluster, namespace, name)
    return PlannedUnit(id=unit_id, cluster=member.destination.cluster, policy=member.policy)


def _placeholder(owner: PlannedUnit, number: int) -> Step:
    stage = f"step {number}"
    return Step(
        id=step_id(owner, stage),
        unit=owner.id,
        digest=digest_step(()),
        cluster=owner.cluster,
        stage=stage,
    )


def _step_precedence(before: UnitId | str, after: UnitId | str, location: str) -> Precedence:
    return Precedence(before=before, after=after, reason=EdgeReason.ROLLOUT_STEP, location=location)
