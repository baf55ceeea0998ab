"""Claims: each gets a volume, at once or when a pod wants it, if its class can make one.

A claim that a pod uses is not gone before the pod is.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from tidegate.model.labels import matches
from tidegate.model.moment import Ms
from tidegate.model.objects import Json, Ref
from tidegate.model.quantity import quantity_of
from tidegate.model.reading import listed, mapping, mappings, part, text
from tidegate.sandbox.controllers import writes
from tidegate.sandbox.controllers.reaction import Controller, Looking, Visible
from tidegate.sandbox.kinds import CLAIM, POD, STORAGE_CLASS, VOLUME
from tidegate.sandbox.server.lifecycle import timestamp
from tidegate.sandbox.server.store import Body, Stored, Transition
from tidegate.world.calls import Write
from tidegate.world.facts import Change

SELECTED_NODE = "volume.kubernetes.io/selected-node"
PROVISIONERS = (
    "volume.beta.kubernetes.io/storage-provisioner",
    "volume.kubernetes.io/storage-provisioner",
)
DEFAULTS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
VOICE = writes.Voice("persistentvolume-controller")
NO_VOLUME = "no persistent volumes available for this claim and no storage class is set"
NO_CONSUMER = "waiting for first consumer to be created before binding"
PROTECTION = "kubernetes.io/pvc-protection"


def volume_status(phase: str, now: Ms) -> Body:
    return {"phase": phase, "lastPhaseTransitionTime": timestamp(now)}


def made_name(claim: Stored) -> str:
    """The name of the volume that a provisioner makes for a claim."""
    return f"pvc-{claim.uid}"


def best_volume(view: Visible, claim: Stored, class_name: str) -> Stored | None:
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


def keep_claim(view: Visible, ref: Ref, now: Ms) -> Looking:
    """Bind a claim, ask for a volume, or say why it waits."""
    claim = view.get(ref)
    if claim is None or claim.is_deleting:
        return
    if not text(claim.body, "status", "phase"):
        yield writes.set_status(claim, {"phase": "Pending"})
    named = text(claim.body, "spec", "volumeName")
    if named:
        yield from _follow(view, claim, named, now)
        return
    class_name = class_of(view, claim)
    if class_name and part(claim.body, "spec", "storageClassName") is None:
        yield writes.patch(claim, {"spec": {"storageClassName": class_name}})
    volume = best_volume(view, claim, class_name)
    if volume is not None:
        yield from _bind(claim, volume, now)
    elif class_name:
        yield from _ask(view, claim, class_name, now)
    else:
        yield VOICE.tell(claim, "FailedBinding", NO_VOLUME, now)


def class_of(view: Visible, claim: Stored) -> str:
    """The class a claim names, or the default where it leaves that open; empty for none."""
    named = part(claim.body, "spec", "storageClassName")
    if isinstance(named, str):
        return named
    # The newest of the classes that say so.
    defaults = [
        one
        for one in view.all_of(STORAGE_CLASS)
        if any(text(one.metadata, "annotations", name) == "true" for name in DEFAULTS)
    ]
    newest_last = sorted(defaults, key=lambda one: text(one.metadata, "creationTimestamp"))
    return newest_last[-1].ref.name if newest_last else ""


def _follow(view: Visible, claim: Stored, name: str, now: Ms) -> Iterator[Write]:
    """A claim that names its volume waits for it, has it, or has lost it."""
    volume = view.get(Ref(VOLUME, "", name))
    is_bound = BIND_COMPLETED in mapping(claim.metadata, "annotations")
    if volume is None:
        if is_bound and text(claim.body, "status", "phase") != "Lost":
            yield writes.set_status(claim, {"phase": "Lost"})
    elif is_free(volume) or is_kept_for(volume, claim):
        yield from _bind(claim, volume, now)


def _bind(claim: Stored, volume: Stored, now: Ms) -> Iterator[Write]:
    """The volume first, then the claim: each in its spec, then in its status."""
    if text(volume.body, "spec", "claimRef", "uid") != claim.uid:
        kept = writes.object_reference(claim)
        notes: Json = {BOUND_BY_CONTROLLER: "yes"}
        yield writes.patch(volume, {"metadata": {"annotations": notes}, "spec": {"claimRef": kept}})
    if text(volume.body, "status", "phase") != "Bound":
        yield writes.set_status(volume, volume_status("Bound", now))
    if BIND_COMPLETED not in mapping(claim.metadata, "annotations"):
        yield _name_volume(claim, volume)
    spec = mapping(volume.body, "spec")
    wanted = {
        "phase": "Bound",
        "accessModes": spec.get("accessModes"),
        "capacity": spec.get("capacity"),
    }
    yield from writes.say(claim, wanted)


def _name_volume(claim: Stored, volume: Stored) -> Write:
    notes: dict[str, Json] = {BIND_COMPLETED: "yes"}
    if not text(claim.body, "spec", "volumeName"):
        notes[BOUND_BY_CONTROLLER] = "yes"
    named: Json = {"volumeName": volume.ref.name}
    return writes.patch(claim, {"metadata": {"annotations": notes}, "spec": named})


def _ask(view: Visible, claim: Stored, class_name: str, now: Ms) -> Iterator[Write]:
    found = view.get(Ref(STORAGE_CLASS, "", class_name))
    if found is None:
        said = f'storageclass.storage.k8s.io "{class_name}" not found'
        yield VOICE.warn(claim, "ProvisioningFailed", said, now)
        return
    notes = mapping(claim.metadata, "annotations")
    if _waits_for_pod(found) and SELECTED_NODE not in notes:
        yield VOICE.tell(claim, "WaitForFirstConsumer", NO_CONSUMER, now)
        return
    provisioner = text(found.body, "provisioner")
    if provisioner == NO_PROVISIONER:
        said = f"no volume plugin matched name: {provisioner}"
        yield VOICE.warn(claim, "ProvisioningFailed", said, now)
    elif any(notes.get(name) != provisioner for name in PROVISIONERS):
        yield writes.patch(
            claim, {"metadata": {"annotations": dict.fromkeys(PROVISIONERS, provisioner)}}
        )
        said = (
            f"Waiting for a volume to be created either by the external provisioner '{provisioner}'"
            " or manually by the system administrator. If volume creation is delayed, please verify"
            " that the provisioner is running and correctly registered."
        )
        yield VOICE.tell(claim, "ExternalProvisioning", said, now)


def choose_node(view: Visible, ref: Ref, _now: Ms) -> Looking:
    """A pod's claims that wait for it may be met: what the scheduler says when it places a pod."""
    pod = view.get(ref)
    for claim_ref in claims_of(pod) if pod is not None else ():
        claim = view.get(claim_ref)
        if claim is None or text(claim.body, "spec", "volumeName"):
            continue
        if SELECTED_NODE in mapping(claim.metadata, "annotations"):
            continue
        if pod is not None and waits_for_pod(view, claim):
            node = text(pod.body, "spec", "nodeName", default="node")
            yield writes.patch(claim, {"metadata": {"annotations": {SELECTED_NODE: node}}})


