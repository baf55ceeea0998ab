"""PersistentVolumeClaims: bound at once or for the first consumer, and provisioned by their class.

A claim that a pod uses is not deleted before the pod.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from tidegate.model.k8s.json_fields import get_list, get_mapping, get_mappings, get_text, get_value
from tidegate.model.k8s.kinds import CLAIM, POD, STORAGE_CLASS, VOLUME
from tidegate.model.k8s.labels import selector_matches
from tidegate.model.k8s.objects import Json, JsonObject, Ref
from tidegate.model.k8s.quantity import to_quantity
from tidegate.model.times import Ms
from tidegate.sandbox.controllers import writes
from tidegate.sandbox.controllers.interface import Controller, ObjectReader, Reconciliation
from tidegate.sandbox.server.lifecycle import format_rfc3339
from tidegate.sandbox.server.store import StoredObject, StoreEvent
from tidegate.world.messages import WatchEventType
from tidegate.world.requests import Write

SELECTED_NODE = "volume.kubernetes.io/selected-node"
PROVISIONER_ANNOTATIONS = (
    "volume.beta.kubernetes.io/storage-provisioner",
    "volume.kubernetes.io/storage-provisioner",
)
DEFAULT_CLASS_ANNOTATIONS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
RECORDER = writes.EventRecorder("persistentvolume-controller")
NO_VOLUME = "no persistent volumes available for this claim and no storage class is set"
"""Message of the Event for a claim without a matching volume and without a class.

Like `syncUnboundClaim` in `pkg/controller/volume/persistentvolume/pv_controller.go` of Kubernetes
1.36.4.
"""
NO_CONSUMER = "waiting for first consumer to be created before binding"
"""Message of the Event for a claim that waits for its first consumer.

