"""Which volume meets which claim."""

from __future__ import annotations

from fractions import Fraction

from tidegate.model.labels import matches
from tidegate.model.moment import Ms
from tidegate.model.objects import Kind, Ref
from tidegate.model.quantity import quantity_of
from tidegate.model.reading import listed, mapping, part, text
from tidegate.sandbox.controllers.reaction import Sight
from tidegate.sandbox.server.lifecycle import timestamp
from tidegate.sandbox.server.store import Body, Stored

CLAIM = Kind("", "v1", "PersistentVolumeClaim")
VOLUME = Kind("", "v1", "PersistentVolume")


def volume_status(phase: str, now: Ms) -> Body:
    return {"phase": phase, "lastPhaseTransitionTime": timestamp(now)}


def claim_reference(claim: Stored) -> Body:
    """How a volume names the claim that it is kept for."""
    return {
        "kind": CLAIM.name,
        "namespace": claim.ref.namespace,
        "name": claim.ref.name,
        "uid": claim.uid,
        "apiVersion": CLAIM.api_version,
    }


def made_name(claim: Stored) -> str:
    """The name of the volume that a provisioner makes for a claim."""
    return f"pvc-{claim.uid}"


def best_volume(view: Sight, claim: Stored, class_name: str) -> Stored | None:
    """The volume that is kept for this claim, or the smallest free one that is large enough."""
    made = view.get(Ref(VOLUME, "", made_name(claim)))
    if made is not None and is_kept_for(made, claim):
        return made
    volumes = view.all_of(VOLUME)
    for volume in volumes:
        if is_kept_for(volume, claim):
            return volume
    fitting = [one for one in volumes if is_free(one) and _fits(one, claim, class_name)]
    return min(fitting, key=_size, default=None)


def is_free(volume: Stored) -> bool:
    return not mapping(volume.body, "spec", "claimRef") and not volume.is_deleting


def is_kept_for(volume: Stored, claim: Stored) -> bool:
    kept = mapping(volume.body, "spec", "claimRef")
    names = (text(kept, "namespace"), text(kept, "name"))
    return names == (claim.ref.namespace, claim.ref.name) and text(kept, "uid") in ("", claim.uid)


def _size(volume: Stored) -> Fraction:
    return quantity_of(part(volume.body, "spec", "capacity", "storage")) or Fraction(0)


def _fits(volume: Stored, claim: Stored, class_name: str) -> bool:
    offered, wanted = mapping(volume.body, "spec"), mapping(claim.body, "spec")
    modes = listed(offered, "accessModes")
    return (
        text(offered, "storageClassName") == class_name
        and text(offered, "volumeMode", default="Filesystem")
        == text(wanted, "volumeMode", default="Filesystem")
        and all(mode in modes for mode in listed(wanted, "accessModes"))
        and _size(volume) >= (quantity_of(part(wanted, "resources", "requests", "storage")) or 0)
        and matches(part(wanted, "selector"), volume.labels)
    )
