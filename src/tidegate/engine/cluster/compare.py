"""Comparison of the objects of a step with the live objects."""

from __future__ import annotations

from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from tidegate.engine.cluster.hooks import compare_hook
from tidegate.engine.cluster.live_cache import LiveCache
from tidegate.engine.evaluator import ObjectEvaluator
from tidegate.engine.fences import FreshnessCheck, freshness_check
from tidegate.engine.messages import ComparedObject, CompareResult, Comparison, WrittenObject
from tidegate.model.k8s.json_fields import get_mappings, get_text
from tidegate.model.k8s.objects import ClusterRef, JsonObject, LiveObject, object_body
from tidegate.model.plans.plan import (
    AWAIT_ACTIONS,
    ItemAction,
    PlanItem,
    PlannedUnit,
    Step,
    digest_bytes,
)
from tidegate.model.rollouts.journal import JournalEntry
from tidegate.model.units.release_history import DriftMode
from tidegate.model.units.unit import UnitId

ComparedItem: TypeAlias = tuple[Step, PlanItem, ComparedObject]
CompareInputs: TypeAlias = tuple[PlannedUnit, PlanItem, JournalEntry, tuple[str, str] | None]
"""Everything that a compare result depends on; the live object by its uid and resourceVersion."""
NO_ENTRY = JournalEntry()
WRITE_RESULTS = frozenset(
    {CompareResult.ABSENT, CompareResult.DIFFERENT, CompareResult.IMMUTABLE, CompareResult.RECREATE}
)
MANAGED_ACTIONS = frozenset({ItemAction.APPLY, ItemAction.CREATE})
"""Actions on objects that a unit manages."""
STATUS_CHECKS = frozenset({FreshnessCheck.STATUS_CHANGED, FreshnessCheck.CONDITION_GENERATION})
"""Freshness checks that depend on a change of the status."""


class ObjectComparer(msgspec.Struct):
    """Comparer of desired objects with live objects."""

    evaluator: ObjectEvaluator
    live_cache: LiveCache
    units: dict[UnitId, PlannedUnit]
    _results: dict[ClusterRef, tuple[CompareInputs, ComparedObject]] = msgspec.field(
        default_factory=dict
    )

    def compare(
        self, step: Step, item: PlanItem, stored_entry: JournalEntry | None
    ) -> ComparedObject:
        """Return the compare result of an object; results for equal inputs are cached."""
        object_ref, entry = ClusterRef(step.cluster, item.ref), stored_entry or NO_ENTRY
        live = self.live_cache.objects.get(object_ref)
        live_version = None if live is None else (live.uid, live.resource_version)
        inputs = (self.units[step.unit], item, entry, live_version)
        cached = self._results.get(object_ref)
        if cached is None or cached[0] != inputs:
            cached = self._results[object_ref] = (
                inputs,
                self._compare_item(step, item, live, entry),
            )
        return cached[1]

    def _compare_item(
        self, step: Step, item: PlanItem, live: LiveObject | None, entry: JournalEntry
    ) -> ComparedObject:
        object_ref = ClusterRef(step.cluster, item.ref)
        if item.action is ItemAction.IGNORE or self._is_drift_detection_off(step, item):
            return ComparedObject(object_ref, CompareResult.UNMANAGED)
        hook_result = compare_hook(item, live, entry) if item.hook is not None else None
        if live is None:
            is_finished = item.expires and entry.gate_digest == item.digest != ""
            compared = ComparedObject(
                object_ref,
                hook_result or (CompareResult.FINISHED if is_finished else CompareResult.ABSENT),
            )
            return self._with_drift(step, item, compared, None)
        body = object_body(live)
        is_our_write = entry.digest == item.digest and entry.uid == live.uid
        fingerprint = entry.fields_digest if is_our_write else ""
        comparison = (
            Comparison(hook_result)
            if hook_result
            else self._compare_fields(step, item, body, fingerprint)
        )
        gate_opened = entry.gate_digest == item.digest and entry.uid == live.uid
        trusted = gate_opened or has_newer_status(body, self.units[step.unit].policy.manager)
        live_object = WrittenObject(
            live.uid,
            live.generation,
            live.resource_version,
            status_digest(live, body),
            trusted=trusted,
            has_passed=gate_opened,
        )
        compared = ComparedObject(
            object_ref,
            comparison.result,
            live_object,
            comparison.immutable_fields,
            comparison.replaces,
            comparison.fields,
        )
        return self._with_drift(step, item, compared, body)

    def _is_drift_detection_off(self, step: Step, item: PlanItem) -> bool:
        """Return whether changes by others are not detected."""
        mode = self.units[step.unit].policy.drift
        return mode is DriftMode.DISABLED and item.hook is None and item.action in MANAGED_ACTIONS

    def _with_drift(
        self, step: Step, item: PlanItem, compared: ComparedObject, live: JsonObject | None
    ) -> ComparedObject:
        """Add the drift of an object.

        With drift mode `warn`, or if the object opts out, do not correct it.
        """
        unit = self.units[step.unit]
        detects_drift = (
            unit.policy.drift is not None and item.hook is None and item.action in MANAGED_ACTIONS
        )
        if not detects_drift or compared.result not in WRITE_RESULTS:
            return compared
        if self.evaluator.is_drift_detection_disabled(item, live):
            return replace(compared, result=CompareResult.UNMANAGED)
        drift, only_warns = (
            self.evaluator.find_drift(unit, item, live),
            unit.policy.drift is DriftMode.WARN,
        )
        if drift is None:
            return replace(compared, result=CompareResult.IN_SYNC) if only_warns else compared
        return replace(
            compared, result=CompareResult.UNMANAGED if only_warns else compared.result, drift=drift
        )

    def _compare_fields(
        self, step: Step, item: PlanItem, live: JsonObject, fingerprint: str
    ) -> Comparison:
        if item.action is not ItemAction.APPLY:
            return Comparison(CompareResult.IN_SYNC)
        return self.evaluator.compare(self.units[step.unit], item, live, fingerprint)


