"""What a Deployment says of itself: counts, Available, Progressing, ReplicaFailure."""

from __future__ import annotations

from tidegate.model.moment import SECOND, Ms
from tidegate.model.objects import Json
from tidegate.model.reading import mapping, mappings, number
from tidegate.sandbox.controllers.conditions import (
    Conditions,
    conditions_of,
    find_condition,
    moment_of,
    new_condition,
    with_condition,
    without_condition,
    without_zeros,
)
from tidegate.sandbox.controllers.workloads.replica_set import FAILURE
from tidegate.sandbox.controllers.workloads.rollout import DeploymentRollout
from tidegate.sandbox.server.store import Body

AVAILABLE, PROGRESSING = "Available", "Progressing"
COMPLETE, TIMED_OUT, PAUSED = (
    "NewReplicaSetAvailable",
    "ProgressDeadlineExceeded",
    "DeploymentPaused",
)
ENOUGH = ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
TOO_FEW = (
    "False",
    "MinimumReplicasUnavailable",
    "Deployment does not have minimum availability.",
)
COUNTS = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
NO_DEADLINE = 2**31 - 1


def has_deadline(rollout: DeploymentRollout) -> bool:
    return rollout.deadline != NO_DEADLINE


def progress_of(conditions: Conditions) -> tuple[str, str]:
    """Status and reason of the condition Progressing."""
    found = find_condition(conditions, PROGRESSING) or {}
    return str(found.get("status", "")), str(found.get("reason", ""))


def with_conditions(status: Body, conditions: Conditions) -> Body:
    listed: list[Json] = [*conditions]
    kept = {name: value for name, value in status.items() if name != "conditions"}
    return {**kept, "conditions": listed} if listed else kept


def plain_status(rollout: DeploymentRollout, now: Ms) -> Body:
    """The counts and Available; nothing is said of progress."""
    available = sum(crew.available for crew in rollout.all)
    new = rollout.new
    counts: Body = {
        "observedGeneration": rollout.deployment.generation,
        "replicas": sum(crew.pods for crew in rollout.all),
        "updatedReplicas": new.pods if new else 0,
        "readyReplicas": sum(crew.ready for crew in rollout.all),
        "availableReplicas": available,
        "unavailableReplicas": max(0, sum(crew.size for crew in rollout.all) - available),
    }
    status = without_zeros(counts)
    status["terminatingReplicas"] = sum(
        number(crew.stored.body, "status", "terminatingReplicas") for crew in rollout.all
    )
    words = ENOUGH if available >= rollout.replicas - rollout.unavailable else TOO_FEW
    condition = new_condition(AVAILABLE, *words, now=now)
    return with_conditions(status, with_condition(conditions_of(rollout.deployment), condition))


def full_status(rollout: DeploymentRollout, now: Ms) -> Body:
    """The status while a rollout is watched: with progress, and what ReplicaSets complain of."""
    status = plain_status(rollout, now)
    conditions = mappings(status, "conditions")
    if not has_deadline(rollout):
        conditions = without_condition(conditions, PROGRESSING)
    else:
        conditions = _with_progress(rollout, status, conditions, now)
    failure = _failure(rollout)
    conditions = (
        with_condition(conditions, failure) if failure else without_condition(conditions, FAILURE)
    )
    return with_conditions(status, conditions)


def is_complete(rollout: DeploymentRollout, status: Body) -> bool:
    counts = (number(status, name) for name in COUNTS if name != "readyReplicas")
    observed = number(status, "observedGeneration") >= rollout.deployment.generation
    return observed and all(count == rollout.replicas for count in counts)


def next_check(rollout: DeploymentRollout, status: Body) -> Ms | None:
    """When a rollout that does not move has to be looked at again: a second past its deadline."""
    found = find_condition(mappings(status, "conditions"), PROGRESSING)
    if found is None or not has_deadline(rollout) or is_complete(rollout, status):
        return None
    updated = moment_of(found.get("lastUpdateTime"))
    if found.get("reason") in (TIMED_OUT, COMPLETE) or updated is None:
        return None
    return Ms(updated + (rollout.deadline + 1) * SECOND)


def _with_progress(
    rollout: DeploymentRollout, status: Body, conditions: Conditions, now: Ms
) -> Conditions:
    known, reason = progress_of(conditions)
    is_settled = number(status, "replicas") == number(status, "updatedReplicas")
    if is_settled and reason == COMPLETE:
        return conditions
    subject = (
        f'ReplicaSet "{rollout.new.stored.ref.name}"'
        if rollout.new
        else f'Deployment "{rollout.deployment.ref.name}"'
    )
    if is_complete(rollout, status):
        said = f"{subject} has successfully progressed."
        return with_condition(
            conditions, new_condition(PROGRESSING, "True", COMPLETE, said, now=now)
        )
    if _has_moved(rollout, status):
        said = f"{subject} is progressing."
        moved = new_condition(PROGRESSING, "True", "ReplicaSetUpdated", said, now=now)
        before = find_condition(conditions, PROGRESSING)
        if before is not None and known == "True":
            moved["lastTransitionTime"] = before.get("lastTransitionTime")
        return [*without_condition(conditions, PROGRESSING), moved]
    if _is_late(rollout, conditions, now):
        said = f"{subject} has timed out progressing."
        late = new_condition(PROGRESSING, "False", TIMED_OUT, said, now=now)
        return with_condition(conditions, late)
    return conditions


def _has_moved(rollout: DeploymentRollout, status: Body) -> bool:
    before = mapping(rollout.deployment.body, "status")
    pods, updated, ready, available = (
        (number(before, name), number(status, name)) for name in COUNTS
    )
    return (
        updated[1] > updated[0]
        or pods[1] - updated[1] < pods[0] - updated[0]
        or ready[1] > ready[0]
        or available[1] > available[0]
    )


def _is_late(rollout: DeploymentRollout, conditions: Conditions, now: Ms) -> bool:
    found = find_condition(conditions, PROGRESSING)
    updated = moment_of(found.get("lastUpdateTime")) if found else None
    if found is None or updated is None or found.get("reason") == COMPLETE:
        return False
    return found.get("reason") == TIMED_OUT or updated + rollout.deadline * SECOND < now


def _failure(rollout: DeploymentRollout) -> Body | None:
    """What the new ReplicaSet complains of, or else an old one."""
    for crew in ((rollout.new,) if rollout.new else ()) + rollout.old:
        found = find_condition(mappings(crew.stored.body, "status", "conditions"), FAILURE)
        if found is not None:
            return {**found, "lastUpdateTime": found.get("lastTransitionTime")}
    return None
