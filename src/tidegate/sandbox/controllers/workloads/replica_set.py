"""ReplicaSets: create or delete pods of one template until the desired number runs."""

from __future__ import annotations

from collections.abc import Generator

from tidegate.model.k8s.json_fields import get_int, get_mapping, get_mappings
from tidegate.model.k8s.kinds import POD, REPLICA_SET
from tidegate.model.k8s.objects import Json, JsonObject, Ref
from tidegate.model.times import Ms
from tidegate.sandbox.controllers.conditions import (
    Conditions,
    find_condition,
    new_condition,
    read_timestamp,
    without_condition,
    without_zeros,
)
from tidegate.sandbox.controllers.interface import (
    Controller,
    ObjectReader,
    Reconciliation,
    RequeueAt,
)
from tidegate.sandbox.controllers.pods import (
    creation_error,
    is_active,
    is_available,
    is_ready,
    new_pod,
    pods_to_delete,
    requeue_when_available,
    retry_at,
)
from tidegate.sandbox.controllers.writes import (
    EventRecorder,
    delete,
    list_controlled,
    map_to_owner,
    update_status,
)
from tidegate.sandbox.server.store import StoredObject
from tidegate.world.messages import Outcome
from tidegate.world.requests import Write

RECORDER = EventRecorder("replicaset-controller")
FAILURE = "ReplicaFailure"
BURST = 500
"""Maximum number of pods that one reconciliation creates or deletes.

Like `BurstReplicas` in `pkg/controller/replicaset/replica_set.go` of Kubernetes 1.36.4.
"""


def reconcile_replica_set(reader: ObjectReader, ref: Ref, now: Ms) -> Reconciliation:
    """Create or delete pods up to the desired number, and report how many there were.

    Like `syncReplicaSet` in `pkg/controller/replicaset/replica_set.go` of Kubernetes 1.36.4.
    """
    owner = reader.get(ref)
    if owner is None:
        return
    pods = list_controlled(reader, owner, POD)
    active = [pod for pod in pods if is_active(pod)]
    problem = ""
    if not owner.is_deleting:
        problem = yield from _manage_replicas(owner, active, now)
    status = _status(owner, pods, active, problem, now)
    yield from update_status(owner, status)
    if problem:
        failed = find_condition(get_mappings(status, "conditions"), FAILURE)
        since = read_timestamp(failed.get("lastTransitionTime")) if failed else None
        yield RequeueAt(retry_at(since, now=now))
    yield from requeue_when_available(active, _min_ready_seconds(owner), now=now)


def _min_ready_seconds(owner: StoredObject) -> int:
    return get_int(owner.body, "spec", "minReadySeconds")


def _manage_replicas(
    owner: StoredObject, active: list[StoredObject], now: Ms
) -> Generator[Write, Outcome | None, str]:
    """Create missing pods or delete surplus ones; return why a pod could not be created.

    Like `manageReplicas` in `pkg/controller/replicaset/replica_set.go` of Kubernetes 1.36.4.
    """
    missing = get_int(owner.body, "spec", "replicas", default=1) - len(active)
    if missing > 0:
        return (yield from _create_pods(owner, min(missing, BURST), now))
    for pod in pods_to_delete(active, min(-missing, BURST)) if missing else ():
        yield delete(pod)
    return ""


def _create_pods(owner: StoredObject, count: int, now: Ms) -> Generator[Write, Outcome | None, str]:
    """Create pods in batches of one, two, four; stop after the first batch with an error.

    Like `slowStartBatch` in `pkg/controller/replicaset/replica_set.go` of Kubernetes 1.36.4.
    """
    template = get_mapping(owner.body, "spec", "template")
    write = new_pod(owner, template, metadata={"generateName": f"{owner.ref.name}-"})
    batch, problem = 1, ""
    while count > 0 and not problem:
        for _ in range(min(batch, count)):
            error = creation_error((yield write))
            if error:
                yield RECORDER.record_warning(
                    owner, "FailedCreate", f"Error creating: {error}", now
                )
            problem = problem or error
        count, batch = count - batch, batch * 2
    return problem


def _status(
    owner: StoredObject, pods: list[StoredObject], active: list[StoredObject], problem: str, now: Ms
) -> JsonObject:
    min_ready_seconds = _min_ready_seconds(owner)
    labels = get_mapping(owner.body, "spec", "template", "metadata", "labels")
    counts: JsonObject = {
        "fullyLabeledReplicas": sum(labels.items() <= pod.labels.items() for pod in active),
        "readyReplicas": sum(map(is_ready, active)),
        "availableReplicas": sum(is_available(pod, min_ready_seconds, now=now) for pod in active),
        "observedGeneration": owner.generation,
    }
    conditions: list[Json] = [*_conditions(owner, len(active), problem, now)]
    return {
        "replicas": len(active),
        **without_zeros(counts),
        "terminatingReplicas": sum(pod.is_deleting for pod in pods),
        **({"conditions": conditions} if conditions else {}),
    }


def _conditions(owner: StoredObject, active: int, problem: str, now: Ms) -> Conditions:
    known = get_mappings(owner.body, "status", "conditions")
    if not problem:
        return without_condition(known, FAILURE)
    if find_condition(known, FAILURE):
        return known
    desired = get_int(owner.body, "spec", "replicas", default=1)
    reason = "FailedCreate" if active < desired else "FailedDelete"
    return [*known, new_condition(FAILURE, "True", reason, problem, now=now, extra_time_field="")]


REPLICA_SETS = Controller(
    "replica-sets", reconcile_replica_set, map_to_owner(REPLICA_SET, POD), kinds=(REPLICA_SET, POD)
)
