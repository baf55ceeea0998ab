"""`operationState` of an Application: the requested sync, its progress and the result per object.

Also the history entry and the Events of the operation.

Messages are those of `gitops-engine/pkg/sync/sync_context.go` in Argo CD 3.6.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tidegate.model.k8s.json_fields import (
    get_int,
    get_list,
    get_mapping,
    get_mappings,
    get_text,
    get_value,
)
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.rollouts.event import RolloutOutcome
from tidegate.model.rollouts.names import phase_title
from tidegate.model.rollouts.progress import ObjectProgress, ObjectResult, UnitPhase, UnitProgress
from tidegate.model.times import format_rfc3339

SYNCED = "Synced"
INITIATED_BY: JsonObject = {"username": "tidegate"}
DEFAULT_HISTORY_LIMIT = 10
SHORT_SHA_LENGTH = 7
SUCCESS_MESSAGE = "successfully synced (all tasks run)"
FAILURE_MESSAGE = "one or more synchronization tasks completed unsuccessfully"


def short_revisions(revisions: JsonObject) -> str:
    names = [
        get_text(revisions, "revision"),
        *(str(revision) for revision in get_list(revisions, "revisions")),
    ]
    return ", ".join(name[:SHORT_SHA_LENGTH] if len(name) == 40 else name for name in names if name)  # noqa: PLR2004 - a commit


def source_fields(spec: JsonObject) -> JsonObject:
    """Return `source` or `sources`, whichever the Application has."""
    return {name: spec[name] for name in ("source", "sources") if spec.get(name)}


def operation_state(
    unit_resource: JsonObject, progress: UnitProgress, revisions: JsonObject
) -> JsonObject:
    spec, previous = (
        get_mapping(unit_resource, "spec"),
        get_mapping(unit_resource, "status", "operationState"),
    )
    policy = get_mapping(spec, "syncPolicy")
    sync: JsonObject = {**revisions, "syncStrategy": {"hook": {}}}
    sync |= {"prune": True} if get_value(policy, "automated", "prune") is True else {}
    sync |= {"syncOptions": policy["syncOptions"]} if policy.get("syncOptions") else {}
    operation: JsonObject = {"sync": sync, "initiatedBy": INITIATED_BY}
    operation |= {"retry": policy["retry"]} if policy.get("retry") else {}
    is_finished = progress.phase is UnitPhase.FINISHED
    is_continued = not progress.has_operation and get_text(previous, "startedAt")
    state: JsonObject = {
        "operation": operation,
        "phase": _phase(progress),
        "message": operation_message(progress),
        "startedAt": get_text(previous, "startedAt")
        if is_continued
        else format_rfc3339(progress.started_at),
        "syncResult": {
            "revision": "",
            **revisions,
            **source_fields(spec),
            "resources": list[Json](_resource_results(progress.objects)),
        },
    }
    state |= {"retryCount": progress.retries} if progress.retries else {}
    return {**state, "finishedAt": format_rfc3339(progress.now)} if is_finished else state


def _phase(progress: UnitProgress) -> str:
    if progress.phase is not UnitPhase.FINISHED:
        return "Running"
    return "Succeeded" if progress.result == RolloutOutcome.PASSED else "Failed"


def operation_message(progress: UnitProgress) -> str:
    if progress.phase is not UnitPhase.FINISHED:
        return _waiting_message(progress.objects)
    if progress.result == RolloutOutcome.PASSED:
        return SUCCESS_MESSAGE
    if progress.result == RolloutOutcome.STOPPED:
        return f"Operation terminated{f': {progress.message}' if progress.message else ''}"
    message = (
        f"{FAILURE_MESSAGE}, reason: {progress.message}" if progress.message else FAILURE_MESSAGE
    )
    return f"{message} (retried {progress.retries} times)." if progress.retries else message


def _waiting_message(objects: Iterable[ObjectProgress]) -> str:
    """Return what the operation waits for; hooks come first."""
    waiting = [obj for obj in objects if obj.is_awaited]
    if not waiting:
        return "one or more tasks are running"
    hooks = [obj for obj in waiting if obj.is_hook]
    first, remaining = (hooks or waiting)[0].ref, len(waiting) - 1
    reason = "completion of hook" if hooks else "healthy state of"
    noun = "hooks" if len(hooks) == len(waiting) else "resources"
    more = f" and {remaining} more {noun}" if remaining else ""
    return f"waiting for {reason} {first.kind.group}/{first.kind.name}/{first.name}{more}"


def _resource_results(objects: Iterable[ObjectProgress]) -> Iterator[JsonObject]:
    """Yield what was done to each object, in order."""
    for obj in objects:
        if obj.result is ObjectResult.NONE:
            continue
        kind, phase = obj.ref.kind, phase_title(obj.phase)
        entry: JsonObject = {
            "group": kind.group,
            "version": kind.version,
            "kind": kind.name,
            "namespace": obj.ref.namespace,
            "name": obj.ref.name,
            "syncPhase": phase,
            "hookPhase": _hook_phase(obj),
            "message": _result_message(obj),
        }
        yield {**entry, **({"hookType": phase} if obj.is_hook else {"status": _result_status(obj)})}


def _hook_phase(obj: ObjectProgress) -> str:
    return (
        "Failed"
        if obj.result is ObjectResult.FAILED
        else "Running"
        if obj.is_awaited
        else "Succeeded"
    )


def _result_status(obj: ObjectProgress) -> str:
    match obj.result:
        case ObjectResult.PRUNED:
            return "Pruned"
        case ObjectResult.PRUNE_SKIPPED:
            return "PruneSkipped"
        case ObjectResult.FAILED if not obj.in_sync:
            return "SyncFailed"
        case _:
            return SYNCED


def _result_message(obj: ObjectProgress) -> str:
    kind = obj.ref.kind
    name = f"{kind.name.lower()}.{kind.group}/{obj.ref.name}" if kind.group else ""
    name = name or f"{kind.name.lower()}/{obj.ref.name}"
    match obj.result:
        case ObjectResult.PRUNED:
            return "pruned"
        case ObjectResult.PRUNE_SKIPPED:
            return "ignored (requires pruning confirmation)"
        case ObjectResult.FAILED:
            return obj.message or "not healthy"
        case ObjectResult.UNCHANGED:
            return f"{name} unchanged"
        case _:
            message = obj.message if obj.is_hook else ""
            return message or f"{name} serverside-applied"


def append_history(
    status: JsonObject, spec: JsonObject, progress: UnitProgress, revisions: JsonObject
) -> list[Json]:
    """Return the history with a new entry, newest last, cut to the Application's limit."""
    entries = get_mappings(status, "history")
    entry: JsonObject = {
        "id": max((get_int(old_entry, "id") for old_entry in entries), default=-1) + 1,
        **revisions,
        **source_fields(spec),
        "deployStartedAt": format_rfc3339(progress.started_at),
        "deployedAt": format_rfc3339(progress.now),
        "initiatedBy": INITIATED_BY,
    }
    limit = max(0, get_int(spec, "revisionHistoryLimit", default=DEFAULT_HISTORY_LIMIT))
    history: list[Json] = [*entries, entry]
    return history[-limit:] if limit else []


def operation_events(
    status: JsonObject, progress: UnitProgress, revisions: JsonObject
) -> Iterator[tuple[str, str, str]]:
    """Yield the Events of an operation: its start and its end."""
    target, operation = short_revisions(revisions), get_mapping(status, "operationState")
    is_reported = (get_text(operation, "phase"), get_text(operation, "startedAt")) == (
        "Running",
        format_rfc3339(progress.started_at),
    )
    if progress.phase is UnitPhase.RUNNING and is_reported:
        return
    if progress.phase is UnitPhase.RUNNING:
        yield "Normal", "OperationStarted", f"tidegate initiated sync to {target}"
    elif progress.phase is UnitPhase.FINISHED and progress.result == RolloutOutcome.PASSED:
        yield "Normal", "OperationCompleted", f"Sync operation to {target} succeeded"
    elif progress.phase is UnitPhase.FINISHED:
        yield (
            "Warning",
            "OperationCompleted",
            f"Sync operation to {target} failed: {operation_message(progress)}",
        )
