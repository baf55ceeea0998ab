"""Status of a HelmRelease with drift: the condition and the Events.

Like `internal/reconcile/correct_cluster_drift.go` of helm-controller 1.6.
"""

from __future__ import annotations

from tidegate.dialect.flux.status.kustomization import EventFields, FluxConditions
from tidegate.model.k8s.objects import Ref
from tidegate.model.plans.drift import ObjectDrift
from tidegate.model.rollouts.progress import ObjectProgress, ObjectResult, UnitProgress
from tidegate.model.units.release_history import DriftMode

DRIFTED = "Drifted"
DETECTED, NONE_DETECTED = "DriftDetected", "NoDriftDetected"
CORRECTION = "correct cluster drift"
CORRECTED = {ObjectResult.CREATED: "created", ObjectResult.CONFIGURED: "configured"}


def report_drift(
    progress: UnitProgress, mode: DriftMode, conditions: FluxConditions, release: str
) -> tuple[EventFields, ...]:
    """Set the condition for drift and its correction, and return the Events; none if disabled."""
    if mode is DriftMode.DISABLED:
        conditions.drop(DRIFTED)
        return ()
    drifted = _drifted(progress)
    has_uncorrected = any(obj.result not in CORRECTED for obj, _ in drifted)
    message = _drift_message(drifted, release)
    if has_uncorrected:
        conditions.set(DRIFTED, "True", DETECTED, message)
    else:
        conditions.set(DRIFTED, "False", NONE_DETECTED, f"No drift detected for release {release}")
    events: tuple[EventFields, ...] = (("Warning", DETECTED, message),) if drifted else ()
    corrected = [obj for obj, _ in drifted if obj.result in CORRECTED]
    if corrected:
        lines = "\n".join(f"{_object_name(obj.ref)} {CORRECTED[obj.result]}" for obj in corrected)
        correction_message = f"Cluster state of release {release} has been corrected:\n{lines}"
        events = (*events, ("Normal", "DriftCorrected", correction_message))
    return events


def report_failed_correction(
    progress: UnitProgress, conditions: FluxConditions, release: str, why: str
) -> tuple[EventFields, ...]:
    """Set the condition for drift that was not fully corrected, and return the Events."""
    drifted = _drifted(progress)
    drift_message = _drift_message(drifted, release)
    conditions.set(DRIFTED, "True", DETECTED, drift_message)
    partly = "partially " if any(obj.result in CORRECTED for obj, _ in drifted) else ""
    failure_message = f"Failed to {partly}correct cluster state of release {release}:\n{why}"
    return ("Warning", DETECTED, drift_message), (
        "Warning",
        "DriftCorrectionFailed",
        failure_message,
    )


def _drifted(progress: UnitProgress) -> list[tuple[ObjectProgress, ObjectDrift]]:
    return [(obj, obj.drift) for obj in progress.objects if obj.drift is not None]


def _drift_message(drifted: list[tuple[ObjectProgress, ObjectDrift]], release: str) -> str:
    lines = "\n".join(f"{_object_name(obj.ref)} {_changes(drift)}" for obj, drift in drifted)
    return f"Cluster state of release {release} has drifted from the desired state:\n{lines}"


def _changes(drift: ObjectDrift) -> str:
    if drift.is_deleted:
        return "removed"
    counts = f"{drift.added} additions, {drift.changed} changes, {drift.removed} removals"
    return f"changed ({counts})"


def _object_name(ref: Ref) -> str:
    return f"{ref.kind.name}/{ref.namespace}/{ref.name}"
