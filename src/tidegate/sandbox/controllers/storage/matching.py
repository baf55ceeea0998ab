"""Which volume meets which claim."""

from __future__ import annotations

import re
from fractions import Fraction

from tidegate.model.moment import Ms
from tidegate.model.objects import Json, Kind, Ref
from tidegate.model.reading import listed, mapping, part, text
from tidegate.sandbox.controllers.reaction import View
from tidegate.sandbox.server.lifecycle import timestamp
from tidegate.sandbox.server.selection import matches_selector
from tidegate.sandbox.server.store import Body, Stored

CLAIM = Kind("", "v1", "PersistentVolumeClaim")
VOLUME = Kind("", "v1", "PersistentVolume")
QUANTITY = re.compile(r"([+-]?[0-9.]+)(?:([eE][+-]?[0-9]+)|([numkMGTPE]i?|))")
SCALES = {"": Fraction(1), "n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000)}
SCALES |= {letter: Fraction(1000**power) for power, letter in enumerate("kMGTPE", 1)}
SCALES |= {f"{letter}i": Fraction(1024**power) for power, letter in enumerate("KMGTPE", 1)}


def quantity_of(value: Json) -> Fraction:
    """An amount as Kubernetes writes it: `10Gi`, `500M`, `1e9`; nothing where it is none."""
    found = QUANTITY.fullmatch(str(value).replace("Ki", "ki"))
    if found is None:
        return Fraction(0)
    number = Fraction(f"{found[1]}{found[2] or ''}")
    return number * SCALES[(found[3] or "").replace("ki", "Ki")]


def volume_status(phase: str, now: Ms) -> Body:
    return {"phase": phase, "lastPhaseTransitionTime": timestamp(now)}


def made_name(claim: Stored) -> str:
    """The name of the volume that a provisioner makes for a claim."""
    return f"pvc-{claim.uid}"


def best_volume(view: View, claim: Stored, class_name: str) -> Stored | None:
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
    return quantity_of(part(volume.body, "spec", "capacity", "storage"))


def _fits(volume: Stored, claim: Stored, class_name: str) -> bool:
    offered, wanted = mapping(volume.body, "spec"), mapping(claim.body, "spec")
    modes = listed(offered, "accessModes")
    return (
        text(offered, "storageClassName") == class_name
        and text(offered, "volumeMode", default="Filesystem")
        == text(wanted, "volumeMode", default="Filesystem")
        and all(mode in modes for mode in listed(wanted, "accessModes"))
        and _size(volume) >= quantity_of(part(wanted, "resources", "requests", "storage"))
        and matches_selector(part(wanted, "selector"), volume.labels)
    )
