"""Requests to a running controller, made like `flux` and `argocd` make them, and its responses.

Flux controllers acknowledge a request in `status.lastHandledReconcileAt`. Argo CD removes its
refresh annotation after the refresh, and `operation` when the operation starts.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from tidegate.dialect.argo.application import SKIP_RECONCILE, TRUE_VALUES
from tidegate.model.k8s.json_fields import (
    get_int,
    get_list,
    get_mapping,
    get_mappings,
    get_text,
    get_value,
)
from tidegate.model.k8s.objects import Json, JsonObject

REQUESTED_AT = "reconcile.fluxcd.io/requestedAt"
REFRESH = "argocd.argoproj.io/refresh"
APPLICATION = "Application"
SUCCEEDED = "Succeeded"
FINISHED_PHASES = frozenset({SUCCEEDED, "Failed", "Error"})
"""Phases of a finished Argo CD operation."""


class RequestState(StrEnum):
    """Progress of a request."""

    PENDING = "pending"
    DONE = "done"
    FAILED = "failed"


class ControllerResponse(msgspec.Struct, frozen=True):
    """Response of a controller so far, with its message."""

    state: RequestState
    message: str = ""
    revision: str = ""


def is_suspended(resource: JsonObject) -> bool:
    """Return whether a unit or source is suspended."""
    if get_text(resource, "kind") == APPLICATION:
        return get_text(resource, "metadata", "annotations", SKIP_RECONCILE) in TRUE_VALUES
    return get_value(resource, "spec", "suspend") is True


def suspend_patch(resource: JsonObject, *, suspend: bool) -> JsonObject:
    """Return the merge patch that suspends or resumes a unit or source."""
    if get_text(resource, "kind") == APPLICATION:
        return {"metadata": {"annotations": {SKIP_RECONCILE: "true" if suspend else None}}}
    return {"spec": {"suspend": suspend}}


def reconcile_patch(requested_at: str) -> JsonObject:
    """Return the merge patch that requests a reconciliation from Flux."""
    return {"metadata": {"annotations": {REQUESTED_AT: requested_at}}}


def flux_response(resource: JsonObject, requested_at: str) -> ControllerResponse:
    """Return the response to a request: done once it was handled and the object is current."""
    if get_text(resource, "status", "lastHandledReconcileAt") != requested_at:
        return ControllerResponse(
            RequestState.PENDING, "waiting for the controller to handle the request"
        )
    return _reconcile_response(resource)


def _reconcile_response(resource: JsonObject) -> ControllerResponse:
    """Return the progress of a Flux controller with the current object."""
    ready = _condition(resource, "Ready")
    message = get_text(ready, "message")
    stalled = _condition(resource, "Stalled")
    generation = get_int(resource, "metadata", "generation")
    is_outdated = get_int(resource, "status", "observedGeneration", default=generation) < generation
    if get_text(stalled, "status") == "True" and not is_outdated:
        return ControllerResponse(RequestState.FAILED, get_text(stalled, "message") or message)
    is_in_progress = get_text(_condition(resource, "Reconciling"), "status") == "True"
    if is_outdated or is_in_progress or get_text(ready, "status") != "True":
        return ControllerResponse(RequestState.PENDING, message or "reconciling")
    return ControllerResponse(RequestState.DONE, message, current_revision(resource))


def resume_response(resource: JsonObject, before: JsonObject) -> ControllerResponse:
    """Return the response for a resumed unit or source; `before`: the object before it was resumed.

    Argo CD records its last comparison. Without automated sync the Application need not be in
    sync.
    """
    if get_text(resource, "kind") != APPLICATION:
        return _reconcile_response(resource)
    status = get_mapping(resource, "status")
    is_same = status.get("reconciledAt") == get_value(before, "status", "reconciledAt")
    if is_same and is_suspended(before):
        return ControllerResponse(RequestState.PENDING, "waiting for the next comparison")
    sync, health = get_text(status, "sync", "status"), get_text(status, "health", "status")
    automated = get_value(resource, "spec", "syncPolicy", "automated")
    is_automated = isinstance(automated, dict) and automated.get("enabled") is not False
    is_settled = (sync, health) == ("Synced", "Healthy")
    is_busy = get_value(resource, "operation") is not None
    if is_busy or (is_automated and not is_settled):
        return ControllerResponse(RequestState.PENDING, f"{sync}, {health}")
    return ControllerResponse(
        RequestState.DONE, f"{sync}, {health}", get_text(status, "sync", "revision")
    )


def current_revision(resource: JsonObject) -> str:
    """Return the last applied revision of a Flux unit, or the fetched revision of a source."""
    status = get_mapping(resource, "status")
    applied = get_text(status, "lastAppliedRevision") or get_text(status, "artifact", "revision")
    history = get_mappings(status, "history")
    return applied or (get_text(history[0], "chartVersion") if history else "")


def refresh_patch(*, hard: bool) -> JsonObject:
    """Return the merge patch that makes Argo CD refresh an Application."""
    return {"metadata": {"annotations": {REFRESH: "hard" if hard else "normal"}}}


def is_refreshed(unit_resource: JsonObject) -> bool:
    return not get_text(unit_resource, "metadata", "annotations", REFRESH)


class SyncRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a requested Argo CD sync, like those of `argocd app sync`."""

    initiated_by: str
    revision: str = ""
    prune: bool = False
    dry_run: bool = False
    force: bool = False
    resources: tuple[tuple[str, str, str, str], ...] = ()
    """Group, kind, namespace and name of each resource; all if empty."""


