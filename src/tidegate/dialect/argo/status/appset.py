"""Status of an ApplicationSet: its conditions, its Applications and their steps.

Like its controller, only the status of the Applications is read: their last sync, sync status and
health decide the state of a step. Like `applicationset/progressivesync/progressive_sync.go` of
Argo CD 3.6.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tidegate.dialect.argo.appset.applications import GeneratedApplication
from tidegate.dialect.argo.appset.rolling_sync import has_steps, rollout_steps
from tidegate.dialect.argo.status.application import decode_body
from tidegate.dialect.declared import ApplicationSet
from tidegate.errors import Location
from tidegate.model.k8s.json_fields import get_list, get_mapping, get_mappings, get_text
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.rollouts.event import RolloutOutcome
from tidegate.model.rollouts.progress import (
    ObjectProgress,
    SourceRevision,
    StatusUpdate,
    UnitPhase,
    UnitProgress,
)
from tidegate.model.times import format_rfc3339

MAX_RESOURCES = 5_000
"""Maximum number of resources in a status."""
WAITING, PROGRESSING, HEALTHY = "Waiting", "Progressing", "Healthy"
STATE_MESSAGES = {
    WAITING: "Application has pending changes, setting status to Waiting.",
    PROGRESSING: "Application resource became Progressing, updating status to Progressing.",
    HEALTHY: "Application resource became Healthy, updating status to Healthy.",
}
NO_STEP = "-1"
ERROR, GENERATED, UP_TO_DATE = "ErrorOccurred", "ParametersGenerated", "ResourcesUpToDate"
ROLLOUT_PROGRESSING, INVALID_CONFIG = "RolloutProgressing", "InvalidRolloutConfig"
HEALTH_BY_CONDITION = (
    (ERROR, "Degraded"),
    (ROLLOUT_PROGRESSING, PROGRESSING),
    (UP_TO_DATE, HEALTHY),
)
"""Health of an ApplicationSet by the first of these conditions that is true."""
GENERATED_MESSAGE = "All applications have been generated successfully"
PARAMETERS_MESSAGE = "Successfully generated parameters for all Applications"


def application_set_status(
    unit_resource: JsonObject, progress: UnitProgress, _sources: Sequence[SourceRevision]
) -> StatusUpdate | None:
    """Return the new status of an ApplicationSet, based on its current one; None while it waits."""
    if progress.phase is UnitPhase.WAITING:
        return None
    previous, now = get_mapping(unit_resource, "status"), format_rfc3339(progress.now)
    live_applications = [
        (obj, decode_body(obj)) for obj in progress.objects if obj.is_live and obj.is_desired
    ]
    entries, is_rolling = (
        [*_application_entries(unit_resource, previous, live_applications, now)],
        _is_rolling(unit_resource),
    )
    conditions = [
        *_with_transition_times(
            previous, [*_conditions(unit_resource, progress, entries, live_applications)], now
        )
    ]
    resources = sorted(
        map(_resource_entry, live_applications), key=lambda resource: get_text(resource, "name")
    )
    status: JsonObject = {
        "conditions": list[Json](conditions),
        "health": _health(previous, conditions, now),
        "resources": list[Json](resources[:MAX_RESOURCES]),
        "resourcesCount": len(resources),
        **({"applicationStatus": list[Json](entries)} if is_rolling else {}),
    }
    return StatusUpdate({name: value for name, value in status.items() if value not in ([], {})})


def _is_rolling(unit_resource: JsonObject) -> bool:
    return has_steps(_to_application_set(unit_resource))


def _to_application_set(unit_resource: JsonObject) -> ApplicationSet:
    namespace, name = (
        get_text(unit_resource, "metadata", field) for field in ("namespace", "name")
    )
    return ApplicationSet(
        namespace=namespace, name=name, location=Location(name), body=unit_resource
    )


def application_state(application: JsonObject) -> str:
    """Return the state of an Application in its step, by its own status."""
    synced = get_text(application, "status", "sync", "status") == "Synced"
    healthy = get_text(application, "status", "health", "status") == "Healthy"
    phase = get_text(application, "status", "operationState", "phase")
    if synced:
        return HEALTHY if healthy and phase != "Running" else PROGRESSING
    return PROGRESSING if phase in {"Running", "Failed", "Error"} else WAITING


def _application_entries(
    unit_resource: JsonObject,
    previous: JsonObject,
    live_applications: Sequence[tuple[ObjectProgress, JsonObject]],
    now: str,
) -> Iterator[JsonObject]:
    """Yield an entry for each Application, sorted by name; an unchanged one keeps its time."""
    applications = [
        GeneratedApplication(body=body, path=(), number=0, params={})
        for _, body in live_applications
    ]
    steps, _ = rollout_steps(_to_application_set(unit_resource), applications)
    old_entries = {
        get_text(old_entry, "application"): old_entry
        for old_entry in get_mappings(previous, "applicationStatus")
    }
    for application in sorted(applications, key=lambda app: app.name):
        state, step = application_state(application.body), steps.get(application.name)
        entry: JsonObject = {
            "application": application.name,
            "status": state,
            "step": str(step.number) if step and step.number else NO_STEP,
            "message": STATE_MESSAGES[state],
            "targetRevisions": _revisions(application.body),
        }
        old = old_entries.get(application.name, {})
        same = {**old, "lastTransitionTime": None} == {**entry, "lastTransitionTime": None}
        since = get_text(old, "lastTransitionTime") if same else now
        yield {**entry, "lastTransitionTime": since or now}


def _revisions(application: JsonObject) -> list[Json]:
    revision = get_text(application, "status", "sync", "revision")
    return [revision] if revision else [*get_list(application, "status", "sync", "revisions")]


def _conditions(
    unit_resource: JsonObject,
    progress: UnitProgress,
    entries: Sequence[JsonObject],
    live_applications: Sequence[tuple[ObjectProgress, JsonObject]],
) -> Iterator[tuple[str, bool, str, str]]:
    """Yield type, status, reason and message of each condition."""
    error = _error(progress)
    if error:
        yield ERROR, True, *error
        yield (
            GENERATED,
            progress.is_valid,
            *(
                ("ParametersGenerated", PARAMETERS_MESSAGE)
                if progress.is_valid
                else ("ErrorOccurred", error[1])
            ),
        )
        yield UP_TO_DATE, False, *error
    else:
        yield ERROR, False, "ApplicationSetUpToDate", PARAMETERS_MESSAGE
        yield GENERATED, True, "ParametersGenerated", PARAMETERS_MESSAGE
        yield UP_TO_DATE, True, "ApplicationSetUpToDate", GENERATED_MESSAGE
    if not _is_rolling(unit_resource):
        return
    applications = [
        GeneratedApplication(body=body, path=(), number=0, params={})
        for _, body in live_applications
    ]
    _, findings = rollout_steps(_to_application_set(unit_resource), applications)
    yield (
        INVALID_CONFIG,
        bool(findings),
        f"ApplicationSet{'Inv' if findings else 'V'}alidRolloutConfig",
        findings[0].message if findings else "",
    )
    in_steps = [entry for entry in entries if get_text(entry, "step") != NO_STEP]
    open_steps = [
        int(get_text(entry, "step")) for entry in in_steps if get_text(entry, "status") != HEALTHY
    ]
    if open_steps:
        message = f"ApplicationSet is performing rollout of step {min(open_steps)}"
        yield ROLLOUT_PROGRESSING, True, "ApplicationSetModified", message
    else:
        message = "ApplicationSet Rollout has completed"
        yield ROLLOUT_PROGRESSING, False, "ApplicationSetRolloutComplete", message


def _error(progress: UnitProgress) -> tuple[str, str] | None:
    if not progress.is_valid:
        return "ApplicationGenerationFromParamsError", progress.message
    if progress.result == RolloutOutcome.FAILED or progress.reason:
        return "UpdateApplicationError", progress.message
    return None


def _with_transition_times(
    previous: JsonObject, conditions: Sequence[tuple[str, bool, str, str]], now: str
) -> Iterator[JsonObject]:
    old_conditions = {
        get_text(old_condition, "type"): old_condition
        for old_condition in get_mappings(previous, "conditions")
    }
    for name, is_true, reason, message in conditions:
        condition: JsonObject = {
            "type": name,
            "status": "True" if is_true else "False",
            "reason": reason,
            "message": message,
        }
        old = old_conditions.get(name, {})
        same = all(old.get(key) == value for key, value in condition.items())
        since = get_text(old, "lastTransitionTime") if same else now
        yield {**condition, "lastTransitionTime": since or now}


def _health(previous: JsonObject, conditions: Sequence[JsonObject], now: str) -> JsonObject:
    true_conditions = {
        get_text(condition, "type"): condition
        for condition in conditions
        if get_text(condition, "status") == "True"
    }
    name, state = next(
        (row for row in HEALTH_BY_CONDITION if row[0] in true_conditions), ("", "Unknown")
    )
    message = get_text(true_conditions.get(name, {}), "message")
    old_health = get_mapping(previous, "health")
    same = (get_text(old_health, "status"), get_text(old_health, "message")) == (state, message)
    since = get_text(old_health, "lastTransitionTime") if same else now
    return {"status": state, "message": message, "lastTransitionTime": since or now}


def _resource_entry(live: tuple[ObjectProgress, JsonObject]) -> JsonObject:
    obj, body = live
    kind = obj.ref.kind
    health: JsonObject = {
        key: get_text(body, "status", "health", key)
        for key in ("status", "message", "lastTransitionTime")
        if get_text(body, "status", "health", key)
    }
    entry: JsonObject = {
        "group": kind.group,
        "version": kind.version,
        "kind": kind.name,
        "namespace": obj.ref.namespace,
        "name": obj.ref.name,
        "status": get_text(body, "status", "sync", "status"),
    }
    return {**entry, "health": health} if health else entry
