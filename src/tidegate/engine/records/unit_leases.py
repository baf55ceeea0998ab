"""The leases of all units of a rollout: records are read together, leases acquired in parallel."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

from tidegate.engine.cluster.procedures import Procedure, gather
from tidegate.engine.records.heartbeat import Heartbeat
from tidegate.engine.records.peers import ClusterLeases, CompetingPeers, Peers, read_records
from tidegate.engine.records.record import Clock, UnitRecord
from tidegate.engine.records.unit_lease import (
    FLUSH_INTERVAL,
    EmitUnitEvent,
    SupersededError,
    UnitLease,
)
from tidegate.model.plans.plan import PlannedUnit
from tidegate.model.rollouts.journal import UnitOrigin
from tidegate.model.times import Ms
from tidegate.model.units.unit import UnitId
from tidegate.world.messages import Outcome

FLUSH_INTERVAL_PER_UNIT = Ms(10)
"""Additional delay of a journal write for each unit with unwritten changes."""
OnLeaseLost = Callable[[UnitId, str], None]
"""Callback for a unit that another process took over, with the reason."""


class RequestedUnits(NamedTuple):
    """Units that other processes wait for."""

    lendable: list[UnitId]
    """Units requested by processes with the same plan."""
    yielded: list[UnitId]
    """Units that we release for another plan."""


class UnitLeases:
    """The leases of a rollout by unit, and the lease state of each cluster."""

    def __init__(
        self,
        holder: str,
        namespace: str,
        now: Clock,
        emit_unit_event: EmitUnitEvent,
        on_lease_lost: OnLeaseLost,
    ) -> None:
        self.leases_by_cluster: dict[str, ClusterLeases] = {}
        self._dirty: dict[UnitId, None] = {}
        """Units whose journals have unwritten changes."""
        self._dirty_since = Ms(0)
        self._holder = holder
        self._competitors = CompetingPeers(holder)
        self._namespace = namespace
        self._now = now
        self._emit_unit_event = emit_unit_event
        self._on_lease_lost = on_lease_lost
        self.lost: dict[UnitId, str] = {}
        """Units that other processes took over permanently, with the reason."""
        self._leases: dict[UnitId, UnitLease] = {}

    def __getitem__(self, unit: UnitId) -> UnitLease:
        return self._leases[unit]

    def names(self) -> list[UnitId]:
        return list(self._leases)

    def add(self, unit: PlannedUnit, plan: str, parent: PlannedUnit | None = None) -> None:
        """Add a lease for a unit of a plan, or update its desired state."""
        lease = self._leases.get(unit.id)
        if lease is not None:
            lease.set_desired(unit.digest)
            return
        cluster, namespace = unit.cluster, self._namespace
        if cluster not in self.leases_by_cluster:
            heartbeat = Heartbeat(cluster, self._holder, namespace)
            self.leases_by_cluster[cluster] = ClusterLeases(
                heartbeat, Peers(cluster, namespace), self._competitors
            )
        record = UnitRecord(
            unit.id.tracking_id, cluster, namespace, partial(self._mark_dirty, unit.id)
        )
        cluster_leases = self.leases_by_cluster[cluster]
        if unit.parent is not None:
            grandparent = parent.parent if parent is not None else None
            is_cascaded = parent is not None and parent.policy.cascades
            record.origin = UnitOrigin.from_policy(
                unit.id,
                unit.parent,
                unit.policy,
                grandparent=grandparent,
                deleted_with_parent=is_cascaded,
            )
        self._leases[unit.id] = UnitLease(
            unit.id,
            record,
            cluster_leases,
            plan,
            self._emit_unit_event,
            desired_digest=unit.digest,
            source=unit.source,
        )

    def _mark_dirty(self, unit: UnitId) -> None:
        if not self._dirty:
            self._dirty_since = self._now()
        self._dirty[unit] = None

    def set_plan(self, digest: str) -> None:
        """Set the plan of all leases."""
        for lease in self._leases.values():
            lease.plan_digest = digest

    def load_records(self, units: Iterable[UnitId]) -> Procedure[Outcome | None]:
        """Read the records of the units that we do not hold; return the first error, if any."""
        by_cluster: dict[str, list[UnitRecord]] = {}
        for lease in (self._leases[unit] for unit in units):
            if not lease.is_ours:
                lease.record.forget_last_read()
                by_cluster.setdefault(lease.record.cluster, []).append(lease.record)
        outcomes = yield from gather(
            read_records(records, self._now) for records in by_cluster.values()
        )
        return next((outcome for outcome in outcomes if outcome is not None), None)

    def pop_changed(self, units: Iterable[UnitId]) -> set[UnitId]:
        """Return the units that others changed since their objects were cached, each once."""
        changed = {
            unit
            for unit in units
            if self._leases[unit].compared_epoch != self._leases[unit].record.epoch
        }
        for unit in changed:
            self._leases[unit].compared_epoch = self._leases[unit].record.epoch
        return changed

    def acquire(self, unit: UnitId, *, is_needed: bool = True) -> Procedure[None]:
        """Acquire the lease of a unit and register its objects before they are written.

        A unit that another process has taken over is recorded as lost; that is not an error.
        """
        lease = self._leases[unit]
        if unit in self.lost or lease.is_acquired(self._now()):
            return
        lease.is_needed |= is_needed
        try:
            yield from lease.acquire(self._now)
        except SupersededError as error:
            self._record_loss(unit, error)

    def has(self, unit: UnitId) -> bool:
        """Return whether we hold the lease of a unit, though we may not write right now."""
        lease = self._leases[unit]
        return unit not in self.lost and lease.is_ours and not lease.is_releasing

    def ensure_heartbeats(self, units: Iterable[UnitId]) -> Procedure[None]:
        """Start our heartbeat in the clusters of these units before a lease is acquired."""
        lease_by_cluster = {self._leases[unit].record.cluster: self._leases[unit] for unit in units}
        yield from gather(lease.ensure_heartbeat(self._now) for lease in lease_by_cluster.values())

    @property
    def is_waiting(self) -> bool:
        """Whether we wait for a unit that another process holds."""
        return any(cluster_leases.waiting for cluster_leases in self.leases_by_cluster.values())

    def _record_loss(self, unit: UnitId, error: SupersededError) -> None:
        self.lost[unit] = error.problem
        self._on_lease_lost(unit, error.problem)

    def process_requests(self, heartbeat: Heartbeat) -> RequestedUnits:
        """Return the units that other processes request.

        Drop requests for units that we do not hold.
        """
        if not heartbeat.requests:
            return RequestedUnits([], [])
        names = {lease.record.ref.name: lease for lease in self._leases.values() if lease.is_ours}
        heartbeat.requests = {
            name: request
            for name, request in heartbeat.requests.items()
            if name in names and names[name].record.transitions == request.transitions
        }
        requests = [(names[name], request) for name, request in heartbeat.requests.items()]
        requested = RequestedUnits([], [])
        for lease, request in requests:
            if request.plan == lease.record.salted_digest(lease.plan_digest):
                requested.lendable.append(lease.unit)
            elif request != lease.handled_request:
                lease.handled_request = request
                if self._competitors.yield_to(request.holder):
                    requested.yielded.append(lease.unit)
        return requested

    @property
    def flush_at(self) -> Ms | None:
        """Time of the next journal writes.

        The more units have changes, the less often each is written.
        """
        if not self._dirty:
            return None
        return Ms(
            self._dirty_since + max(FLUSH_INTERVAL, len(self._dirty) * FLUSH_INTERVAL_PER_UNIT)
        )

    def pop_due(self, now: Ms) -> list[UnitLease]:
        """Return the leases whose journals must be written now."""
        if self.flush_at is None or now < self.flush_at:
            return []
        units, self._dirty = list(self._dirty), {}
        return [self._leases[unit] for unit in units]

    def release_all(self) -> Procedure[None]:
        """Release all units, then delete our Leases, which frees everything that still names us."""
        open_leases = [
            lease for lease in self._leases.values() if lease.may_be_holder or lease.is_busy
        ]
        yield from gather(lease.release(self._now) for lease in open_leases)
        heartbeats = [
            cluster_leases.heartbeat
            for cluster_leases in self.leases_by_cluster.values()
            if cluster_leases.heartbeat.may_exist
        ]
        yield from gather(heartbeat.delete_lease(self._now) for heartbeat in heartbeats)

    def reset_procedures(self) -> None:
        """Reset the state of procedures that were cancelled."""
        for lease in self._leases.values():
            lease.reset_procedures()
        for cluster_leases in self.leases_by_cluster.values():
            cluster_leases.heartbeat.reset_procedures()
