"""Controllers that the API itself depends on: garbage collection, namespaces, CRDs.

Garbage collection deletes objects without owners; owners in foreground deletion wait for their
dependents. Namespaces get their default objects, and are emptied on deletion. CRDs have their
names accepted and become established; their instances are deleted with them.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from tidegate.model.k8s.json_fields import get_mappings, get_value
from tidegate.model.k8s.kinds import CONFIG_MAP, CRD, NAMESPACE, SERVICE_ACCOUNT
from tidegate.model.k8s.objects import Json, JsonObject, Kind, Propagation, Ref
from tidegate.model.times import Ms
from tidegate.sandbox.controllers import writes
from tidegate.sandbox.controllers.conditions import new_condition
from tidegate.sandbox.controllers.interface import Controller, ObjectReader, Reconciliation
from tidegate.sandbox.server.kind_registry import list_served_versions
from tidegate.sandbox.server.lifecycle import (
    CRD_CLEANUP_FINALIZER,
    FOREGROUND_FINALIZER,
    ORPHAN_FINALIZER,
)
from tidegate.sandbox.server.store import StoredObject, StoreEvent, get_owner_references
from tidegate.schema.immutable import is_established
from tidegate.world.messages import WatchEventType
from tidegate.world.requests import Verb, Write

ROOT_CA = "kube-root-ca.crt"
API_SERVER = "kube-apiserver"
NAME_CONDITIONS = (
    ("NamesAccepted", "NoConflicts", "no conflicts found"),
    ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
)


def collect_garbage(reader: ObjectReader, ref: Ref, _now: Ms) -> Reconciliation:
    """Delete an object without owners, or handle its dependents while it is being deleted.

    Like `attemptToDeleteItem`, `processDeletingDependentsItem` and `orphanDependents` in
    `pkg/controller/garbagecollector/garbagecollector.go` of Kubernetes 1.36.4.
    """
    stored = reader.get(ref)
    if stored is None:
        return
    if stored.is_deleting and ORPHAN_FINALIZER in stored.finalizers:
        for dependent in reader.list_owned(stored.uid):
            yield _remove_owners(dependent, {stored.uid})
        yield writes.remove_finalizer(stored, ORPHAN_FINALIZER)
    elif stored.is_deleting and FOREGROUND_FINALIZER in stored.finalizers:
        yield from _delete_dependents(reader, stored)
    elif not stored.is_deleting:
        yield from _sync_with_owners(reader, stored)


def _delete_dependents(reader: ObjectReader, owner: StoredObject) -> Iterator[Write]:
    dependents = reader.list_owned(owner.uid)
    for dependent in dependents:
        if not dependent.is_deleting:
            propagation = (
                Propagation.FOREGROUND
                if reader.list_owned(dependent.uid)
                else Propagation.BACKGROUND
            )
            yield writes.delete(dependent, propagation)
    if not any(_blocks_deletion(dependent, owner.uid) for dependent in dependents):
        yield writes.remove_finalizer(owner, FOREGROUND_FINALIZER)


def _sync_with_owners(reader: ObjectReader, stored: StoredObject) -> Iterator[Write]:
    references = get_owner_references(stored.metadata)
    if not references:
        return
    owners = [
        (str(reference.get("uid")), _find_owner(reader, stored, reference))
        for reference in references
    ]
    absent_uids = {uid for uid, owner in owners if owner is None}
    waiting_owners = [
        owner
        for _, owner in owners
        if owner and owner.is_deleting and FOREGROUND_FINALIZER in owner.finalizers
    ]
    if len(absent_uids) + len(waiting_owners) == len(owners):
        yield writes.delete(stored)
    elif absent_uids:
        yield _remove_owners(stored, absent_uids)


def _find_owner(
    reader: ObjectReader, stored: StoredObject, reference: dict[str, Json]
) -> StoredObject | None:
    """Return the owner with this uid, in the same namespace or cluster-scoped; None if absent."""
    for namespace in (stored.ref.namespace, ""):
        owner = reader.get(writes.ref_from_reference(reference, namespace))
        if owner is not None and owner.uid == reference.get("uid"):
            return owner
    return None


def _blocks_deletion(dependent: StoredObject, uid: str) -> bool:
    return any(
        reference.get("uid") == uid and reference.get("blockOwnerDeletion") is True
        for reference in get_owner_references(dependent.metadata)
    )


def _remove_owners(dependent: StoredObject, uids: set[str]) -> Write:
    """Return a patch that removes these owners from an object."""
    remaining = [
        reference
        for reference in get_owner_references(dependent.metadata)
        if str(reference.get("uid")) not in uids
    ]
    return writes.patch(dependent, {"metadata": {"ownerReferences": [*remaining] or None}})


def _map_owner_event(reader: ObjectReader, event: StoreEvent) -> Iterator[Ref]:
    stored = event.stored
    if event.change is not WatchEventType.DELETED:
        if stored.is_deleting or _has_new_owners(event):
            yield stored.ref
        return
    yield from (dependent.ref for dependent in reader.list_owned(stored.uid))
    for reference in get_owner_references(stored.metadata):
        for namespace in {stored.ref.namespace: None, "": None}:
            yield writes.ref_from_reference(reference, namespace)


def _has_new_owners(event: StoreEvent) -> bool:
    """Return whether owners were added or changed; the deletion of one is a separate change."""
    owners = event.stored.metadata.get("ownerReferences")
    before = event.before.metadata.get("ownerReferences") if event.before else None
    return bool(owners) and owners != before


GARBAGE_COLLECTOR = Controller("garbage", collect_garbage, _map_owner_event)


def reconcile_namespace(reader: ObjectReader, ref: Ref, _now: Ms) -> Reconciliation:
    """Create the default objects of a namespace, or empty and finalize a terminating one.

    Like `syncNamespace` in `pkg/controller/serviceaccount/serviceaccounts_controller.go`,
    `syncNamespace` in `pkg/controller/certificates/rootcacertpublisher/publisher.go` and `Delete`
    in `pkg/controller/namespace/deletion/namespaced_resources_deleter.go` of Kubernetes 1.36.4.
    """
    namespace = reader.get(ref)
    if namespace is None:
        return
    if not namespace.is_deleting:
        yield from _create_default_objects(reader, ref.name)
        return
    content = reader.list_in_namespace(ref.name)
    for stored in content:
        if not stored.is_deleting:
            yield writes.delete(stored)
    if not content:
        body = msgspec.json.encode({"spec": {"finalizers": None}})
        yield Write(
            verb=Verb.PATCH, ref=ref, body=body, subresource="finalize", manager=writes.MANAGER
        )


def _create_default_objects(reader: ObjectReader, namespace: str) -> Iterator[Write]:
    defaults: tuple[tuple[Kind, str, JsonObject], ...] = (
        (SERVICE_ACCOUNT, "default", {}),
        (CONFIG_MAP, ROOT_CA, {"data": {"ca.crt": "simulated"}}),
    )
    for kind, object_name, content in defaults:
        if reader.get(Ref(kind, namespace, object_name)) is None:
            yield writes.create(
                kind,
                namespace,
                {"metadata": {"name": object_name, "namespace": namespace}, **content},
            )


def _map_namespace_event(_reader: ObjectReader, event: StoreEvent) -> Iterator[Ref]:
    ref = event.stored.ref
    if ref.kind == NAMESPACE:
        yield ref
    elif event.change is WatchEventType.DELETED and ref.namespace:
        yield Ref(NAMESPACE, "", ref.namespace)


NAMESPACES = Controller("namespaces", reconcile_namespace, _map_namespace_event)


def reconcile_crd(reader: ObjectReader, ref: Ref, now: Ms) -> Reconciliation:
    """Establish a CRD; delete the instances of one that is being deleted.

    Like `calculateNamesAndConditions` in `pkg/controller/status/naming_controller.go`, `sync` in
    `pkg/controller/establish/establishing_controller.go` and `deleteInstances` in
    `pkg/controller/finalizer/crd_finalizer.go` of k8s.io/apiextensions-apiserver 0.36.4.
    """
    definition = reader.get(ref)
    if definition is None:
        return
    if definition.is_deleting:
        yield from _delete_instances(reader, definition)
    elif not is_established(definition.body):
        status: JsonObject = {"status": _established_status(definition.body, now)}
        yield writes.patch(definition, status, subresource="status", manager=API_SERVER)


def _delete_instances(reader: ObjectReader, definition: StoredObject) -> Iterator[Write]:
    kind = next((kind for kind, _ in list_served_versions(definition.body)), None)
    instances = reader.list_objects(kind) if kind else []
    for stored in instances:
        if not stored.is_deleting:
            yield writes.delete(stored)
    if not instances and CRD_CLEANUP_FINALIZER in definition.finalizers:
        yield writes.remove_finalizer(definition, CRD_CLEANUP_FINALIZER, manager=API_SERVER)


def _established_status(body: JsonObject, now: Ms) -> JsonObject:
    versions = get_mappings(body, "spec", "versions")
    stored_versions = [version.get("name") for version in versions if version.get("storage")]
    return {
        "acceptedNames": get_value(body, "spec", "names"),
        "storedVersions": stored_versions,
        "conditions": [
            new_condition(name, "True", reason, message, now=now, extra_time_field="")
            for name, reason, message in NAME_CONDITIONS
        ],
    }


def _map_crd_event(reader: ObjectReader, event: StoreEvent) -> Iterator[Ref]:
    ref = event.stored.ref
    if ref.kind == CRD:
        yield ref
    elif event.change is WatchEventType.DELETED and "." in ref.kind.group:
        yield from (
            definition.ref
            for definition in reader.list_objects(CRD)
            if definition.is_deleting and definition.ref.name.endswith(f".{ref.kind.group}")
        )


CRD_CONTROLLER = Controller("custom-kinds", reconcile_crd, _map_crd_event, delay=Ms(100))
API_CONTROLLERS = (GARBAGE_COLLECTOR, NAMESPACES, CRD_CONTROLLER)
