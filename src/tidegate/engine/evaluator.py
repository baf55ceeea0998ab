"""Protocols that the engine is given: object evaluation, release history and status patches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from tidegate.engine.messages import Comparison, Override
from tidegate.model.k8s.objects import ClusterRef, JsonObject, Kind, LiveObject, Ref
from tidegate.model.k8s.verdict import Verdict
from tidegate.model.plans.drift import ObjectDrift
from tidegate.model.plans.plan import Plan, PlanFragment, PlanItem, PlannedUnit, Step
from tidegate.model.rollouts.progress import UnitProgress
from tidegate.model.times import Ms
from tidegate.model.units.release_history import PendingRevision, ReleaseStorage, RevisionOutcome
from tidegate.model.units.unit import UnitId
from tidegate.schema.violations import SchemaViolations
from tidegate.world.messages import Outcome
from tidegate.world.requests import RunWorker, Write


class UnitLiveState(msgspec.Struct, frozen=True):
    """Live state of a unit when its rollout starts."""

    started_at: Ms
    """Start of the rollout, possibly in an earlier process."""
    prune_candidates: tuple[JsonObject, ...] = ()
    """Live objects of the unit that are no longer in Git."""


class WritePayload(msgspec.Struct, frozen=True):
    """Body to write for an object."""

    body: bytes
    replaces: bool = False
    """Whether the body replaces the whole live object."""


class ObjectEvaluator(Protocol):
    """Pure evaluation of single objects, and three changes of a plan."""

    def complete_plan(self, plan: Plan, live_states: dict[UnitId, UnitLiveState]) -> Plan:
        """Return the plan with live state added: generated names and deletions."""
        ...

    def remove_hooks(self, plan: Plan, units: set[UnitId], *, keep_tests: bool = False) -> Plan:
        """Return the plan without the hooks of these units, which have nothing else to do."""
        ...

    def remove_settled(self, plan: Plan, settled: set[tuple[UnitId, Ref]]) -> Plan:
        """Return the plan without the settled objects that their unit need not wait for.

        Settled objects are in sync, and their gates have opened for this manifest.
        """
        ...

    def health_script(self, unit: PlannedUnit, body: JsonObject, now: Ms) -> RunWorker | None:
        """Return the worker call that must run before the health can be evaluated.

        None if there is none.
        """
        ...

    def verdict_from_script(self, script: RunWorker, outcome: Outcome, body: JsonObject) -> Verdict:
        """Return the health verdict from the outcome of a worker call."""
        ...

    def evaluate_health(self, unit: PlannedUnit, body: JsonObject, now: Ms) -> Verdict:
        """Return the health verdict by the rules of the unit."""
        ...

    def find_override(self, unit: PlannedUnit, item: PlanItem, live: JsonObject) -> Override | None:
        """Return a field that Git leaves out and another client set, so that no pod is updated."""
        ...

    def compare(
        self, unit: PlannedUnit, item: PlanItem, live: JsonObject | None, fingerprint: str
    ) -> Comparison:
        """Compare an object with the live object.

        `fingerprint` is that of the write of this manifest; empty if there was none.
        """
        ...

    def describe_overwritten_fields(
        self, unit: PlannedUnit, item: PlanItem, live: JsonObject, fingerprint: str
    ) -> str:
        """Describe which of the written fields were changed and by whom; empty if none was."""
        ...

    def is_drift_detection_disabled(self, item: PlanItem, live: JsonObject | None) -> bool:
        """Return whether the manifest or the live object disables Flux drift detection."""
        ...

    def find_drift(
        self, unit: PlannedUnit, item: PlanItem, live: JsonObject | None
    ) -> ObjectDrift | None:
        """Return the changes made by others; None if only field ownership differs."""
        ...

    def find_owner(self, body: JsonObject) -> str:
        """Return the tracking id of the unit that owns a live object; empty for none."""
        ...

    def find_other_owner(self, unit: PlannedUnit, item: PlanItem, body: JsonObject) -> str:
        """Return the unit or Helm release that loses a live object to this unit; empty for none."""
        ...

    def find_schema_violations(self, item: PlanItem, crd: bytes) -> SchemaViolations | None:
        """Return the schema violations of a manifest; None if the schema of its kind is unknown.

        `crd` is the CRD of the kind, if there is one.
        """
        ...

    def server_checked_key(self, item: PlanItem, live: JsonObject | None) -> bytes:
        """Return an opaque key of the part that only the server can validate.

        Empty if there is none.

        Objects of one kind with equal keys get the same answer from the server.
        """
        ...

    def build_payload(
        self, unit: PlannedUnit, item: PlanItem, live: JsonObject | None
    ) -> WritePayload:
        """Return the body to write, given the live object."""
        ...

    def compute_fingerprint(self, unit: PlannedUnit, item: PlanItem, live: JsonObject) -> str:
        """Return a fingerprint of the fields we own, as a write has left them."""
        ...

    def adoption_patch(self, unit: PlannedUnit, item: PlanItem, live: JsonObject) -> bytes | None:
        """Return the patch that transfers fields of earlier field managers to us.

        None if there are none.
        """
        ...


class FailingUnit(msgspec.Struct, frozen=True):
    """A unit that may fail, with the data that its remediation is planned from."""

    unit: PlannedUnit
    steps: tuple[Step, ...]
    """Steps that are about to be run."""
    find_live: Callable[[Ref], LiveObject | None]
    """Returns the live object of a reference; None if there is none."""
    is_namespaced: Callable[[Kind], bool | None]
    """Returns whether a kind is namespaced; None if the cluster does not serve it."""


class HistoryBackend(Protocol):
    """Access to the release history of units, such as the records of Helm releases."""

    def storage(self, unit: UnitId) -> ReleaseStorage | None:
        """Return where the records of a unit are stored; None if the unit has no history."""
        ...

    def preceding_units(self, unit: UnitId) -> Sequence[UnitId]:
        """Return the units that end, with finished revisions, before this unit starts."""
        ...

    def plan_revision(self, unit: UnitId, records: Sequence[LiveObject]) -> PendingRevision:
        """Return the revision that a rollout will write, given the existing records."""
        ...

    def build_start_writes(
        self, unit: UnitId, records: Sequence[LiveObject], pending: PendingRevision, now: Ms
    ) -> tuple[Write, ...]:
        """Return the writes, in order, that precede the first object of the unit."""
        ...

    def plan_remediation(
        self, failing: FailingUnit, records: Sequence[LiveObject], pending: PendingRevision
    ) -> PlanFragment | None:
        """Return the on-failure steps of a unit, in order; None if it has none."""
        ...

    def plan_remediation_revision(
        self, unit: UnitId, records: Sequence[LiveObject]
    ) -> PendingRevision:
        """Return the revision that is written when the remediation starts."""
        ...

    def build_finish_writes(
        self,
        unit: UnitId,
        records: Sequence[LiveObject],
        pending: PendingRevision,
        outcome: RevisionOutcome,
        now: Ms,
    ) -> tuple[Write, ...]:
        """Return the writes, in order, that follow the last gate of the unit."""
        ...

    def build_test_writes(
        self,
        unit: UnitId,
        records: Sequence[LiveObject],
        pending: PendingRevision,
        *,
        outcome: RevisionOutcome,
        now: Ms,
    ) -> tuple[Write, ...]:
        """Return the writes, in order, that follow the tests of a finished revision."""
        ...


class StatusPatch(msgspec.Struct, frozen=True):
    """Merge patch for the status of a unit resource."""

    patch: bytes
    manager: str
    """Field manager of the patch."""
    events: tuple[tuple[Ref, bytes], ...] = ()
    """Reference and body of the Kubernetes Events to create with it."""


class StatusBuilder(Protocol):
    """Builder of status patches for unit resources (Applications, Kustomizations, HelmReleases)."""

    def unit_resource_ref(self, unit: UnitId) -> ClusterRef | None:
        """Return the reference of the unit resource.

        None if there is none or its status is not written.
        """
        ...

    def reflects_children(self, unit: UnitId) -> bool:
        """Return whether the status of the unit includes the status of its child units."""
        ...

    def build_patch(self, progress: UnitProgress, unit_resource: JsonObject) -> StatusPatch | None:
        """Return the patch from the current status to the desired one; None if they are equal."""
        ...
