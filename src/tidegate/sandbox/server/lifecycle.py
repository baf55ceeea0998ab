"""Lifecycle of stored objects: generation, status writes, deletion."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache

from tidegate.model.k8s.json_fields import get_int, get_list, get_mapping, get_mappings, get_text
from tidegate.model.k8s.objects import Json, JsonObject, Propagation
from tidegate.model.times import SECOND, Ms
from tidegate.sandbox.kinds import STATUS_ONLY_KINDS
from tidegate.sandbox.ownership.compare import is_same_json
from tidegate.sandbox.server.kind_registry import KindEntry
from tidegate.sandbox.server.store import GroupResource, StoredObject, get_metadata
from tidegate.schema.causes import forbidden
from tidegate.world.messages import Cause
from tidegate.world.requests import Write

NAMESPACES = GroupResource("", "namespaces")
SERVICES = GroupResource("", "services")
PODS = GroupResource("", "pods")
JOBS = GroupResource("batch", "jobs")
CRDS = GroupResource("apiextensions.k8s.io", "customresourcedefinitions")
DEPLOYMENTS = GroupResource("apps", "deployments")
STATUS_PROTECTED_METADATA = {("apps", "deployments"): ("labels",), PODS: ("ownerReferences",)}
"""Metadata fields that a status write cannot change, by resource."""
ORPHANED_PODS_WARNING = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background "
    "to remove them or set propagationPolicy=Orphan to suppress this warning"
)
"""Warning for the deletion of a Job: only Jobs orphan their dependents by default.

Like `deleteOptionWarnings` in `pkg/registry/batch/job/storage/storage.go` of Kubernetes 1.36.4.
"""
DEFAULT_GRACE = 30
FOREGROUND_FINALIZER, ORPHAN_FINALIZER = "foregroundDeletion", "orphan"
PROPAGATION_FINALIZERS: dict[Propagation, Json] = {
    Propagation.FOREGROUND: FOREGROUND_FINALIZER,
    Propagation.ORPHAN: ORPHAN_FINALIZER,
}
"""Finalizers for the dependents of a deleted object, by propagation policy.

Like `deletionFinalizersForGarbageCollection` in `pkg/registry/generic/registry/store.go` of
k8s.io/apiserver 0.36.4.
"""
CRD_CLEANUP_FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
NAME_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""Characters of generated names: no vowels, so that no words result.

Like `alphanums` in `pkg/util/rand/rand.go` of k8s.io/apimachinery 0.36.4.
"""
_ALPHABET_TABLE = bytes(ord(NAME_ALPHABET[byte % len(NAME_ALPHABET)]) for byte in range(256))


def to_name_suffix(data: bytes) -> str:
    """Return bytes in the characters of generated names."""
    return data.translate(_ALPHABET_TABLE).decode()


