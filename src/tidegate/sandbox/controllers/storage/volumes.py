"""PersistentVolumes: provisioned for a claim, and released when the claim is gone."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.model.k8s.json_fields import get_mapping, get_text, get_value
from tidegate.model.k8s.kinds import CLAIM, STORAGE_CLASS, VOLUME
from tidegate.model.k8s.objects import Json, JsonObject, Ref
from tidegate.model.times import SECOND, Ms
from tidegate.sandbox.controllers.interface import Controller, ObjectReader, Reconciliation
from tidegate.sandbox.controllers.storage import claims
from tidegate.sandbox.controllers.writes import (
    EventRecorder,
    create,
    delete,
    object_reference,
    set_status,
)
from tidegate.sandbox.server.store import StoredObject, StoreEvent
from tidegate.world.messages import Success, WatchEventType
from tidegate.world.requests import Write

PROVISIONING_TIME = Ms(2 * SECOND)
"""Assumed default time that a provisioner takes."""


def provision(reader: ObjectReader, ref: Ref, now: Ms) -> Reconciliation:
    """Create the volume that a claim requests from its provisioner."""
    claim = reader.get(ref)
    if claim is None or claim.is_deleting or get_text(claim.body, "spec", "volumeName"):
        return
    storage_class = reader.get(Ref(STORAGE_CLASS, "", claims.storage_class_name(reader, claim)))
    provisioner = get_text(claim.metadata, "annotations", claims.PROVISIONER_ANNOTATIONS[-1])
    if storage_class is None or not provisioner:
        return
    write = _new_volume(claim, storage_class, provisioner)
    if isinstance((yield write), Success):
        message = f"Successfully provisioned volume {write.ref.name}"
        yield EventRecorder(provisioner).record(claim, "ProvisioningSucceeded", message, now)


def _new_volume(claim: StoredObject, storage_class: StoredObject, provisioner: str) -> Write:
    claim_spec = get_mapping(claim.body, "spec")
    name = claims.provisioned_volume_name(claim)
    spec: JsonObject = {
        "capacity": {"storage": get_value(claim_spec, "resources", "requests", "storage")},
        "accessModes": claim_spec.get("accessModes"),
        "volumeMode": get_text(claim_spec, "volumeMode", default="Filesystem"),
        "persistentVolumeReclaimPolicy": get_text(
            storage_class.body, "reclaimPolicy", default="Delete"
        ),
        "storageClassName": storage_class.ref.name,
        "claimRef": object_reference(claim),
        **_volume_source(name, provisioner),
    }
    annotations: Json = {"pv.kubernetes.io/provisioned-by": provisioner}
    return create(
        VOLUME, "", {"metadata": {"name": name, "annotations": annotations}, "spec": spec}
    )


def _volume_source(name: str, provisioner: str) -> JsonObject:
    """Return the volume source: CSI, or hostPath for a provisioner with a slash in its name.

    Names of CSI drivers contain no slash.
    """
    if "/" in provisioner:
        return {"hostPath": {"path": f"/var/lib/volumes/{name}"}}
    return {"csi": {"driver": provisioner, "volumeHandle": name}}


def reconcile_volume(reader: ObjectReader, ref: Ref, now: Ms) -> Reconciliation:
    """Set the phase of a volume: Available, or Released if its claim is gone.

    Like `syncVolume` in `pkg/controller/volume/persistentvolume/pv_controller.go` of Kubernetes
    1.36.4.
    """
    volume = reader.get(ref)
    if volume is None or volume.is_deleting:
        return
    phase, claim_ref = (
        get_text(volume.body, "status", "phase"),
        get_mapping(volume.body, "spec", "claimRef"),
    )
    if not get_text(claim_ref, "uid"):
        if phase != "Available":
            yield set_status(volume, claims.volume_status("Available", now))
        return
    claim = reader.get(Ref(CLAIM, get_text(claim_ref, "namespace"), get_text(claim_ref, "name")))
    if claim is not None and claim.uid == get_text(claim_ref, "uid"):
        return
    if phase != "Released":
        yield set_status(volume, claims.volume_status("Released", now))
    if get_text(volume.body, "spec", "persistentVolumeReclaimPolicy") == "Delete":
        yield delete(volume)


def _map_provision_event(_reader: ObjectReader, event: StoreEvent) -> Iterator[Ref]:
    stored = event.stored
    if stored.ref.kind != CLAIM or event.change is WatchEventType.DELETED:
        return
    before = event.before.metadata if event.before else {}
    requested = get_text(stored.metadata, "annotations", claims.PROVISIONER_ANNOTATIONS[-1])
    if requested and requested != get_text(
        before, "annotations", claims.PROVISIONER_ANNOTATIONS[-1]
    ):
        yield stored.ref


def _map_volume_event(_reader: ObjectReader, event: StoreEvent) -> Iterator[Ref]:
    ref = event.stored.ref
    if ref.kind == VOLUME:
        yield ref
    elif ref.kind == CLAIM and event.change is WatchEventType.DELETED:
        name = get_text(event.stored.body, "spec", "volumeName")
        if name:
            yield Ref(VOLUME, "", name)


def provisioner_controller(delay: Ms = PROVISIONING_TIME) -> Controller:
    """Return the controller that provisions volumes of every class, after a delay."""
    return Controller("provisioner", provision, _map_provision_event, delay=delay, kinds=(CLAIM,))


VOLUMES = Controller("volumes", reconcile_volume, _map_volume_event, kinds=(VOLUME, CLAIM))
STORAGE_CONTROLLERS = (claims.CLAIMS, claims.CONSUMERS, VOLUMES, claims.PROTECTED_CLAIMS)
