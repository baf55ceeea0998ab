"""Status of a Kustomization: its conditions, revisions, inventory and history.

Reasons and messages are those of `internal/controller/kustomization_controller.go` in
kustomize-controller 1.9.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence

from tidegate.dialect.flux.status.failures import DEPENDENCY_NOT_READY, kustomization_failure
from tidegate.dialect.times import format_go_duration
from tidegate.model.k8s.json_fields import (
    get_int,
    get_list,
    get_mapping,
    get_mappings,
    get_text,
    get_value,
)
from tidegate.model.k8s.objects import Json, JsonObject, Ref
from tidegate.model.k8s.verdict import Health
from tidegate.model.rollouts.event import RolloutOutcome
from tidegate.model.rollouts.progress import (
    ObjectProgress,
    ObjectResult,
    SourceRevision,
    StatusUpdate,
    UnitPhase,
    UnitProgress,
)
from tidegate.model.times import SECOND, Ms, format_rfc3339, parse_duration
from tidegate.model.units.unit import UnitId

EventFields = tuple[str, str, str]
READY, HEALTHY, RECONCILING, STALLED = "Ready", "Healthy", "Reconciling", "Stalled"
CONDITION_ORDER = (RECONCILING, STALLED, READY, HEALTHY)
PROGRESSING, RETRYING, SUCCEEDED = "Progressing", "ProgressingWithRetry", "Succeeded"
IN_PROGRESS_MESSAGE = "Reconciliation in progress"
WAITING_MESSAGE = "Dependencies do not meet ready condition, waiting for them"
RBAC = "rbac.authorization.k8s.io"
MIN_TIMEOUT = Ms(30 * SECOND)
MAX_SNAPSHOTS = 5
UNPRUNED = frozenset({ObjectResult.FAILED, ObjectResult.PRUNE_SKIPPED})
"""Results of objects that were to be pruned and still exist: the next run tries again."""
MAX_MESSAGE_BYTES = 32_768
"""Maximum number of bytes in the message of a condition; a longer one is cut."""
STATUSES = {
    Health.HEALTHY: "Current",
    Health.PROGRESSING: "InProgress",
    Health.SUSPENDED: "InProgress",
    Health.DEGRADED: "Failed",
    Health.MISSING: "NotFound",
}


class FluxConditions:
    """Conditions of a Flux resource; the transition time changes only with the condition."""

    def __init__(
        self, unit_resource: JsonObject, now: str, order: tuple[str, ...] = CONDITION_ORDER
    ) -> None:
        self._now = now
        self._order = order
        self._generation = get_int(unit_resource, "metadata", "generation")
        conditions = get_mappings(unit_resource, "status", "conditions")
        self._previous: dict[str, JsonObject] = {
            get_text(condition, "type"): condition for condition in conditions
        }
        self._conditions = {**self._previous}

    def set(self, name: str, status: str, reason: str, message: str) -> None:
        previous = self._previous.get(name, {})
        encoded = message.encode()
        if len(encoded) > MAX_MESSAGE_BYTES:
            message = encoded[: MAX_MESSAGE_BYTES - 3].decode(errors="ignore") + "..."
        condition: JsonObject = {
            "type": name,
            "status": status,
            "reason": reason,
            "message": message,
        }
        same = all(previous.get(key) == value for key, value in condition.items())
        since = get_text(previous, "lastTransitionTime", default=self._now) if same else self._now
        self._conditions[name] = {
            **condition,
            "lastTransitionTime": since,
            "observedGeneration": self._generation,
        }

    def drop(self, *names: str) -> None:
        for name in names:
            self._conditions.pop(name, None)

    def has(self, name: str, status: str) -> bool:
        return get_text(self._conditions.get(name), "status") == status

    def to_list(self) -> list[Json]:
        """Return the conditions: those of Flux in Flux's order, then all others."""
        others = sorted(self._conditions.keys() - set(self._order))
        return [
            self._conditions[name] for name in (*self._order, *others) if name in self._conditions
        ]


