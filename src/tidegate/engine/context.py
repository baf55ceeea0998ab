"""Context of a rollout: its units and steps, its settings and the state of its clusters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from tidegate.engine.cluster.autoscalers import check_autoscalers
from tidegate.engine.cluster.compare import (
    ComparedItem,
    ObjectComparer,
    has_work,
    status_digest,
    will_be_modified,
)
from tidegate.engine.cluster.live_cache import LiveCache
from tidegate.engine.cluster.preflight.admission_context import UNWRITTEN_ACTIONS, AdmissionContext
from tidegate.engine.cluster.preflight.checks import PreflightChecker
from tidegate.engine.cluster.procedures import ApiCall, Procedure
from tidegate.engine.cluster.writes import deletion_message
from tidegate.engine.evaluator import FailingUnit, HistoryBackend, ObjectEvaluator, StatusBuilder
from tidegate.engine.histories import ReleaseHistories
from tidegate.engine.messages import (
    ComparedObject,
    HealthChanged,
    Override,
    Refresh,
)
from tidegate.engine.records.markers import Approvals
from tidegate.engine.records.storage import TIDEGATE_NAMESPACE
from tidegate.engine.records.unit_lease import EmitUnitEvent
from tidegate.engine.records.unit_leases import OnLeaseLost, UnitLeases
from tidegate.errors import Location
from tidegate.model.display import join_limited
from tidegate.model.k8s.objects import (
    ClusterRef,
    JsonObject,
    Kind,
    LiveObject,
    Ref,
    object_body,
    versionless_key,
    with_served_version,
)
from tidegate.model.k8s.verdict import Health, Verdict
from tidegate.model.plans.plan import (
    AWAIT_ACTIONS,
    ItemAction,
    Plan,
    PlanFragment,
    PlanItem,
    PlannedUnit,
    Step,
    step_items,
)
from tidegate.model.times import Ms
from tidegate.model.units.policy import PreflightMode
from tidegate.model.units.unit import UnitId
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.errors import raise_for_error
from tidegate.world.messages import ErrorOutcome, Outcome
from tidegate.world.requests import Write

MAX_NAMES = 5


class RolloutSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of a rollout."""

    holder: str
    """Identity of this run in leases, unique among all runs."""
    namespace: str = TIDEGATE_NAMESPACE
    skip_faulty_units: bool = False
    """Whether to leave out units that fail preflight and their dependents, and start the rest."""
    preflight_only: bool = False
    """Whether to end after preflight, without any write."""
    preflight_mode: PreflightMode = PreflightMode.LOCAL
    cluster_patience: Ms | None = None
    """How long to wait for a cluster that does not answer; None waits without limit."""
    excluded: Mapping[UnitId, str] = msgspec.field(default_factory=dict)
    """Units that are known to be impossible to start, with the reason."""
    approved: frozenset[UnitId] = frozenset()
    """Units that need no further approval."""
    status_builder: StatusBuilder | None = None
    """Builds the status of unit resources; None writes no status."""
    history_backend: HistoryBackend | None = None
    """Release history of units; None if no unit has one."""
    inventories: Mapping[UnitId, Sequence[Ref]] = msgspec.field(default_factory=dict)
    """Objects that other controllers report as those of units."""
    request_refresh: Callable[[Refresh], None] | None = None
    """Looks for a newer revision of a unit's source; None if sources do not change."""


