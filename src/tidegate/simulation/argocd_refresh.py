"""Refresh of Applications after a commit, and repeated syncs, in a simulated rollout.

    commit ──▶ each Application notices the revision at its next refresh ──▶ it is synced

An Application with automated sync starts as soon as it notices the revision. Applications of
an ApplicationSet with RollingSync wait until all earlier steps are healthy; but an Application
that has not noticed the revision yet still counts as healthy by the revision before, so that a
later step may overtake it.

    step reached ──▶ synced ──▶ did the sync start in a later second? ──no──▶ synced again

Argo CD records both times in whole seconds, and accepts a sync only if it started after the
step was reached. Until then it requests a sync whenever none is running.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

import msgspec
from msgspec import structs

from tidegate.dialect.units import is_dialect_kind
from tidegate.model.k8s.json_fields import get_text, object_kind
from tidegate.model.k8s.kinds import APPLICATION
from tidegate.model.k8s.objects import Json, Ref
from tidegate.model.plans.plan import Plan, PlannedUnit, step_items
from tidegate.model.rollouts.event import Event, EventType, RolloutOutcome
from tidegate.model.simulation.double_sync import Resync
from tidegate.model.simulation.revision_sync import RevisionSync
from tidegate.model.times import MINUTE, SECOND, Ms
from tidegate.model.units.unit import Unit, UnitId
from tidegate.plan.build.chains import plan_for_units
from tidegate.planning.plan import PlanResult
from tidegate.rollout.run import RolloutResult
from tidegate.simulation.self_heal import RunSync, has_passed
from tidegate.world.dispatcher import Dispatcher


class DoubleSync(msgspec.Struct):
    """Observer of a rollout that runs the repeated syncs."""

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
            passed = has_passed(await self.sync(_single_sync_plan(plan, unit)))
            resync = structs.replace(resync, finished_at=self.now(), passed=passed)
        self._resyncs.append(resync)


def _is_promoted(unit: PlannedUnit, plan: Plan) -> bool:
    """Return whether the ApplicationSet syncs the unit: its step is active and not manual."""
    is_manual = any(slot.group == unit.group and not slot.limit for slot in plan.slots)
    return unit.policy.semantics.tolerates_last_degraded and not is_manual


def _hook_refs(plan: Plan, unit: UnitId) -> tuple[Ref, ...]:
    unit_steps = (step for step in plan.steps if step.unit == unit and not step.only_on_failure)
    return tuple(
        item.ref for step in unit_steps for item in step_items(step) if item.hook is not None
    )


def _single_sync_plan(plan: Plan, unit: PlannedUnit) -> Plan:
    """Return the plan of one sync of a unit: hooks run, and the last wave is not waited for."""
    semantics = structs.replace(
        unit.policy.semantics, gates_last=False, tolerates_last_degraded=False
    )
    policy = structs.replace(unit.policy, semantics=semantics, runs_hooks=True)
    partial_plan = plan_for_units(plan, {unit.id})
    return structs.replace(
        partial_plan, units=(structs.replace(partial_plan.units[0], policy=policy),)
    )


APPSET_REFRESH_INTERVAL = Ms(3 * MINUTE)
"""Interval in which an ApplicationSet reads its repositories."""


class DetectedChange(msgspec.Struct, frozen=True):
    """A unit that a commit changes, and when it notices the commit."""

    unit: Unit
    detected_at: Ms
    leader: UnitId | None = None
    """The Application that deploys the changed resource of the unit, in its own waves."""


class _ChangedUnit(msgspec.Struct):
    """A unit that the newer revision changes."""

    unit: Unit
    detected_at: Ms
    leader: UnitId | None = None
    """The parent whose waves decide when the unit sees the change of its own resource."""
    started_at: Ms | None = None
    finished_at: Ms | None = None
    is_healthy: bool = False
    outdated_predecessors: tuple[UnitId, ...] = ()
    """Units of earlier steps that were not healthy yet when this unit started."""

    def record(self, events: Sequence[Event]) -> None:
        """Store the result of its sync."""
        own_events = [event for event in events if event.unit == self.unit.id]
        begun = (event.at for event in own_events if event.type is EventType.STEP_CHECKING)
        ended = (event.at for event in own_events if event.type is EventType.UNIT_FINISHED)
        if self.started_at is None:
            self.started_at = next(begun, None)
        self.is_healthy = has_passed(own_events, self.unit.id)
        self.finished_at = next(ended, None) if self.is_healthy else None

    @property
    def step(self) -> int:
        return self.unit.rolling_sync_step.number if self.unit.rolling_sync_step is not None else 0

    @property
    def is_syncing(self) -> bool:
        return self.started_at is not None and not self.is_healthy

    @property
    def not_synced_reason(self) -> str:
        rollout = self.unit.rolling_sync_step
        if not self.unit.policy.semantics.refresh_interval:
            return "it is deployed with the next rollout"
        if rollout is None:
            return "" if self.unit.policy.auto_sync else "the unit has no automated sync"
        if not rollout.number:
            return "no step of its ApplicationSet matches it"
        return "it needs a manual sync: `maxUpdate` is 0" if rollout.limit == 0 else ""


class RevisionRollout(msgspec.Struct):
    """Rollout of one commit until a time."""

    world: Dispatcher
    sync: RunSync
    plan: Plan
    committed: Ms
    until: Ms
    double_sync: DoubleSync
    _units: list[_ChangedUnit] = msgspec.field(default_factory=list)
    _group: asyncio.TaskGroup = msgspec.field(default_factory=asyncio.TaskGroup)

    async def run(self, changed: Iterable[DetectedChange]) -> tuple[RevisionSync, ...]:
        """Roll out the changed units."""
        changed_units = (
            _ChangedUnit(change.unit, change.detected_at, change.leader) for change in changed
        )
        self._units = sorted(changed_units, key=lambda changed_unit: changed_unit.unit.id)
        async with self._group:
            for refresh_time in sorted(
                {
                    changed_unit.detected_at
                    for changed_unit in self._units
                    if changed_unit.detected_at <= self.until
                }
            ):
                self._group.create_task(self._refresh_at(refresh_time))
        return tuple(map(self._to_revision_sync, self._units))

    async def _refresh_at(self, refresh_time: Ms) -> None:
        client = self.world.client()
        while self.world.now() < refresh_time:
            await client.wait(refresh_time)
        self._start_units()

    def _start_units(self) -> None:
        """Start all units that can start now, in the order of their names."""
        for changed_unit in self._units:
            if (
                changed_unit.started_at is None
                and changed_unit.leader is None
                and changed_unit.detected_at <= self.world.now()
                and self._can_start(changed_unit)
            ):
                changed_unit.started_at = self.world.now()
                unfinished = [
                    other for other in self._earlier_steps(changed_unit) if not other.is_healthy
                ]
                changed_unit.outdated_predecessors = tuple(other.unit.id for other in unfinished)
                self._group.create_task(self._sync_unit(changed_unit))

    async def _sync_unit(self, changed_unit: _ChangedUnit) -> None:
        """Sync a unit, and in its waves the children whose resources it changes."""
        unit_id = changed_unit.unit.id
        followers = [other for other in self._units if other.leader == unit_id]
        synced_ids = {unit_id, *(follower.unit.id for follower in followers)}
        events = await self.sync(plan_for_units(self.plan, synced_ids))
        for synced in (changed_unit, *followers):
            synced.record(events)
        if changed_unit.is_healthy:
            changed_unit.finished_at = self.world.now()
        self._start_units()
        if changed_unit.is_healthy and changed_unit.started_at is not None:
            await self.double_sync.repeat_sync(
                unit_id, changed_unit.started_at, changed_unit.started_at
            )

    def _can_start(self, changed_unit: _ChangedUnit) -> bool:
        if changed_unit.not_synced_reason:
            return False
        if changed_unit.unit.rolling_sync_step is None:
            return True
        now = self.world.now()
        if any(
            other.detected_at <= now and not other.is_healthy
            for other in self._earlier_steps(changed_unit)
        ):
            return False
        same_step = [
            other for other in self._same_set(changed_unit) if other.step == changed_unit.step
        ]
        limit = changed_unit.unit.rolling_sync_step.limit
        return limit is None or sum(other.is_syncing for other in same_step) < limit

    def _same_set(self, changed_unit: _ChangedUnit) -> list[_ChangedUnit]:
        return [
            other
            for other in self._units
            if other.unit.generated_by == changed_unit.unit.generated_by
        ]

    def _earlier_steps(self, changed_unit: _ChangedUnit) -> list[_ChangedUnit]:
        if changed_unit.unit.rolling_sync_step is None:
            return []
        return [
            other for other in self._same_set(changed_unit) if 0 < other.step < changed_unit.step
        ]

    def _to_revision_sync(self, changed_unit: _ChangedUnit) -> RevisionSync:
        reason = changed_unit.not_synced_reason
        if not reason and changed_unit.started_at is None:
            reason = (
                "its step has not started"
                if changed_unit.detected_at <= self.until
                else "the new revision is not detected yet"
            )
        if not reason and not changed_unit.is_healthy:
            reason = "it is not healthy"
        return RevisionSync(
            unit=changed_unit.unit.id,
            committed_at=self.committed,
            detected_at=changed_unit.detected_at,
            step=changed_unit.step,
            started_at=changed_unit.started_at,
            finished_at=changed_unit.finished_at,
            outdated_predecessors=changed_unit.outdated_predecessors,
            not_synced_reason=reason,
        )


class RefreshSchedule(msgspec.Struct, frozen=True):
    """Times at which units notice a commit, from the refresh interval of each."""

    last_synced: Mapping[UnitId, Ms]
    start: Ms
    seed: int = 0

    @classmethod
    def from_events(cls, events: Iterable[Event], start: Ms, seed: int) -> RefreshSchedule:
        """Build the schedule from the events of a rollout: a sync is also a refresh."""
        finished = (
            event
            for event in events
            if event.type is EventType.UNIT_FINISHED and event.unit is not None
        )
        return cls(
            {event.unit: event.at for event in finished if event.unit is not None}, start, seed
        )

    def changed_units(
        self, old: PlanResult, new: PlanResult, committed: Ms
    ) -> list[DetectedChange]:
        """Return the units that a newer plan changes, with the time at which each notices it.

        A change of a unit resource is applied by the parent unit, in the wave of the resource.
        """
        new_bodies, old_bodies = _unit_resource_bodies(new), _unit_resource_bodies(old)
        old_digests = {planned_unit.id: planned_unit.digest for planned_unit in old.plan.units}
        new_digests = {planned_unit.id: planned_unit.digest for planned_unit in new.plan.units}
        units = {
            unit_manifests.manifests.unit.id: unit_manifests.manifests.unit
            for unit_manifests in new.unit_manifests
        }

        def changing_parent(unit: Unit) -> Unit | None:
            """Return the parent that deploys the changed resource of a unit."""
            parent = units.get(unit.parent) if unit.parent is not None else None
            key = (unit.parent, unit.id.kind, unit.id.name)
            return parent if new_bodies.get(key) != old_bodies.get(key) else None

        def detection_time(unit: Unit) -> Ms:
            parent = changing_parent(unit)
            return self._next_refresh(unit, committed) if parent is None else detection_time(parent)

        def find_leader(unit: Unit) -> Unit:
            """Return the highest Application in whose waves a unit sees the change."""
            parent = changing_parent(unit)
            is_in_waves = parent is not None and parent.id.kind == APPLICATION.name
            return find_leader(parent) if parent is not None and is_in_waves else unit

        leaders = {
            unit.id: find_leader(unit)
            for unit in units.values()
            if new_digests.get(unit.id) != old_digests.get(unit.id) and unit.id in new_digests
        }
        leaders |= {leader.id: leader for leader in leaders.values()}
        return [
            DetectedChange(
                units[name], detection_time(leader), None if leader.id == name else leader.id
            )
            for name, leader in leaders.items()
        ]

    def _next_refresh(self, unit: Unit, committed: Ms) -> Ms:
        """Return the first refresh after a commit; the commit itself without a refresh interval."""
        semantics, last_refresh = unit.policy.semantics, self.last_synced.get(unit.id, self.start)
        jitter = int(self._random_fraction(unit.id) * semantics.refresh_jitter)
        is_set = unit.id.kind == "ApplicationSet"
        if not semantics.refresh_interval:
            return committed
        interval = APPSET_REFRESH_INTERVAL if is_set else Ms(semantics.refresh_interval + jitter)
        rounds = max(0, -(-(committed - last_refresh) // interval))
        return Ms(last_refresh + rounds * interval)

    def _random_fraction(self, unit: UnitId) -> float:
        digest = hashlib.blake2b(f"{self.seed}/{unit}".encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big") / 2**64


def _unit_resource_bodies(
    plan_result: PlanResult,
) -> dict[tuple[UnitId | None, str, str], dict[str, Json]]:
    """Return the unit resources in Git, by parent unit, kind and name."""
    return {
        (
            unit_manifests.manifests.unit.id,
            get_text(body, "kind"),
            get_text(body, "metadata", "name"),
        ): body
        for unit_manifests in plan_result.unit_manifests
        for body in (document.body for document in unit_manifests.rendered.documents)
        if is_dialect_kind(object_kind(body))
    }
