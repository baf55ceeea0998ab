"""Status of a Deployment: counts, and the conditions Available, Progressing, ReplicaFailure.

Like `pkg/controller/deployment/progress.go` of Kubernetes 1.36.4.
"""

from __future__ import annotations

from tidegate.model.k8s.json_fields import get_int, get_mapping, get_mappings
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.times import SECOND, Ms
from tidegate.sandbox.controllers.conditions import (
    Conditions,
    conditions_of,
    find_condition,
    new_condition,
    read_timestamp,
    with_condition,
    without_condition,
    without_zeros,
)
from tidegate.sandbox.controllers.workloads.deployment_state import DeploymentRollout
from tidegate.sandbox.controllers.workloads.replica_set import FAILURE

AVAILABLE, PROGRESSING = "Available", "Progressing"
COMPLETE, TIMED_OUT, PAUSED = (
    "NewReplicaSetAvailable",
    "ProgressDeadlineExceeded",
    "DeploymentPaused",
)
MINIMUM_AVAILABLE = ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
MINIMUM_UNAVAILABLE = (
    "False",
    "MinimumReplicasUnavailable",
    "Deployment does not have minimum availability.",
)
"""Status, reason and message of the condition Available.

Like `calculateStatus` in `pkg/controller/deployment/sync.go` of Kubernetes 1.36.4.
"""
COUNTS = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
NO_DEADLINE = 2**31 - 1


def has_deadline(rollout: DeploymentRollout) -> bool:
    """Return whether a rollout has a progress deadline.

    Like `HasProgressDeadline` in `pkg/controller/deployment/util/deployment_util.go` of Kubernetes
    1.36.4.
    """
    return rollout.deadline != NO_DEADLINE


def progressing_state(conditions: Conditions) -> tuple[str, str]:
    """Return status and reason of the condition Progressing; empty strings without one."""
    condition = find_condition(conditions, PROGRESSING) or {}
    return str(condition.get("status", "")), str(condition.get("reason", ""))


def with_conditions(status: JsonObject, conditions: Conditions) -> JsonObject:
    """Return the status with other conditions."""
    listed_conditions: list[Json] = [*conditions]
    fields = {name: value for name, value in status.items() if name != "conditions"}
    return {**fields, "conditions": listed_conditions} if listed_conditions else fields


def base_status(rollout: DeploymentRollout, now: Ms) -> JsonObject:
    """Return the status with counts and Available, and Progressing unchanged.

    Like `calculateStatus` in `pkg/controller/deployment/sync.go` of Kubernetes 1.36.4.
    """
    available = sum(replica_set.available for replica_set in rollout.replica_sets)
    new = rollout.new
    counts: JsonObject = {
        "observedGeneration": rollout.deployment.generation,
        "replicas": sum(replica_set.pods for replica_set in rollout.replica_sets),
        "updatedReplicas": new.pods if new else 0,
        "readyReplicas": sum(replica_set.ready for replica_set in rollout.replica_sets),
        "availableReplicas": available,
        "unavailableReplicas": max(
            0, sum(replica_set.size for replica_set in rollout.replica_sets) - available
        ),
    }
    status = without_zeros(counts)
    status["terminatingReplicas"] = sum(
        get_int(replica_set.stored.body, "status", "terminatingReplicas")
        for replica_set in rollout.replica_sets
    )
    availability = (
        MINIMUM_AVAILABLE
        if available >= rollout.replicas - rollout.max_unavailable
        else MINIMUM_UNAVAILABLE
    )
    condition = new_condition(AVAILABLE, *availability, now=now)
    return with_conditions(status, with_condition(conditions_of(rollout.deployment), condition))


def status_with_progress(rollout: DeploymentRollout, now: Ms) -> JsonObject:
    """Return the status during a rollout, with Progressing and failures of ReplicaSets."""
    status = base_status(rollout, now)
    conditions = get_mappings(status, "conditions")
    if not has_deadline(rollout):
        conditions = without_condition(conditions, PROGRESSING)
    else:
        conditions = _with_progress(rollout, status, conditions, now)
    failure = _replica_failure(rollout)
    conditions = (
        with_condition(conditions, failure) if failure else without_condition(conditions, FAILURE)
    )
    return with_conditions(status, conditions)


