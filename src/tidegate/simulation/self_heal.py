"""Self-heal: drift of live objects after a simulated rollout, and its correction.

    edit ──▶ the unit is OutOfSync ──▶ backoff ──▶ differing objects are synced, without hooks

The backoff before an attempt counts from the end of the unit's last sync and grows; see
`Semantics.heal_delay`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from tidegate.clusters.diff import describe_overwritten_fields, find_difference
from tidegate.clusters.reader import get_objects
from tidegate.clusters.session import Session
from tidegate.model.finding import Finding, Severity
from tidegate.model.k8s.objects import ClusterRef, object_body
from tidegate.model.plans.change import DiffAction
from tidegate.model.plans.drift import Drift
from tidegate.model.plans.plan import (
    ItemAction,
    Plan,
    PlanFragment,
    PlanItem,
    PlannedUnit,
    Step,
    step_items,
)
from tidegate.model.rollouts.event import Event, EventType, RolloutOutcome
from tidegate.model.times import Ms, format_duration
from tidegate.model.units.unit import UnitId
from tidegate.plan.build.chains import filter_items, narrow_plan
from tidegate.world.messages import is_error

if TYPE_CHECKING:
    from tidegate.sandbox.world import EditRecord, Sandbox


WRITTEN = frozenset({EventType.OBJECT_WRITTEN, EventType.OBJECT_UNCHANGED})
RunSync = Callable[[Plan], Awaitable[Sequence[Event]]]
"""Runs a partial plan and returns its events."""


def has_passed(events: Sequence[Event], unit: UnitId | None = None) -> bool:
    """Return whether a sync has passed, or one of its units."""
    ends = {EventType.ROLLOUT_FINISHED} if unit is None else {EventType.UNIT_FINISHED}
    reasons = (
        event.reason for event in events if event.type in ends and event.unit in {unit, None}
    )
    return next(reasons, "") == RolloutOutcome.PASSED


"""Rolls out a partial plan."""


class _HealedUnit(msgspec.Struct):
    """A unit after its rollout."""

    unit: PlannedUnit
    last_sync: Ms
    """End of its last sync."""
    has_passed: bool = True
    attempts: int = 0

    @property
    def not_healed_reason(self) -> str:
        """Reason why drift is not reverted; empty if it is."""
        policy = self.unit.policy
        if not policy.semantics.self_heals:
            return "it is not reverted before the next rollout"
        if not policy.auto_sync:
            return "the unit has no automated sync"
        if not policy.self_heal:
            return "`selfHeal` is disabled"
        return "" if self.has_passed else "the last sync of the unit failed"

    @property
    def due(self) -> Ms:
        return Ms(self.last_sync + self.unit.policy.semantics.heal_delay(self.attempts))


class SelfHeal(msgspec.Struct):
    """Observer of the objects of a rollout until a time; syncs those that drift."""

    plan: Plan
    session: Session
    sandbox: Sandbox
    sync: RunSync
    until: Ms
    _units: dict[UnitId, _HealedUnit] = msgspec.field(default_factory=dict)
    _items: dict[ClusterRef, tuple[PlannedUnit, PlanItem]] = msgspec.field(default_factory=dict)
    _open_drifts: dict[ClusterRef, Drift] = msgspec.field(default_factory=dict)
    _healed_drifts: list[Drift] = msgspec.field(default_factory=list)

    async def run(self, events: Iterable[Event]) -> tuple[Drift, ...]:
        """Return all drifts in the order of their times."""
        self._record_rollout(events)
        while True:
            await self._compare()
            times = [healed_unit.due for healed_unit in self._units_to_heal()]
            next_edit = self.sandbox.next_edit()
            times += [] if next_edit is None else [next_edit]
            if not times or min(times) > self.until:
                break
            await self._wait(min(times))
            if due := [
                healed_unit
                for healed_unit in self._units_to_heal()
                if healed_unit.due <= self.sandbox.now()
            ]:
                await self._heal(due)
        remaining = [self._as_remaining(drift) for drift in self._open_drifts.values()]
        return tuple(
            sorted(
                (*self._healed_drifts, *remaining), key=lambda drift: (drift.detected_at, drift.ref)
            )
        )

    def _record_rollout(self, events: Iterable[Event]) -> None:
        units = {unit.id: unit for unit in self.plan.units}
        written: set[ClusterRef] = set()
        for event in events:
            if event.type is EventType.UNIT_FINISHED and event.unit in units:
                passed = event.reason == RolloutOutcome.PASSED
                self._units[event.unit] = _HealedUnit(units[event.unit], event.at, passed)
            elif event.type in WRITTEN and event.ref is not None:
                written.add(ClusterRef(event.cluster, event.ref))
        for step in self.plan.steps if written else ():
            for item in step_items(step) if step.unit in self._units else ():
                cluster_ref = ClusterRef(step.cluster, item.ref)
                is_persistent = (
                    item.action is ItemAction.APPLY and item.hook is None and not item.expires
                )
                if is_persistent and cluster_ref in written:
                    self._items[cluster_ref] = (units[step.unit], item)

    def _units_to_heal(self) -> list[_HealedUnit]:
        """Return the units with drift to revert."""
        names = dict.fromkeys(drift.unit for drift in self._open_drifts.values())
        return [self._units[name] for name in names if not self._units[name].not_healed_reason]

    async def _wait(self, until: Ms) -> None:
        client = self.session.world.client()
        while self.sandbox.now() < until:
            await client.wait(until)

    async def _compare(self) -> None:
        """Record which objects differ from Git, and which no longer do."""
        live_objects = await get_objects(self.session.world, self._items)
        edit_times = {
            ClusterRef(edit.cluster, edit.write.ref): edit.at for edit in self.sandbox.edits
        }
        now = self.sandbox.now()
        last_edit = max(edit_times.values(), default=now)
        for cluster_ref, (unit, item) in self._items.items():
            live = live_objects.get(cluster_ref)
            if (
                live is not None
                and cluster_ref not in edit_times
                and cluster_ref not in self._open_drifts
            ):
                continue
            body = object_body(live) if live is not None else None
            jq = self.session.evaluator.jq
            differs = find_difference(unit, item, body, jq).action is not DiffAction.KEEP
            if differs and cluster_ref not in self._open_drifts:
                message = (
                    "was deleted"
                    if body is None
                    else describe_overwritten_fields(unit, item, body, jq, "")
                )
                at = edit_times.get(cluster_ref, last_edit)
                self._open_drifts[cluster_ref] = Drift(
                    unit=unit.id,
                    ref=item.ref,
                    detected_at=at,
                    message=message,
                    cluster=cluster_ref.cluster,
                )
            elif not differs and cluster_ref in self._open_drifts:
                drift = self._open_drifts.pop(cluster_ref)
                attempts = self._units[unit.id].attempts
                self._healed_drifts.append(
                    msgspec.structs.replace(drift, healed_at=now, attempts=attempts)
                )

    async def _heal(self, due: list[_HealedUnit]) -> None:
        """Sync only the differing objects of these units."""
        names = {healed_unit.unit.id for healed_unit in due}
        drifted = {
            cluster_ref for cluster_ref, drift in self._open_drifts.items() if drift.unit in names
        }

        def cut(step: Step) -> Step | None:
            if step.unit not in names or not step.batches:
                return None
            return filter_items(step, lambda item: ClusterRef(step.cluster, item.ref) in drifted)

        events = await self.sync(_partial_plan(narrow_plan(self.plan, cut), names))
        for healed_unit in due:
            healed_unit.attempts += 1
            healed_unit.last_sync, healed_unit.has_passed = (
                self.sandbox.now(),
                has_passed(events),
            )

    def _as_remaining(self, drift: Drift) -> Drift:
        unit = self._units[drift.unit]
        reason = unit.not_healed_reason or "the simulation ended before the next attempt"
        return msgspec.structs.replace(drift, not_healed_reason=reason, attempts=unit.attempts)


def _partial_plan(narrowed: Plan, names: set[UnitId]) -> Plan:
    """Return a partial plan that prunes nothing and has no concurrency groups."""
    units = tuple(
        msgspec.structs.replace(
            unit, group="", policy=msgspec.structs.replace(unit.policy, prune=False)
        )
        for unit in narrowed.units
        if unit.id in names
    )
    return Plan.from_fragment(PlanFragment(units=units, steps=narrowed.steps, edges=narrowed.edges))


def failed_edit_findings(sandbox: Sandbox) -> list[Finding]:
    """Return findings about edits of the scenario that the server rejected."""
    return [
        _failed_edit(edit, sandbox.started_at) for edit in sandbox.edits if is_error(edit.outcome)
    ]


def _failed_edit(edit: EditRecord, start: Ms) -> Finding:
    ref, at = edit.write.ref, format_duration(Ms(edit.at - start))
    message = edit.outcome.message if is_error(edit.outcome) else ""
    return Finding(
        code="simulate.edit",
        severity=Severity.WARNING,
        message=f"the edit of {ref} at {at} failed: {message}",
        fix="edit an object that exists at this time, and fields that its schema allows",
    )