def format_rfc3339(now: Ms) -> str:
    """Return a time as RFC 3339 in whole seconds."""
    return _format_second(now // SECOND)


@lru_cache(maxsize=256)
def _format_second(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def increment_generation(body: JsonObject, before: StoredObject, entry: KindEntry) -> JsonObject:
    """Return the body with a higher generation if its spec changed.

    Everything except metadata and status is spec. Annotations of a Deployment count as well,
    because they are copied to its ReplicaSets.

    Like `PrepareForUpdate` in `pkg/registry/customresource/strategy.go` of
    k8s.io/apiextensions-apiserver 0.36.4 and `PrepareForUpdate` in
    `pkg/registry/apps/deployment/strategy.go` of Kubernetes 1.36.4.
    """
    if not entry.has_generation:
        return body
    names = (set(body) | set(before.body)) - {"metadata", "status", "apiVersion", "kind"}
    is_same = all(is_same_json(body.get(name), before.body.get(name)) for name in names)
    if is_same and entry.resource == DEPLOYMENTS:
        is_same = get_metadata(body).get("annotations") == before.metadata.get("annotations")
    if is_same:
        return body
    metadata = {**get_metadata(body), "generation": before.generation + 1}
    return {**body, "metadata": metadata}


def find_added_finalizers(before: StoredObject, body: JsonObject) -> list[Cause]:
    """Return a cause for finalizers that are added to an object during its deletion.

    Like `ValidateNoNewFinalizers` in `pkg/api/validation/objectmeta.go` of k8s.io/apimachinery
    0.36.4.
    """
    if not before.is_deleting:
        return []
    finalizers = get_list(body, "metadata", "finalizers")
    added = [str(finalizer) for finalizer in finalizers if finalizer not in before.finalizers]
    if not added:
        return []
    quoted = ", ".join(f'"{finalizer}"' for finalizer in added)
    message = (
        "no new finalizers can be added if the object is being deleted, "
        f"found new finalizers []string{{{quoted}}}"
    )
    return [forbidden("metadata.finalizers", message)]


def is_deletion_complete(body: JsonObject, entry: KindEntry) -> bool:
    """Return whether the deletion of an object has nothing left to wait for."""
    metadata = get_metadata(body)
    if "deletionTimestamp" not in metadata or metadata.get("finalizers"):
        return False
    if metadata.get("deletionGracePeriodSeconds"):
        return False
    return not (entry.resource == NAMESPACES and get_list(body, "spec", "finalizers"))


def start_deletion(
    before: StoredObject, entry: KindEntry, write: Write, *, now: Ms
) -> JsonObject | None:
    """Return the object that waits for its finalizers or grace period, or None if it is gone.

    Like `Delete` in `pkg/registry/generic/registry/store.go` and `BeforeDelete` in
    `pkg/registry/rest/delete.go` of k8s.io/apiserver 0.36.4.
    """
    if entry.resource == CRDS and not before.is_deleting:
        return _terminating_crd(before, now)
    finalizers = _with_propagation(before.finalizers, write.propagation)
    grace = _grace_period(before, entry, write.grace_period_seconds)
    has_contents = entry.resource == NAMESPACES and bool(
        get_list(before.body, "spec", "finalizers")
    )
    if not (finalizers or grace or has_contents):
        return None
    metadata = {**before.metadata, "finalizers": finalizers}
    if not finalizers:
        del metadata["finalizers"]
    started_at = _deletion_started_at(before, now)
    metadata["deletionTimestamp"] = format_rfc3339(Ms(started_at + grace * SECOND))
    metadata["deletionGracePeriodSeconds"] = grace
    if not before.is_deleting and before.generation:
        metadata["generation"] = before.generation + 1
    body: JsonObject = {**before.body, "metadata": metadata}
    if entry.resource == NAMESPACES:
        body["status"] = {"phase": "Terminating"}
    return body


def _terminating_crd(before: StoredObject, now: Ms) -> JsonObject:
    """Return the CRD with the finalizer for its instances, for any propagation policy."""
    status = get_mapping(before.body, "status")
    terminating: JsonObject = {
        "type": "Terminating",
        "status": "True",
        "reason": "InstanceDeletionPending",
        "message": "CustomResourceDefinition marked for deletion; "
        "CustomResource deletion will begin soon",
        "lastTransitionTime": format_rfc3339(now),
    }
    conditions: list[Json] = [*get_list(status, "conditions"), terminating]
    metadata: JsonObject = {
        **before.metadata,
        "deletionTimestamp": format_rfc3339(now),
        "finalizers": [*before.finalizers, CRD_CLEANUP_FINALIZER],
    }
    return {**before.body, "metadata": metadata, "status": {**status, "conditions": conditions}}


def _grace_period(before: StoredObject, entry: KindEntry, requested: int | None) -> int:
    """Return the grace period of a pod in seconds: 0 without a node, and never increased.

    Like `CheckGracefulDelete` in `pkg/registry/core/pod/strategy.go` of Kubernetes 1.36.4.
    """
    if entry.resource != PODS:
        return 0
    if before.is_deleting:
        remaining = get_int(before.metadata, "deletionGracePeriodSeconds")
        return remaining if requested is None else min(remaining, requested)
    spec, phase = get_mapping(before.body, "spec"), get_text(before.body, "status", "phase")
    if not spec.get("nodeName") or phase in ("Failed", "Succeeded"):
        return 0
    pod_grace_period = get_int(spec, "terminationGracePeriodSeconds", default=DEFAULT_GRACE)
    return max(pod_grace_period if requested is None else requested, 0)


def _deletion_started_at(before: StoredObject, now: Ms) -> Ms:
    if not before.is_deleting:
        return now
    deletion_time = datetime.fromisoformat(str(before.metadata.get("deletionTimestamp")))
    grace_period = get_int(before.metadata, "deletionGracePeriodSeconds")
    return Ms(int(deletion_time.timestamp() - grace_period) * SECOND)


def bind_pod(pod: StoredObject, node: str, *, now: Ms) -> JsonObject:
    """Return a pod that is assigned to a node.

    Like `assignPod` and `setPodNodeAndMetadata` in `pkg/registry/core/pod/storage/storage.go` of
    Kubernetes 1.36.4.
    """
    status = get_mapping(pod.body, "status")
    conditions = get_mappings(status, "conditions")
    others = [condition for condition in conditions if condition.get("type") != "PodScheduled"]
    scheduled: Json = {
        "type": "PodScheduled",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": format_rfc3339(now),
    }
    return {
        **pod.body,
        "spec": {**get_mapping(pod.body, "spec"), "nodeName": node},
        "status": {**status, "conditions": [*others, scheduled]},
    }


def _with_propagation(finalizers: list[Json], propagation: Propagation | None) -> list[Json]:
    if propagation is None:
        return finalizers
    others = [
        finalizer
        for finalizer in finalizers
        if finalizer not in (FOREGROUND_FINALIZER, ORPHAN_FINALIZER)
    ]
    return (
        [*others, PROPAGATION_FINALIZERS[propagation]]
        if propagation in PROPAGATION_FINALIZERS
        else others
    )


def apply_status(before: StoredObject, body: JsonObject, entry: KindEntry) -> JsonObject:
    """Return the previous object with the fields of `body` that a status write can change."""
    changed: JsonObject = {**before.body, "metadata": _status_metadata(before, body, entry)}
    status = body.get("status")
    if status is None:
        changed.pop("status", None)
    else:
        changed["status"] = status
    qos_class = (
        get_mapping(before.body, "status").get("qosClass") if entry.resource == PODS else None
    )
    if qos_class and not get_mapping(changed, "status").get("qosClass"):
        changed["status"] = {**get_mapping(changed, "status"), "qosClass": qos_class}
    return changed


def _status_metadata(before: StoredObject, body: JsonObject, entry: KindEntry) -> JsonObject:
    new_metadata = get_metadata(body)
    kind = entry.kind
    if (
        new_metadata is before.metadata
        or entry.is_custom
        or (kind.group, kind.name) in STATUS_ONLY_KINDS
    ):
        return before.metadata
    protected = STATUS_PROTECTED_METADATA.get(entry.resource, ())
    metadata = {name: value for name, value in new_metadata.items() if name not in protected}
    return metadata | {name: before.metadata[name] for name in protected if name in before.metadata}
