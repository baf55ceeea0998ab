"""Applications of a set with steps that Argo CD syncs twice, beside a simulated rollout.

    its turn comes ──▶ it is synced ──▶ did that begin in a later second? ──no──▶ it is synced again

Argo CD notes both moments in whole seconds, and takes a sync for an answer only if it began after
the turn. Until it has an answer, it asks for a sync whenever none is under way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import msgspec
from msgspec import structs

from tidegate.flows.healing import Sync
from tidegate.flows.rollout import RolledOut
from tidegate.model.event import Event, Result, Told
from tidegate.model.moment import SECOND, Ms
from tidegate.model.objects import Ref
from tidegate.model.plan import Plan, PlannedUnit, items_of
from tidegate.model.resync import Resync
from tidegate.model.unit import UnitId
from tidegate.plan.chains import part_of_unit


class Resyncing(msgspec.Struct):
    """Hears what happens in a rollout, and plays the syncs that come once more.

    `plan`: the newest one. `now`: the clock of the world.
    """

    sync: Sync
    plan: Callable[[], Plan]
    now: Callable[[], Ms]
    _found: list[Resync] = msgspec.field(default_factory=list)
    _turns: dict[UnitId, Ms] = msgspec.field(default_factory=dict)
    _began: dict[UnitId, Ms] = msgspec.field(default_factory=dict)
    _group: asyncio.TaskGroup = msgspec.field(default_factory=asyncio.TaskGroup)

    async def beside(self, story: Awaitable[RolledOut]) -> RolledOut:
        """What comes of a rollout whose events are heard, when the last further sync has ended."""
        try:
            async with self._group:
                return await story
        except BaseExceptionGroup as errors:
            if len(errors.exceptions) == 1:
                raise errors.exceptions[0] from None
            raise

    def hear(self, event: Event) -> None:
        unit = event.unit
        if unit is None:
            return
        if event.told is Told.STEP_CHECKING:
            self._turns.setdefault(unit, event.at)
        elif event.told is Told.STEP_APPLYING:
            self._began.setdefault(unit, event.at)
        elif event.told is Told.UNIT_ENDED and event.reason == Result.PASSED:
            began = self._began.get(unit)
            if began is not None:
                self._group.create_task(self.play(unit, self._turns[unit], began))

    @property
    def resyncs(self) -> tuple[Resync, ...]:
        return tuple(sorted(self._found, key=lambda one: (one.at, one.unit)))

    async def play(self, name: UnitId, turn: Ms, began: Ms) -> None:
        """Sync a unit again, where its turn and the sync that it had are of one second."""
        plan = self.plan()
        unit = next((one for one in plan.units if one.id == name), None)
        noticed = turn // SECOND < began // SECOND
        if noticed or unit is None or not _is_promoted(unit, plan):
            return
        again = Resync(unit=name, turn=turn, at=self.now(), hooks=_hooks(plan, name))
        if again.hooks:
            result = await self.sync(_syncing(plan, unit))
            passed = result is Result.PASSED
            again = structs.replace(again, ended=self.now(), passed=passed)
        self._found.append(again)


def _is_promoted(unit: PlannedUnit, plan: Plan) -> bool:
    """Whether its set syncs it: in a step that is in force, and not held for somebody's leave."""
    is_held = any(one.group == unit.group and not one.limit for one in plan.slots)
    return unit.policy.semantics.forbears and not is_held


def _hooks(plan: Plan, unit: UnitId) -> tuple[Ref, ...]:
    mine = (step for step in plan.steps if step.unit == unit and not step.rescues)
    return tuple(item.ref for step in mine for item in items_of(step) if item.hook is not None)


def _syncing(plan: Plan, unit: PlannedUnit) -> Plan:
    """One sync of a unit alone: hooks are run, and nobody waits until the unit is well."""
    rules = structs.replace(unit.policy.semantics, gates_last=False, forbears=False)
    policy = structs.replace(unit.policy, semantics=rules, runs_hooks=True)
    part = part_of_unit(plan, unit.id)
    return structs.replace(part, units=(structs.replace(part.units[0], policy=policy),))