def sync_patch(unit_resource: JsonObject, request: SyncRequest) -> JsonObject:
    """Return the merge patch that starts an Argo CD operation."""
    options = [
        option for option in get_list(unit_resource, "spec", "syncPolicy", "syncOptions") if option
    ]
    resources: list[Json] = [
        {
            "group": group,
            "kind": kind,
            "name": name,
            **({"namespace": namespace} if namespace else {}),
        }
        for group, kind, namespace, name in request.resources
    ]
    sync: JsonObject = {
        **({"revision": request.revision} if request.revision else {}),
        **({"prune": True} if request.prune else {}),
        **({"dryRun": True} if request.dry_run else {}),
        **({"syncOptions": [*options]} if options else {}),
        **({"resources": resources} if resources else {}),
        "syncStrategy": {"hook": {"force": True} if request.force else {}},
    }
    retry = get_mapping(unit_resource, "spec", "syncPolicy", "retry")
    operation: JsonObject = {"initiatedBy": {"username": request.initiated_by}, "sync": sync}
    return {"operation": {**operation, **({"retry": retry} if retry else {})}}


def sync_response(unit_resource: JsonObject, before: JsonObject) -> ControllerResponse:
    """Return the response to an operation; `before`: the object at the time of the request."""
    state = get_mapping(unit_resource, "status", "operationState")
    is_new = state.get("startedAt") != get_value(before, "status", "operationState", "startedAt")
    if get_value(unit_resource, "operation") is not None and not is_new:
        return ControllerResponse(RequestState.PENDING, "waiting for the operation to start")
    phase, message = get_text(state, "phase"), get_text(state, "message")
    if (
        get_value(unit_resource, "operation") is not None
        or phase not in FINISHED_PHASES
        or not is_new
    ):
        return ControllerResponse(RequestState.PENDING, message)
    state_at_end = RequestState.DONE if phase == SUCCEEDED else RequestState.FAILED
    return ControllerResponse(state_at_end, message, get_text(state, "syncResult", "revision"))


def source_reference(unit_resource: JsonObject) -> tuple[str, str, str] | None:
    """Return kind, namespace and name of the source of a Flux unit; None if it has none."""
    spec = get_mapping(unit_resource, "spec")
    reference = (
        get_mapping(spec, "sourceRef")
        or get_mapping(spec, "chartRef")
        or get_mapping(spec, "chart", "spec", "sourceRef")
    )
    if not reference:
        return None
    namespace = get_text(reference, "namespace") or get_text(unit_resource, "metadata", "namespace")
    return get_text(reference, "kind"), namespace, get_text(reference, "name")


def _condition(resource: JsonObject, name: str) -> JsonObject:
    conditions = get_mappings(resource, "status", "conditions")
    return next((condition for condition in conditions if condition.get("type") == name), {})