def kustomization_status(
    unit_resource: JsonObject, progress: UnitProgress, sources: Sequence[SourceRevision]
) -> StatusUpdate | None:
    """Return the new status of a Kustomization, based on its current one; None if unchanged."""
    previous, revision = get_mapping(unit_resource, "status"), _revision(sources)
    conditions = FluxConditions(unit_resource, format_rfc3339(progress.now))
    is_interrupted = progress.phase is UnitPhase.FINISHED and progress.result not in {
        RolloutOutcome.PASSED,
        RolloutOutcome.FAILED,
    }
    if progress.phase is UnitPhase.WAITING or (is_interrupted and not progress.has_operation):
        return waiting_status(unit_resource, progress, conditions)
    if (
        progress.phase is UnitPhase.FINISHED
        and progress.result == RolloutOutcome.FAILED
        and not progress.is_valid
    ):
        return _failure_status(unit_resource, progress, conditions, revision)
    status: JsonObject = {**previous, "lastAttemptedRevision": revision}
    if progress.phase is UnitPhase.RUNNING:
        events = _set_running(unit_resource, progress, conditions, revision)
    elif progress.result == RolloutOutcome.PASSED:
        events = _set_succeeded(unit_resource, progress, conditions, revision)
        status |= {
            "lastAppliedRevision": revision,
            "observedGeneration": get_int(unit_resource, "metadata", "generation"),
        }
    else:
        events = _set_failed(unit_resource, progress, conditions)
    status |= {"conditions": conditions.to_list(), "inventory": build_inventory(previous, progress)}
    if progress.phase is UnitPhase.FINISHED and progress.has_operation:
        status["history"] = _history(previous, progress, conditions, revision)
    return StatusUpdate(status, events)


def _revision(sources: Sequence[SourceRevision]) -> str:
    return str(sources[0].revision) if sources else ""


def waiting_status(
    unit_resource: JsonObject, progress: UnitProgress, conditions: FluxConditions
) -> StatusUpdate | None:
    """Return the status of a unit that waits for an entry of `dependsOn`; None if for none."""
    unit = _first_unready(unit_resource, progress.waits_for)
    if unit is None:
        return None
    message = f"dependency '{unit.namespace}/{unit.name}' is not ready"
    conditions.set(READY, "False", DEPENDENCY_NOT_READY, message)
    conditions.drop(RECONCILING, STALLED)
    status: JsonObject = {
        **get_mapping(unit_resource, "status"),
        "conditions": conditions.to_list(),
    }
    return StatusUpdate(status, (("Normal", DEPENDENCY_NOT_READY, WAITING_MESSAGE),))


def _failure_status(
    unit_resource: JsonObject, progress: UnitProgress, conditions: FluxConditions, revision: str
) -> StatusUpdate:
    """Return the status of a unit that cannot start; the rest of its status is kept."""
    failure, status = (
        kustomization_failure(unit_resource, progress),
        {**get_mapping(unit_resource, "status")},
    )
    conditions.set(READY, "False", failure.reason, failure.message)
    conditions.drop(RECONCILING, STALLED)
    if failure.is_terminal:
        conditions.set(STALLED, "True", failure.reason, failure.message)
        status["observedGeneration"] = get_int(unit_resource, "metadata", "generation")
    elif failure.reason != DEPENDENCY_NOT_READY:
        conditions.set(RECONCILING, "True", RETRYING, failure.message)
    if failure.has_artifact and revision:
        status["lastAttemptedRevision"] = revision
    status["conditions"] = conditions.to_list()
    is_waiting = failure.reason == DEPENDENCY_NOT_READY
    event = (
        ("Normal", DEPENDENCY_NOT_READY, WAITING_MESSAGE)
        if is_waiting
        else ("Warning", failure.reason, failure.message)
    )
    return StatusUpdate(status, (event,))


