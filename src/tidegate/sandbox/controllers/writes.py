"""Writes that controllers share: status, patch, creation, deletion, Event."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from tidegate.model.k8s.json_fields import get_mapping, get_text, object_kind
from tidegate.model.k8s.kinds import EVENT
from tidegate.model.k8s.objects import Json, JsonObject, Kind, Propagation, Ref
from tidegate.model.times import Ms
from tidegate.sandbox.controllers.conditions import read_timestamp
from tidegate.sandbox.controllers.interface import MapFunc, ObjectReader
from tidegate.sandbox.server.lifecycle import format_rfc3339, to_name_suffix
from tidegate.sandbox.server.store import StoredObject, StoreEvent, get_owner_references
from tidegate.world.requests import PatchType, Verb, Write

MANAGER = "kube-controller-manager"
DIGEST_LENGTH = 10


def set_status(
    stored: StoredObject, status: Json, *, subresource: str = "status", manager: str = MANAGER
) -> Write:
    """Return a write that replaces the whole status; fields that it does not name are removed."""
    operation: JsonObject = {"op": "add", "path": "/status", "value": status}
    return Write(
        verb=Verb.PATCH,
        patch_type=PatchType.JSON,
        ref=stored.ref,
        body=msgspec.json.encode([operation]),
        subresource=subresource,
        uid=stored.uid,
        manager=manager,
    )


def update_status(stored: StoredObject, status: JsonObject) -> Iterator[Write]:
    """Yield a write of the whole status, unless the status is unchanged."""
    if status != get_mapping(stored.body, "status"):
        yield set_status(stored, status)


def patch(
    stored: StoredObject, change: JsonObject, *, subresource: str = "", manager: str = MANAGER
) -> Write:
    """Return a merge patch."""
    return Write(
        verb=Verb.PATCH,
        ref=stored.ref,
        body=msgspec.json.encode(change),
        subresource=subresource,
        uid=stored.uid,
        manager=manager,
    )


def remove_finalizer(stored: StoredObject, finalizer: str, *, manager: str = MANAGER) -> Write:
    """Return a patch that removes a finalizer."""
    remaining = [existing for existing in stored.finalizers if existing != finalizer]
    return patch(stored, {"metadata": {"finalizers": remaining or None}}, manager=manager)


def create(kind: Kind, namespace: str, body: JsonObject) -> Write:
    """Return the creation of an object; a body without a name needs a `generateName`."""
    metadata = body.get("metadata")
    full_body: JsonObject = {"apiVersion": kind.api_version, "kind": kind.name, **body}
    return Write(
        verb=Verb.CREATE,
        ref=Ref(kind, namespace, get_text(metadata, "name")),
        body=msgspec.json.encode(full_body),
        manager=MANAGER,
    )


def delete(stored: StoredObject, propagation: Propagation = Propagation.BACKGROUND) -> Write:
    """Return the deletion of an object."""
    return Write(verb=Verb.DELETE, ref=stored.ref, uid=stored.uid, propagation=propagation)


def delete_all(objects: Iterable[StoredObject]) -> Iterator[Write]:
    """Yield the deletions of objects."""
    for stored in objects:
        yield delete(stored)


def owner_reference(owner: StoredObject) -> JsonObject:
    """Return the owner reference of an object to its controller."""
    kind = owner.ref.kind
    return {
        "apiVersion": kind.api_version,
        "kind": kind.name,
        "name": owner.ref.name,
        "uid": owner.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def object_reference(stored: StoredObject) -> JsonObject:
    """Return an object reference that is not an owner reference."""
    return {
        "kind": stored.ref.kind.name,
        "namespace": stored.ref.namespace,
        "name": stored.ref.name,
        "uid": stored.uid,
        "apiVersion": stored.ref.kind.api_version,
    }


def controller_of_kind(stored: StoredObject, kind: Kind) -> Ref | None:
    """Return the controller of an object if it is of this kind, else None."""
    owner = controller_ref(stored)
    if owner is None or (owner.kind.group, owner.kind.name) != (kind.group, kind.name):
        return None
    return Ref(kind, owner.namespace, owner.name)


def controller_ref(stored: StoredObject) -> Ref | None:
    """Return the controller of an object, or None.

    Like `GetControllerOf` in `pkg/apis/meta/v1/controller_ref.go` of k8s.io/apimachinery 0.36.4.
    """
    for reference in get_owner_references(stored.metadata):
        if reference.get("controller") is True:
            return ref_from_reference(reference, stored.ref.namespace)
    return None


def ref_from_reference(reference: JsonObject, namespace: str) -> Ref:
    """Return the object that an owner reference or a target reference names."""
    kind = object_kind(reference)
    return Ref(kind, namespace, get_text(reference, "name"))


def is_controlled_by(stored: StoredObject, owner: StoredObject) -> bool:
    """Return whether an object controls another one.

    Like `IsControlledBy` in `pkg/apis/meta/v1/controller_ref.go` of k8s.io/apimachinery 0.36.4.
    """
    return any(
        reference.get("controller") is True and reference.get("uid") == owner.uid
        for reference in get_owner_references(stored.metadata)
    )


def list_controlled(reader: ObjectReader, owner: StoredObject, kind: Kind) -> list[StoredObject]:
    """Return the objects of a kind that an object controls, in order of creation."""
    return [
        dependent
        for dependent in reader.list_owned(owner.uid)
        if dependent.ref.kind == kind and is_controlled_by(dependent, owner)
    ]


def map_to_owner(kind: Kind, controlled_kind: Kind) -> MapFunc:
    """Return a MapFunc for objects of a kind and for the objects that they control.

    Like `EnqueueRequestForOwner` in `pkg/handler/enqueue_owner.go` of controller-runtime 0.24.1.
    """

    def map_event(_reader: ObjectReader, event: StoreEvent) -> Iterator[Ref]:
        ref: Ref | None = event.stored.ref
        if event.stored.ref.kind == controlled_kind:
            ref = controller_of_kind(event.stored, kind)
        if ref is not None and ref.kind == kind:
            yield ref

    return map_event


def compute_hash(value: Json) -> str:
    """Return a short, deterministic hash of a value, in letters that form no words.

    Like `ComputeHash` in `pkg/controller/controller_utils.go` of Kubernetes 1.36.4.
    """
    encoded = msgspec.json.encode(value, order="deterministic")
    return to_name_suffix(hashlib.blake2b(encoded, digest_size=DIGEST_LENGTH).digest())


def event_ref(regarding: StoredObject, *, reason: str, message: str = "") -> Ref:
    """Return the Event for an object's uid, a reason and a message, however often it occurs."""
    identity = f"{regarding.uid}/{reason}/{message}".encode()
    digest = hashlib.blake2b(identity, digest_size=8).hexdigest()
    return Ref(EVENT, regarding.ref.namespace or "default", f"{regarding.ref.name}.{digest}")