class RolloutContext:
    """Everything that a procedure may use."""

    def __init__(
        self,
        world: Dispatcher,
        evaluator: ObjectEvaluator,
        settings: RolloutSettings,
        emit_unit_event: EmitUnitEvent,
        on_lease_lost: OnLeaseLost,
    ) -> None:
        self.world = world
        self.evaluator = evaluator
        self.settings = settings
        self.live_cache = LiveCache()
        self.comparer = ObjectComparer(evaluator, self.live_cache, {})
        admission = AdmissionContext(evaluator, self.live_cache)
        self.preflight_checker = PreflightChecker(
            evaluator, self.comparer.units, admission, settings.preflight_mode
        )
        self.steps: dict[str, Step] = {}
        self.expanded_steps: set[str] = set()
        """Steps that have already been expanded."""
        self._steps_by_unit: dict[UnitId, dict[str, None]] = {}
        self.owners: dict[ClusterRef, PlannedUnit] = {}
        self.writers: dict[ClusterRef, set[UnitId]] = {}
        """All units that write an object; more than one is an error."""
        self._written_items: dict[ClusterRef, PlanItem] = {}
        self.unit_plans: dict[UnitId, Plan] = {}
        """The requested plan of each unit."""
        self.leases = UnitLeases(
            settings.holder, settings.namespace, world.now, emit_unit_event, on_lease_lost
        )
        self.histories = ReleaseHistories(settings.history_backend)
        self.approvals = Approvals(self._desired_digest, settings.approved, settings.namespace)

    def _desired_digest(self, unit: UnitId) -> str:
        return self.leases[unit].desired_digest

    def register(self, units: Iterable[PlannedUnit], steps: Iterable[Step], *, digest: str) -> None:
        """Add units and steps of a plan to the context."""
        units_by_id, units = self.comparer.units, tuple(units)
        units_by_id |= {unit.id: unit for unit in units}
        for unit in units:
            self.leases.add(unit, digest, units_by_id.get(unit.parent) if unit.parent else None)
        for step in steps:
            self.steps[step.id] = step
            self._steps_by_unit.setdefault(step.unit, {})[step.id] = None
            items_by_ref = {ClusterRef(step.cluster, item.ref): item for item in step_items(step)}
            self.preflight_checker.admission.register(items_by_ref)
            self.live_cache.track(items_by_ref)
            for object_ref, item in items_by_ref.items():
                if item.action not in AWAIT_ACTIONS or object_ref not in self.owners:
                    self.owners[object_ref] = units_by_id[step.unit]
                if item.action is ItemAction.APPLY:
                    self._written_items[object_ref] = item
                    self.writers.setdefault(object_ref, set()).add(step.unit)
            lease, items = self.leases[step.unit], step_items(step)
            lease.hooks.update(item.ref for item in items if item.hook is not None)
            ordinary = (item for item in items if item.hook is None)
            managed_refs = (item.ref for item in ordinary if item.action not in UNWRITTEN_ACTIONS)
            lease.refs.update(dict.fromkeys(managed_refs))

    def unexpanded_steps(self) -> list[Step]:
        """Return the steps whose objects count as planned: all that are not expanded yet."""
        return [step for step in self.steps.values() if step.id not in self.expanded_steps]

    def object_origin(self, step: Step, ref: Ref) -> str:
        """Return the location of an object of a step in the user's files; empty if unknown."""
        items = step_items(self.steps.get(step.id, step))
        return next((item.origin for item in items if item.ref == ref), "")

    def steps_for_unit(self, unit: UnitId) -> list[Step]:
        """Return the steps of a unit."""
        return [self.steps[name] for name in self._steps_by_unit.get(unit, ())]

    def planned_items(self, cluster: str) -> list[tuple[PlanItem, PlannedUnit]]:
        """Return all planned objects of a cluster with their units."""
        units = self.comparer.units
        steps = [step for step in self.steps.values() if step.cluster == cluster]
        return [(item, units[step.unit]) for step in steps for item in step_items(step)]

    def is_remediation(self, step: Step) -> bool:
        """Return whether a step runs only if the release of its unit fails."""
        return step.only_on_failure and self.histories.pending_revision(step.unit) is not None

    def plan_remediation(self, unit: PlannedUnit, steps: Iterable[Step]) -> PlanFragment | None:
        """Return what to run if the release of a unit fails; None if nothing is run."""
        served = self.live_cache.served_kinds.get(unit.cluster, {})

        def is_namespaced(kind: Kind) -> bool | None:
            return served[kind].namespaced if kind in served else None

        def find_live(ref: Ref) -> LiveObject | None:
            return self.live_cache.objects.get(ClusterRef(unit.cluster, ref))

        return self.histories.plan_remediation(
            FailingUnit(unit, tuple(steps), find_live, is_namespaced)
        )

    def evaluate_health(
        self, object_ref: ClusterRef, live: LiveObject, body: JsonObject | None = None
    ) -> Procedure[HealthChanged]:
        """Return the health of a live object, at once unless a health script must run in a worker.

        `body` is passed if it is already decoded.
        """
        content = object_body(live) if body is None else body
        unit, now = self.owners[object_ref], self.world.now()
        script = self.evaluator.health_script(unit, content, now)
        if script is None:
            verdict = self.evaluator.evaluate_health(unit, content, now)
        else:
            (outcome,) = yield (ApiCall(object_ref.cluster, script),)
            verdict = self.evaluator.verdict_from_script(script, outcome, content)
        return HealthChanged(
            object_ref,
            live.uid,
            live.generation,
            live.resource_version,
            verdict,
            status_digest(live, content),
            deletion_message(content),
            (yield from self._find_override(object_ref, content, verdict)),
        )

    def _find_override(
        self, object_ref: ClusterRef, body: JsonObject, verdict: Verdict
    ) -> Procedure[Override | None]:
        """Return the field of others by which an object is healthy without the applied template."""
        unit, item = self.owners[object_ref], self._written_items.get(object_ref)
        is_fenced = unit.policy.semantics.fenced
        if item is None or not is_fenced or verdict.health is not Health.HEALTHY:
            return None
        override = self.evaluator.find_override(unit, item, body)
        if override is None or not override.is_scale:
            return override
        served = self.live_cache.served_kinds.get(object_ref.cluster, {})
        return (yield from check_autoscalers(object_ref, override, served))

    def compare_step(self, step: Step) -> tuple[ComparedObject, ...]:
        """Compare the objects of a step with the live objects."""
        entries = self.leases[step.unit].record.entries
        return tuple(
            self.comparer.compare(step, item, entries.get(item.ref)) for item in step_items(step)
        )

    def compared_items(self, step: Step) -> list[ComparedItem]:
        """Return each item of a step with its compare result."""
        pairs = zip(step_items(step), self.compare_step(step), strict=True)
        return [(step, item, compared) for item, compared in pairs]

    def has_work(self, compared_item: ComparedItem) -> bool:
        """Return whether an item needs work: a write, or a gate that has not opened yet."""
        step, item, _ = compared_item
        record, unit = self.leases[step.unit].record, self.comparer.units[step.unit]
        entry, completed = record.entries.get(item.ref), record.is_completed(unit.digest)
        return has_work(unit, compared_item, entry, completed=completed)

    def will_be_modified(self, compared_item: ComparedItem) -> bool:
        """Return whether an object is written or deleted in this rollout."""
        step, item, compared = compared_item
        confirmed = self.comparer.units[step.unit].policy.confirmed
        return will_be_modified(item, compared, confirmed=confirmed)

    def find_prune_candidates(self, plan: Plan) -> dict[UnitId, list[ClusterRef]]:
        """Return the objects of each pruning unit that are not part of the rollout.

        Hooks are not included. A journal entry whose version is no longer served is renamed to
        a version that is.
        """
        unit_ids, planned = {unit.id for unit in plan.units}, _planned_identities(plan.steps)
        unplanned = [
            (name, ref)
            for name in (unit.id for unit in plan.units if unit.policy.prune)
            for ref in self._managed_refs(name)
            if (self.leases[name].record.cluster, *versionless_key(ref)) not in planned
        ]
        others = (step for step in self.steps.values() if step.unit not in unit_ids)
        planned = _planned_identities(others if unplanned else ())
        candidates: dict[UnitId, dict[ClusterRef, None]] = {}
        for name, ref in unplanned:
            record = self.leases[name].record
            cluster = record.cluster
            if (cluster, *versionless_key(ref)) not in planned:
                served = with_served_version(ref, self.live_cache.served_kinds.get(cluster, {}))
                if ref in record.entries:
                    record.rename(ref, served)
                candidates.setdefault(name, {})[ClusterRef(cluster, served)] = None
        return {name: list(object_refs) for name, object_refs in candidates.items()}

    def _managed_refs(self, unit: UnitId) -> list[Ref]:
        """Return the objects that a unit manages: its journal, inventory and release history."""
        record, pending = self.leases[unit].record, self.histories.pending_revision(unit)
        refs = {ref: None for ref, entry in record.entries.items() if not entry.hook}
        refs |= dict.fromkeys(self.settings.inventories.get(unit, ()))
        served = self.live_cache.served_kinds.get(record.cluster, {})
        for ref in pending.previous_objects if pending is not None else ():
            current = with_served_version(ref, served)
            is_cluster_scoped = current.kind in served and not served[current.kind].namespaced
            refs[Ref(current.kind, "", current.name) if is_cluster_scoped else current] = None
        return list(refs)

    @property
    def location(self) -> Location:
        """Location for cluster errors: the names of the units in the rollout."""
        return Location(f"unit {join_limited([*self.leases.names()], MAX_NAMES)}")

    def load_records(self, units: Iterable[UnitId]) -> Procedure[Outcome | None]:
        """Read the records of units.

        Invalidate cached objects of units that other processes changed.
        """
        units = tuple(units)
        error = yield from self.leases.load_records(units)
        self._invalidate_changed(units)
        return error

    def acquire_lease(self, unit: UnitId, *, is_needed: bool = True) -> Procedure[bool]:
        """Acquire the lease of a unit.

        Return True if another process changed the unit in the meantime.
        """
        epoch_before = self.leases[unit].compared_epoch
        yield from self.leases.acquire(unit, is_needed=is_needed)
        self._invalidate_changed((unit,))
        return self.leases[unit].compared_epoch != epoch_before or unit in self.leases.lost

    def _invalidate_changed(self, units: Iterable[UnitId]) -> None:
        """Invalidate the cached objects of units that other processes have changed."""
        for unit in self.leases.pop_changed(units):
            steps = self.steps_for_unit(unit)
            self.live_cache.invalidate(
                ClusterRef(step.cluster, item.ref) for step in steps for item in step_items(step)
            )

    def write_deadline(self, call: ApiCall) -> Ms | None:
        """Return the time after which a write must not be sent; None if there is no limit."""
        write = call.request
        if (
            not isinstance(write, Write)
            or write.dry_run
            or not self.is_managed(call.cluster, write.ref)
        ):
            return None
        owner = self.owners.get(ClusterRef(call.cluster, write.ref))
        if owner is not None and self.leases[owner.id].is_outdated:
            return Ms(0)
        return self.leases.leases_by_cluster[call.cluster].heartbeat.write_deadline

    def is_managed(self, cluster: str, ref: Ref) -> bool:
        """Return whether an object belongs to this rollout."""
        object_ref = ClusterRef(cluster, ref)
        return object_ref in self.owners or self.histories.is_record(object_ref)


def _planned_identities(steps: Iterable[Step]) -> set[tuple[object, ...]]:
    """Return the objects that steps write or delete, independent of their API version."""
    items = ((step.cluster, item) for step in steps for item in step_items(step))
    return {
        (cluster, *versionless_key(plan_item.ref))
        for cluster, plan_item in items
        if plan_item.action not in AWAIT_ACTIONS
    }


def raise_for_cluster(error: ErrorOutcome | None, context: RolloutContext) -> None:
    """Raise an error outcome that prevents reading the cluster; do nothing for None."""
    raise_for_error(error, "reading the cluster", context.location)