def will_be_modified(item: PlanItem, compared: ComparedObject, *, confirmed: bool) -> bool:
    """Return whether an object is written or, if no confirmation is missing, deleted."""
    if item.action in AWAIT_ACTIONS:
        return False
    if item.action is ItemAction.DELETE:
        return (
            confirmed or not item.requires_confirmation
        ) and compared.result is not CompareResult.ABSENT
    return compared.result in WRITE_RESULTS


def has_work(
    unit: PlannedUnit, compared_item: ComparedItem, entry: JournalEntry | None, *, completed: bool
) -> bool:
    """Return whether an item needs work: a write, or a gate that has not opened yet.

    `completed`: whether the desired state of the unit was the last one rolled out, and has passed.
    """
    _, item, compared = compared_item
    is_modified = will_be_modified(item, compared, confirmed=unit.policy.confirmed)
    if item.action is not ItemAction.APPLY:
        return is_modified
    if item.hook is not None:
        return unit.policy.runs_hooks or not completed
    if compared.result is CompareResult.UNMANAGED:
        return False
    return is_modified or entry is None or entry.gate_digest != item.digest


def status_digest(live: LiveObject, body: JsonObject) -> str:
    """Return a digest of the status, for kinds whose freshness check depends on it.

    Otherwise empty.
    """
    if freshness_check(live.ref.kind) not in STATUS_CHECKS:
        return ""
    return digest_bytes(msgspec.json.encode(body.get("status")))


def has_newer_status(body: JsonObject, manager: str) -> bool:
    """Return whether the status was written after our last write, by `managedFields`."""
    our_write, status = "", ""
    for entry in get_mappings(body, "metadata", "managedFields"):
        time = get_text(entry, "time")
        if get_text(entry, "subresource") == "status":
            status = max(status, time)
        elif get_text(entry, "manager") == manager:
            our_write = max(our_write, time)
    return bool(our_write) and status > our_write
