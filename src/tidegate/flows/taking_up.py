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
from collections.abc import Iterable, Mapping

import msgspec

from tidegate.dialect.units import is_dialect_kind
from tidegate.flows.healing import RunSync
from tidegate.flows.planning import PlanResult
from tidegate.flows.resyncing import DoubleSync
from tidegate.model.event import Event, EventType, RolloutOutcome
from tidegate.model.moment import MINUTE, Ms
from tidegate.model.objects import Json, Kind
from tidegate.model.plan import Plan
from tidegate.model.reading import get_text
from tidegate.model.unit import Unit, UnitId
from tidegate.model.uptake import RevisionSync
from tidegate.plan.chains import plan_for_unit
from tidegate.world.exchange import Dispatcher

APPSET_REFRESH_INTERVAL = Ms(3 * MINUTE)
"""Interval in which an ApplicationSet reads its repositories."""


class _ChangedUnit(msgspec.Struct):
    """A unit that the newer revision changes."""

    unit: Unit
    detected_at: Ms
    started_at: Ms | None = None
    finished_at: Ms | None = None
    is_healthy: bool = False
    outdated_predecessors: tuple[UnitId, ...] = ()
    """Units of earlier steps that were not healthy yet when this unit started."""

    @property
    def step(self) -> int:
        return self.unit.rolling_sync_step.number if self.unit.rolling_sync_step is not None else 0

    @property
    def is_syncing(self) -> bool:
        return self.started_at is not None and not self.is_healthy

    @property
    def not_synced_reason(self) -> str:
        rollout = self.unit.rolling_sync_step
        if not self.unit.policy.semantics.refresh_every:
            return "nobody brings it before the next rollout"
        if rollout is None:
            return "" if self.unit.policy.starts else "nobody syncs the unit by itself"
        if not rollout.number:
            return "no step of its set takes it"
        return "somebody has to sync it: `maxUpdate` is 0" if rollout.limit == 0 else ""


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

    async def run(self, changed: Iterable[tuple[Unit, Ms]]) -> tuple[RevisionSync, ...]:
        """Roll out the changed units, each given with the time at which it notices the revision."""
        changed_units = (_ChangedUnit(unit, detected_at) for unit, detected_at in changed)
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
        changed_unit.is_healthy = (
            await self.sync(plan_for_unit(self.plan, changed_unit.unit.id)) is RolloutOutcome.PASSED
        )
        changed_unit.finished_at = self.world.now() if changed_unit.is_healthy else None
        self._start_units()
        if changed_unit.is_healthy and changed_unit.started_at is not None:
            await self.double_sync.repeat_sync(
                changed_unit.unit.id, changed_unit.started_at, changed_unit.started_at
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
                "its step is not open"
                if changed_unit.detected_at <= self.until
                else "nobody has seen it yet"
            )
        if not reason and not changed_unit.is_healthy:
            reason = "it is not well"
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
    ) -> list[tuple[Unit, Ms]]:
        """Return the units that a newer plan changes, with the time at which each notices it.

        A change of a unit resource is applied by the parent unit, as soon as that notices it.
        """
        new_bodies, old_bodies = _unit_resource_bodies(new), _unit_resource_bodies(old)
        old_digests = {planned_unit.id: planned_unit.digest for planned_unit in old.plan.units}
        new_digests = {planned_unit.id: planned_unit.digest for planned_unit in new.plan.units}
        units = {
            unit_manifests.manifests.unit.id: unit_manifests.manifests.unit
            for unit_manifests in new.unit_manifests
        }

        def detection_time(unit: Unit) -> Ms:
            parent = units.get(unit.parent) if unit.parent is not None else None
            if parent is not None:
                key = (parent.id, unit.id.kind, unit.id.name)
                if new_bodies.get(key) != old_bodies.get(key):
                    return detection_time(parent)
            return self._next_refresh(unit, committed)

        return [
            (unit, detection_time(unit))
            for unit in units.values()
            if new_digests.get(unit.id) != old_digests.get(unit.id) and unit.id in new_digests
        ]

    def _next_refresh(self, unit: Unit, committed: Ms) -> Ms:
        """Return the first refresh after a commit; the commit itself without a refresh interval."""
        semantics, last_refresh = unit.policy.semantics, self.last_synced.get(unit.id, self.start)
        jitter = int(self._random_fraction(unit.id) * semantics.refresh_jitter)
        is_set = unit.id.kind == "ApplicationSet"
        if not semantics.refresh_every:
            return committed
        interval = APPSET_REFRESH_INTERVAL if is_set else Ms(semantics.refresh_every + jitter)
        rounds = max(0, -(-(committed - last_refresh) // interval))
        return Ms(last_refresh + rounds * interval)

    def _random_fraction(self, unit: UnitId) -> float:
        digest = hashlib.blake2b(f"{self.seed}/{unit}".encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big") / 2**64


def _unit_resource_bodies(
    plan_result: PlanResult,
) -> dict[tuple[UnitId, str, str], dict[str, Json]]:
    """Return the unit resources in Git, by parent unit, kind and name."""
    return {
        (
            unit_manifests.manifests.unit.id,
            get_text(body, "kind"),
            get_text(body, "metadata", "name"),
        ): body
        for unit_manifests in plan_result.unit_manifests
        for body in (document.body for document in unit_manifests.rendered.documents)
        if is_dialect_kind(Kind.of(get_text(body, "apiVersion"), get_text(body, "kind")))
    }
