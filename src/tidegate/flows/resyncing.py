"""Applications of an ApplicationSet with RollingSync that Argo CD syncs twice in a simulation.

    step reached ──▶ synced ──▶ did the sync start in a later second? ──no──▶ synced again

Argo CD records both times in whole seconds, and accepts a sync only if it started after the
step was reached. Until then it requests a sync whenever none is running.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import msgspec
from msgspec import structs

from tidegate.flows.healing import RunSync
from tidegate.flows.rollout import RolloutResult
from tidegate.model.event import Event, EventType, RolloutOutcome
from tidegate.model.moment import SECOND, Ms
from tidegate.model.objects import Ref
from tidegate.model.plan import Plan, PlannedUnit, step_items
from tidegate.model.resync import Resync
from tidegate.model.unit import UnitId
from tidegate.plan.chains import plan_for_unit


class DoubleSync(msgspec.Struct):
    """Observes a rollout and runs the repeated syncs."""

    sync: RunSync
    plan: Callable[[], Plan]
    """Returns the newest plan."""
    now: Callable[[], Ms]
    """Clock of the world."""
    _resyncs: list[Resync] = msgspec.field(default_factory=list)
    _pending_since: dict[UnitId, Ms] = msgspec.field(default_factory=dict)
    _started: dict[UnitId, Ms] = msgspec.field(default_factory=dict)
    _group: asyncio.TaskGroup = msgspec.field(default_factory=asyncio.TaskGroup)

    async def watch_rollout(self, rollout: Awaitable[RolloutResult]) -> RolloutResult:
        """Run a rollout, and return its result after the last repeated sync has finished."""
        try:
            async with self._group:
                return await rollout
        except BaseExceptionGroup as errors:
            if len(errors.exceptions) == 1:
                raise errors.exceptions[0] from None
            raise

    def on_event(self, event: Event) -> None:
        unit = event.unit
        if unit is None:
            return
        if event.type is EventType.STEP_CHECKING:
            self._pending_since.setdefault(unit, event.at)
        elif event.type is EventType.STEP_APPLYING:
            self._started.setdefault(unit, event.at)
        elif event.type is EventType.UNIT_FINISHED and event.reason == RolloutOutcome.PASSED:
            started = self._started.get(unit)
            if started is not None:
                self._group.create_task(self.repeat_sync(unit, self._pending_since[unit], started))

    @property
    def resyncs(self) -> tuple[Resync, ...]:
        return tuple(sorted(self._resyncs, key=lambda resync: (resync.at, resync.unit)))

    async def repeat_sync(self, name: UnitId, pending_since: Ms, started: Ms) -> None:
        """Sync a unit again if its step was reached and its sync started in the same second."""
        plan = self.plan()
        unit = next((planned_unit for planned_unit in plan.units if planned_unit.id == name), None)
        is_noticed = pending_since // SECOND < started // SECOND
        if is_noticed or unit is None or not _is_promoted(unit, plan):
            return
        resync = Resync(
            unit=name, rollout_at=pending_since, at=self.now(), hooks=_hook_refs(plan, name)
        )
        if resync.hooks:
            result = await self.sync(_single_sync_plan(plan, unit))
            passed = result is RolloutOutcome.PASSED
            resync = structs.replace(resync, finished_at=self.now(), passed=passed)
        self._resyncs.append(resync)


def _is_promoted(unit: PlannedUnit, plan: Plan) -> bool:
    """Return whether the ApplicationSet syncs the unit: its step is active and not manual."""
    is_manual = any(slot.group == unit.group and not slot.limit for slot in plan.slots)
    return unit.policy.semantics.forbears and not is_manual


def _hook_refs(plan: Plan, unit: UnitId) -> tuple[Ref, ...]:
    unit_steps = (step for step in plan.steps if step.unit == unit and not step.rescues)
    return tuple(
        item.ref for step in unit_steps for item in step_items(step) if item.hook is not None
    )


def _single_sync_plan(plan: Plan, unit: PlannedUnit) -> Plan:
    """Return the plan of one sync of a unit: hooks run, and the last wave is not waited for."""
    semantics = structs.replace(unit.policy.semantics, gates_last=False, forbears=False)
    policy = structs.replace(unit.policy, semantics=semantics, runs_hooks=True)
    partial_plan = plan_for_unit(plan, unit.id)
    return structs.replace(
        partial_plan, units=(structs.replace(partial_plan.units[0], policy=policy),)
    )
