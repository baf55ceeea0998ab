"""Deployments: one ReplicaSet for each template; the newest grows while the others shrink.

One reconciliation takes one step and reports it; its writes trigger the next reconciliation.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

import msgspec

from tidegate.model.k8s.json_fields import get_int, get_mapping, get_text, get_value
from tidegate.model.k8s.kinds import DEPLOYMENT, POD, REPLICA_SET
from tidegate.model.k8s.objects import Json, JsonObject, Ref
from tidegate.model.times import Ms
from tidegate.sandbox.controllers import writes
from tidegate.sandbox.controllers.conditions import conditions_of, new_condition, with_condition
from tidegate.sandbox.controllers.interface import (
    Controller,
    ObjectReader,
    Reconciliation,
    RequeueAt,
)
from tidegate.sandbox.controllers.pods import creation_error, phase_of, retry_at
from tidegate.sandbox.controllers.workloads import deployment_status
from tidegate.sandbox.controllers.workloads.deployment_state import (
    REVISION,
    TEMPLATE_HASH,
    DeploymentRollout,
    Sizes,
    is_scaling,
    new_size,
    old_sizes,
    read_rollout,
    scaled_sizes,
)
from tidegate.sandbox.controllers.writes import EventRecorder
from tidegate.sandbox.server.store import StoreEvent
from tidegate.world.messages import AlreadyExists, Outcome, WatchEventType, is_error
from tidegate.world.requests import Write

RECORDER = EventRecorder("deployment-controller")
MAX_NAME = 253
ReconcileStep = Generator[Write | RequeueAt, Outcome | None, bool]
"""Writes, and whether the reconciliation ends with them."""


def reconcile_deployment(reader: ObjectReader, ref: Ref, now: Ms) -> Reconciliation:
    """Advance a Deployment by one step towards its desired state.

    Like `syncDeployment` in `pkg/controller/deployment/deployment_controller.go` of Kubernetes
    1.36.4.
    """
    deployment = reader.get(ref)
    if deployment is None:
        return
    rollout = read_rollout(reader, deployment)
    if deployment.is_deleting:
        yield from writes.update_status(deployment, deployment_status.base_status(rollout, now))
    elif (yield from _record_pause(rollout, now)):
        yield from _until_status_write(_sync(reader, rollout, now))
    else:
        yield from _sync(reader, rollout, now)


def _sync(reader: ObjectReader, rollout: DeploymentRollout, now: Ms) -> Reconciliation:
    if (yield from _sync_revision(rollout, now)):
        return
    if rollout.is_paused or is_scaling(rollout):
        yield from _scale_only(reader, rollout, now)
    elif rollout.is_recreate:
        yield from _recreate(reader, rollout, now)
    else:
        yield from _rolling_update(reader, rollout, now)


def _until_status_write(reconciliation: Reconciliation) -> Reconciliation:
    """Run a reconciliation up to its first status write.

    A reconciliation that recorded a pause writes no second status: its version would be stale.
    So a resumed Deployment creates its ReplicaSet and never reports it.
    """
    outcome: Outcome | None = None
    while True:
        try:
            request = reconciliation.send(outcome)
        except StopIteration:
            return
        if isinstance(request, Write) and request.subresource == "status":
            return
        outcome = yield request


def _scale_only(reader: ObjectReader, rollout: DeploymentRollout, now: Ms) -> Reconciliation:
    """Scale only: while paused, or in the first reconciliation after a change of scale.

    Like `sync` and `scale` in `pkg/controller/deployment/sync.go` of Kubernetes 1.36.4.
    """
    yield from _scale(rollout, scaled_sizes(rollout), now)
    if rollout.is_paused:
        yield from _clean_up_old(rollout)
    after = read_rollout(reader, rollout.deployment)
    yield from writes.update_status(rollout.deployment, deployment_status.base_status(after, now))


def _rolling_update(reader: ObjectReader, rollout: DeploymentRollout, now: Ms) -> Reconciliation:
    if rollout.new is None:
        yield from _create_replica_set(reader, rollout, now)
        return
    scaled_up = yield from _scale(rollout, [(rollout.new, new_size(rollout))], now)
    scaled = scaled_up or (yield from _scale(rollout, old_sizes(rollout), now))
    if scaled:
        rollout = read_rollout(reader, rollout.deployment)
    elif deployment_status.is_complete(rollout, get_mapping(rollout.deployment.body, "status")):
        yield from _clean_up_old(rollout)
    yield from _update_progress(rollout, now)


def _recreate(reader: ObjectReader, rollout: DeploymentRollout, now: Ms) -> Reconciliation:
    """Create no new pod before the last old one is gone.

    Like `rolloutRecreate` in `pkg/controller/deployment/recreate.go` of Kubernetes 1.36.4.
    """
    scaled_down = yield from _scale(
        rollout, [(replica_set, 0) for replica_set in rollout.old if replica_set.size], now
    )
    if not scaled_down and not _has_old_pods(reader, rollout):
        if rollout.new is None:
            yield from _create_replica_set(reader, rollout, now)
            return
        yield from _scale(rollout, [(rollout.new, rollout.replicas)], now)
        if deployment_status.is_complete(rollout, get_mapping(rollout.deployment.body, "status")):
            yield from _clean_up_old(rollout)
    yield from _update_progress(read_rollout(reader, rollout.deployment), now)


def _has_old_pods(reader: ObjectReader, rollout: DeploymentRollout) -> bool:
    return any(
        replica_set.pods
        or any(
            phase_of(pod) not in ("Succeeded", "Failed")
            for pod in writes.list_controlled(reader, replica_set.stored, POD)
        )
        for replica_set in rollout.old
    )


def _record_pause(rollout: DeploymentRollout, now: Ms) -> ReconcileStep:
    """Record a pause or its end in Progressing, so that the progress deadline starts again.

    Like `checkPausedConditions` in `pkg/controller/deployment/sync.go` of Kubernetes 1.36.4.
    """
    _, reason = deployment_status.progressing_state(conditions_of(rollout.deployment))
    if (
        not deployment_status.has_deadline(rollout)
        or reason == deployment_status.TIMED_OUT
        or rollout.is_paused == (reason == deployment_status.PAUSED)
    ):
        return False
    state = "paused" if rollout.is_paused else "resumed"
    yield _set_progressing(
        rollout, "Unknown", f"Deployment{state.title()}", f"Deployment is {state}", now
    )
    return True


def _sync_revision(rollout: DeploymentRollout, now: Ms) -> ReconcileStep:
    """Give the new ReplicaSet the highest revision, and record that revision on the Deployment.

    Like `getAllReplicaSetsAndSyncRevision` in `pkg/controller/deployment/sync.go` of Kubernetes
    1.36.4.
    """
    if rollout.new is None:
        return False
    annotations = get_mapping(rollout.new.stored.metadata, "annotations")
    desired = {**annotations, **rollout.annotations()}
    min_ready_seconds = get_int(rollout.spec, "minReadySeconds")
    if (
        desired != annotations
        or get_int(rollout.new.stored.body, "spec", "minReadySeconds") != min_ready_seconds
    ):
        change: JsonObject = {
            "metadata": {"annotations": desired},
            "spec": {"minReadySeconds": min_ready_seconds},
        }
        yield writes.patch(rollout.new.stored, change)
        return False
    yield from _record_revision(rollout, get_text(annotations, REVISION))
    if not deployment_status.has_deadline(rollout) or deployment_status.progressing_state(
        conditions_of(rollout.deployment)
    ) != ("", ""):
        return False
    message = f'Found new replica set "{rollout.new.stored.ref.name}"'
    yield _set_progressing(rollout, "True", "FoundNewReplicaSet", message, now)
    return True


def _record_revision(rollout: DeploymentRollout, revision: str) -> Iterator[Write]:
    """Yield the revision annotation, written through the status to keep the generation."""
    if get_text(rollout.deployment.metadata, "annotations", REVISION) != revision:
        write = writes.patch(
            rollout.deployment, {"metadata": {"annotations": {REVISION: revision}}}
        )
        yield msgspec.structs.replace(write, subresource="status")


def _create_replica_set(
    reader: ObjectReader, rollout: DeploymentRollout, now: Ms
) -> Reconciliation:
    """Create the ReplicaSet of a new template.

    Like `getNewReplicaSet` in `pkg/controller/deployment/sync.go` of Kubernetes 1.36.4.
    """
    deployment, size, annotations = rollout.deployment, new_size(rollout), rollout.annotations()
    prefix = deployment.ref.name[: MAX_NAME - 1 - len(rollout.template_hash)]
    name = f"{prefix}-{rollout.template_hash}"
    outcome = yield writes.create(
        REPLICA_SET, deployment.ref.namespace, _replica_set_body(rollout, name, size, annotations)
    )
    if isinstance(outcome, AlreadyExists):
        yield from _adopt(reader, rollout, name)
        return
    error = creation_error(outcome)
    if not error and outcome is not None and is_error(outcome):
        return
    if error:
        message = f'Failed to create new replica set "{name}": {error}'
        yield _set_progressing(rollout, "False", "ReplicaSetCreateError", message, now)
        yield RECORDER.record_warning(deployment, "ReplicaSetCreateError", message, now)
        yield RequeueAt(retry_at(None, now=now))
        return
    if size:
        message = f"Scaled up replica set {name} from 0 to {size}"
        yield RECORDER.record(deployment, "ScalingReplicaSet", message, now)
    yield from _record_revision(rollout, get_text(annotations, REVISION))
    if deployment_status.has_deadline(rollout):
        message = f'Created new replica set "{name}"'
        yield _set_progressing(rollout, "True", "NewReplicaSetCreated", message, now)


def _replica_set_body(
    rollout: DeploymentRollout, name: str, size: int, annotations: JsonObject
) -> JsonObject:
    template = rollout.template
    metadata = get_mapping(template, "metadata")
    labels: JsonObject = {**get_mapping(metadata, "labels"), TEMPLATE_HASH: rollout.template_hash}
    selector = get_mapping(rollout.spec, "selector")
    match_labels: JsonObject = {
        **get_mapping(selector, "matchLabels"),
        TEMPLATE_HASH: rollout.template_hash,
    }
    min_ready_seconds = get_int(rollout.spec, "minReadySeconds")
    return {
        "metadata": {
            "name": name,
            "namespace": rollout.deployment.ref.namespace,
            "labels": labels,
            "annotations": annotations,
            "ownerReferences": [writes.owner_reference(rollout.deployment)],
        },
        "spec": {
            "replicas": size,
            **({"minReadySeconds": min_ready_seconds} if min_ready_seconds else {}),
            "selector": {**selector, "matchLabels": match_labels},
            "template": {**template, "metadata": {**metadata, "labels": labels}},
        },
    }


def _adopt(reader: ObjectReader, rollout: DeploymentRollout, name: str) -> Iterator[Write]:
    """Yield the adoption of an orphaned ReplicaSet of this template.

    Like `AdoptReplicaSet` in `pkg/controller/controller_ref_manager.go` of Kubernetes 1.36.4.
    """
    replica_set = reader.get(Ref(REPLICA_SET, rollout.deployment.ref.namespace, name))
    if replica_set is not None and not get_value(replica_set.metadata, "ownerReferences"):
        owner: Json = [writes.owner_reference(rollout.deployment)]
        yield writes.patch(replica_set, {"metadata": {"ownerReferences": owner}})


def _scale(rollout: DeploymentRollout, sizes: Sizes, now: Ms) -> ReconcileStep:
    resized = False
    for replica_set, size in sizes:
        annotations = get_mapping(replica_set.stored.metadata, "annotations")
        scale_annotations = rollout.scale_annotations()
        if replica_set.size == size and scale_annotations.items() <= annotations.items():
            continue
        yield writes.patch(
            replica_set.stored,
            {"metadata": {"annotations": scale_annotations}, "spec": {"replicas": size}},
        )
        if replica_set.size != size:
            resized = True
            direction = "up" if size > replica_set.size else "down"
            message = (
                f"Scaled {direction} replica set {replica_set.stored.ref.name} from"
                f" {replica_set.size} to {size}"
            )
            yield RECORDER.record(rollout.deployment, "ScalingReplicaSet", message, now)
    return resized


def _clean_up_old(rollout: DeploymentRollout) -> Iterator[Write]:
    """Yield deletions of old ReplicaSets beyond `revisionHistoryLimit`.

    Like `cleanupDeployment` in `pkg/controller/deployment/sync.go` of Kubernetes 1.36.4.
    """
    limit = get_int(rollout.spec, "revisionHistoryLimit", default=10)
    candidates = [replica_set for replica_set in rollout.old if not replica_set.stored.is_deleting]
    candidates.sort(key=lambda replica_set: replica_set.revision)
    for replica_set in candidates[: max(0, len(candidates) - limit)]:
        observed = get_int(replica_set.stored.body, "status", "observedGeneration")
        if (
            not replica_set.pods
            and not replica_set.size
            and observed >= replica_set.stored.generation
        ):
            yield writes.delete(replica_set.stored)


def _update_progress(rollout: DeploymentRollout, now: Ms) -> Reconciliation:
    status = deployment_status.status_with_progress(rollout, now)
    yield from writes.update_status(rollout.deployment, status)
    if (check_time := deployment_status.progress_check_time(rollout, status)) is not None:
        yield RequeueAt(check_time)


def _set_progressing(
    rollout: DeploymentRollout, status: str, reason: str, message: str, now: Ms
) -> Write:
    """Return a write of the previous status with another Progressing condition."""
    condition = new_condition(deployment_status.PROGRESSING, status, reason, message, now=now)
    conditions = with_condition(conditions_of(rollout.deployment), condition)
    return writes.set_status(
        rollout.deployment,
        deployment_status.with_conditions(
            get_mapping(rollout.deployment.body, "status"), conditions
        ),
    )


def _map_event(reader: ObjectReader, event: StoreEvent) -> Iterator[Ref]:
    stored = event.stored
    if stored.ref.kind == DEPLOYMENT:
        yield stored.ref
        return
    owner: Ref | None = None
    if stored.ref.kind == REPLICA_SET:
        owner = writes.controller_of_kind(stored, DEPLOYMENT)
    elif stored.ref.kind == POD and event.change is WatchEventType.DELETED:
        replica_set_ref = writes.controller_of_kind(stored, REPLICA_SET)
        replica_set = reader.get(replica_set_ref) if replica_set_ref else None
        owner = writes.controller_of_kind(replica_set, DEPLOYMENT) if replica_set else None
    if owner is not None:
        yield owner


DEPLOYMENTS = Controller(
    "deployments",
    reconcile_deployment,
    _map_event,
    delay=Ms(5),
    kinds=(DEPLOYMENT, REPLICA_SET, POD),
)
