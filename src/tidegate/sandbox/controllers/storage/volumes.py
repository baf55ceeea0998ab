"""Volumes: made for a claim by its provisioner, and given up when the claim is gone."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.model.moment import SECOND, Ms
from tidegate.model.objects import Json, Ref
from tidegate.model.reading import mapping, part, text
from tidegate.sandbox.controllers.reaction import Controller, Looking, Visible
from tidegate.sandbox.controllers.storage import claims
from tidegate.sandbox.controllers.writes import Voice, create, delete, object_reference, set_status
from tidegate.sandbox.kinds import CLAIM, STORAGE_CLASS, VOLUME
from tidegate.sandbox.server.store import Body, Stored, Transition
from tidegate.world.calls import Write
from tidegate.world.facts import Change, Done

PROVISIONING = Ms(2 * SECOND)
"""How long a provisioner takes, unless told otherwise; assumed."""


def provision(view: Visible, ref: Ref, now: Ms) -> Looking:
    """Make the volume that a claim asks its provisioner for."""
    claim = view.get(ref)
    if claim is None or claim.is_deleting or text(claim.body, "spec", "volumeName"):
        return
    storage_class = view.get(Ref(STORAGE_CLASS, "", claims.class_of(view, claim)))
    provisioner = text(claim.metadata, "annotations", claims.PROVISIONERS[-1])
    if storage_class is None or not provisioner:
        return
    write = _volume_for(claim, storage_class, provisioner)
    if isinstance((yield write), Done):
        said = f"Successfully provisioned volume {write.ref.name}"
        yield Voice(provisioner).tell(claim, "ProvisioningSucceeded", said, now)


def _volume_for(claim: Stored, storage_class: Stored, provisioner: str) -> Write:
    wanted = mapping(claim.body, "spec")
    name = claims.made_name(claim)
    spec: Body = {
        "capacity": {"storage": part(wanted, "resources", "requests", "storage")},
        "accessModes": wanted.get("accessModes"),
        "volumeMode": text(wanted, "volumeMode", default="Filesystem"),
        "persistentVolumeReclaimPolicy": text(
            storage_class.body, "reclaimPolicy", default="Delete"
        ),
        "storageClassName": storage_class.ref.name,
        "claimRef": object_reference(claim),
        **_place_of(name, provisioner),
    }
    notes: Json = {"pv.kubernetes.io/provisioned-by": provisioner}
    return create(VOLUME, "", {"metadata": {"name": name, "annotations": notes}, "spec": spec})


def _place_of(name: str, provisioner: str) -> Body:
    """Drivers of CSI have no slash in their names; who has one makes volumes of another kind."""
    if "/" in provisioner:
        return {"hostPath": {"path": f"/var/lib/volumes/{name}"}}
    return {"csi": {"driver": provisioner, "volumeHandle": name}}


def keep_volume(view: Visible, ref: Ref, now: Ms) -> Looking:
    """A volume is free, or kept for a claim, or left behind by one."""
    volume = view.get(ref)
    if volume is None or volume.is_deleting:
        return
    phase, kept = text(volume.body, "status", "phase"), mapping(volume.body, "spec", "claimRef")
    if not text(kept, "uid"):
        if phase != "Available":
            yield set_status(volume, claims.volume_status("Available", now))
        return
    claim = view.get(Ref(CLAIM, text(kept, "namespace"), text(kept, "name")))
    if claim is not None and claim.uid == text(kept, "uid"):
        return
    if phase != "Released":
        yield set_status(volume, claims.volume_status("Released", now))
    if text(volume.body, "spec", "persistentVolumeReclaimPolicy") == "Delete":
        yield delete(volume)


def _concerns_asked(_view: Visible, event: Transition) -> Iterator[Ref]:
    stored = event.stored
    if stored.ref.kind != CLAIM or event.change is Change.DELETED:
        return
    before = event.before.metadata if event.before else {}
    asked = text(stored.metadata, "annotations", claims.PROVISIONERS[-1])
    if asked and asked != text(before, "annotations", claims.PROVISIONERS[-1]):
        yield stored.ref


def _concerns_volumes(_view: Visible, event: Transition) -> Iterator[Ref]:
    ref = event.stored.ref
    if ref.kind == VOLUME:
        yield ref
    elif ref.kind == CLAIM and event.change is Change.DELETED:
        name = text(event.stored.body, "spec", "volumeName")
        if name:
            yield Ref(VOLUME, "", name)


def provisioner(delay: Ms = PROVISIONING) -> Controller:
    """Whoever makes volumes, for every class alike, in the time it takes."""
    return Controller("provisioner", provision, _concerns_asked, delay=delay, kinds=(CLAIM,))


VOLUMES = Controller("volumes", keep_volume, _concerns_volumes, kinds=(VOLUME, CLAIM))
STORAGE_CONTROLLERS = (claims.CLAIMS, claims.CONSUMERS, VOLUMES, claims.PROTECTED_CLAIMS)