def claims_of(pod: Stored) -> list[Ref]:
    """The claims that a pod mounts."""
    refs: list[Ref] = []
    for volume in mappings(pod.body, "spec", "volumes"):
        name = text(volume, "persistentVolumeClaim", "claimName")
        if "ephemeral" in volume:
            name = f"{pod.ref.name}-{text(volume, 'name')}"
        if name:
            refs.append(Ref(CLAIM, pod.ref.namespace, name))
    return refs


def _concerns_claims(view: Visible, event: Transition) -> Iterator[Ref]:
    ref = event.stored.ref
    if ref.kind == CLAIM:
        yield ref
    elif ref.kind == VOLUME:
        kept = mapping(event.stored.body, "spec", "claimRef")
        if kept:
            yield Ref(CLAIM, text(kept, "namespace"), text(kept, "name"))
        elif event.before is None:
            yield from _pending(view)
    elif ref.kind == STORAGE_CLASS and event.change is not Change.DELETED:
        yield from _pending(view)


def _pending(view: Visible) -> Iterator[Ref]:
    return (
        claim.ref for claim in view.all_of(CLAIM) if text(claim.body, "status", "phase") != "Bound"
    )


def _concerns_pods(view: Visible, event: Transition) -> Iterator[Ref]:
    stored = event.stored
    if event.change is Change.DELETED:
        return
    if stored.ref.kind == POD:
        if any(view.get(claim) is not None for claim in claims_of(stored)):
            yield stored.ref
    elif stored.ref.kind == CLAIM and event.before is None and waits_for_pod(view, stored):
        pods = view.all_of(POD, stored.ref.namespace)
        yield from (pod.ref for pod in pods if stored.ref in claims_of(pod))


def waits_for_pod(view: Visible, claim: Stored) -> bool:
    """Whether its class makes no volume before a pod that wants it is placed."""
    found = view.get(Ref(STORAGE_CLASS, "", class_of(view, claim)))
    return found is not None and _waits_for_pod(found)


def _waits_for_pod(storage_class: Stored) -> bool:
    return text(storage_class.body, "volumeBindingMode") == "WaitForFirstConsumer"


CLAIMS = Controller("claims", keep_claim, _concerns_claims, kinds=(CLAIM, VOLUME, STORAGE_CLASS))
CONSUMERS = Controller("consumers", choose_node, _concerns_pods, kinds=(POD, CLAIM))


def protect(view: Visible, ref: Ref, _now: Ms) -> Looking:
    """Every claim is held; one that is to go is let go of when no pod on a node mounts it."""
    claim = view.get(ref)
    if claim is None:
        return
    is_held = PROTECTION in claim.finalizers
    if not claim.is_deleting and not is_held:
        yield writes.patch(claim, {"metadata": {"finalizers": [*claim.finalizers, PROTECTION]}})
    elif claim.is_deleting and is_held and not _is_used(view, claim):
        yield writes.without_finalizer(claim, PROTECTION)


def _is_used(view: Visible, claim: Stored) -> bool:
    return any(
        text(pod.body, "spec", "nodeName") and claim.ref in claims_of(pod)
        for pod in view.all_of(POD, claim.ref.namespace)
    )


def _concerns_held(view: Visible, event: Transition) -> Iterator[Ref]:
    stored = event.stored
    if stored.ref.kind == CLAIM and event.change is not Change.DELETED:
        yield stored.ref
    elif stored.ref.kind == POD and event.change is Change.DELETED:
        for ref in claims_of(stored):
            claim = view.get(ref)
            if claim is not None and claim.is_deleting:
                yield ref


PROTECTED_CLAIMS = Controller("protected-claims", protect, _concerns_held, kinds=(CLAIM, POD))