class EventRecorder(NamedTuple):
    """A recorder of Events about objects.

    Like `EventRecorder` in `tools/record/event.go` of k8s.io/client-go 0.36.4.
    """

    source: str
    """The component that reports the Events."""

    def record(
        self, regarding: StoredObject, reason: str, message: str, now: Ms, *, field_path: str = ""
    ) -> Write:
        """Return the write of a Normal Event; `field_path` is the field that it is about."""
        ref = event_ref(regarding, reason=reason, message=f"{field_path}{message}")
        fields: JsonObject = {"type": "Normal", "reason": reason, "message": message}
        return _new_event(ref, regarding, fields, self.source, now, field_path=field_path)

    def record_warning(self, regarding: StoredObject, reason: str, message: str, now: Ms) -> Write:
        """Return the write of a Warning Event, one for each reason: the first message stays."""
        fields: JsonObject = {"type": "Warning", "reason": reason, "message": message}
        return _new_event(event_ref(regarding, reason=reason), regarding, fields, self.source, now)


def first_warning_time(reader: ObjectReader, regarding: StoredObject, *, reason: str) -> Ms | None:
    """Return the time of the first warning with this reason; None if no Event is recorded."""
    event = reader.get(event_ref(regarding, reason=reason))
    return read_timestamp(event.body.get("firstTimestamp")) if event else None


def _new_event(
    ref: Ref,
    regarding: StoredObject,
    fields: JsonObject,
    source: str,
    now: Ms,
    *,
    field_path: str = "",
) -> Write:
    recorded_at = format_rfc3339(now)
    involved: JsonObject = {
        "apiVersion": regarding.ref.kind.api_version,
        "kind": regarding.ref.kind.name,
        "name": regarding.ref.name,
        "uid": regarding.uid,
    }
    if namespace := get_text(regarding.metadata, "namespace"):
        involved["namespace"] = namespace
    if field_path:
        involved["fieldPath"] = field_path
    return create(
        EVENT,
        ref.namespace,
        {
            "metadata": {"name": ref.name, "namespace": ref.namespace},
            "involvedObject": involved,
            **fields,
            "source": {"component": source},
            "reportingComponent": source,
            "firstTimestamp": recorded_at,
            "lastTimestamp": recorded_at,
            "count": 1,
        },
    )