def is_complete(rollout: DeploymentRollout, status: JsonObject) -> bool:
    """Return whether all pods are updated and available.

    Like `DeploymentComplete` in `pkg/controller/deployment/util/deployment_util.go` of Kubernetes
    1.36.4.
    """
    counts = (get_int(status, name) for name in COUNTS if name != "readyReplicas")
    observed = get_int(status, "observedGeneration") >= rollout.deployment.generation
    return observed and all(count == rollout.replicas for count in counts)


def progress_check_time(rollout: DeploymentRollout, status: JsonObject) -> Ms | None:
    """Return when to check a stalled rollout: a second after its deadline; None if it has none.

    Like `requeueStuckDeployment` in `pkg/controller/deployment/progress.go` of Kubernetes 1.36.4.
    """
    condition = find_condition(get_mappings(status, "conditions"), PROGRESSING)
    if condition is None or not has_deadline(rollout) or is_complete(rollout, status):
        return None
    updated = read_timestamp(condition.get("lastUpdateTime"))
    if condition.get("reason") in (TIMED_OUT, COMPLETE) or updated is None:
        return None
    return Ms(updated + (rollout.deadline + 1) * SECOND)


def _with_progress(
    rollout: DeploymentRollout, status: JsonObject, conditions: Conditions, now: Ms
) -> Conditions:
    known_status, reason = progressing_state(conditions)
    is_settled = get_int(status, "replicas") == get_int(status, "updatedReplicas")
    if is_settled and reason == COMPLETE:
        return conditions
    subject = (
        f'ReplicaSet "{rollout.new.stored.ref.name}"'
        if rollout.new
        else f'Deployment "{rollout.deployment.ref.name}"'
    )
    if is_complete(rollout, status):
        message = f"{subject} has successfully progressed."
        return with_condition(
            conditions, new_condition(PROGRESSING, "True", COMPLETE, message, now=now)
        )
    if _has_progressed(rollout, status):
        message = f"{subject} is progressing."
        progressed = new_condition(PROGRESSING, "True", "ReplicaSetUpdated", message, now=now)
        before = find_condition(conditions, PROGRESSING)
        if before is not None and known_status == "True":
            progressed["lastTransitionTime"] = before.get("lastTransitionTime")
        return [*without_condition(conditions, PROGRESSING), progressed]
    if _is_timed_out(rollout, conditions, now):
        message = f"{subject} has timed out progressing."
        timed_out = new_condition(PROGRESSING, "False", TIMED_OUT, message, now=now)
        return with_condition(conditions, timed_out)
    return conditions


def _has_progressed(rollout: DeploymentRollout, status: JsonObject) -> bool:
    before = get_mapping(rollout.deployment.body, "status")
    pods, updated, ready, available = (
        (get_int(before, name), get_int(status, name)) for name in COUNTS
    )
    return (
        updated[1] > updated[0]
        or pods[1] - updated[1] < pods[0] - updated[0]
        or ready[1] > ready[0]
        or available[1] > available[0]
    )


def _is_timed_out(rollout: DeploymentRollout, conditions: Conditions, now: Ms) -> bool:
    condition = find_condition(conditions, PROGRESSING)
    updated = read_timestamp(condition.get("lastUpdateTime")) if condition else None
    if condition is None or updated is None or condition.get("reason") == COMPLETE:
        return False
    return condition.get("reason") == TIMED_OUT or updated + rollout.deadline * SECOND < now


def _replica_failure(rollout: DeploymentRollout) -> JsonObject | None:
    """Return the ReplicaFailure condition of the new ReplicaSet, or of an old one, or None.

    Like `getReplicaFailures` in `pkg/controller/deployment/progress.go` of Kubernetes 1.36.4.
    """
    for replica_set in ((rollout.new,) if rollout.new else ()) + rollout.old:
        condition = find_condition(
            get_mappings(replica_set.stored.body, "status", "conditions"), FAILURE
        )
        if condition is not None:
            return {**condition, "lastUpdateTime": condition.get("lastTransitionTime")}
    return None
