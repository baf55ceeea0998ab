"""StatefulSets: pods with stable names, created and replaced in order.

Like `pkg/controller/statefulset/stateful_set_control.go` of Kubernetes 1.36.4.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import NamedTuple

from tidegate.model.k8s.json_fields import get_int, get_mapping, get_mappings, get_text, get_value
from tidegate.model.k8s.kinds import CLAIM, POD, STATEFUL_SET
from tidegate.model.k8s.objects import Json, JsonObject, Ref
from tidegate.model.times import MINUTE, Ms
from tidegate.sandbox.controllers import writes
from tidegate.sandbox.controllers.conditions import without_zeros
from tidegate.sandbox.controllers.interface import (
    Controller,
    ObjectReader,
    Reconciliation,
    RequeueAt,
)
from tidegate.sandbox.controllers.pods import (
    creation_error,
    is_available,
    is_ready,
    new_pod,
    phase_of,
    requeue_when_available,
    retry_at,
)
from tidegate.sandbox.controllers.workloads.revisions import (
    StatefulSetRevisions,
    sync_revisions,
    truncate_history,
)
from tidegate.sandbox.controllers.writes import EventRecorder, first_warning_time
from tidegate.sandbox.server.store import StoredObject
from tidegate.world.messages import Outcome
from tidegate.world.requests import Write

RECORDER = EventRecorder("statefulset-controller")
REVISION_LABEL = "controller-revision-hash"
ReconcileStep = Generator[Write | RequeueAt, Outcome | None, bool]
"""Writes, and whether the next pod in order has to wait for them."""


class StatefulSetState(NamedTuple):
    """A StatefulSet and its pods by ordinal, as read for one reconciliation."""

    owner: StoredObject
    """The StatefulSet."""
    revisions: StatefulSetRevisions
    """The current revision and the update revision."""
    replicas: dict[int, StoredObject]
    """Pods with a desired ordinal, by ordinal."""
    condemned: list[tuple[int, StoredObject]]
    """Pods whose ordinal is no longer desired, the highest ordinal first."""
    now: Ms
    """The current time."""
    create_failed_since: Ms | None = None
    """Time of the first failed pod creation, or None."""

    @property
    def spec(self) -> dict[str, Json]:
        """The spec."""
        return get_mapping(self.owner.body, "spec")

    @property
    def ordinals(self) -> range:
        """The desired ordinals."""
        return _ordinals(self.owner)

    @property
    def min_ready_seconds(self) -> int:
        """`minReadySeconds` of the spec."""
        return get_int(self.spec, "minReadySeconds")

    @property
    def is_ordered(self) -> bool:
        """Whether pods are managed one after another (`OrderedReady`)."""
        return self.spec.get("podManagementPolicy") != "Parallel"

    @property
    def partition(self) -> int:
        """The lowest ordinal that is updated."""
        return get_int(self.spec, "updateStrategy", "rollingUpdate", "partition")

    @property
    def is_rolling_update(self) -> bool:
        """Whether the update strategy is RollingUpdate, the default."""
        return get_text(self.spec, "updateStrategy", "type", default="RollingUpdate") != "OnDelete"

    def is_available(self, pod: StoredObject) -> bool:
        """Return whether a pod is available."""
        return not pod.is_deleting and is_available(pod, self.min_ready_seconds, now=self.now)


def reconcile_stateful_set(reader: ObjectReader, ref: Ref, now: Ms) -> Reconciliation:
    """Advance a StatefulSet by one step towards its desired state.

    Like `updateStatefulSet` in `pkg/controller/statefulset/stateful_set_control.go` of Kubernetes
    1.36.4.
    """
    owner = reader.get(ref)
    if owner is None:
        return
    revisions = yield from sync_revisions(reader, owner)
    state = _read_state(reader, owner, revisions, now)
    is_updating = False
    if not owner.is_deleting:
        must_wait = yield from _sync_replicas(state)
        must_wait = must_wait or (yield from _delete_condemned(state))
        is_updating = (
            not must_wait and state.is_rolling_update and (yield from _rolling_update(state))
        )
    pods = [*state.replicas.values(), *(pod for _, pod in state.condemned)]
    yield from writes.update_status(owner, _status(state, pods, is_updating=is_updating))
    yield from truncate_history(reader, owner, revisions, pods)
    yield from requeue_when_available(pods, state.min_ready_seconds, now=now)


def _ordinals(owner: StoredObject) -> range:
    first = get_int(owner.body, "spec", "ordinals", "start")
    return range(first, first + get_int(owner.body, "spec", "replicas", default=1))


def _read_state(
    reader: ObjectReader, owner: StoredObject, revisions: StatefulSetRevisions, now: Ms
) -> StatefulSetState:
    replicas: dict[int, StoredObject] = {}
    condemned: list[tuple[int, StoredObject]] = []
    ordinals = _ordinals(owner)
    for pod in writes.list_controlled(reader, owner, POD):
        parent, _, ordinal = pod.ref.name.rpartition("-")
        if parent == owner.ref.name and ordinal.isdigit():
            if int(ordinal) in ordinals:
                replicas[int(ordinal)] = pod
            else:
                condemned.append((int(ordinal), pod))
    condemned.sort(key=lambda entry: entry[0], reverse=True)
    since = first_warning_time(reader, owner, reason="FailedCreate")
    return StatefulSetState(owner, revisions, dict(sorted(replicas.items())), condemned, now, since)


def _sync_replicas(state: StatefulSetState) -> ReconcileStep:
    """Sync the pod of every ordinal; if ordered, stop at the first that is not available.

    Like `processReplica` in `pkg/controller/statefulset/stateful_set_control.go` of Kubernetes
    1.36.4.
    """
    for ordinal in state.ordinals:
        if (yield from _sync_ordinal(state, ordinal)) and state.is_ordered:
            return True
    return False


def _sync_ordinal(state: StatefulSetState, ordinal: int) -> ReconcileStep:
    pod = state.replicas.get(ordinal)
    if pod is None:
        yield from _create_pod(state, ordinal)
        return True
    if phase_of(pod) in ("Succeeded", "Failed"):
        if not pod.is_deleting:
            yield writes.delete(pod)
        return True
    return not (state.is_available(pod) and phase_of(pod) == "Running")


def _delete_condemned(state: StatefulSetState) -> ReconcileStep:
    """Delete condemned pods, the highest ordinal first; one at a time in an ordered StatefulSet.

    Like `processCondemned` in `pkg/controller/statefulset/stateful_set_control.go` of Kubernetes
    1.36.4.
    """
    unavailable = [pod for _, pod in reversed(state.condemned) if not state.is_available(pod)]
    for _, pod in state.condemned:
        if pod.is_deleting:
            if state.is_ordered:
                return True
            continue
        if state.is_ordered and not state.is_available(pod) and pod is not unavailable[0]:
            return True
        yield writes.delete(pod)
        if state.is_ordered:
            return True
    return False


def _rolling_update(state: StatefulSetState) -> ReconcileStep:
    """Delete the last pod with an old template, once all pods after it are available."""
    for ordinal in reversed(state.ordinals[state.partition :]):
        pod = state.replicas.get(ordinal)
        if pod is None:
            return False
        if pod.labels.get(REVISION_LABEL) != state.revisions.update and not pod.is_deleting:
            yield writes.delete(pod)
            return True
        if not state.is_available(pod):
            return False
    return False


def _create_pod(state: StatefulSetState, ordinal: int) -> ReconcileStep:
    owner, name = state.owner, f"{state.owner.ref.name}-{ordinal}"
    for claim in get_mappings(state.spec, "volumeClaimTemplates"):
        yield _new_claim(state, claim, name)
    revision = _revision_for(state, ordinal)
    template = state.revisions.template(revision)
    labels: JsonObject = {
        REVISION_LABEL: revision,
        "statefulset.kubernetes.io/pod-name": name,
        "apps.kubernetes.io/pod-index": str(ordinal),
    }
    spec: JsonObject = {"hostname": name}
    if service := get_text(state.spec, "serviceName"):
        spec["subdomain"] = service
    volumes = _volumes(state, template, name)
    if volumes:
        spec["volumes"] = volumes
    write = new_pod(
        owner,
        template,
        metadata={"name": name, "generateName": f"{owner.ref.name}-", "labels": labels},
        spec=spec,
    )
    error = creation_error((yield write))
    if error:
        message = f"Create Pod {name} in StatefulSet {owner.ref.name} failed error: {error}"
        yield RECORDER.record_warning(owner, "FailedCreate", message, state.now)
        yield RequeueAt(retry_at(state.create_failed_since, now=state.now, max_delay=MINUTE))
    return True


def _revision_for(state: StatefulSetState, ordinal: int) -> str:
    """Return the revision for a new pod.

    Like `newVersionedStatefulSetPod` in `pkg/controller/statefulset/stateful_set_utils.go` of
    Kubernetes 1.36.4.
    """
    rolling_update = get_value(state.spec, "updateStrategy", "rollingUpdate")
    if not state.is_rolling_update:
        return state.revisions.update
    first = state.ordinals.start
    current = get_int(state.owner.body, "status", "currentReplicas")
    old_count = state.partition if rolling_update is not None else current
    return state.revisions.current if ordinal < first + old_count else state.revisions.update


def _new_claim(state: StatefulSetState, claim: JsonObject, pod: str) -> Write:
    metadata = get_mapping(claim, "metadata")
    is_retained = (
        get_text(state.spec, "persistentVolumeClaimRetentionPolicy", "whenDeleted") != "Delete"
    )
    owners: list[Json] = [] if is_retained else [writes.owner_reference(state.owner)]
    claim_metadata: JsonObject = {
        **metadata,
        "name": f"{metadata.get('name')}-{pod}",
        "namespace": state.owner.ref.namespace,
        "labels": {
            **get_mapping(metadata, "labels"),
            **get_mapping(state.spec, "selector", "matchLabels"),
        },
        **({"ownerReferences": owners} if owners else {}),
    }
    return writes.create(
        CLAIM,
        state.owner.ref.namespace,
        {"metadata": claim_metadata, "spec": get_mapping(claim, "spec")},
    )


def _volumes(state: StatefulSetState, template: JsonObject, pod: str) -> list[Json]:
    names = [
        get_text(claim, "metadata", "name")
        for claim in get_mappings(state.spec, "volumeClaimTemplates")
    ]
    claimed: list[Json] = [
        {"name": name, "persistentVolumeClaim": {"claimName": f"{name}-{pod}"}} for name in names
    ]
    template_volumes = [
        volume
        for volume in get_mappings(template, "spec", "volumes")
        if volume.get("name") not in names
    ]
    return [*claimed, *template_volumes]


def _status(state: StatefulSetState, pods: list[StoredObject], *, is_updating: bool) -> JsonObject:
    revisions, desired = state.revisions, len(state.ordinals)
    alive = [pod for pod in pods if not pod.is_deleting]
    ready = [pod for pod in pods if is_ready(pod) and phase_of(pod) == "Running"]
    updated = _count_revision(alive, revisions.update)
    current = _count_revision(alive, revisions.current) - is_updating
    available = sum(is_available(pod, state.min_ready_seconds, now=state.now) for pod in ready)
    is_done = state.is_rolling_update and updated == len(ready) == len(pods) == desired
    counts: JsonObject = {
        "observedGeneration": state.owner.generation,
        "readyReplicas": len(ready),
        "currentReplicas": updated if is_done else current,
        "updatedReplicas": updated,
    }
    return {
        "replicas": len(pods),
        **without_zeros(counts),
        "availableReplicas": available,
        "currentRevision": revisions.update if is_done else revisions.current,
        "updateRevision": revisions.update,
        "collisionCount": 0,
    }


def _count_revision(pods: list[StoredObject], revision: str) -> int:
    return sum(pod.labels.get(REVISION_LABEL) == revision for pod in pods)


STATEFUL_SETS = Controller(
    "stateful-sets",
    reconcile_stateful_set,
    writes.map_to_owner(STATEFUL_SET, POD),
    kinds=(STATEFUL_SET, POD),
)