def _first_unready(unit_resource: JsonObject, waits_for: Iterable[UnitId]) -> UnitId | None:
    """Return the first entry of `dependsOn` that the unit waits for; None if there is none."""
    namespace, waiting_units = (
        get_text(unit_resource, "metadata", "namespace"),
        {(unit.kind, unit.namespace, unit.name): unit for unit in waits_for},
    )
    for dependency in get_mappings(unit_resource, "spec", "dependsOn"):
        name = (
            get_text(unit_resource, "kind"),
            get_text(dependency, "namespace", default=namespace),
            get_text(dependency, "name"),
        )
        if name in waiting_units:
            return waiting_units[name]
    return None


def _has_health_checks(unit_resource: JsonObject) -> bool:
    return get_value(unit_resource, "spec", "wait") is True or bool(
        get_list(unit_resource, "spec", "healthChecks")
    )


def _set_running(
    unit_resource: JsonObject, progress: UnitProgress, conditions: FluxConditions, revision: str
) -> tuple[EventFields, ...]:
    timeout = format_go_duration(_timeout(unit_resource))
    checks = _has_health_checks(unit_resource) and any(obj.is_awaited for obj in progress.objects)
    activity = "Running health checks" if checks else "Detecting drift"
    activity = f"{activity} for revision {revision} with a timeout of {timeout}"
    conditions.set(READY, "Unknown", PROGRESSING, IN_PROGRESS_MESSAGE)
    conditions.set(RECONCILING, "True", PROGRESSING, activity)
    conditions.drop(STALLED)
    if checks:
        conditions.set(HEALTHY, "Unknown", PROGRESSING, activity)
    return ()


def _set_succeeded(
    unit_resource: JsonObject, progress: UnitProgress, conditions: FluxConditions, revision: str
) -> tuple[EventFields, ...]:
    duration = format_go_duration(Ms(progress.now - progress.started_at))
    was_healthy = conditions.has(HEALTHY, "True")
    if not _has_health_checks(unit_resource):
        conditions.drop(HEALTHY)
    elif progress.has_operation or not was_healthy:
        conditions.set(HEALTHY, "True", SUCCEEDED, f"Health check passed in {duration}")
    conditions.set(READY, "True", "ReconciliationSucceeded", f"Applied revision: {revision}")
    conditions.drop(RECONCILING, STALLED)
    return (
        tuple(_success_events(unit_resource, progress, duration)) if progress.has_operation else ()
    )


def _success_events(
    unit_resource: JsonObject, progress: UnitProgress, duration: str
) -> Iterator[EventFields]:
    changed = (ObjectResult.CREATED, ObjectResult.CONFIGURED)
    lines = [
        f"{_object_name(obj.ref)} {obj.result}" for obj in progress.objects if obj.result in changed
    ]
    if lines:
        yield "Normal", PROGRESSING, "\n".join(lines)
    pruned = [
        f"{_object_name(obj.ref)} deleted"
        for obj in progress.objects
        if obj.result is ObjectResult.PRUNED
    ]
    if pruned:
        yield "Normal", PROGRESSING, "\n".join(pruned)
    interval = get_text(unit_resource, "spec", "interval")
    finished = f"Reconciliation finished in {duration}, next run in {interval}"
    yield "Normal", "ReconciliationSucceeded", finished


def _set_failed(
    unit_resource: JsonObject, progress: UnitProgress, conditions: FluxConditions
) -> tuple[EventFields, ...]:
    reason, message = "ReconciliationFailed", progress.message or progress.reason
    if progress.result == RolloutOutcome.STOPPED:
        message = f"the rollout was stopped: {message}" if message else "the rollout was stopped"
    elif progress.is_gate_failure:
        reason, why = "HealthCheckFailed", _unhealthy_message(progress.objects) or message
        message = (
            "health check failed after"
            f" {format_go_duration(Ms(progress.now - progress.started_at))}: {why}"
        )
        if _has_health_checks(unit_resource):
            conditions.set(HEALTHY, "False", reason, why)
    elif any(obj.result is ObjectResult.FAILED and not obj.is_desired for obj in progress.objects):
        reason = "PruneFailed"
    conditions.set(READY, "False", reason, message)
    conditions.set(RECONCILING, "True", RETRYING, message)
    conditions.drop(STALLED)
    return (("Warning", reason, message),) if progress.has_operation else ()