Like `emitEventForUnboundDelayBindingClaim` in
`pkg/controller/volume/persistentvolume/pv_controller.go` of Kubernetes 1.36.4.
"""
PROTECTION = "kubernetes.io/pvc-protection"


def volume_status(phase: str, now: Ms) -> JsonObject:
    """Return the status of a volume in this phase."""
    return {"phase": phase, "lastPhaseTransitionTime": format_rfc3339(now)}


def provisioned_volume_name(claim: StoredObject) -> str:
    """Return the name of the volume that a provisioner creates for a claim.

    Like `getProvisionedVolumeNameForClaim` in
    `pkg/controller/volume/persistentvolume/pv_controller.go` of Kubernetes 1.36.4.
    """
    return f"pvc-{claim.uid}"


def find_best_volume(
    reader: ObjectReader, claim: StoredObject, class_name: str
) -> StoredObject | None:
    """Return the volume reserved for a claim, or the smallest unclaimed one that fits, or None.

    Like `findBestMatchForClaim` in `pkg/controller/volume/persistentvolume/index.go` of Kubernetes
    1.36.4.
    """
    provisioned = reader.get(Ref(VOLUME, "", provisioned_volume_name(claim)))
    if provisioned is not None and is_reserved_for(provisioned, claim):
        return provisioned
    volumes = reader.list_objects(VOLUME)
    for volume in volumes:
        if is_reserved_for(volume, claim):
            return volume
    fitting = [
        candidate
        for candidate in volumes
        if is_unclaimed(candidate) and _satisfies(candidate, claim, class_name)
    ]
    return min(fitting, key=_size, default=None)


def is_unclaimed(volume: StoredObject) -> bool:
    """Return whether a volume has no claim reference."""
    return not get_mapping(volume.body, "spec", "claimRef") and not volume.is_deleting


def is_reserved_for(volume: StoredObject, claim: StoredObject) -> bool:
    """Return whether the claim reference of a volume names this claim."""
    claim_ref = get_mapping(volume.body, "spec", "claimRef")
    claim_name = (get_text(claim_ref, "namespace"), get_text(claim_ref, "name"))
    return claim_name == (claim.ref.namespace, claim.ref.name) and get_text(claim_ref, "uid") in (
        "",
        claim.uid,
    )


def _size(volume: StoredObject) -> Fraction:
    return to_quantity(get_value(volume.body, "spec", "capacity", "storage")) or Fraction(0)


def _satisfies(volume: StoredObject, claim: StoredObject, class_name: str) -> bool:
    volume_spec, claim_spec = get_mapping(volume.body, "spec"), get_mapping(claim.body, "spec")
    modes = get_list(volume_spec, "accessModes")
    return (
        get_text(volume_spec, "storageClassName") == class_name
        and get_text(volume_spec, "volumeMode", default="Filesystem")
        == get_text(claim_spec, "volumeMode", default="Filesystem")
        and all(mode in modes for mode in get_list(claim_spec, "accessModes"))
        and _size(volume)
        >= (to_quantity(get_value(claim_spec, "resources", "requests", "storage")) or 0)
        and selector_matches(get_value(claim_spec, "selector"), volume.labels)
    )


def reconcile_claim(reader: ObjectReader, ref: Ref, now: Ms) -> Reconciliation:
    """Bind a claim, request a volume for it, or record why it is pending.

    Like `syncUnboundClaim` and `syncBoundClaim` in
    `pkg/controller/volume/persistentvolume/pv_controller.go` of Kubernetes 1.36.4.
    """
    claim = reader.get(ref)
    if claim is None or claim.is_deleting:
        return
    if not get_text(claim.body, "status", "phase"):
        yield writes.set_status(claim, {"phase": "Pending"})
    volume_name = get_text(claim.body, "spec", "volumeName")
    if volume_name:
        yield from _sync_named_volume(reader, claim, volume_name, now)
        return
    class_name = storage_class_name(reader, claim)
    if class_name and get_value(claim.body, "spec", "storageClassName") is None:
        yield writes.patch(claim, {"spec": {"storageClassName": class_name}})
    volume = find_best_volume(reader, claim, class_name)
    if volume is not None:
        yield from _bind(claim, volume, now)
    elif class_name:
        yield from _request_volume(reader, claim, class_name, now)
    else:
        yield RECORDER.record(claim, "FailedBinding", NO_VOLUME, now)


def storage_class_name(reader: ObjectReader, claim: StoredObject) -> str:
    """Return the storage class of a claim, or the default class; empty for none.

    Of several default classes the newest counts.
    """
    named = get_value(claim.body, "spec", "storageClassName")
    if isinstance(named, str):
        return named
    # The newest of the default classes.
    defaults = [
        storage_class
        for storage_class in reader.list_objects(STORAGE_CLASS)
        if any(
            get_text(storage_class.metadata, "annotations", name) == "true"
            for name in DEFAULT_CLASS_ANNOTATIONS
        )
    ]
    newest_last = sorted(
        defaults, key=lambda storage_class: get_text(storage_class.metadata, "creationTimestamp")
    )
    return newest_last[-1].ref.name if newest_last else ""


def _sync_named_volume(
    reader: ObjectReader, claim: StoredObject, name: str, now: Ms
) -> Iterator[Write]:
    """Yield writes for a claim that names its volume: bind it, or mark it as lost.

    Like `syncUnboundClaim` and `syncBoundClaim` in
    `pkg/controller/volume/persistentvolume/pv_controller.go` of Kubernetes 1.36.4.
    """
    volume = reader.get(Ref(VOLUME, "", name))
    is_bound = BIND_COMPLETED in get_mapping(claim.metadata, "annotations")
    if volume is None:
        if is_bound and get_text(claim.body, "status", "phase") != "Lost":
            yield writes.set_status(claim, {"phase": "Lost"})
    elif is_unclaimed(volume) or is_reserved_for(volume, claim):
        yield from _bind(claim, volume, now)


def _bind(claim: StoredObject, volume: StoredObject, now: Ms) -> Iterator[Write]:
    """Yield the binding: the volume first, then the claim; each with its spec, then its status.

    Like `bind` in `pkg/controller/volume/persistentvolume/pv_controller.go` of Kubernetes 1.36.4.
    """
    if get_text(volume.body, "spec", "claimRef", "uid") != claim.uid:
        claim_ref = writes.object_reference(claim)
        annotations: Json = {BOUND_BY_CONTROLLER: "yes"}
        yield writes.patch(
            volume, {"metadata": {"annotations": annotations}, "spec": {"claimRef": claim_ref}}
        )
    if get_text(volume.body, "status", "phase") != "Bound":
        yield writes.set_status(volume, volume_status("Bound", now))
    if BIND_COMPLETED not in get_mapping(claim.metadata, "annotations"):
        yield _set_volume_name(claim, volume)
    spec = get_mapping(volume.body, "spec")
    desired = {
        "phase": "Bound",
        "accessModes": spec.get("accessModes"),
        "capacity": spec.get("capacity"),
    }
    yield from writes.update_status(claim, desired)


def _set_volume_name(claim: StoredObject, volume: StoredObject) -> Write:
    annotations: dict[str, Json] = {BIND_COMPLETED: "yes"}
    if not get_text(claim.body, "spec", "volumeName"):
        annotations[BOUND_BY_CONTROLLER] = "yes"
    spec: Json = {"volumeName": volume.ref.name}
    return writes.patch(claim, {"metadata": {"annotations": annotations}, "spec": spec})


def _request_volume(
    reader: ObjectReader, claim: StoredObject, class_name: str, now: Ms
) -> Iterator[Write]:
    storage_class = reader.get(Ref(STORAGE_CLASS, "", class_name))
    if storage_class is None:
        message = f'storageclass.storage.k8s.io "{class_name}" not found'
        yield RECORDER.record_warning(claim, "ProvisioningFailed", message, now)
        return
    annotations = get_mapping(claim.metadata, "annotations")
    if _is_wait_for_consumer(storage_class) and SELECTED_NODE not in annotations:
        yield RECORDER.record(claim, "WaitForFirstConsumer", NO_CONSUMER, now)
        return
    provisioner = get_text(storage_class.body, "provisioner")
    if provisioner == NO_PROVISIONER:
        message = f"no volume plugin matched name: {provisioner}"
        yield RECORDER.record_warning(claim, "ProvisioningFailed", message, now)
    elif any(annotations.get(name) != provisioner for name in PROVISIONER_ANNOTATIONS):
        yield writes.patch(
            claim,
            {"metadata": {"annotations": dict.fromkeys(PROVISIONER_ANNOTATIONS, provisioner)}},
        )
        message = (
            f"Waiting for a volume to be created either by the external provisioner '{provisioner}'"
            " or manually by the system administrator. If volume creation is delayed, please verify"
            " that the provisioner is running and correctly registered."
        )
        yield RECORDER.record(claim, "ExternalProvisioning", message, now)


def set_selected_node(reader: ObjectReader, ref: Ref, _now: Ms) -> Reconciliation:
    """Set the selected node on the waiting claims of a pod, as the scheduler does.

    Like `AssumePodVolumes` in `pkg/scheduler/framework/plugins/volumebinding/binder.go` of
    Kubernetes 1.36.4.
    """
    pod = reader.get(ref)
    for claim_ref in claims_of(pod) if pod is not None else ():
        claim = reader.get(claim_ref)
        if claim is None or get_text(claim.body, "spec", "volumeName"):
            continue
        if SELECTED_NODE in get_mapping(claim.metadata, "annotations"):
            continue
        if pod is not None and waits_for_consumer(reader, claim):
            node = get_text(pod.body, "spec", "nodeName", default="node")
            yield writes.patch(claim, {"metadata": {"annotations": {SELECTED_NODE: node}}})


def claims_of(pod: StoredObject) -> list[Ref]:
    """Return the claims that a pod mounts."""
    refs: list[Ref] = []
    for volume in get_mappings(pod.body, "spec", "volumes"):
        name = get_text(volume, "persistentVolumeClaim", "claimName")
        if "ephemeral" in volume:
            name = f"{pod.ref.name}-{get_text(volume, 'name')}"
        if name:
            refs.append(Ref(CLAIM, pod.ref.namespace, name))
    return refs


def _map_claim_event(reader: ObjectReader, event: StoreEvent) -> Iterator[Ref]:
    ref = event.stored.ref
    if ref.kind == CLAIM:
        yield ref
    elif ref.kind == VOLUME:
        claim_ref = get_mapping(event.stored.body, "spec", "claimRef")
        if claim_ref:
            yield Ref(CLAIM, get_text(claim_ref, "namespace"), get_text(claim_ref, "name"))
        elif event.before is None:
            yield from _unbound_claims(reader)
    elif ref.kind == STORAGE_CLASS and event.change is not WatchEventType.DELETED:
        yield from _unbound_claims(reader)


def _unbound_claims(reader: ObjectReader) -> Iterator[Ref]:
    return (
        claim.ref
        for claim in reader.list_objects(CLAIM)
        if get_text(claim.body, "status", "phase") != "Bound"
    )


def _map_consumer_event(reader: ObjectReader, event: StoreEvent) -> Iterator[Ref]:
    stored = event.stored
    if event.change is WatchEventType.DELETED:
        return
    if stored.ref.kind == POD:
        if any(reader.get(claim) is not None for claim in claims_of(stored)):
            yield stored.ref
    elif stored.ref.kind == CLAIM and event.before is None and waits_for_consumer(reader, stored):
        pods = reader.list_objects(POD, stored.ref.namespace)
        yield from (pod.ref for pod in pods if stored.ref in claims_of(pod))


def waits_for_consumer(reader: ObjectReader, claim: StoredObject) -> bool:
    """Return whether the class of a claim provisions no volume before a consumer is scheduled.

    Like `IsDelayBindingMode` in `storage/volume/pv_helpers.go` of k8s.io/component-helpers 0.36.4.
    """
    storage_class = reader.get(Ref(STORAGE_CLASS, "", storage_class_name(reader, claim)))
    return storage_class is not None and _is_wait_for_consumer(storage_class)


def _is_wait_for_consumer(storage_class: StoredObject) -> bool:
    return get_text(storage_class.body, "volumeBindingMode") == "WaitForFirstConsumer"


CLAIMS = Controller(
    "claims", reconcile_claim, _map_claim_event, kinds=(CLAIM, VOLUME, STORAGE_CLASS)
)
CONSUMERS = Controller("consumers", set_selected_node, _map_consumer_event, kinds=(POD, CLAIM))


def protect_claim(reader: ObjectReader, ref: Ref, _now: Ms) -> Reconciliation:
    """Add the protection finalizer to a claim, or remove it from a deleted one.

    The finalizer is removed once no pod that is bound to a node mounts the claim.

    Like `processPVC` in `pkg/controller/volume/pvcprotection/pvc_protection_controller.go` of
    Kubernetes 1.36.4.
    """
    claim = reader.get(ref)
    if claim is None:
        return
    is_protected = PROTECTION in claim.finalizers
    if not claim.is_deleting and not is_protected:
        yield writes.patch(claim, {"metadata": {"finalizers": [*claim.finalizers, PROTECTION]}})
    elif claim.is_deleting and is_protected and not _is_used(reader, claim):
        yield writes.remove_finalizer(claim, PROTECTION)


def _is_used(reader: ObjectReader, claim: StoredObject) -> bool:
    return any(
        get_text(pod.body, "spec", "nodeName") and claim.ref in claims_of(pod)
        for pod in reader.list_objects(POD, claim.ref.namespace)
    )


def _map_protection_event(reader: ObjectReader, event: StoreEvent) -> Iterator[Ref]:
    stored = event.stored
    if stored.ref.kind == CLAIM and event.change is not WatchEventType.DELETED:
        yield stored.ref
    elif stored.ref.kind == POD and event.change is WatchEventType.DELETED:
        for ref in claims_of(stored):
            claim = reader.get(ref)
            if claim is not None and claim.is_deleting:
                yield ref


PROTECTED_CLAIMS = Controller(
    "protected-claims", protect_claim, _map_protection_event, kinds=(CLAIM, POD)
)
