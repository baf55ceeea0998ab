"""State of pods for their controllers: active, ready, available, and which to delete first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tidegate.model.k8s.json_fields import get_int, get_mapping, get_mappings, get_text, get_value
from tidegate.model.k8s.kinds import POD
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.times import SECOND, Ms
from tidegate.sandbox.controllers.conditions import read_timestamp
from tidegate.sandbox.controllers.interface import RequeueAt
from tidegate.sandbox.controllers.writes import create, owner_reference
from tidegate.sandbox.server.store import StoredObject
from tidegate.world.messages import Forbidden, Outcome, is_error
from tidegate.world.requests import Write

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
PHASES = ("Pending", "Unknown", "Running")
MIN_RETRY_DELAY = Ms(SECOND)
MAX_RETRY_DELAY = Ms(1_000 * SECOND)


def phase_of(pod: StoredObject) -> str:
    """Return the phase of a pod."""
    return get_text(pod.body, "status", "phase", default="Pending")


def is_active(pod: StoredObject) -> bool:
    """Return whether a pod is neither finished nor being deleted.

    Like `IsPodActive` in `pkg/controller/controller_utils.go` of Kubernetes 1.36.4.
    """
    return not pod.is_deleting and phase_of(pod) not in ("Succeeded", "Failed")


def ready_condition(pod: StoredObject) -> JsonObject | None:
    """Return the Ready condition if its status is True, else None."""
    for condition in get_mappings(pod.body, "status", "conditions"):
        if condition.get("type") == "Ready":
            return condition if condition.get("status") == "True" else None
    return None


def is_ready(pod: StoredObject) -> bool:
    """Return whether a pod is ready."""
    return ready_condition(pod) is not None


def available_from(pod: StoredObject, min_ready_seconds: int) -> Ms | None:
    """Return the time from which a pod counts as available; None for a pod that is not ready.

    Like `IsPodAvailable` in `pkg/api/v1/pod/util.go` of Kubernetes 1.36.4.
    """
    condition = ready_condition(pod)
    if condition is None:
        return None
    since = read_timestamp(condition.get("lastTransitionTime")) if min_ready_seconds else None
    return Ms(since + min_ready_seconds * SECOND) if since is not None else Ms(0)


def is_available(pod: StoredObject, min_ready_seconds: int, *, now: Ms) -> bool:
    """Return whether a pod has been ready for `min_ready_seconds`.

    Like `IsPodAvailable` in `pkg/api/v1/pod/util.go` of Kubernetes 1.36.4.
    """
    available_at = available_from(pod, min_ready_seconds)
    return available_at is not None and available_at <= now


def requeue_when_available(
    pods: Iterable[StoredObject], min_ready_seconds: int, *, now: Ms
) -> Iterator[RequeueAt]:
    """Yield a requeue for when the next of these pods becomes available, if time alone does it."""
    times = [available_from(pod, min_ready_seconds) for pod in pods] if min_ready_seconds else []
    if later := [
        available_at for available_at in times if available_at is not None and available_at > now
    ]:
        yield RequeueAt(min(later))


def new_pod(
    owner: StoredObject, template: Json, *, metadata: JsonObject, spec: JsonObject | None = None
) -> Write:
    """Return the creation of a pod from a template, with the additions of its controller.

    The default of `restartPolicy` is set here, because health checks of pods read it.
    """
    template_metadata = get_mapping(template, "metadata")
    pod_metadata: JsonObject = {
        **{
            name: template_metadata[name]
            for name in ("annotations", "finalizers")
            if name in template_metadata
        },
        "namespace": owner.ref.namespace,
        **metadata,
        "labels": {**get_mapping(template_metadata, "labels"), **get_mapping(metadata, "labels")},
        "ownerReferences": [owner_reference(owner)],
    }
    pod_spec = {"restartPolicy": "Always", **get_mapping(template, "spec"), **(spec or {})}
    body: JsonObject = {"metadata": pod_metadata, "spec": pod_spec}
    return create(POD, owner.ref.namespace, body)


def creation_error(outcome: Outcome | None) -> str:
    """Return why a pod could not be created.

    Empty if it was created, or if its namespace is terminating.
    """
    if outcome is None or not is_error(outcome):
        return ""
    if isinstance(outcome, Forbidden) and any(
        cause.reason == "NamespaceTerminating" for cause in outcome.causes
    ):
        return ""
    return outcome.message


def retry_at(since: Ms | None, *, now: Ms, max_delay: Ms = MAX_RETRY_DELAY) -> Ms:
    """Return the time of the next attempt.

    Each delay is as long as all delays before it: the result of doubling, computed from the
    time of the first failure alone.
    """
    elapsed = now - since if since is not None else 0
    return Ms(now + min(max(elapsed, MIN_RETRY_DELAY), max_delay))


def creation_order(stored: StoredObject) -> tuple[str, str]:
    """Return a sort key that puts the oldest object first."""
    return get_text(stored.metadata, "creationTimestamp"), stored.ref.name


def pods_to_delete(pods: list[StoredObject], count: int) -> list[StoredObject]:
    """Return the pods to delete first: unassigned, not running, not ready, cheap, young.

    Like `ActivePodsWithRanks` in `pkg/controller/controller_utils.go` of Kubernetes 1.36.4.
    """
    youngest_first = sorted(pods, key=creation_order, reverse=True)
    return sorted(youngest_first, key=_deletion_rank)[:count]


def _deletion_rank(pod: StoredObject) -> tuple[bool, int, bool, int, int]:
    phase = phase_of(pod)
    cost = get_text(pod.metadata, "annotations", DELETION_COST, default="0")
    restarts = max(
        (
            get_int(container_status, "restartCount")
            for container_status in get_mappings(pod.body, "status", "containerStatuses")
        ),
        default=0,
    )
    return (
        get_value(pod.body, "spec", "nodeName") is not None,
        PHASES.index(phase) if phase in PHASES else 0,
        is_ready(pod),
        int(cost) if cost.lstrip("-").isdigit() else 0,
        -restarts,
    )