def _unhealthy_message(objects: Iterable[ObjectProgress]) -> str:
    """Return the message about failed objects; if there are none, about all unready ones."""
    unready = [obj for obj in objects if obj.result is ObjectResult.FAILED or obj.is_awaited]
    failed = [obj for obj in unready if obj.health is Health.DEGRADED]
    names = ", ".join(
        f"{_object_name(obj.ref)} status: '{STATUSES.get(obj.health or Health.UNKNOWN, 'Unknown')}'"
        for obj in failed or unready
    )
    if not names:
        return ""
    return (
        f"{'failed early due to stalled resources' if failed else 'timeout waiting for'}: [{names}]"
    )


def _object_name(ref: Ref) -> str:
    return "/".join(part for part in (ref.kind.name, ref.namespace, ref.name) if part)


def _timeout(unit_resource: JsonObject) -> Ms:
    """Return the timeout of a reconciliation: `timeout`, else `interval` minus 30 seconds."""
    for name, deduction in (("timeout", Ms(0)), ("interval", MIN_TIMEOUT)):
        try:
            return max(
                MIN_TIMEOUT, Ms(parse_duration(get_text(unit_resource, "spec", name)) - deduction)
            )
        except ValueError:
            continue
    return MIN_TIMEOUT


def inventory_id(ref: Ref) -> str:
    """Return the id of an object in the inventory."""
    name = ref.name.replace(":", "__") if ref.kind.group == RBAC else ref.name
    return f"{ref.namespace}_{name}_{ref.kind.group}_{ref.kind.name}"


def build_inventory(previous: JsonObject, progress: UnitProgress) -> JsonObject:
    """Return the inventory. Until the whole unit is applied, earlier entries are kept."""
    desired = [obj for obj in progress.objects if obj.is_desired and not obj.is_hook]
    unpruned = [
        obj
        for obj in progress.objects
        if not obj.is_desired and obj.is_live and obj.result in UNPRUNED
    ]
    is_complete = progress.phase is UnitPhase.FINISHED and progress.result == RolloutOutcome.PASSED
    included = [obj for obj in (*desired, *unpruned) if is_complete or obj.is_live]
    entries: dict[str, Json] = {
        inventory_id(obj.ref): {"id": inventory_id(obj.ref), "v": obj.ref.kind.version}
        for obj in included
    }
    for old in () if is_complete else get_mappings(previous, "inventory", "entries"):
        entries.setdefault(get_text(old, "id"), old)
    return {"entries": [*entries.values()]}


def _history(
    previous: JsonObject, progress: UnitProgress, conditions: FluxConditions, revision: str
) -> list[Json]:
    """Return the snapshots, newest first, one for each content and outcome."""
    snapshots = get_mappings(previous, "history")
    ready = next(
        condition for condition in conditions.to_list() if get_text(condition, "type") == READY
    )
    digest = f"sha256:{hashlib.sha256(_content_key(progress)).hexdigest()}"
    outcome, now = get_text(ready, "reason"), format_rfc3339(progress.now)
    matching = [
        snapshot
        for snapshot in snapshots
        if (get_text(snapshot, "digest"), get_text(snapshot, "lastReconciledStatus"))
        == (digest, outcome)
    ]
    first = matching[0] if matching else {}
    entry: JsonObject = {
        "digest": digest,
        "firstReconciled": get_text(first, "firstReconciled", default=now),
        "lastReconciled": now,
        "lastReconciledDuration": format_go_duration(Ms(progress.now - progress.started_at)),
        "lastReconciledStatus": outcome,
        "totalReconciliations": get_int(first, "totalReconciliations") + 1,
        "metadata": {"revision": revision},
    }
    others: list[Json] = [snapshot for snapshot in snapshots if snapshot not in matching]
    return [entry, *others][:MAX_SNAPSHOTS]


def _content_key(progress: UnitProgress) -> bytes:
    """Return what identifies the content, without values of Secrets."""
    return "\n".join((str(progress.unit), progress.digest)).encode()
